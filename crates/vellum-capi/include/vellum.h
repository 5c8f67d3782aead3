/*
 * Vellum for C and C++: many threads of many processes append to one log, at the speed of memory.
 *
 *     vellum_log *log;
 *     if (vellum_open("app.log", NULL, &log) != VELLUM_OK) {
 *         fprintf(stderr, "%s\n", vellum_last_error_message());
 *         return 1;
 *     }
 *     uint64_t lsn;
 *     vellum_append(log, "a record", 8, &lsn);   // survives the death of this process
 *     vellum_commit(log, lsn);                   // survives a power cut
 *     vellum_close(log);
 *
 * What holds for every function:
 *
 * Results    A function that can fail returns an int: VELLUM_OK, which is 0, or another
 *            vellum_status. Then vellum_last_error_message() says in a sentence what was wrong.
 *            Answers come through the last arguments, which are written on VELLUM_OK only.
 * Handles    Whoever gets a handle closes it, by the function that its type names. Functions that
 *            close accept NULL, all others answer it with VELLUM_INVALID_ARGUMENT. What is made
 *            from a log keeps it open: handles are closed in any order.
 * Threads    A handle that is taken as const may be used by any number of threads at once; one that
 *            is not, by one thread at a time, whichever. Nobody uses a handle that is being closed.
 * Borrowing  A pointer that a function gives belongs to the library; its comment says until when
 *            it may be read. Data that a function is given is read before it returns, not after.
 * Positions  A record's position (LSN) is a byte position in the log: it grows, it may skip, and is
 *            never 0. Bytes are counted in size_t or uint64_t, times as their names say: _ns, _s.
 * Fork       After fork the child may go on with its copy of every log, reader and batch: it is a
 *            participant of its own from its first append on. Reservations, committers and keepers
 *            stay with the parent; the child makes its own. It may close all of them.
 * Signals    No function may be called from a signal handler. None ends early because of a signal,
 *            and none changes a signal's disposition.
 * Panics     A defect of the library ends as VELLUM_PANIC in the function that met it (and a line
 *            on the standard error); nothing is unwound into the caller.
 * Growth     Structures that begin with struct_size may get more fields. The caller sets it to the
 *            structure's sizeof, before the call: a program compiled with an older header goes on
 *            working, and one with a newer header does unless it asks for what is not there.
 */
#ifndef VELLUM_H
#define VELLUM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Versions -------------------------------------------------------------------------------- */

// Major version of this header: it changes where programs must be changed.
#define VELLUM_VERSION_MAJOR 0

// Minor version of this header: it changes where something is added.
#define VELLUM_VERSION_MINOR 1

// Patch level of this header.
#define VELLUM_VERSION_PATCH 0

// Version of the binary interface, the number in libvellum.so.0: it changes where programs must be
// compiled anew.
#define VELLUM_ABI_VERSION 0

// The version of the library that is loaded, as "0.1.0".
//
// The text is static. The header's own version is VELLUM_VERSION_MAJOR and so on.
const char *vellum_version(void);

// The version of the binary interface of the library that is loaded.
//
// A program that loads the library by dlopen compares it with its VELLUM_ABI_VERSION.
uint32_t vellum_abi_version(void);

/* ---- Codes ----------------------------------------------------------------------------------- */

// The return value of a function: 0, or the reason of its failure.
//
// The numbers are stable. Others may be added: treat a number that is not known as VELLUM_IO.
typedef enum {
    // It is done.
    VELLUM_OK = 0,
    // The operating system refused, for a reason without a code of its own.
    VELLUM_IO = 1,
    // The disk, the quota or the file-size limit is exhausted. Nothing was reserved.
    VELLUM_NO_SPACE = 2,
    // There is no log at this path.
    VELLUM_NOT_FOUND = 3,
    // There is a log or a file at this path, and a new one was asked for.
    VELLUM_ALREADY_EXISTS = 4,
    // The permissions of the log do not allow this.
    VELLUM_PERMISSION_DENIED = 5,
    // The log was opened for reading only.
    VELLUM_READ_ONLY = 6,
    // The filesystem, the kernel or the log's layout cannot do this.
    VELLUM_UNSUPPORTED = 7,
    // An option is out of range, or contradicts what is stored with the log.
    VELLUM_INVALID_OPTION = 8,
    // The record or batch is longer than 4 GiB - 1.
    VELLUM_RECORD_TOO_LARGE = 9,
    // 1024 processes are attached, and there is no room for more.
    VELLUM_TOO_MANY_PARTICIPANTS = 10,
    // The position has been trimmed away: continue at vellum_begin.
    VELLUM_TRIMMED = 11,
    // The position is beyond the end, or is not the start of a record.
    VELLUM_OUT_OF_RANGE = 12,
    // The log holds bytes that no crash explains: vellum_repair saves the rest.
    VELLUM_CORRUPT = 13,
    // Not a log, or a log of another format version.
    VELLUM_INCOMPATIBLE = 14,
    // The positions of the log, 16 PiB, are used up.
    VELLUM_EXHAUSTED = 15,
    // The reservation was incomplete, or is another process's; the space is passed over.
    VELLUM_ABANDONED = 16,
    // The log is in use in a way that excludes this.
    VELLUM_BUSY = 17,
    // A write or sync failed before: nothing more can be made durable until every process has
    // closed the log and one has opened it again.
    VELLUM_POISONED = 18,
    // Another process held what the call needs for longer than the call was to wait: the message
    // names it. The call has changed nothing.
    VELLUM_TIMED_OUT = 19,
    // The log's directory was removed or moved while the log was open, or its files were. The
    // earlier records are where the directory went: vellum_reopen continues in a new log.
    VELLUM_REMOVED = 20,
    // A vellum_position was taken before a power cut or a truncation took back what was there.
    // vellum_last_error_lsn is from where on the log may differ, or 0 where that is not known.
    VELLUM_REWOUND = 21,
    // A vellum_position is of another log.
    VELLUM_OTHER_LOG = 22,
    // No process ships the log, so nothing can be waited for. Committed records are committed.
    VELLUM_NO_SHIPPER = 23,
    // Another machine, or another copy of the log, has taken over the store that this log is
    // shipped to. Committed records are committed here, and are not shipped.
    VELLUM_FENCED = 24,
    // Another handle has the log open for writing, in this process or another, and one of the two
    // wants to be the only one (VELLUM_EXCLUSIVE, VELLUM_KIND_WAL). The text names its process.
    VELLUM_IN_USE = 25,
    // No error: there is nothing more, or nothing more yet.
    VELLUM_END = 100,
    // No error: it is on its way.
    VELLUM_PENDING = 101,
    // A pointer is NULL that must not be, or a number or a struct_size makes no sense.
    VELLUM_INVALID_ARGUMENT = 110,
    // A defect of the library, caught at its border. Close the log; please report it.
    VELLUM_PANIC = 111,
} vellum_status;

// The meaning of a code, in a few words: "no space left".
//
// The text is static, in English. vellum_last_error_message says more about the last failure.
const char *vellum_strerror(int status);

/* ---- What went wrong ------------------------------------------------------------------------- */

// One sentence about the last function that failed in this thread: the operation, the file, and
// the remedy. "" where none failed yet.
//
// The text is borrowed until another function of this library fails in this thread, or the thread
// ends. A function that succeeds leaves it alone: ask after a failure only.
const char *vellum_last_error_message(void);

// The code that the last function that failed in this thread returned; VELLUM_OK where none did.
//
// For functions that do not return a code, such as vellum_begin(NULL).
int vellum_last_error_code(void);

// The file or directory that the last failure in this thread was about, or NULL.
//
// Borrowed as vellum_last_error_message.
const char *vellum_last_error_path(void);

// The position that the last failure in this thread was about, or 0.
uint64_t vellum_last_error_lsn(void);

// The errno with which the operating system caused the last failure in this thread, or 0.
//
// The global errno means nothing after a function of this library.
int vellum_last_error_errno(void);

// The errno that fits a code, for a program that keeps one; 0 for VELLUM_OK and VELLUM_END.
//
// That of the operating system where it caused this thread's last failure, and that had this code.
// Otherwise it follows from the code alone: docs/c.md has the table.
int vellum_errno_of(int status);

/* ---- Options --------------------------------------------------------------------------------- */

// For fields of vellum_options that belong to the log's policy: leave it as it is stored.
#define VELLUM_KEEP UINT64_MAX

// For vellum_options.retain_files: keep all closed files.
#define VELLUM_ALL_FILES (UINT64_MAX - 1)

// For vellum_options.spare_segments_max: a trim keeps no segment.
#define VELLUM_NO_SPARES UINT64_MAX

// For vellum_options.flags: fail with VELLUM_NOT_FOUND where there is no log yet.
#define VELLUM_NO_CREATE 1

// For vellum_options.flags: fail with VELLUM_ALREADY_EXISTS where there is one.
#define VELLUM_CREATE_NEW 2

// For vellum_options.flags: open for reading only, which needs no more than read permission.
#define VELLUM_OPEN_READ_ONLY 4

// For vellum_options.flags: follow no advice that was measured for a directory above the log.
#define VELLUM_NO_ADVICE 8

// For vellum_options.flags: each record of a new framed log has an envelope of 16 bytes, with the
// time and the writer (vellum_reader_time, vellum_reader_writer). A log that was created without
// is refused with VELLUM_INVALID_OPTION; without the flag, the log is taken as it is.
#define VELLUM_ENVELOPE 32

// For vellum_options.flags: no other handle may have the log open for writing, in this process or
// another. The second opener gets VELLUM_IN_USE, and the text names the first; its close or death
// ends that. Readers and vellum ship come in. VELLUM_KIND_WAL means it without this flag.
#define VELLUM_EXCLUSIVE 64

// For vellum_options.flags: several processes append to this write-ahead log, and share the writes
// of its commits. The other kinds mean it without this flag.
#define VELLUM_SHARED 128

// For vellum_options.flags: the path of a new text log is that of a file. The log is then in the
// directory PATH.d, and PATH is a link to its newest file, for grep, less and tail -F. A log that
// is there as a directory stays one. Every opener takes the link for the name of the log, with or
// without this flag.
#define VELLUM_FILE_LINK 256

