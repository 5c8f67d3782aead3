//! An open log and its positions.

use std::ffi::{CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::time::SystemTime;

use vellum::stat::Recovery;
use vellum::{Layout, Log, Lsn};

use crate::boundary::{self, Outcome, guard, guard_or, required, timeout};
use crate::growing::{Growing, Place};
use crate::last_error::path_text;
use crate::options::{self, vellum_options};
use crate::status::vellum_status::VELLUM_OK;

/// An open log.
///
/// From vellum_open, until vellum_close. Any number of threads may use it at once.
pub struct vellum_log {
    /// Shared with its readers, batches and committers, so that handles may be closed in any order.
    pub(crate) log: Arc<Log>,
    path: CString,
}

impl From<Log> for vellum_log {
    /// A handle for C on a log that Rust opened.
    fn from(log: Log) -> vellum_log {
        let path = path_text(log.path());
        vellum_log { log: Arc::new(log), path }
    }
}

/// Opens or creates the log in the directory `path`.
///
/// `options` NULL is the defaults: an existing log as it is, or a new framed one. `*log` is to be
/// closed by vellum_close.
///
/// Errors: VELLUM_NOT_FOUND, VELLUM_ALREADY_EXISTS and VELLUM_PERMISSION_DENIED as for a file;
/// VELLUM_INVALID_OPTION for a value out of range, or one that contradicts the stored one;
/// VELLUM_INCOMPATIBLE where the path is something else than a log of this version;
/// VELLUM_UNSUPPORTED on a filesystem that cannot carry a log; VELLUM_CORRUPT for damage to
/// committed records; VELLUM_POISONED while others have the log open after a failed write;
/// VELLUM_TOO_MANY_PARTICIPANTS when 1024 processes are attached.
///
/// Durable: a new log survives the death of every process; after a power cut it is there whole or
/// not at all.
///
/// Cost: a dozen system calls; two syncs where the log is created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_open(
    path: *const c_char,
    options: *const vellum_options,
    log: Option<&mut MaybeUninit<*mut vellum_log>>,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's path ends with a NUL.
        let path = unsafe { boundary::path(path, "path") }?;
        let place = required(log, "log")?;
        // SAFETY: the caller's options are as long as they say.
        let options = unsafe { options::read(options) }?;
        let log = vellum_log::from(options.open(path)?);
        place.write(Box::into_raw(Box::new(log)));
        Ok(VELLUM_OK)
    })
}

/// Opens the log at the path of `log` once more: joins the one that is there, or makes one with the
/// same layout, way to fill and policy. To continue after VELLUM_REMOVED.
///
/// All processes that do so are in the same new log. `log` stays as it is, for its readers and
/// commits, until it is closed. A relative path is meant from where it was opened. Where the
/// directory is still there without its file `lock`, as in the middle of `rm -rf`, it is renamed to
/// NAME.removed-TIME-PID first. `*reopened` is to be closed by vellum_close.
///
/// Errors: as for vellum_open; VELLUM_NOT_FOUND if the log was opened for reading, or not to be
/// created, and there is none.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reopen(
    log: Option<&vellum_log>,
    reopened: Option<&mut MaybeUninit<*mut vellum_log>>,
) -> c_int {
    guard(|| {
        let log = required(log, "log")?;
        let place = required(reopened, "reopened")?;
        let log = vellum_log::from(log.log.reopen()?);
        place.write(Box::into_raw(Box::new(log)));
        Ok(VELLUM_OK)
    })
}

/// Closes a log; NULL is fine. The handle is gone, whatever this returns.
///
/// The last process to close a log cuts a text log to its text, and commits what a staged log has.
/// Other processes notice nothing.
///
/// Errors: VELLUM_BUSY where something that was made from the log (a reader, a batch, a committer)
/// keeps it open: then it is closed with the last of them, and errors are lost. Otherwise as for
/// vellum_commit, VELLUM_NO_SPACE and VELLUM_IO: the process has left the log, and uncommitted
/// records are there as after a kill -9.
///
/// Durable: committed records, and all of a staged log that no other process has open. Call
/// vellum_sync before for other logs.
///
/// Cost: half a dozen system calls; in a staged log two writes of the device.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_close(log: Option<Box<vellum_log>>) -> c_int {
    guard(|| {
        if let Some(handle) = log {
            let log = Log::clone(&handle.log);
            drop(handle);
            log.close()?;
        }
        Ok(VELLUM_OK)
    })
}

/// The log's directory, as it was opened. Borrowed until the log is closed. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_log_path(log: Option<&vellum_log>) -> *const c_char {
    guard_or(ptr::null(), || Ok(required(log, "log")?.path.as_ptr()))
}

/// The log's vellum_layout: VELLUM_LAYOUT_FRAMED or VELLUM_LAYOUT_TEXT. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_log_layout(log: Option<&vellum_log>) -> u32 {
    guard_or(0, || Ok(layout_number(required(log, "log")?.log.layout())))
}

/// The number of a layout in vellum_layout.
pub(crate) fn layout_number(layout: Layout) -> u32 {
    match layout {
        Layout::Framed => 1,
        Layout::Text => 2,
        _ => 0,
    }
}

