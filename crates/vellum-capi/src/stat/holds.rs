//! The holds that others may wait for, in the state of a log.

use std::ffi::{c_char, c_int};

use vellum::stat::{Hold, HoldKind, ProcessState};

use crate::boundary::{guard, required};
use crate::growing::{Growing, Place};
use crate::stat::vellum_stat;
use crate::status::vellum_status::VELLUM_OK;
use crate::verify::element;

/// The kinds of holds. Others may be added.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum vellum_hold_kind {
    /// The lock under which space is made ready and files are named and removed.
    VELLUM_HOLD_SPACE = 1,
    /// The lock under which reservations of the dead are padded.
    VELLUM_HOLD_REPAIR = 2,
    /// The lock under which commit groups begin and end. A commit waits for it.
    VELLUM_HOLD_COMMIT = 3,
    /// A batch of records on its way to the device. A commit of one of them waits for it.
    VELLUM_HOLD_COMMIT_GROUP = 4,
    /// The lock under which text is written. An append waits for it for a tenth of a second.
    VELLUM_HOLD_TEXT_WRITE_LOCK = 5,
    /// The lock of the line that reports dropped records.
    VELLUM_HOLD_DROPPED_RECORDS = 6,
    /// A reservation that is being filled. Readers and commits do not get past it.
    VELLUM_HOLD_APPEND = 7,
    /// The gate. Opening or closing the log waits for it.
    VELLUM_HOLD_GATE = 8,
    /// The right to compress closed files. No process waits for it.
    VELLUM_HOLD_COMPRESSION = 9,
    /// The right to change named cursors. Committing or setting one waits for it.
    VELLUM_HOLD_CURSORS = 10,
}

/// The state of a process that holds something.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum vellum_process_state {
    /// It runs.
    VELLUM_PROCESS_RUNNING = 1,
    /// It waits for something, as far as its first thread goes.
    VELLUM_PROCESS_SLEEPING = 2,
    /// It does not continue until another process continues it: by a signal, a debugger, a frozen
    /// control group.
    VELLUM_PROCESS_STOPPED = 3,
    /// It is dead: the next process that needs its hold takes it over.
    VELLUM_PROCESS_DEAD = 4,
    /// It cannot be seen from here.
    VELLUM_PROCESS_UNKNOWN = 5,
}

/// Something that others may wait for, and its holder.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_hold {
    /// sizeof(vellum_hold), set by the caller.
    pub struct_size: usize,
    /// A vellum_hold_kind; 0 for one that is newer than this header.
    pub what: u32,
    /// A vellum_process_state.
    pub state: u32,
    /// The process, by the number in its own PID namespace, or 0 where it cannot be told.
    pub pid: u32,
    /// 1 if that is another PID namespace than the caller's, otherwise 0.
    pub other_namespace: u32,
    /// Where the batch or the reservation begins; otherwise 0.
    pub first_lsn: u64,
    /// Its length; otherwise 0.
    pub bytes: u64,
    /// For how many microseconds others have waited, since the first of them noticed; 0 where none
    /// had to.
    pub waited_us: u64,
    /// All of this as a sentence without its end. Borrowed from the vellum_stat.
    pub text: *const c_char,
}

// SAFETY: repr(C), size first, words, a pointer and two pairs of half words.
unsafe impl Growing for vellum_hold {}

/// Hold number `index`. In a busy log something is held nearly always, and for microseconds.
/// Errors: VELLUM_OUT_OF_RANGE where there are no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_stat_hold(
    stat: Option<&vellum_stat>,
    index: usize,
    hold: *mut vellum_hold,
) -> c_int {
    guard(|| {
        let stat = required(stat, "stat")?;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::required(hold, "hold") }?;
        let found = element(&stat.stat.holds, index)?;
        place.put(&vellum_hold { text: stat.texts.holds[index].as_ptr(), ..hold_of(found) });
        Ok(VELLUM_OK)
    })
}

fn hold_of(hold: &Hold) -> vellum_hold {
    vellum_hold {
        struct_size: 0,
        what: kind_number(hold.what),
        state: state_number(hold.state),
        pid: hold.pid.unwrap_or(0),
        other_namespace: hold.other_namespace.into(),
        first_lsn: hold.range.map_or(0, |range| range.first_lsn.get()),
        bytes: hold.range.map_or(0, |range| range.bytes),
        waited_us: hold.waited.map_or(0, |time| (time.as_micros() as u64).max(1)),
        text: std::ptr::null(),
    }
}

fn kind_number(kind: HoldKind) -> u32 {
    use vellum_hold_kind::*;
    let number = match kind {
        HoldKind::Space => VELLUM_HOLD_SPACE,
        HoldKind::Repair => VELLUM_HOLD_REPAIR,
        HoldKind::Commit => VELLUM_HOLD_COMMIT,
        HoldKind::CommitGroup => VELLUM_HOLD_COMMIT_GROUP,
        HoldKind::TextWriteLock => VELLUM_HOLD_TEXT_WRITE_LOCK,
        HoldKind::DroppedRecords => VELLUM_HOLD_DROPPED_RECORDS,
        HoldKind::Append => VELLUM_HOLD_APPEND,
        HoldKind::Gate => VELLUM_HOLD_GATE,
        HoldKind::Compression => VELLUM_HOLD_COMPRESSION,
        HoldKind::Cursors => VELLUM_HOLD_CURSORS,
        _ => return 0,
    };
    number as u32
}

fn state_number(state: ProcessState) -> u32 {
    use vellum_process_state::*;
    let number = match state {
        ProcessState::Running => VELLUM_PROCESS_RUNNING,
        ProcessState::Sleeping => VELLUM_PROCESS_SLEEPING,
        ProcessState::Stopped => VELLUM_PROCESS_STOPPED,
        ProcessState::Dead => VELLUM_PROCESS_DEAD,
        _ => VELLUM_PROCESS_UNKNOWN,
    };
    number as u32
}