// The purpose of a log. For vellum_options.kind.
typedef enum {
    // The log that is there, of whatever kind; a new log is as VELLUM_KIND_EVENTS.
    VELLUM_KIND_DEFAULT = 0,
    // A write-ahead log: framed and staged, so that vellum_commit costs one direct write of the
    // device.
    VELLUM_KIND_WAL = 1,
    // Records at the speed of memory: framed, and mapped where that is safe.
    VELLUM_KIND_EVENTS = 2,
    // Plain text that every tool can read at any time: each append is one pwrite of whole lines.
    // The caller brings the newline; a record is read back line by line.
    VELLUM_KIND_TEXT = 3,
    // Text at the speed of memory. The newest file has NULs behind the text while a process has
    // the log open for writing.
    VELLUM_KIND_MAPPED_TEXT = 4,
} vellum_kind;

// How records lie in the files. For vellum_summary.layout.
typedef enum {
    // Each record in a frame with its length and checksum. Records are any bytes, and come back as
    // they were appended.
    VELLUM_LAYOUT_FRAMED = 1,
    // The caller's bytes and nothing else: plain files for grep, tail and log shippers.
    VELLUM_LAYOUT_TEXT = 2,
} vellum_layout;

// How file space is made ready ahead of need. For vellum_options.preallocate.
typedef enum {
    // As the log has it; in a new log as VELLUM_PREALLOCATE_AUTO.
    VELLUM_PREALLOCATE_DEFAULT = 0,
    // The method that suits the filesystem.
    VELLUM_PREALLOCATE_AUTO = 1,
    // Not at all: the file grows with the log.
    VELLUM_PREALLOCATE_OFF = 2,
    // The size of the whole file without its blocks; with VELLUM_FILL_PWRITE.
    VELLUM_PREALLOCATE_SPARSE = 3,
    // Blocks by fallocate, in steps ahead of the records; of whole files where vellum_prepare asks
    // for them, and in a staged log.
    VELLUM_PREALLOCATE_FALLOCATE = 4,
    // The blocks of the whole file, written with zeros. Framed only.
    VELLUM_PREALLOCATE_ZEROS = 5,
    // As FALLOCATE, and trimmed files are used again. Framed only.
    VELLUM_PREALLOCATE_RECYCLE = 6,
} vellum_preallocate;

// How records are written to the segment files. For vellum_options.fill.
typedef enum {
    // As the log has it; in a new log MAPPED where that is safe, PWRITE elsewhere.
    VELLUM_FILL_DEFAULT = 0,
    // Small records are stored through a shared mapping, long ones written by pwrite.
    VELLUM_FILL_MAPPED = 1,
    // Every record is written by pwrite.
    VELLUM_FILL_PWRITE = 2,
    // Records are stored into files beside the segments and reach the segments when they are
    // committed. Framed only; uncommitted records survive every process, but no reboot.
    VELLUM_FILL_STAGED = 3,
} vellum_fill;

// Whether closed files of a text log are compressed. For vellum_options.compress.
typedef enum {
    // As the log has it; in a new log not.
    VELLUM_COMPRESS_KEEP = 0,
    // They stay as they are.
    VELLUM_COMPRESS_OFF = 1,
    // With zstd, by the process that began a new file. Where the library is built with it.
    VELLUM_COMPRESS_ON = 2,
    // With gzip, the same way, for zgrep, zless and scripts that know only that.
    VELLUM_COMPRESS_GZIP = 3,
} vellum_compress;

// The behaviour of an append on a full disk. For vellum_options.on_full.
typedef enum {
    // It returns VELLUM_NO_SPACE.
    VELLUM_ON_FULL_ERROR = 0,
    // It waits until there is space again.
    VELLUM_ON_FULL_BLOCK = 1,
    // It drops the record, counts it, and returns VELLUM_OK with position 0. Text logs only. Space
    // is looked for 20 times a second by all processes together, so records are appended again 50
    // ms after some was made.
    VELLUM_ON_FULL_DROP = 2,
} vellum_on_full;

// The behaviour of an append when the stage is full: as many segments as may be hold records that
// are not durable. For vellum_options.on_stage_full.
typedef enum {
    // It commits what was appended before, and then appends.
    VELLUM_ON_STAGE_FULL_COMMIT = 0,
    // It returns VELLUM_NO_SPACE; nothing was reserved.
    VELLUM_ON_STAGE_FULL_ERROR = 1,
} vellum_on_stage_full;

// How to open or create a log.
//
// Fill it by vellum_options_init, then change what should be different. What shapes the files is
// stored when the log is created: segment_capacity_bytes, preallocate, fill and mode are for a new
// log, and one that is there keeps its own (vellum_summary). A log of another kind than the opener
// asks for is VELLUM_INVALID_OPTION; 0 takes what is there. What says when a text log goes on in a
// new file and which files it keeps (rotate_*, retain_*, compress) is stored too, but changes for
// all processes when one opens the log with other values. The rest is about this process.
typedef struct {
    // sizeof(vellum_options), as vellum_options_init sets it.
    size_t struct_size;
    // VELLUM_NO_CREATE, VELLUM_OPEN_READ_ONLY and so on, joined by |. Default: 0.
    uint32_t flags;
    // Permission bits of a new log's files, before the umask. 0 is 0666.
    uint32_t mode;
    // A vellum_kind. Default: VELLUM_KIND_DEFAULT.
    uint32_t kind;
    // A vellum_preallocate. Default: VELLUM_PREALLOCATE_DEFAULT.
    uint32_t preallocate;
    // A vellum_fill. Default: VELLUM_FILL_DEFAULT.
    uint32_t fill;
    // A vellum_on_full. Default: VELLUM_ON_FULL_ERROR.
    uint32_t on_full;
    // Bytes of log in a file: a multiple of the page size, 4 KiB to 1 GiB. 0 is 64 MiB for a new
    // log, 16 MiB where records are staged.
    uint64_t segment_capacity_bytes;
    // How far ahead of the tail this process makes pages ready, in bytes: a multiple of the page
    // size. 0 is 1 MiB.
    uint64_t prefault_bytes;
    // Address space that this process may use for mapped files, in bytes. 0 is 256 MiB.
    uint64_t mapped_bytes_max;
    // Bytes after which a text log continues in a new file; 0 is never. Default: VELLUM_KEEP.
    uint64_t rotate_bytes;
    // Seconds after which it does, counted from 1970-01-01 00:00 UTC: 86400 is midnight UTC; 0 is
    // never. Default: VELLUM_KEEP.
    uint64_t rotate_every_s;
    // Seconds by which those moments are moved. Default: VELLUM_KEEP.
    uint64_t rotate_offset_s;
    // Bytes that the files may take together; 0 is no limit. For framed logs too: whole segments
    // go, and nothing from the checkpoint on. Default: VELLUM_KEEP.
    uint64_t retain_bytes;
    // Seconds for which a closed file is kept; 0 is for ever. For framed logs too. Default:
    // VELLUM_KEEP.
    uint64_t retain_age_s;
    // Closed files that are kept; VELLUM_ALL_FILES is no limit. Default: VELLUM_KEEP.
    uint64_t retain_files;
    // A vellum_compress. Default: VELLUM_COMPRESS_KEEP.
    uint32_t compress;
    // A vellum_on_stage_full. Default: VELLUM_ON_STAGE_FULL_COMMIT.
    uint32_t on_stage_full;
    // How long this process's appends, commits and other calls on the open log wait for another
    // process that is stopped or does not get on, in microseconds: then they return
    // VELLUM_TIMED_OUT, and have changed nothing. 0 is for as long as that process lives.
    uint64_t timeout_us;
    // Segments of a staged log that may hold records which are not durable; at least 2. 0 is 3.
    uint64_t staged_segments_max;
    // Segments that may wait for new records behind a trim, or a removal by the policy: those that
    // are ready already, and those that are kept of the removed ones. With VELLUM_NO_SPARES all
    // removed ones are given back to the disk, also while the log ships. 0, and the most, is 8 in
    // a staged log.
    uint64_t spare_segments_max;
    // Bytes of log behind the checkpoint after which the next one is due: vellum_checkpoint_due. 0
    // is never.
    uint64_t checkpoint_after_bytes;
    // The application's mark of its records, such as the version of their encoding: stored when
    // the log is created. A log that was created with another one, or with none, is refused with
    // VELLUM_INVALID_OPTION. 0 takes the log as it is.
    uint64_t application_tag;
} vellum_options;

// Fills `options` with the defaults: vellum_options_init(&options, sizeof options).
//
// `struct_size` is the size in the caller's header; the library may know more fields or fewer.
// Returns VELLUM_INVALID_ARGUMENT for NULL and for a size that no version has.
int vellum_options_init(vellum_options *options, size_t struct_size);

/* ---- Opening a log --------------------------------------------------------------------------- */

// Why a log was recovered. For vellum_recovery.reason; others may be added.
typedef enum {
    // It was not.
    VELLUM_RECOVERY_NONE = 0,
    // The boot id is another: the machine has started again, or a container has an id of its own.
    VELLUM_RECOVERY_REBOOT = 1,
    // The control file is not the one that was written: the log was copied or restored, or the
    // filesystem has changed the numbers of its files.
    VELLUM_RECOVERY_MOVED = 2,
    // The control file was gone.
    VELLUM_RECOVERY_CONTROL_LOST = 3,
    // The control file does not agree with the segments.
    VELLUM_RECOVERY_DISAGREEMENT = 4,
    // A write or sync of the device had failed.
    VELLUM_RECOVERY_POISONED = 5,
    // A truncation had not been finished.
    VELLUM_RECOVERY_TRUNCATION = 6,
    // The stage of a staged log was gone.
    VELLUM_RECOVERY_STAGE_LOST = 7,
} vellum_recovery_reason;

// An open log.
//
// From vellum_open, until vellum_close. Any number of threads may use it at once.
typedef struct vellum_log vellum_log;

