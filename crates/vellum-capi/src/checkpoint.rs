//! Learning that a checkpoint is due.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

use vellum::CheckpointEvent;

use crate::boundary::{give, guard, guard_or, required};
use crate::log::vellum_log;
use crate::status::vellum_status::VELLUM_OK;

/// A file descriptor that says when a checkpoint is due.
///
/// From vellum_checkpoint_event_open, until vellum_checkpoint_event_close. Any number of threads
/// may use it at once.
pub struct vellum_checkpoint_event {
    event: CheckpointEvent,
}

/// 1 if vellum_options.checkpoint_after_bytes are durable behind the checkpoint, or behind
/// vellum_begin where none was stored; otherwise 0, as in a text log, without that option, and for
/// NULL.
///
/// Counts what every process wrote. Call it behind a commit, or now and then. Costs three reads of
/// memory.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_checkpoint_due(log: Option<&vellum_log>) -> u32 {
    guard_or(0, || Ok(required(log, "log")?.log.checkpoint().is_due().into()))
}

/// Makes a file descriptor that becomes readable when a commit of this process finds that a
/// checkpoint is due; at once where it is already.
///
/// A commit of another process, a forked child for example, has no effect on it: the next commit of
/// this one has. All events of one open log in one process share one descriptor. `*event` is to be
/// closed by vellum_checkpoint_event_close, and keeps the log open.
///
/// Errors: VELLUM_READ_ONLY; VELLUM_UNSUPPORTED in a text log, and in a child forked after the
/// first event was made; VELLUM_IO where the process has no file descriptor left.
///
/// Cost: one file descriptor as long as the log is open, and in each commit three reads of memory.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_checkpoint_event_open(
    log: Option<&vellum_log>,
    event: Option<&mut MaybeUninit<*mut vellum_checkpoint_event>>,
) -> c_int {
    guard(|| {
        let log = required(log, "log")?;
        let place = required(event, "event")?;
        let event = log.log.checkpoint().event()?;
        place.write(Box::into_raw(Box::new(vellum_checkpoint_event { event })));
        Ok(VELLUM_OK)
    })
}

/// A file descriptor that becomes readable (POLLIN) when a checkpoint is due, and stays so until
/// vellum_checkpoint_event_take. -1 for NULL.
///
/// Borrowed until vellum_checkpoint_event_close: do not close it, and do not read from it.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_checkpoint_event_fd(event: Option<&vellum_checkpoint_event>) -> c_int {
    guard_or(-1, || Ok(required(event, "event")?.event.as_raw_fd()))
}

/// Makes the descriptor unreadable; `*due` is 1 if a checkpoint is due now, otherwise 0. `due` may
/// be NULL.
///
/// As long as one is due, the next commit of this process makes the descriptor readable again. So a
/// checkpoint that failed is not forgotten. A commit during a checkpoint has the same effect: the
/// next call then gives 0.
///
/// Errors: VELLUM_UNSUPPORTED in a forked child: the descriptor is the parent's.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_checkpoint_event_take(
    event: Option<&vellum_checkpoint_event>,
    due: Option<&mut MaybeUninit<u32>>,
) -> c_int {
    guard(|| {
        let is_due = required(event, "event")?.event.take()?;
        give(due, is_due.into());
        Ok(VELLUM_OK)
    })
}

/// Closes an event; NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_checkpoint_event_close(event: Option<Box<vellum_checkpoint_event>>) {
    guard_or((), || {
        drop(event);
        Ok(())
    });
}
