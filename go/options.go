package vellum

// #include "bridge.h"
import "C"

import (
	"io/fs"
	"math"
	"time"
)

// Option says how [Open] opens or creates a log. What shapes the files is stored when the log is
// created. [SegmentBytes], [FillBy] and [Mode] are for a new log: one that is there keeps its own,
// which [Log.Stat] reports. A log with other records than the program asks for (its kind, [Envelope],
// [ApplicationTag]) is refused with [ErrInvalidOption]. The policy (the
// options Rotate… and Retain…, [Compress]) is stored too, and changes for all processes when one
// opens the log with other values. The rest is about this process.
type Option func(*openOptions)

type openOptions struct {
	c       C.vellum_options
	timeout time.Duration
	blocks  bool
}

func newOptions(options []Option) *openOptions {
	o := new(openOptions)
	C.vellum_options_init(&o.c, C.sizeof_vellum_options)
	for _, option := range options {
		option(o)
	}
	o.c.timeout_us = C.uint64_t(waitSlice.Microseconds())
	if o.timeout > 0 && o.timeout < waitSlice {
		o.c.timeout_us = C.uint64_t(max(o.timeout.Microseconds(), 1))
	}
	return o
}

func kind(kind uint32) Option {
	return func(o *openOptions) { o.c.kind = C.uint32_t(kind) }
}

func flag(flag uint32, isSet bool) Option {
	return func(o *openOptions) {
		o.c.flags &^= C.uint32_t(flag)
		if isSet {
			o.c.flags |= C.uint32_t(flag)
		}
	}
}

// WAL is a write-ahead log: [Log.Commit] costs one direct write of the device. One process has it
// open for writing at a time, unless it is [Shared].
func WAL() Option { return kind(C.VELLUM_KIND_WAL) }

// Events is a log of any records, which go in at the speed of memory. Any number of processes may
// append. A new log without a kind is one of events.
func Events() Option { return kind(C.VELLUM_KIND_EVENTS) }

// Text is plain text that every tool can read at any time: each append is one write of whole lines.
// The caller brings the newline; [Log.Write] adds one that is missing.
func Text() Option { return kind(C.VELLUM_KIND_TEXT) }

// MappedText is text at the speed of memory. The newest file has NULs behind the text while a
// process has the log open for writing.
func MappedText() Option { return kind(C.VELLUM_KIND_MAPPED_TEXT) }

// ReadOnly opens for reading only, which needs no more than read permission.
func ReadOnly() Option { return flag(C.VELLUM_OPEN_READ_ONLY, true) }

// Create says whether a log that is not there is made; it is where the option is left out.
func Create(create bool) Option { return flag(C.VELLUM_NO_CREATE, !create) }

// CreateNew fails with [ErrAlreadyExists] where there is a log.
func CreateNew() Option { return flag(C.VELLUM_CREATE_NEW, true) }

// Exclusive lets no other handle have the log open for writing, in this process or another. The
// second opener gets [ErrInUse]. [WAL] means it without this option.
func Exclusive(exclusive bool) Option { return flag(C.VELLUM_EXCLUSIVE, exclusive) }

// Shared lets several processes append to a [WAL], and share the writes of its commits.
func Shared(shared bool) Option { return flag(C.VELLUM_SHARED, shared) }

// Envelope gives each record of a new framed log 16 bytes with its time and writer: [Record.Time],
// [Record.Writer], [Log.NewReaderAtTime].
func Envelope() Option { return flag(C.VELLUM_ENVELOPE, true) }

// FileLink makes the path of a new text log that of a file: a link to the newest file of the log,
// which is in the directory PATH.d.
func FileLink() Option { return flag(C.VELLUM_FILE_LINK, true) }

// NoAdvice follows no advice that was measured for a directory above the log.
func NoAdvice() Option { return flag(C.VELLUM_NO_ADVICE, true) }

// Mode is the permission bits of a new log's files, before the umask. The default is 0666.
func Mode(mode fs.FileMode) Option {
	return func(o *openOptions) { o.c.mode = C.uint32_t(mode.Perm()) }
}

// SegmentBytes is how many bytes of log a file of a new log holds: a multiple of the page size, 4 KiB
// to 1 GiB. The default is 64 MiB, and 16 MiB for a [WAL]. A log that is there keeps its own.
func SegmentBytes(bytes uint64) Option {
	return func(o *openOptions) { o.c.segment_capacity_bytes = C.uint64_t(bytes) }
}

// MappedBytesMax is the address space that this process may use for mapped files, in bytes. The
// default is 256 MiB.
func MappedBytesMax(bytes uint64) Option {
	return func(o *openOptions) { o.c.mapped_bytes_max = C.uint64_t(bytes) }
}

// PrefaultBytes is how far ahead of the end this process makes pages ready, in bytes: a multiple of
// the page size. The default is 1 MiB.
func PrefaultBytes(bytes uint64) Option {
	return func(o *openOptions) { o.c.prefault_bytes = C.uint64_t(bytes) }
}

// StagedSegmentsMax is how many segments of a [WAL] may hold records that are not durable, at least
// 2. The default is 3. An append when they are full commits first.
func StagedSegmentsMax(segments uint64) Option {
	return func(o *openOptions) { o.c.staged_segments_max = C.uint64_t(segments) }
}