// The recovery on opening the log.
typedef struct {
    // sizeof(vellum_recovery), set by the caller.
    size_t struct_size;
    // 1 if there was a recovery (vellum_recovered: by this process), otherwise 0, as all below.
    uint64_t recovered;
    // End of the recovered records.
    uint64_t end;
    // End of the records that were known to be durable before.
    uint64_t durable;
    // Bytes behind `end` that were cut, because a power cut had torn them.
    uint64_t cut_bytes;
    // Bytes that were filled in before `end`: pads, marker lines, the newline of a torn line.
    uint64_t padded_bytes;
    // From here on positions may hold something else than before. At most `end`.
    uint64_t from;
    // When, in seconds since 1970.
    uint64_t time_s;
    // Why: a vellum_recovery_reason.
    uint64_t reason;
} vellum_recovery;

// Opens or creates the log in the directory `path`.
//
// `options` NULL is the defaults: an existing log as it is, or a new framed one. `*log` is to be
// closed by vellum_close.
//
// Errors: VELLUM_NOT_FOUND, VELLUM_ALREADY_EXISTS and VELLUM_PERMISSION_DENIED as for a file;
// VELLUM_INVALID_OPTION for a value out of range, or one that contradicts the stored one;
// VELLUM_INCOMPATIBLE where the path is something else than a log of this version;
// VELLUM_UNSUPPORTED on a filesystem that cannot carry a log; VELLUM_CORRUPT for damage to
// committed records; VELLUM_POISONED while others have the log open after a failed write;
// VELLUM_TOO_MANY_PARTICIPANTS when 1024 processes are attached.
//
// Durable: a new log survives the death of every process; after a power cut it is there whole or
// not at all.
//
// Cost: a dozen system calls; two syncs where the log is created.
int vellum_open(const char *path, const vellum_options *options, vellum_log **log);

// Opens the log at the path of `log` once more: joins the one that is there, or makes one with the
// same layout, way to fill and policy. To continue after VELLUM_REMOVED.
//
// All processes that do so are in the same new log. `log` stays as it is, for its readers and
// commits, until it is closed. A relative path is meant from where it was opened. Where the
// directory is still there without its file `lock`, as in the middle of `rm -rf`, it is renamed to
// NAME.removed-TIME-PID first. `*reopened` is to be closed by vellum_close.
//
// Errors: as for vellum_open; VELLUM_NOT_FOUND if the log was opened for reading, or not to be
// created, and there is none.
int vellum_reopen(const vellum_log *log, vellum_log **reopened);

// Closes a log; NULL is fine. The handle is gone, whatever this returns.
//
// The last process to close a log cuts a text log to its text, and commits what a staged log has.
// Other processes notice nothing.
//
// Errors: VELLUM_BUSY where something that was made from the log (a reader, a batch, a committer)
// keeps it open: then it is closed with the last of them, and errors are lost. Otherwise as for
// vellum_commit, VELLUM_NO_SPACE and VELLUM_IO: the process has left the log, and uncommitted
// records are there as after a kill -9.
//
// Durable: committed records, and all of a staged log that no other process has open. Call
// vellum_sync before for other logs.
//
// Cost: half a dozen system calls; in a staged log two writes of the device.
int vellum_close(vellum_log *log);

// The log's directory, as it was opened. Borrowed until the log is closed. NULL for NULL.
const char *vellum_log_path(const vellum_log *log);

// The log's vellum_layout: VELLUM_LAYOUT_FRAMED or VELLUM_LAYOUT_TEXT. 0 for NULL.
uint32_t vellum_log_layout(const vellum_log *log);

// Oldest position that is still kept. 0 for NULL. Costs a read of memory, as the next three.
uint64_t vellum_begin(const vellum_log *log);

// End of the records that survive a power cut. 0 for NULL.
uint64_t vellum_durable(const vellum_log *log);

// End of the records that readers can see: everything before it is filled. 0 for NULL. The next
// record starts there, so it may be stored as the place to read from (vellum_position_of).
uint64_t vellum_published(const vellum_log *log);

// Waits until every reader sees the record at `lsn`, and everything before it, up to `timeout_ns`
// nanoseconds; -1 is for ever. A record whose append has returned is seen once each append in
// front of it is done, in any process. Makes nothing durable.
//
// Errors: VELLUM_TIMED_OUT; VELLUM_OUT_OF_RANGE for a position beyond the end; VELLUM_BUSY while
// the calling thread holds a reservation before `lsn`.
int vellum_wait_published(const vellum_log *log, uint64_t lsn, int64_t timeout_ns);

// End of the reserved space: where the next record goes, or a little further. 0 for NULL.
uint64_t vellum_tail(const vellum_log *log);

// Tells what opening the log had to recover, if it was this process that had to.
//
// Only the first opener after a power cut, or after the control file was lost, has to.
int vellum_recovered(const vellum_log *log, vellum_recovery *recovery);

/* ---- Appending ------------------------------------------------------------------------------- */

// Appends one record of `len` bytes; `*lsn` is its position. `lsn` may be NULL.
//
// In a text log the bytes go in as they are: bring the newline.
//
// Errors: VELLUM_NO_SPACE (see vellum_options.on_full) and VELLUM_RECORD_TOO_LARGE before anything
// is reserved; VELLUM_READ_ONLY; VELLUM_POISONED; VELLUM_IO where the operating system refuses.
// After an error the record is not in the log, and the log continues.
//
// Durable: on return the record survives the death of this process and of every other. It does
// not yet survive a power cut: vellum_commit.
//
// Cost: two contended atomic operations and a copy; one pwrite for a record over 128 KiB. No
// system call, no allocation and no lock else, but for preparing space: one append now and then
// writes zeros for the next millisecond of records to the page cache (14 µs for 16 KiB, 300 for a
// MiB). In a staged log that one also gets on with the next file (twice as much to the device, two
// syncs at the end; with records of 64 KiB and more all of the file at once), and one that finds
// the stage full commits up to staged_segments_max segments (vellum_options.on_stage_full). Each
// takes as long as the device does: the whole of a segment 5 to 25 ms as measured. A keeper or a
// committer of the process does all that for records of up to 64 KiB, as long as it keeps up: no
// append syncs anything then, or writes to the device, and hardly one writes zeros.
int vellum_append(const vellum_log *log, const void *data, size_t len, uint64_t *lsn);

// Appends one record given in `count` parts, one after the other; `lsn` may be NULL.
//
// Otherwise as vellum_append. More than eight parts cost an allocation.
int vellum_appendv(const vellum_log *log, const struct iovec *parts, size_t count, uint64_t *lsn);

// Appends one record and commits it; `lsn` may be NULL.
//
// As vellum_append and vellum_commit. After an error of the commit the record may be in the log.
int vellum_append_durable(const vellum_log *log, const void *data, size_t len, uint64_t *lsn);

/* ---- Appending several records, all or none -------------------------------------------------- */

// Records that are appended together: readers see all of them or none, one after the other with
// nothing between, also after the death of any process.
//
// From vellum_batch_begin, until vellum_batch_append or vellum_batch_discard. One thread at a
// time.
typedef struct vellum_batch vellum_batch;

// Begins an empty batch. Costs an allocation.
int vellum_batch_begin(const vellum_log *log, vellum_batch **batch);

// Adds a record of `len` bytes, which are copied.
//
// Errors: VELLUM_RECORD_TOO_LARGE when the batch would take more than 4 GiB - 1; it stays as it
// was.
int vellum_batch_push(vellum_batch *batch, const void *data, size_t len);

// Records added so far. 0 for NULL.
uint64_t vellum_batch_count(const vellum_batch *batch);

// Appends all records of the batch; `*lsn` is the position of the first. `lsn` may be NULL.
//
// Ends the batch, whatever it returns. Errors, durability and cost as for vellum_append, and
// VELLUM_INVALID_OPTION for a batch without records. After an error none of them is in the log.
int vellum_batch_append(vellum_batch *batch, uint64_t *lsn);

// As vellum_batch_append, and stores the position of each record in `lsns`, which has room for
// `count` of them; of a longer batch, those of its first `count` records.
int vellum_batch_append_each(vellum_batch *batch, uint64_t *lsns, size_t count);

// Ends a batch without appending anything; NULL is fine.
void vellum_batch_discard(vellum_batch *batch);

/* ---- Writing a record where it will stay ----------------------------------------------------- */

// Space at the tail that belongs to the caller: a record that is written where it will stay.
//
// From vellum_reserve, until vellum_reservation_publish or vellum_reservation_abandon. One thread
// at a time. Nothing behind it becomes visible before: keep it short.
typedef struct vellum_reservation vellum_reservation;

// Reserves `len` bytes at the tail for one record.
//
// The bytes are given by vellum_reservation_write; there is no pointer to write to, because they
// may lie in two files, or in none that is mapped. Errors as for vellum_append.
int vellum_reserve(const vellum_log *log, size_t len, vellum_reservation **reservation);

// The position of the record. 0 for NULL.
uint64_t vellum_reservation_lsn(const vellum_reservation *reservation);

// Bytes that are still to be written. 0 for NULL.
size_t vellum_reservation_remaining(const vellum_reservation *reservation);

// Writes the next `len` bytes of the record.
//
// Errors: VELLUM_OUT_OF_RANGE for more than remain, then nothing is written; VELLUM_IO and
// VELLUM_NO_SPACE where the operating system refuses; VELLUM_ABANDONED in a child forked
// meanwhile.
int vellum_reservation_write(vellum_reservation *reservation, const void *data, size_t len);

// Changes `len` bytes that were written already, `offset` bytes from the start of the record.
//
// For a header that is known last. Errors: VELLUM_OUT_OF_RANGE for bytes that have not been
// written yet; otherwise as for vellum_reservation_write. Costs a second look at the record when
// it is published.
int vellum_reservation_rewrite(vellum_reservation *reservation,
                               size_t offset,
                               const void *data,
                               size_t len);

// Makes the record visible to readers of every process; `*lsn` is its position, or `lsn` is NULL.
//
// Ends the reservation, whatever it returns. Errors: VELLUM_ABANDONED when fewer bytes were
// written than reserved; readers pass over the space. Durable as vellum_append.
int vellum_reservation_publish(vellum_reservation *reservation, uint64_t *lsn);

// Gives the space up: readers pass over it. NULL is fine.
void vellum_reservation_abandon(vellum_reservation *reservation);

/* ---- A record -------------------------------------------------------------------------------- */