/// The answer of a question for a position; 0 for NULL.
fn position(log: Option<&vellum_log>, question: impl FnOnce(&Log) -> Lsn) -> u64 {
    guard_or(0, || -> Outcome<u64> { Ok(question(&required(log, "log")?.log).get()) })
}

/// Oldest position that is still kept. 0 for NULL. Costs a read of memory, as the next three.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_begin(log: Option<&vellum_log>) -> u64 {
    position(log, Log::begin)
}

/// End of the records that survive a power cut. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_durable(log: Option<&vellum_log>) -> u64 {
    position(log, Log::durable)
}

/// End of the records that readers can see: everything before it is filled. 0 for NULL. The next
/// record starts there, so it may be stored as the place to read from (vellum_position_of).
#[unsafe(no_mangle)]
pub extern "C" fn vellum_published(log: Option<&vellum_log>) -> u64 {
    position(log, Log::published)
}

/// Waits until every reader sees the record at `lsn`, and everything before it, up to `timeout_ns`
/// nanoseconds; -1 is for ever. A record whose append has returned is seen once each append in
/// front of it is done, in any process. Makes nothing durable.
///
/// Errors: VELLUM_TIMED_OUT; VELLUM_OUT_OF_RANGE for a position beyond the end; VELLUM_BUSY while
/// the calling thread holds a reservation before `lsn`.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_wait_published(
    log: Option<&vellum_log>,
    lsn: u64,
    timeout_ns: i64,
) -> c_int {
    guard(|| {
        required(log, "log")?.log.wait_published(Lsn::new(lsn), timeout(timeout_ns))?;
        Ok(VELLUM_OK)
    })
}

/// End of the reserved space: where the next record goes, or a little further. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_tail(log: Option<&vellum_log>) -> u64 {
    position(log, Log::tail)
}

/// Why a log was recovered. For vellum_recovery.reason; others may be added.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum vellum_recovery_reason {
    /// It was not.
    VELLUM_RECOVERY_NONE = 0,
    /// The boot id is another: the machine has started again, or a container has an id of its own.
    VELLUM_RECOVERY_REBOOT = 1,
    /// The control file is not the one that was written: the log was copied or restored, or the
    /// filesystem has changed the numbers of its files.
    VELLUM_RECOVERY_MOVED = 2,
    /// The control file was gone.
    VELLUM_RECOVERY_CONTROL_LOST = 3,
    /// The control file does not agree with the segments.
    VELLUM_RECOVERY_DISAGREEMENT = 4,
    /// A write or sync of the device had failed.
    VELLUM_RECOVERY_POISONED = 5,
    /// A truncation had not been finished.
    VELLUM_RECOVERY_TRUNCATION = 6,
    /// The stage of a staged log was gone.
    VELLUM_RECOVERY_STAGE_LOST = 7,
}

/// The recovery on opening the log.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_recovery {
    /// sizeof(vellum_recovery), set by the caller.
    pub struct_size: usize,
    /// 1 if there was a recovery (vellum_recovered: by this process), otherwise 0, as all below.
    pub recovered: u64,
    /// End of the recovered records.
    pub end: u64,
    /// End of the records that were known to be durable before.
    pub durable: u64,
    /// Bytes behind `end` that were cut, because a power cut had torn them.
    pub cut_bytes: u64,
    /// Bytes that were filled in before `end`: pads, marker lines, the newline of a torn line.
    pub padded_bytes: u64,
    /// From here on positions may hold something else than before. At most `end`.
    pub from: u64,
    /// When, in seconds since 1970.
    pub time_s: u64,
    /// Why: a vellum_recovery_reason.
    pub reason: u64,
}

// SAFETY: repr(C), size first, words only.
unsafe impl Growing for vellum_recovery {}

/// Tells what opening the log had to recover, if it was this process that had to.
///
/// Only the first opener after a power cut, or after the control file was lost, has to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_recovered(
    log: Option<&vellum_log>,
    recovery: *mut vellum_recovery,
) -> c_int {
    guard(|| {
        let log = required(log, "log")?;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::required(recovery, "recovery") }?;
        place.put(&vellum_recovery::of(log.log.recovery()));
        Ok(VELLUM_OK)
    })
}

impl vellum_recovery {
    pub(crate) fn of(recovery: Option<Recovery>) -> vellum_recovery {
        let number = |number: fn(&Recovery) -> u64| recovery.as_ref().map_or(0, number);
        vellum_recovery {
            struct_size: 0,
            recovered: recovery.is_some().into(),
            end: number(|found| found.end.get()),
            durable: number(|found| found.durable.get()),
            cut_bytes: number(|found| found.cut_bytes),
            padded_bytes: number(|found| found.padded_bytes),
            from: number(|found| found.from.get()),
            time_s: number(|found| {
                let since = found.time.duration_since(SystemTime::UNIX_EPOCH);
                since.map_or(0, |since| since.as_secs())
            }),
            reason: number(|found| found.reason as u64),
        }
    }
}
