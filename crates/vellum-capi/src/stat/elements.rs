//! The files and the processes in the state of a log.

use std::ffi::{c_char, c_int};

use vellum::stat::SegmentState;

use crate::boundary::{guard, required};
use crate::growing::{Growing, Place};
use crate::stat::vellum_stat;
use crate::status::vellum_status::VELLUM_OK;
use crate::verify::element;

/// Where a file is in its life.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum vellum_segment_state {
    /// Full: no more records, ever.
    VELLUM_SEGMENT_SEALED = 1,
    /// The one that records go to.
    VELLUM_SEGMENT_ACTIVE = 2,
    /// Made ready ahead of need.
    VELLUM_SEGMENT_PREPARED = 3,
    /// Trimmed, and kept to be used again.
    VELLUM_SEGMENT_SPARE = 4,
}

/// A file of a log.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_segment {
    /// sizeof(vellum_segment), set by the caller.
    pub struct_size: usize,
    /// The file. Borrowed from the vellum_stat.
    pub path: *const c_char,
    /// First position it can hold; 0 for a spare.
    pub first_lsn: u64,
    /// End of the positions reserved in it; 0 for a spare.
    pub end_lsn: u64,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Bytes of blocks it occupies.
    pub allocated_bytes: u64,
    /// A vellum_segment_state.
    pub state: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: repr(C), size first, words, a pointer and a pair of half words.
unsafe impl Growing for vellum_segment {}

/// A process that is attached, or died while it was.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_participant {
    /// sizeof(vellum_participant), set by the caller.
    pub struct_size: usize,
    /// Its place.
    pub index: u32,
    /// Its process number, in its own PID namespace.
    pub pid: u32,
    /// 1 if it lives, otherwise 0.
    pub alive: u32,
    /// 1 if it is stopped by a signal or a debugger: its records in flight hold back readers.
    pub stopped: u32,
    /// Reservations that it has not published.
    pub in_flight_count: u64,
    /// Bytes of those.
    pub in_flight_bytes: u64,
    /// Position of the oldest of them, or 0.
    pub in_flight_lsn: u64,
}

// SAFETY: repr(C), size first, words and two pairs of half words.
unsafe impl Growing for vellum_participant {}

/// File number `index`, oldest first, spares last. Errors: VELLUM_OUT_OF_RANGE where there are no
/// more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_stat_segment(
    stat: Option<&vellum_stat>,
    index: usize,
    segment: *mut vellum_segment,
) -> c_int {
    guard(|| {
        let stat = required(stat, "stat")?;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::required(segment, "segment") }?;
        let found = element(&stat.stat.segments, index)?;
        place.put(&vellum_segment {
            struct_size: 0,
            path: stat.texts.segments[index].as_ptr(),
            first_lsn: found.first_lsn.get(),
            end_lsn: found.end_lsn.get(),
            file_bytes: found.file_bytes,
            allocated_bytes: found.allocated_bytes,
            state: state_number(found.state),
            reserved: 0,
        });
        Ok(VELLUM_OK)
    })
}

/// Process number `index`. Errors: VELLUM_OUT_OF_RANGE where there are no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_stat_participant(
    stat: Option<&vellum_stat>,
    index: usize,
    participant: *mut vellum_participant,
) -> c_int {
    guard(|| {
        let stat = required(stat, "stat")?;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::required(participant, "participant") }?;
        let found = element(&stat.stat.participants, index)?;
        let oldest = found.in_flight.iter().map(|flight| flight.first_lsn.get()).min();
        place.put(&vellum_participant {
            struct_size: 0,
            index: found.index,
            pid: found.pid,
            alive: found.alive.into(),
            stopped: found.stopped.into(),
            in_flight_count: found.in_flight.len() as u64,
            in_flight_bytes: found.in_flight.iter().map(|flight| flight.bytes).sum(),
            in_flight_lsn: oldest.unwrap_or(0),
        });
        Ok(VELLUM_OK)
    })
}

fn state_number(state: SegmentState) -> u32 {
    let number = match state {
        SegmentState::Sealed => vellum_segment_state::VELLUM_SEGMENT_SEALED,
        SegmentState::Active => vellum_segment_state::VELLUM_SEGMENT_ACTIVE,
        SegmentState::Prepared => vellum_segment_state::VELLUM_SEGMENT_PREPARED,
        SegmentState::Spare => vellum_segment_state::VELLUM_SEGMENT_SPARE,
        _ => return 0,
    };
    number as u32
}