// A record, as a reader lends it.
typedef struct {
    // The caller's bytes; in a text log a line with its newline, which only the last may lack.
    // Borrowed until the next call with the same reader. Not followed by a NUL.
    const void *data;
    // How many.
    size_t len;
    // The position of the record.
    uint64_t lsn;
    // The position of the next one.
    uint64_t next_lsn;
} vellum_record;

/* ---- What is missing in a log ---------------------------------------------------------------- */

// A stretch of a log that cannot be read: a file that is gone, empty or cut short, or damage.
typedef struct {
    // sizeof(vellum_gap), set by the caller.
    size_t struct_size;
    // Where it begins.
    uint64_t from;
    // Where the log continues.
    uint64_t to;
    // How many bytes are missing, at most.
    uint64_t bytes_max;
    // When what is missing was appended, at the earliest, in seconds since 1970; 0 where nothing
    // tells.
    uint64_t after_s;
    // The same, at the latest.
    uint64_t before_s;
    // The file; of a text log's that is gone, the pattern of its name. Borrowed from the
    // vellum_stat, or until the next vellum_reader_take_gap.
    const char *path;
    // Its fault, the remedy, the size and the time of the missing part: a sentence without its
    // end. Borrowed in the same way.
    const char *text;
} vellum_gap;

/* ---- Reading and following ------------------------------------------------------------------- */

// For vellum_reader_open_with: return a record only after some process has committed it.
#define VELLUM_READ_DURABLE 1

// For vellum_reader_open_with: have a file descriptor, vellum_reader_fd.
#define VELLUM_READ_POLLABLE 2

// A place in a log, and the way to the next record.
//
// From vellum_reader_open or vellum_reader_open_with, until vellum_reader_close. One thread at a
// time; any thread.
typedef struct vellum_reader vellum_reader;

// A reader that starts at the record at `from`, or at the oldest for 0.
//
// Errors: VELLUM_TRIMMED for a position that is no longer kept, VELLUM_OUT_OF_RANGE for one beyond
// the end, or where no record (in a text log: no line) starts.
int vellum_reader_open(const vellum_log *log, uint64_t from, vellum_reader **reader);

// As vellum_reader_open, with `flags`: VELLUM_READ_DURABLE, VELLUM_READ_POLLABLE, or both, or 0.
//
// Records of a durable reader survive a power cut. It commits nothing itself. Its
// vellum_reader_follow returns VELLUM_POISONED after a failed write or sync, when it has returned
// everything that is durable; so does its vellum_reader_next if it is pollable.
//
// Errors: as for vellum_reader_open; VELLUM_IO where no file descriptor is left;
// VELLUM_INVALID_ARGUMENT for other flags.
//
// Cost: three file descriptors for a pollable one.
int vellum_reader_open_with(const vellum_log *log,
                            uint64_t from,
                            uint32_t flags,
                            vellum_reader **reader);

// A reader that starts at the first record that was appended at `time_ns` or later, in nanoseconds
// since 1970, or at the end of the log; `flags` as for vellum_reader_open_with.
//
// Behind it may come records with an earlier time, because clocks are set back and appends
// overlap: vellum_reader_time tells. In a log without envelopes it starts earlier: in a text log
// at the file whose name has that time or the last one before it; in a framed log that removes
// records by age at the start of a segment. Records from before a clock was set back by more than
// a minute may be missing.
//
// Errors: VELLUM_UNSUPPORTED where nothing in the log tells a time; otherwise as for
// vellum_reader_open_with.
//
// Cost: one record is read for each doubling of the number of segments, then up to one segment and
// the records of the minute before.
int vellum_reader_open_at_time(const vellum_log *log,
                               uint64_t time_ns,
                               uint32_t flags,
                               vellum_reader **reader);

// Positions that enclose all records that were appended from `since_ns` on and before `until_ns`,
// in nanoseconds since 1970; UINT64_MAX for `until_ns` is no bound. `*end` is UINT64_MAX where the
// log has not come that far. Each of the two may be NULL.
//
// Records of other times are among them: up to a segment and a minute of them at each end, where
// records have envelopes; otherwise whole files or segments. Missing records, errors and cost: as
// for vellum_reader_open_at_time, without reading a segment.
int vellum_positions_of_time(const vellum_log *log,
                             uint64_t since_ns,
                             uint64_t until_ns,
                             uint64_t *start,
                             uint64_t *end);

// When the record that this reader returned last was appended, in nanoseconds since 1970. 0 in a
// log without envelopes (VELLUM_ENVELOPE), before the first record, and for NULL.
uint64_t vellum_reader_time(const vellum_reader *reader);

// The writer of the record that this reader returned last: a process, from when it opened the log
// until it closed it. The low 32 bits are its process id, the high ones are random. 0 as for
// vellum_reader_time.
uint64_t vellum_reader_writer(const vellum_reader *reader);

// A file descriptor that becomes readable (POLLIN) when vellum_reader_next may have more, after it
// returned VELLUM_END. -1 for NULL, and for a reader that was opened without VELLUM_READ_POLLABLE.
//
// Borrowed until vellum_reader_close: do not close it, nothing needs to be read from it. It may be
// readable although there is nothing new, at least 10 times a second. In a forked child
// vellum_reader_next returns VELLUM_UNSUPPORTED at the end of the log: open another reader there.
int vellum_reader_fd(const vellum_reader *reader);

// Continues at `to`, where a record starts, or at the oldest record for 0; vellum_reader_next
// returns that record. This is how to read many records at random: the reader keeps the files that
// it read last open.
//
// Errors: as for vellum_reader_open; the position stays as it was.
//
// Cost: one pread of little more than the last record, unless the record was read ahead, and
// another one if it is longer; opening a file where it is in none of the last four segments.
int vellum_reader_seek(vellum_reader *reader, uint64_t to);

// The next record, or VELLUM_END at the published end; later calls continue there.
//
// `record->data` is borrowed until the next call with the same reader.
//
// Errors: VELLUM_TRIMMED when the position has been trimmed away meanwhile; VELLUM_OUT_OF_RANGE
// when it was truncated away; VELLUM_CORRUPT for damage, with file and position.
//
// Cost: one pread for 256 KiB, and a checksum of the record. A reader that keeps up with the
// writers of a mapped log, and whose log was opened for writing, makes no system call.
int vellum_reader_next(vellum_reader *reader, vellum_record *record);

// The next record, waiting for one up to `timeout_ns` nanoseconds; -1 is for ever. VELLUM_END when
// the time is over.
//
// Sleeps, and is woken by an append of any process. A signal does not end it. A reader that may
// not write the log's control file looks again every 20 ms instead. Otherwise as
// vellum_reader_next.
int vellum_reader_follow(vellum_reader *reader, int64_t timeout_ns, vellum_record *record);

// Whether to continue behind missing files and damaged ranges, instead of returning
// VELLUM_CORRUPT: 1 or 0, which is the default. vellum_reader_take_gap reports the skipped ranges.
int vellum_reader_skip_damage(vellum_reader *reader, int skip);

// The oldest gap that the reader has left out and that was not taken yet, or VELLUM_END.
//
// Texts are borrowed until the next call of this function with the same reader.
int vellum_reader_take_gap(vellum_reader *reader, vellum_gap *gap);

// Has a reader stop at `end`: it returns the records that start before. UINT64_MAX takes it back.
//
// There vellum_reader_next returns VELLUM_END, and vellum_reader_follow does not wait. Unlike at
// the end of the log, vellum_reader_position is not below `end`.
int vellum_reader_stop_at(vellum_reader *reader, uint64_t end);

// Where the next record will be looked for: behind all that was returned or left out, and not
// behind a record that is to come. So it may be compared with the position of a record, and with
// an earlier vellum_published. 0 for NULL.
uint64_t vellum_reader_position(const vellum_reader *reader);

// Closes a reader; NULL is fine.
void vellum_reader_close(vellum_reader *reader);

/* ---- Reading backwards ----------------------------------------------------------------------- */

// A place in a log, and the way to the record before it.
//
// From vellum_backwards_open, until vellum_backwards_close. One thread at a time; any thread.
typedef struct vellum_backwards vellum_backwards;

// Records that start before `before`, the newest first; UINT64_MAX is all of them.
//
// Errors: VELLUM_IO where a file cannot be read.
//
// Cost: nothing yet. The first record takes a walk over 64 KiB, of a framed log that is not
// committed over its last segment. The length of the log makes no difference.
int vellum_backwards_open(const vellum_log *log, uint64_t before, vellum_backwards **backwards);

// The next older record, or VELLUM_END where the log begins. After VELLUM_END, and after an error,
// it is over.
//
// `record->data` is borrowed until the next call with the same handle.
//
// Errors: VELLUM_CORRUPT for damage, with file and position.
//
// Cost: it reads each returned byte three times at most, and copies it once.
int vellum_backwards_next(vellum_backwards *backwards, vellum_record *record);

// When the record that was returned last was appended, in nanoseconds since 1970. 0 in a log
// without envelopes (VELLUM_ENVELOPE), before the first record, at the end, and for NULL.
uint64_t vellum_backwards_time(const vellum_backwards *backwards);

// The writer of the record that was returned last, as of vellum_reader_writer. 0 as for
// vellum_backwards_time.
uint64_t vellum_backwards_writer(const vellum_backwards *backwards);

// As vellum_reader_skip_damage.
int vellum_backwards_skip_damage(vellum_backwards *backwards, int skip);

// As vellum_reader_take_gap. A gap may be told more than once.
int vellum_backwards_take_gap(vellum_backwards *backwards, vellum_gap *gap);

// Ends it; NULL is fine.
void vellum_backwards_close(vellum_backwards *backwards);

/* ---- Positions to store outside of a log ----------------------------------------------------- */

// Bytes that hold any position as text, its NUL included.
#define VELLUM_POSITION_TEXT_BYTES 80

// The record that was at the position.
#define VELLUM_POSITION_RECORD 0

// The position is behind the handled record: a record's next_lsn, or the end of the log. It holds
// as long as everything before it is unchanged.
#define VELLUM_POSITION_NEXT 1