// NoSpares is for [SpareSegmentsMax]: a trim gives all that goes back to the disk.
const NoSpares = math.MaxUint64

// SpareSegmentsMax is how many segments of a [WAL] may wait for new records behind a trim: those
// that are ready already, and those that are kept of the removed ones. The default, and the most,
// is 8.
func SpareSegmentsMax(segments uint64) Option {
	return func(o *openOptions) { o.c.spare_segments_max = C.uint64_t(segments) }
}

// A Fill is how records are written to the files.
type Fill uint32

// The ways to fill.
const (
	// FillMapped stores small records through a shared mapping and writes long ones.
	FillMapped Fill = C.VELLUM_FILL_MAPPED
	// FillWrite writes every record.
	FillWrite Fill = C.VELLUM_FILL_PWRITE
	// FillStaged stores records beside the segments until they are committed, as a [WAL] does.
	FillStaged Fill = C.VELLUM_FILL_STAGED
)

// FillBy says how records are written to the files of a new log. The default suits the kind and the
// filesystem. A log that is there keeps its own.
func FillBy(fill Fill) Option {
	return func(o *openOptions) { o.c.fill = C.uint32_t(fill) }
}

// RotateBytes is after how many bytes a text log continues in a new file; 0 is never.
func RotateBytes(bytes uint64) Option {
	return func(o *openOptions) { o.c.rotate_bytes = C.uint64_t(bytes) }
}

// RotateEvery is after what time a text log continues in a new file, in whole seconds counted from
// 1970-01-01 00:00 UTC and moved by offset; 0 is never.
func RotateEvery(period, offset time.Duration) Option {
	return func(o *openOptions) {
		o.c.rotate_every_s = seconds(period)
		o.c.rotate_offset_s = seconds(offset)
	}
}

// RetainBytes is how many bytes the files may take together; 0 is no limit. The oldest files go. In
// a framed log nothing from the checkpoint on is removed.
func RetainBytes(bytes uint64) Option {
	return func(o *openOptions) { o.c.retain_bytes = C.uint64_t(bytes) }
}

// RetainAge is how long a closed file is kept, in whole seconds; 0 is for ever.
func RetainAge(age time.Duration) Option {
	return func(o *openOptions) { o.c.retain_age_s = seconds(age) }
}

// RetainFiles is how many closed files of a text log are kept; a negative number is no limit.
func RetainFiles(files int) Option {
	return func(o *openOptions) {
		o.c.retain_files = math.MaxUint64 - 1 // VELLUM_ALL_FILES
		if files >= 0 {
			o.c.retain_files = C.uint64_t(files)
		}
	}
}

// A Compression is a format for closed files of a text log.
type Compression uint32

// The compressions.
const (
	// CompressOff leaves closed files as they are.
	CompressOff Compression = C.VELLUM_COMPRESS_OFF
	// CompressZstd is zstd, where the library is built with it.
	CompressZstd Compression = C.VELLUM_COMPRESS_ON
	// CompressGzip is gzip, for zgrep and zless.
	CompressGzip Compression = C.VELLUM_COMPRESS_GZIP
)

// Compress sets the format for closed files of a text log.
func Compress(with Compression) Option {
	return func(o *openOptions) { o.c.compress = C.uint32_t(with) }
}

// OnFull is the behaviour of an append on a full disk.
type OnFull uint32

// The choices on a full disk.
const (
	// FullError returns [ErrNoSpace].
	FullError OnFull = C.VELLUM_ON_FULL_ERROR
	// FullBlock waits until there is space again, or the context ends.
	FullBlock OnFull = C.VELLUM_ON_FULL_BLOCK
	// FullDrop drops the record, counts it, and returns position 0. Text logs only.
	FullDrop OnFull = C.VELLUM_ON_FULL_DROP
)

// WhenFull sets the behaviour of an append on a full disk. The default is [FullError].
func WhenFull(do OnFull) Option {
	return func(o *openOptions) {
		// The wait is in Go: no thread is held, and a context ends it.
		o.blocks = do == FullBlock
		o.c.on_full = C.uint32_t(do)
		if o.blocks {
			o.c.on_full = C.VELLUM_ON_FULL_ERROR
		}
	}
}

// Timeout is how long calls wait for another process that is stopped or does not get on: then they
// return [ErrTimedOut], and have changed nothing. The default is as long as that process lives, or
// until the context ends.
func Timeout(timeout time.Duration) Option {
	return func(o *openOptions) { o.timeout = timeout }
}

// CheckpointAfter is after how many bytes of log behind the checkpoint the next one is due; see
// [Log.CheckpointDue]. The default, 0, is never.
func CheckpointAfter(bytes uint64) Option {
	return func(o *openOptions) { o.c.checkpoint_after_bytes = C.uint64_t(bytes) }
}

// ApplicationTag is the application's mark of its records, such as the version of their encoding. A
// log that was created with another tag is refused. 0 takes the log as it is.
func ApplicationTag(tag uint64) Option {
	return func(o *openOptions) { o.c.application_tag = C.uint64_t(tag) }
}

func seconds(duration time.Duration) C.uint64_t {
	return C.uint64_t(max(duration/time.Second, 0))
}
