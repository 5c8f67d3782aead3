//! Continuing in a new file, dropping old and new parts, making space ready.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use vellum::{Lsn, SegmentKeeper};

use crate::boundary::{give, guard, guard_or, required};
use crate::growing::{Growing, Place};
use crate::log::vellum_log;
use crate::status::vellum_status::VELLUM_OK;

/// Has a text log continue in a new file at the next append, whatever its policy says.
///
/// Errors: VELLUM_UNSUPPORTED in a framed log, VELLUM_READ_ONLY.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_rotate(log: Option<&vellum_log>) -> c_int {
    guard(|| {
        required(log, "log")?.log.rotate()?;
        Ok(VELLUM_OK)
    })
}

/// Counts of vellum_trim.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_trim_report {
    /// sizeof(vellum_trim_report), set by the caller.
    pub struct_size: usize,
    /// Oldest position that is kept.
    pub begin: u64,
    /// Files that were removed, or kept to be used again.
    pub segments_removed: u64,
    /// Where a cursor has kept records that were to be dropped, or 0: vellum_cursor_hold.
    pub held_at: u64,
}

// SAFETY: repr(C), size first, words only.
unsafe impl Growing for vellum_trim_report {}

/// Drops everything before `before`: whole files are removed, or kept for new records
/// (vellum_options.spare_segments_max); the rest is no longer shown.
///
/// `report` may be NULL. Errors: VELLUM_OUT_OF_RANGE for a position beyond vellum_published, or
/// (framed) where no record starts. A position before vellum_begin is fine and changes nothing.
///
/// Durable: in a framed log that commits, the new beginning survives a power cut on return. In
/// others, dropped records may be there again after one.
///
/// Cost: a sync of the device, and one more where a staged log or a cursor has something to write;
/// each file that goes is renamed or removed. That takes milliseconds: not for an event loop, but
/// any thread may call it. Appends and commits continue meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_trim(
    log: Option<&vellum_log>,
    before: u64,
    report: *mut vellum_trim_report,
) -> c_int {
    guard(|| {
        let log = required(log, "log")?;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::new(report) }?;
        let done = log.log.trim(Lsn::new(before))?;
        place.put(&vellum_trim_report {
            struct_size: 0,
            begin: done.begin.get(),
            segments_removed: done.segments_removed,
            held_at: done.held_at.map_or(0, Lsn::get),
        });
        Ok(VELLUM_OK)
    })
}

/// Drops the newest part of the log: the record at `from` and all behind it.
///
/// Positions from there on are given out again, in the next epoch (vellum_epoch). Everything before
/// is committed first; on return, dropped records stay dropped.
///
/// Errors: VELLUM_OUT_OF_RANGE for a position outside of the log or (framed) where no record
/// starts; VELLUM_BUSY while another process has the log open for writing, or an append of this
/// process is in progress; otherwise as for vellum_commit.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_truncate(log: Option<&vellum_log>, from: u64) -> c_int {
    guard(|| {
        required(log, "log")?.log.truncate(Lsn::new(from))?;
        Ok(VELLUM_OK)
    })
}

/// Makes sure that `segments` files are ready beyond the one being written; `*made` is how many had
/// to be made. `made` may be NULL.
///
/// Errors: VELLUM_NO_SPACE; those made before are given back, or stay where another process has the
/// log open.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_prepare(
    log: Option<&vellum_log>,
    segments: u64,
    made: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    guard(|| {
        let count = required(log, "log")?.log.prepare(segments)?;
        give(made, count);
        Ok(VELLUM_OK)
    })
}

/// Gives back the files that are ready beyond the written ones; `*released` is how many those were.
/// `released` may be NULL.
///
/// Errors: VELLUM_BUSY as for vellum_truncate.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_release_prepared(
    log: Option<&vellum_log>,
    released: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    guard(|| {
        let count = required(log, "log")?.log.release_prepared()?;
        give(released, count);
        Ok(VELLUM_OK)
    })
}

/// A thread that keeps files ready, so that no writer has to make one. In a staged log it also
/// commits when half a segment is not durable, so that no append finds the stage full.
///
/// From vellum_keeper_start, until vellum_keeper_stop. In a forked child there is no such thread.
pub struct vellum_keeper {
    _keeper: SegmentKeeper,
}

/// Starts a thread that keeps `segments` files ready; it has the signal mask of the calling thread.
///
/// Errors: as for vellum_prepare, and VELLUM_IO where no thread can be started.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_keeper_start(
    log: Option<&vellum_log>,
    segments: u64,
    keeper: Option<&mut MaybeUninit<*mut vellum_keeper>>,
) -> c_int {
    guard(|| {
        let log = required(log, "log")?;
        let place = required(keeper, "keeper")?;
        let keeper = vellum_keeper { _keeper: log.log.keep_prepared(segments)? };
        place.write(Box::into_raw(Box::new(keeper)));
        Ok(VELLUM_OK)
    })
}

/// Ends the thread; NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_keeper_stop(keeper: Option<Box<vellum_keeper>>) {
    guard_or((), || {
        drop(keeper);
        Ok(())
    });
}