// A position that can be stored outside of the log: which log it is of, and from which epoch.
//
// A bare lsn means something else in another log, and may mean something else after a power cut or
// a truncation. vellum_resolve gives the lsn of the same record or an error.
typedef struct {
    // The id of the log.
    uint8_t log[16];
    // The epoch of the log in which the position was taken.
    uint64_t epoch;
    // The position in the log.
    uint64_t lsn;
} vellum_position;

// The 16 bytes of the log's id, which is random and never changes.
//
// Errors: VELLUM_UNSUPPORTED where an earlier version made the log and no process has opened it
// for writing since, with some space on the disk.
int vellum_log_id(const vellum_log *log, uint8_t (*id)[16]);

// The epoch in which this handle was opened, or which its own vellum_truncate began; 0 for NULL
// and for a log without an id. vellum_summary.epoch is the one that the log is in.
//
// An epoch ends whenever positions may be given out again that were visible: when the log is
// recovered (after a power cut, in a copy, without its control file), and when it is truncated.
uint64_t vellum_epoch(const vellum_log *log);

// The position `lsn` in a form to be stored outside of the log; `lsn` is one that this handle
// returned. A reader takes vellum_reader_position_of where others truncate.
//
// Errors: VELLUM_UNSUPPORTED as for vellum_log_id. Cost: a read of memory.
int vellum_position_of(const vellum_log *log, uint64_t lsn, vellum_position *position);

// The position `lsn`, which this reader has come to or passed, in a form to be stored. Right also
// while others truncate.
//
// Errors and cost: as for vellum_position_of.
int vellum_reader_position_of(const vellum_reader *reader, uint64_t lsn, vellum_position *position);

// The lsn of a stored position, which holds what it held. `meaning` is VELLUM_POSITION_RECORD or
// VELLUM_POSITION_NEXT.
//
// Errors: VELLUM_OTHER_LOG for a position of another log; VELLUM_REWOUND where something else may
// be there: vellum_last_error_lsn is from where on the log may differ, or 0 where that is not
// known; VELLUM_TRIMMED and VELLUM_OUT_OF_RANGE as for vellum_reader_open.
//
// Cost: as for vellum_reader_open.
int vellum_resolve(const vellum_log *log,
                   const vellum_position *position,
                   uint32_t meaning,
                   uint64_t *lsn);

// A reader that starts at a stored position: at the record that it was taken for, or with
// VELLUM_POSITION_NEXT behind the handled record. `*reader` is to be closed by
// vellum_reader_close.
//
// Errors: as for vellum_resolve.
int vellum_reader_open_at(const vellum_log *log,
                          const vellum_position *position,
                          uint32_t meaning,
                          vellum_reader **reader);

// Writes a position as one line of text, `id/epoch/lsn`, with a NUL behind it, into `size` bytes
// at `text`: VELLUM_POSITION_TEXT_BYTES are enough.
//
// Errors: VELLUM_INVALID_ARGUMENT where it does not fit; nothing is written then.
int vellum_position_to_text(const vellum_position *position, char *text, size_t size);

// Reads a position from its text, blanks and a newline around it left out.
//
// Errors: VELLUM_INVALID_OPTION for any other text.
int vellum_position_from_text(const char *text, vellum_position *position);

/* ---- One record by its position -------------------------------------------------------------- */

// Copies the record at `lsn` to `buffer`, which has room for `capacity` bytes. `*len` is its
// length, `*next_lsn` where the next one starts; each may be NULL.
//
// VELLUM_RECORD_TOO_LARGE if it has more than `capacity` bytes: `*len` says how many, and the
// buffer is as it was. So a call with `capacity` 0 asks for the length.
//
// Errors: VELLUM_TRIMMED for a position that is no longer kept; VELLUM_OUT_OF_RANGE for one that
// is not published, or where no whole record starts: in a text log in the middle of a line. In a
// framed log that is also how damage shows.
//
// Cost: one pread of little more than the last record took, and another one for a longer record.
// The log keeps up to four files open for it.
int vellum_read_at(const vellum_log *log,
                   uint64_t lsn,
                   void *buffer,
                   size_t capacity,
                   size_t *len,
                   uint64_t *next_lsn);

// The position of the newest record that is published, for vellum_read_at; VELLUM_END in an empty
// log.
//
// Errors: VELLUM_CORRUPT for damage on the way to it.
//
// Cost: a walk over 64 KiB at the end of a log that is committed, of a framed log that is not over
// its last segment. The length of the log makes no difference.
int vellum_last_record(const vellum_log *log, uint64_t *lsn);

/* ---- Surviving a power cut ------------------------------------------------------------------- */

// Makes the record at `lsn`, and everything before it, survive a power cut.
//
// Sleeps for about one write of the device, which all threads of all processes share, and until
// the appends in front of `lsn` that are in progress are done.
//
// Errors: VELLUM_OUT_OF_RANGE for a position beyond the end; VELLUM_BUSY while the calling thread
// holds a reservation before `lsn`, because it would wait for itself; VELLUM_POISONED after a
// failed write or sync, for every caller in every process, because nothing is tried again.
int vellum_commit(const vellum_log *log, uint64_t lsn);

// As vellum_commit, but waits for others no longer than `timeout_us` microseconds, whatever
// vellum_options.timeout_us says: then VELLUM_TIMED_OUT, and vellum_last_error_message names the
// process that was waited for, its hold and its state. The record is in the log as before.
int vellum_commit_within(const vellum_log *log, uint64_t lsn, uint64_t timeout_us);

// Waits until the record at `lsn`, and everything before it, survives a power cut because some
// process has committed it, up to `timeout_ns` nanoseconds; -1 is for ever. Commits nothing
// itself.
//
// Errors: VELLUM_TIMED_OUT; VELLUM_OUT_OF_RANGE for a position beyond the end; VELLUM_POISONED
// when it can be committed no more.
int vellum_wait_durable(const vellum_log *log, uint64_t lsn, int64_t timeout_ns);

// As vellum_commit, and then waits until the record is also in the store that the log is shipped
// to; for both no longer than vellum_options.timeout_us. Committed records are durable here also
// after one of these errors, and are shipped later if a process ships.
//
// Errors: VELLUM_NO_SHIPPER at once where no process ships the log; VELLUM_FENCED where another
// machine or copy has taken over; VELLUM_TIMED_OUT; otherwise as for vellum_commit.
int vellum_commit_remote(const vellum_log *log, uint64_t lsn);

// Waits until the record at `lsn`, and everything before it, is where the log is shipped to, up to
// `timeout_ns` nanoseconds; -1 is for ever. Commits nothing itself.
//
// Errors: as for vellum_commit_remote; VELLUM_OUT_OF_RANGE for a position beyond the end.
int vellum_wait_shipped(const vellum_log *log, uint64_t lsn, int64_t timeout_ns);

// End of the shipped records; 0 where no shipper has reported it since the last boot.
uint64_t vellum_shipped(const vellum_log *log);

// Commits every record whose append had returned, in any thread of any process, when this was
// called; `*durable` is the durable end. `durable` may be NULL. A record ends there, so a reader
// and vellum_trim take it. It waits for appends that are in progress in front of these records.
// Errors and cost as for vellum_commit.
int vellum_sync(const vellum_log *log, uint64_t *durable);

// Stores `lsn` with the log as the position from which its user recovers, and commits.
//
// Framed logs only. On return the mark and every record whose append had returned before survive a
// power cut.
//
// Errors: VELLUM_OUT_OF_RANGE for a position outside of the log, VELLUM_UNSUPPORTED in a text log;
// otherwise as for vellum_commit.
//
// Cost: one write of the device, or two. Not for an event loop; any thread may call it.
int vellum_set_checkpoint(const vellum_log *log, uint64_t lsn);

// The position stored last by vellum_set_checkpoint, or 0.
uint64_t vellum_checkpoint(const vellum_log *log);

/* ---- Commits to poll for --------------------------------------------------------------------- */

// A thread that commits for callers that must not wait. For appends of this process to a staged
// log it also makes the next file, and commits when half a segment is not durable.
//
// From vellum_committer_start, until vellum_committer_stop. Any number of threads may use it at
// once; in a forked child there is no such thread.
typedef struct vellum_committer vellum_committer;

// A commit that is on its way, with a file descriptor to poll.
//
// From vellum_committer_submit, until vellum_completion_close. Any number of threads may use it at
// once.
typedef struct vellum_completion vellum_completion;

// Starts a thread that commits; it has the signal mask of the calling thread.
//
// Errors: VELLUM_READ_ONLY, and VELLUM_IO where no thread can be started.
int vellum_committer_start(const vellum_log *log, vellum_committer **committer);

// Asks for the record at `lsn`, and everything before it, to be made durable; returns at once.
// `completion` may be NULL where vellum_committer_fd reports all.
//
// Errors: VELLUM_OUT_OF_RANGE for a position beyond the end; VELLUM_UNSUPPORTED in a child forked
// after the committer was started.
//
// Cost: a hundred bytes of memory, and waking the thread if it sleeps.
int vellum_committer_submit(const vellum_committer *committer,
                            uint64_t lsn,
                            vellum_completion **completion);

// One file descriptor for all that is submitted: it becomes readable (POLLIN) when the durable end
// may have moved, or a commit failed, and stays so until vellum_committer_take. -1 for NULL, where
// no file descriptor is left, and in a child forked after the committer was started. It is made,
// readable, at the first call.
//
// Borrowed until vellum_committer_stop: do not close it, nothing needs to be read from it.
//
// Cost: a system call for each commit that finds it not readable.
int vellum_committer_fd(const vellum_committer *committer);

// Makes the descriptor unreadable; `*durable` is the end of the durable records: each record
// before it is durable. `durable` may be NULL.
//
// Errors: that of a commit of this committer that failed since the last call, as of vellum_commit;
// `*durable` is then as it was. The log may continue after it: call again.
int vellum_committer_take(const vellum_committer *committer, uint64_t *durable);

// Waits until what was submitted is done, and ends the thread; NULL is fine.
void vellum_committer_stop(vellum_committer *committer);

// A file descriptor that becomes readable (POLLIN), and stays so, when the commit is done or
// failed. -1 for NULL, and where no file descriptor is left: it is made at the first call.
//
// Borrowed until vellum_completion_close: do not close it, nothing needs to be read from it.
int vellum_completion_fd(const vellum_completion *completion);

// Its result: VELLUM_OK when the record is durable, VELLUM_PENDING while it is on its way,
// VELLUM_POISONED when it never will be.
int vellum_completion_outcome(const vellum_completion *completion);

// Forgets a commit, which continues; NULL is fine. Closes its file descriptor.
void vellum_completion_close(vellum_completion *completion);

/* ---- When a checkpoint is due ---------------------------------------------------------------- */

// A file descriptor that says when a checkpoint is due.
//
// From vellum_checkpoint_event_open, until vellum_checkpoint_event_close. Any number of threads
// may use it at once.
typedef struct vellum_checkpoint_event vellum_checkpoint_event;

// 1 if vellum_options.checkpoint_after_bytes are durable behind the checkpoint, or behind
// vellum_begin where none was stored; otherwise 0, as in a text log, without that option, and for
// NULL.
//
// Counts what every process wrote. Call it behind a commit, or now and then. Costs three reads of
// memory.
uint32_t vellum_checkpoint_due(const vellum_log *log);

// Makes a file descriptor that becomes readable when a commit of this process finds that a
// checkpoint is due; at once where it is already.
//
// A commit of another process, a forked child for example, has no effect on it: the next commit of
// this one has. All events of one open log in one process share one descriptor. `*event` is to be
// closed by vellum_checkpoint_event_close, and keeps the log open.
//
// Errors: VELLUM_READ_ONLY; VELLUM_UNSUPPORTED in a text log, and in a child forked after the
// first event was made; VELLUM_IO where the process has no file descriptor left.
//
// Cost: one file descriptor as long as the log is open, and in each commit three reads of memory.
int vellum_checkpoint_event_open(const vellum_log *log, vellum_checkpoint_event **event);

// A file descriptor that becomes readable (POLLIN) when a checkpoint is due, and stays so until
// vellum_checkpoint_event_take. -1 for NULL.
//
// Borrowed until vellum_checkpoint_event_close: do not close it, and do not read from it.
int vellum_checkpoint_event_fd(const vellum_checkpoint_event *event);

// Makes the descriptor unreadable; `*due` is 1 if a checkpoint is due now, otherwise 0. `due` may
// be NULL.
//
// As long as one is due, the next commit of this process makes the descriptor readable again. So a
// checkpoint that failed is not forgotten. A commit during a checkpoint has the same effect: the
// next call then gives 0.
//
// Errors: VELLUM_UNSUPPORTED in a forked child: the descriptor is the parent's.
int vellum_checkpoint_event_take(const vellum_checkpoint_event *event, uint32_t *due);

// Closes an event; NULL is fine.
void vellum_checkpoint_event_close(vellum_checkpoint_event *event);

/* ---- Files: going on, trimming, truncating, preparing ---------------------------------------- */

// A thread that keeps files ready, so that no writer has to make one. In a staged log it also
// commits when half a segment is not durable, so that no append finds the stage full.
//
// From vellum_keeper_start, until vellum_keeper_stop. In a forked child there is no such thread.
typedef struct vellum_keeper vellum_keeper;

// Counts of vellum_trim.
typedef struct {
    // sizeof(vellum_trim_report), set by the caller.
    size_t struct_size;
    // Oldest position that is kept.
    uint64_t begin;
    // Files that were removed, or kept to be used again.
    uint64_t segments_removed;
    // Where a cursor has kept records that were to be dropped, or 0: vellum_cursor_hold.
    uint64_t held_at;
} vellum_trim_report;

// Has a text log continue in a new file at the next append, whatever its policy says.
//
// Errors: VELLUM_UNSUPPORTED in a framed log, VELLUM_READ_ONLY.
int vellum_rotate(const vellum_log *log);

// Drops everything before `before`: whole files are removed, or kept for new records
// (vellum_options.spare_segments_max); the rest is no longer shown.
//
// `report` may be NULL. Errors: VELLUM_OUT_OF_RANGE for a position beyond vellum_published, or
// (framed) where no record starts. A position before vellum_begin is fine and changes nothing.
//
// Durable: in a framed log that commits, the new beginning survives a power cut on return. In
// others, dropped records may be there again after one.
//
// Cost: a sync of the device, and one more where a staged log or a cursor has something to write;
// each file that goes is renamed or removed. That takes milliseconds: not for an event loop, but
// any thread may call it. Appends and commits continue meanwhile.
int vellum_trim(const vellum_log *log, uint64_t before, vellum_trim_report *report);

// Drops the newest part of the log: the record at `from` and all behind it.
//
// Positions from there on are given out again, in the next epoch (vellum_epoch). Everything before
// is committed first; on return, dropped records stay dropped.
//
// Errors: VELLUM_OUT_OF_RANGE for a position outside of the log or (framed) where no record
// starts; VELLUM_BUSY while another process has the log open for writing, or an append of this
// process is in progress; otherwise as for vellum_commit.
int vellum_truncate(const vellum_log *log, uint64_t from);

// Makes sure that `segments` files are ready beyond the one being written; `*made` is how many had
// to be made. `made` may be NULL.
//
// Errors: VELLUM_NO_SPACE; those made before are given back, or stay where another process has the
// log open.
int vellum_prepare(const vellum_log *log, uint64_t segments, uint64_t *made);

// Gives back the files that are ready beyond the written ones; `*released` is how many those were.
// `released` may be NULL.
//
// Errors: VELLUM_BUSY as for vellum_truncate.
int vellum_release_prepared(const vellum_log *log, uint64_t *released);

// Starts a thread that keeps `segments` files ready; it has the signal mask of the calling thread.
//
// Errors: as for vellum_prepare, and VELLUM_IO where no thread can be started.
int vellum_keeper_start(const vellum_log *log, uint64_t segments, vellum_keeper **keeper);

// Ends the thread; NULL is fine.
void vellum_keeper_stop(vellum_keeper *keeper);

/* ---- The state of a log ---------------------------------------------------------------------- */

// The state of a log at one moment: positions, files, processes.
//
// From vellum_stat_take, until vellum_stat_free, which ends everything borrowed from it. Any
// number of threads may look at it at once.
typedef struct vellum_stat vellum_stat;

// Facts of a log, a word each. Texts are borrowed from the vellum_stat.
typedef struct {
    // sizeof(vellum_summary), set by the caller.
    size_t struct_size;
    // Oldest position still kept.
    uint64_t begin;
    // End of the records that survive a power cut.
    uint64_t durable;
    // End of the records that readers can see.
    uint64_t published;
    // End of the reserved space.
    uint64_t tail;
    // End of the last file that exists.
    uint64_t prepared_end;
    // Position stored by vellum_set_checkpoint, or 0.
    uint64_t checkpoint;
    // Bytes of log in a file.
    uint64_t segment_capacity_bytes;
    // Reservations of dead processes that survivors padded.
    uint64_t repairs;
    // Bytes of those.
    uint64_t repaired_bytes;
    // Records that were dropped on a full disk: VELLUM_ON_FULL_DROP.
    uint64_t dropped;
    // Files: vellum_stat_segment.
    uint64_t segment_count;
    // Processes: vellum_stat_participant.
    uint64_t participant_count;
    // A vellum_layout.
    uint32_t layout;
    // A vellum_preallocate.
    uint32_t preallocate;
    // A vellum_fill.
    uint32_t fill;
    // 0.
    uint32_t reserved;
    // Why space is made ready like that.
    const char *preallocate_reason;
    // Why records are written like that.
    const char *fill_reason;
    // The filesystem that the log is on.
    const char *filesystem;
    // The file that advised what the program left open when it created the log, or NULL.
    const char *advice;
    // Where records lie in memory until they are committed, or NULL.
    const char *stage;
    // Why nothing more can be made durable until the log is opened anew, or NULL.
    const char *poison;
    // The number of holds: vellum_stat_hold.
    uint64_t hold_count;
    // Whether this process can see to it that the name of the log's directory survives a power
    // cut: 0 where it may not read the directory above.
    uint64_t can_sync_name;
    // Stretches of a text log that are missing: vellum_stat_gap.
    uint64_t gap_count;
    // Records appended since the control file was made.
    uint64_t records;
    // Bytes of log that they take: payloads, headers and padding.
    uint64_t record_bytes;
    // Segments made since then.
    uint64_t segments_made;
    // Bytes that wait in the stage until they are committed.
    uint64_t staged_bytes;
    // The log's id as 32 hexadecimal digits, or NULL where an earlier version made it.
    const char *log_id;
    // Grows whenever positions may be given out again that were visible. 0 without an id.
    uint64_t epoch;
    // vellum_options.application_tag with which the log was created, or 0.
    uint64_t application_tag;
    // Named cursors: vellum_stat_cursor.
    uint64_t cursor_count;
    // Why the cursors cannot be read, or NULL. Then no file is removed.
    const char *cursors_fault;
    // 1 if each record has a time and its writer (VELLUM_ENVELOPE), otherwise 0.
    uint64_t has_envelope;
    // Between this position and lost_end vellum_repair or a restore left out records of a framed
    // log; others between them were saved. Both 0 where none were left out.
    uint64_t lost_from;
    // The end of that.
    uint64_t lost_end;
} vellum_summary;

// Counts of commits since the control file was made.
typedef struct {
    // sizeof(vellum_commits), set by the caller.
    size_t struct_size;
    // Records, or moments, that callers wanted durable.
    uint64_t commits;
    // Writes or syncs of the device that this took.
    uint64_t syncs;
    // Bytes of log that they made durable.
    uint64_t synced_bytes;
    // How long they took: entry i counts those of less than 2^i microseconds that are not in an
    // earlier one; the last counts all longer ones too.
    uint64_t sync_us[24];
    // How long they took together, in microseconds.
    uint64_t sync_us_sum;
} vellum_commits;

// When a text log continues in a new file, and which of its files it keeps, for all processes.
typedef struct {
    // sizeof(vellum_policy), set by the caller.
    size_t struct_size;
    // As vellum_options.rotate_bytes; 0 is never.
    uint64_t rotate_bytes;
    // As vellum_options.rotate_every_s; 0 is never.
    uint64_t rotate_every_s;
    // As vellum_options.rotate_offset_s.
    uint64_t rotate_offset_s;
    // As vellum_options.retain_bytes; 0 is no limit.
    uint64_t retain_bytes;
    // As vellum_options.retain_age_s; 0 is for ever.
    uint64_t retain_age_s;
    // As vellum_options.retain_files; VELLUM_ALL_FILES is no limit.
    uint64_t retain_files;
    // VELLUM_COMPRESS_OFF, VELLUM_COMPRESS_ON (zstd) or VELLUM_COMPRESS_GZIP.
    uint32_t compress;
    // 0.
    uint32_t reserved;
} vellum_policy;

// Looks at the state of the log, its files and its processes. Changes nothing.
//
// `*stat` is to be freed by vellum_stat_free. Errors: VELLUM_NOT_FOUND where the
// directory has gone; VELLUM_IO where it cannot be read.
//
// Cost: a system call for each file and each process.
int vellum_stat_take(const vellum_log *log, vellum_stat **stat);

// Facts of the log, a word each.
int vellum_stat_summary(const vellum_stat *stat, vellum_summary *summary);

// The outcome of the newest recovery, by any process.
int vellum_stat_recovery(const vellum_stat *stat, vellum_recovery *recovery);

// Counts of commits.
int vellum_stat_commits(const vellum_stat *stat, vellum_commits *commits);

// The log's policy.
int vellum_stat_policy(const vellum_stat *stat, vellum_policy *policy);

// Frees a vellum_stat and everything borrowed from it; NULL is fine.
void vellum_stat_free(vellum_stat *stat);

/* ---- The files and processes of a state ------------------------------------------------------ */

// Where a file is in its life.
typedef enum {
    // Full: no more records, ever.
    VELLUM_SEGMENT_SEALED = 1,
    // The one that records go to.
    VELLUM_SEGMENT_ACTIVE = 2,
    // Made ready ahead of need.
    VELLUM_SEGMENT_PREPARED = 3,
    // Trimmed, and kept to be used again.
    VELLUM_SEGMENT_SPARE = 4,
} vellum_segment_state;

// A file of a log.
typedef struct {
    // sizeof(vellum_segment), set by the caller.
    size_t struct_size;
    // The file. Borrowed from the vellum_stat.
    const char *path;
    // First position it can hold; 0 for a spare.
    uint64_t first_lsn;
    // End of the positions reserved in it; 0 for a spare.
    uint64_t end_lsn;
    // Length of the file in bytes.
    uint64_t file_bytes;
    // Bytes of blocks it occupies.
    uint64_t allocated_bytes;
    // A vellum_segment_state.
    uint32_t state;
    // 0.
    uint32_t reserved;
} vellum_segment;

// A process that is attached, or died while it was.
typedef struct {
    // sizeof(vellum_participant), set by the caller.
    size_t struct_size;
    // Its place.
    uint32_t index;
    // Its process number, in its own PID namespace.
    uint32_t pid;
    // 1 if it lives, otherwise 0.
    uint32_t alive;
    // 1 if it is stopped by a signal or a debugger: its records in flight hold back readers.
    uint32_t stopped;
    // Reservations that it has not published.
    uint64_t in_flight_count;
    // Bytes of those.
    uint64_t in_flight_bytes;
    // Position of the oldest of them, or 0.
    uint64_t in_flight_lsn;
} vellum_participant;

// File number `index`, oldest first, spares last. Errors: VELLUM_OUT_OF_RANGE where there are no
// more.
int vellum_stat_segment(const vellum_stat *stat, size_t index, vellum_segment *segment);

// Process number `index`. Errors: VELLUM_OUT_OF_RANGE where there are no more.
int vellum_stat_participant(const vellum_stat *stat, size_t index, vellum_participant *participant);

/* ---- Who holds what others may wait for ------------------------------------------------------ */

// The kinds of holds. Others may be added.
typedef enum {
    // The lock under which space is made ready and files are named and removed.
    VELLUM_HOLD_SPACE = 1,
    // The lock under which reservations of the dead are padded.
    VELLUM_HOLD_REPAIR = 2,
    // The lock under which commit groups begin and end. A commit waits for it.
    VELLUM_HOLD_COMMIT = 3,
    // A batch of records on its way to the device. A commit of one of them waits for it.
    VELLUM_HOLD_COMMIT_GROUP = 4,
    // The lock under which text is written. An append waits for it for a tenth of a second.
    VELLUM_HOLD_TEXT_WRITE_LOCK = 5,
    // The lock of the line that reports dropped records.
    VELLUM_HOLD_DROPPED_RECORDS = 6,
    // A reservation that is being filled. Readers and commits do not get past it.
    VELLUM_HOLD_APPEND = 7,
    // The gate. Opening or closing the log waits for it.
    VELLUM_HOLD_GATE = 8,
    // The right to compress closed files. No process waits for it.
    VELLUM_HOLD_COMPRESSION = 9,
    // The right to change named cursors. Committing or setting one waits for it.
    VELLUM_HOLD_CURSORS = 10,
} vellum_hold_kind;

// The state of a process that holds something.
typedef enum {
    // It runs.
    VELLUM_PROCESS_RUNNING = 1,
    // It waits for something, as far as its first thread goes.
    VELLUM_PROCESS_SLEEPING = 2,
    // It does not continue until another process continues it: by a signal, a debugger, a frozen
    // control group.
    VELLUM_PROCESS_STOPPED = 3,
    // It is dead: the next process that needs its hold takes it over.
    VELLUM_PROCESS_DEAD = 4,
    // It cannot be seen from here.
    VELLUM_PROCESS_UNKNOWN = 5,
} vellum_process_state;

// Something that others may wait for, and its holder.
typedef struct {
    // sizeof(vellum_hold), set by the caller.
    size_t struct_size;
    // A vellum_hold_kind; 0 for one that is newer than this header.
    uint32_t what;
    // A vellum_process_state.
    uint32_t state;
    // The process, by the number in its own PID namespace, or 0 where it cannot be told.
    uint32_t pid;
    // 1 if that is another PID namespace than the caller's, otherwise 0.
    uint32_t other_namespace;
    // Where the batch or the reservation begins; otherwise 0.
    uint64_t first_lsn;
    // Its length; otherwise 0.
    uint64_t bytes;
    // For how many microseconds others have waited, since the first of them noticed; 0 where none
    // had to.
    uint64_t waited_us;
    // All of this as a sentence without its end. Borrowed from the vellum_stat.
    const char *text;
} vellum_hold;

// Hold number `index`. In a busy log something is held nearly always, and for microseconds.
// Errors: VELLUM_OUT_OF_RANGE where there are no more.
int vellum_stat_hold(const vellum_stat *stat, size_t index, vellum_hold *hold);

/* ---- What was removed from a log ------------------------------------------------------------- */

// Files that the policy of a text log has removed since its control file was made, by the rule.
typedef struct {
    // sizeof(vellum_removed), set by the caller.
    size_t struct_size;
    // Files that retain_bytes removed.
    uint64_t files_by_bytes;
    // Bytes of text in them.
    uint64_t bytes_by_bytes;
    // Files that retain_age_s removed.
    uint64_t files_by_age;
    // Bytes of text in them.
    uint64_t bytes_by_age;
    // Files that retain_files removed.
    uint64_t files_by_files;
    // Bytes of text in them.
    uint64_t bytes_by_files;
    // Files that the log has dropped, and that could not be removed: another user's in a sticky
    // directory, for example.
    uint64_t files_left_over;
    // Bytes of text in them.
    uint64_t bytes_left_over;
} vellum_removed;

// Gap number `index`, oldest first. Errors: VELLUM_OUT_OF_RANGE where there are no more.
int vellum_stat_gap(const vellum_stat *stat, size_t index, vellum_gap *gap);

// The files that the log's policy has removed.
int vellum_stat_removed(const vellum_stat *stat, vellum_removed *removed);

/* ---- How shipping goes ----------------------------------------------------------------------- */

// The state of the shipper of a log. Others may be added.
typedef enum {
    // No process ships the log.
    VELLUM_SHIP_NONE = 0,
    // Durable records are shipped as they come.
    VELLUM_SHIP_RUNNING = 1,
    // The store cannot be used at this moment; it is tried again.
    VELLUM_SHIP_RETRYING = 2,
    // Another machine or another copy of the log has taken over. Nothing more is shipped.
    VELLUM_SHIP_FENCED = 3,
    // The store holds something else than this log at the same positions. Nothing more is shipped.
    VELLUM_SHIP_DIVERGED = 4,
    // Shipping runs, and records were removed here before they were shipped: gap_from, gap_to.
    VELLUM_SHIP_GAP = 5,
} vellum_ship_status;

// How shipping goes. Counters count since the log was shipped first.
typedef struct {
    // sizeof(vellum_ship), set by the caller.
    size_t struct_size;
    // A vellum_ship_status.
    uint32_t status;
    // The process that ships, where it can be seen; otherwise 0.
    uint32_t pid;
    // The last fault: 1 no answer, 2 refused, 3 there is no such place, 4 too many requests, 5
    // another failure of the store, 6 what is read here; 0 where nothing did.
    uint32_t fault;
    // A number of the store's for it, such as an HTTP status, or 0.
    uint32_t fault_code;
    // Number of the generation that is shipped to.
    uint64_t generation;
    // End of the shipped records; 0 where no shipper has reported it since the last boot.
    uint64_t shipped;
    // When something was shipped last, in seconds since 1970; 0 where nothing was.
    uint64_t shipped_at_s;
    // Bytes that are durable and not shipped, where `shipped` is known.
    uint64_t lag_bytes;
    // From here on the log keeps records for the shipper; UINT64_MAX if it keeps none.
    uint64_t held_from;
    // The newest stretch that was removed here before it was shipped; 0 and 0 for none.
    uint64_t gap_from;
    // Its end.
    uint64_t gap_to;
    // Requests that make an object.
    uint64_t puts;
    // All other requests.
    uint64_t gets;
    // Bytes of log that were shipped.
    uint64_t log_bytes;
    // Bytes that were sent for them.
    uint64_t sent_bytes;
    // Requests that were made once more.
    uint64_t retries;
} vellum_ship;

// How shipping goes.
int vellum_stat_ship(const vellum_stat *stat, vellum_ship *ship);

/* ---- Named cursors --------------------------------------------------------------------------- */

// A named position in a log: its reader has finished everything before it.
//
// From vellum_cursor_open, until vellum_cursor_close. Any number of threads may use it at once,
// except for vellum_cursor_skip_overrun: that one thread at a time.
typedef struct vellum_cursor vellum_cursor;

// The state of a cursor. Times are in seconds since 1970.
typedef struct {
    // sizeof(vellum_cursor_stat), set by the caller.
    size_t struct_size;
    // Its name. Borrowed from the vellum_stat.
    const char *name;
    // Where it is.
    uint64_t lsn;
    // Bytes from there to the published end, or 0 if no record is there; of a text log, bytes of
    // text.
    uint64_t lag_bytes;
    // Records from there; UINT64_MAX where counting them takes too long.
    uint64_t lag_records;
    // How old the oldest record is that is not finished, at most, in seconds; UINT64_MAX where
    // nothing tells.
    uint64_t lag_s;
    // When it was committed or set last.
    uint64_t committed_at_s;
    // Bytes that it keeps at most; 0 is no limit.
    uint64_t max_held_bytes;
    // How old a record may be that it keeps, in seconds; 0 is any age.
    uint64_t max_held_age_s;
    // 1 if it keeps records from being removed, otherwise 0.
    uint32_t holds;
    // 1 if a process owns it, otherwise 0.
    uint32_t owned;
    // That process; 0 where it cannot be seen.
    uint32_t owner;
    // 0.
    uint32_t reserved;
    // Bytes that were removed in front of it and that its reader does not know of, at most.
    uint64_t missing_bytes;
    // How often its reader skipped such bytes.
    uint64_t overruns;
    // How many bytes that were, at most.
    uint64_t overrun_bytes;
    // When it did so last, or 0.
    uint64_t overrun_at_s;
} vellum_cursor_stat;

// The cursor of this name; a new one is made at `at`, or at the oldest record for 0, and holds
// nothing. A name has 1 to 64 letters, digits, '.', '_' and '-'. A log has up to 128 cursors.
//
// Errors: VELLUM_INVALID_OPTION for another name; VELLUM_BUSY when the log has 128 cursors;
// VELLUM_NOT_FOUND when the log was opened for reading only and has no such cursor;
// VELLUM_NO_SPACE for the first cursor of a log on a full disk; otherwise as vellum_cursor_set.
//
// Durable: on return, a new cursor survives a power cut. Cost: a new one takes two syncs.
int vellum_cursor_open(const vellum_log *log,
                       const char *name,
                       uint64_t at,
                       vellum_cursor **cursor);

// Where the cursor is: the position of the first record that its reader has not finished.
//
// Errors: VELLUM_NOT_FOUND when the cursor was removed; VELLUM_IO and VELLUM_CORRUPT where its
// file cannot be read.
int vellum_cursor_position(const vellum_cursor *cursor, uint64_t *lsn);

// A reader that starts at the cursor. Reading does not move the cursor.
//
// Errors: VELLUM_TRIMMED if records were removed in front of the cursor; then
// vellum_cursor_skip_overrun reports how much that was, and continues behind it. Otherwise as
// vellum_reader_open.
int vellum_cursor_reader(const vellum_cursor *cursor, vellum_reader **reader);

// Moves the cursor forward to `lsn`: its reader has finished everything before. That is the
// next_lsn of the last record it has finished.
//
// Errors: VELLUM_OUT_OF_RANGE for a position before the cursor, beyond the end of the log, or
// (framed) where no record starts; VELLUM_BUSY when another handle owns the cursor;
// VELLUM_NOT_FOUND when it was removed; VELLUM_READ_ONLY; otherwise as vellum_commit.
//
// Durable: on return, the records before `lsn` and the cursor survive a power cut. Cost: a commit
// of the log if something before `lsn` is not durable, a write of 512 bytes, one fdatasync.
int vellum_cursor_commit(const vellum_cursor *cursor, uint64_t lsn);

// Moves the cursor to any position of the log, forward or back; 0 is the oldest record.
//
// Errors: VELLUM_TRIMMED for a position that is no longer kept; otherwise as
// vellum_cursor_commit.
int vellum_cursor_set(const vellum_cursor *cursor, uint64_t lsn);

// Keeps the records from the cursor on from being removed: no more than `max_bytes` of them, and
// none older than `max_age_s` seconds, both counted in whole files; 0 is no limit. It lasts until
// vellum_cursor_unhold or vellum_cursor_remove, whether the cursor has an owner or not.
//
// Errors: VELLUM_TRIMMED if records were removed in front of the cursor already;
// VELLUM_UNSUPPORTED for an age in a framed log whose records have no times (VELLUM_ENVELOPE) and
// that removes none by their age; otherwise as vellum_cursor_set.
int vellum_cursor_hold(const vellum_cursor *cursor, uint64_t max_bytes, uint64_t max_age_s);

// Keeps nothing from being removed any more. Errors: as vellum_cursor_set.
int vellum_cursor_unhold(const vellum_cursor *cursor);

// Continues behind records that were removed in front of the cursor: moves it to the oldest
// record, counts the gap and reports it. VELLUM_END if nothing was removed. `gap` may be NULL.
//
// Texts are borrowed until the next call of this function with the same cursor. Errors: as
// vellum_cursor_set.
int vellum_cursor_skip_overrun(vellum_cursor *cursor, vellum_gap *gap);

// Makes this process the owner of the cursor, so that no other one can change it: until
// vellum_cursor_disown, vellum_cursor_close or the death of the process. A forked child does not
// own it.
//
// Errors: VELLUM_BUSY when another handle owns it, here or in another process, which the message
// names; VELLUM_NOT_FOUND when it was removed; VELLUM_READ_ONLY.
int vellum_cursor_own(const vellum_cursor *cursor);

// Gives the cursor up, so that another process can own it.
int vellum_cursor_disown(const vellum_cursor *cursor);

// Removes the cursor from the log, and closes it, whatever is returned.
//
// Errors: as vellum_cursor_commit.
int vellum_cursor_remove(vellum_cursor *cursor);

// Closes a cursor, which stays in the log; NULL is fine.
void vellum_cursor_close(vellum_cursor *cursor);

// Cursor number `index`, in the order of their names. Errors: VELLUM_OUT_OF_RANGE where there are
// no more.
int vellum_stat_cursor(const vellum_stat *stat, size_t index, vellum_cursor_stat *cursor);

/* ---- Damage ---------------------------------------------------------------------------------- */

// The damage of a log, piece by piece.
//
// From vellum_verify or vellum_repair, until vellum_damage_list_free.
typedef struct vellum_damage_list vellum_damage_list;

// Counts of vellum_verify.
typedef struct {
    // sizeof(vellum_verify_report), set by the caller.
    size_t struct_size;
    // Whole records (framed) or lines (text).
    uint64_t records;
    // Bytes of those.
    uint64_t record_bytes;
    // Spaces that were skipped, abandoned, or left by the dead.
    uint64_t pads;
    // Commit records, by which recovery finds the durable end.
    uint64_t commit_records;
    // Bytes of pads and commit records.
    uint64_t pad_bytes;
    // Batches of records.
    uint64_t batches;
    // Oldest position.
    uint64_t begin;
    // Published end, up to which everything was looked at.
    uint64_t end;
    // Things that are wrong; 0 when the log is good.
    uint64_t damage_count;
} vellum_verify_report;

// Counts of vellum_repair.
typedef struct {
    // sizeof(vellum_repair_report), set by the caller.
    size_t struct_size;
    // Records that were readable, and are in the new log.
    uint64_t records;
    // Bytes of those.
    uint64_t record_bytes;
    // Things that were not readable.
    uint64_t damage_count;
} vellum_repair_report;

// One thing that is wrong with a log.
typedef struct {
    // sizeof(vellum_damage), set by the caller.
    size_t struct_size;
    // The file. Borrowed from the list.
    const char *path;
    // The fault there. Borrowed from the list.
    const char *reason;
    // Byte of the file.
    uint64_t offset;
    // Position in the log.
    uint64_t lsn;
} vellum_damage;

// Reads every byte of the log from its beginning to the published end. Changes nothing.
//
// `report` and `damage` may be NULL; `*damage` is to be freed by vellum_damage_list_free. Damage
// is no error but part of the report: look at report.damage_count.
//
// Errors: VELLUM_IO where files cannot be read.
int vellum_verify(const vellum_log *log, vellum_verify_report *report, vellum_damage_list **damage);

// Saves what is readable of the log in `from` into a new log in `to`; changes nothing in `from`.
//
// No process may have `from` open. Records of a framed log keep their positions; lines get new
// ones. `report` and `damage` may be NULL; `*damage` is to be freed by vellum_damage_list_free.
//
// Errors: VELLUM_NOT_FOUND where there is no log; VELLUM_ALREADY_EXISTS where there is one in
// `to`; VELLUM_CORRUPT where nothing is left to tell records from garbage; otherwise as
// vellum_append.
//
// Durable: on return the new log survives a power cut.
int vellum_repair(const char *from,
                  const char *to,
                  vellum_repair_report *report,
                  vellum_damage_list **damage);

// How many pieces of damage a list has. 0 for NULL.
size_t vellum_damage_list_count(const vellum_damage_list *list);

// Piece number `index` of a list, from 0. Its texts are borrowed until the list is freed.
//
// Errors: VELLUM_OUT_OF_RANGE where there are no more.
int vellum_damage_list_get(const vellum_damage_list *list, size_t index, vellum_damage *damage);

// Frees a list; NULL is fine.
void vellum_damage_list_free(vellum_damage_list *list);

/* ---- Storage that fails under a mapping ------------------------------------------------------ */

// Has Vellum answer a SIGBUS that its own mappings raise, in a program that handles the signal
// itself.
//
// Such a signal means that storage failed under a mapping: the filesystem was shut down, the
// device is gone, a program has cut a file. Where the signal has its default action when the first
// log is opened, Vellum answers it without this call, and the function that has stored returns an
// error. A program that sets a handler of its own calls this afterwards. Then Vellum's handler
// comes first, and passes faults outside of Vellum's mappings on to the program's.
//
// Calling it again changes nothing. Errors: VELLUM_IO.
int vellum_guard_bus_errors(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* VELLUM_H */
