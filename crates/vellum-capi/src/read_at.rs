//! One record by its position, and the newest one.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

use vellum::Lsn;

use crate::boundary::{Failure, bytes_mut, give, guard, required};
use crate::last_error::LastError;
use crate::log::vellum_log;
use crate::status::vellum_status::{VELLUM_END, VELLUM_OK, VELLUM_RECORD_TOO_LARGE};

/// Copies the record at `lsn` to `buffer`, which has room for `capacity` bytes. `*len` is its
/// length, `*next_lsn` where the next one starts; each may be NULL.
///
/// VELLUM_RECORD_TOO_LARGE if it has more than `capacity` bytes: `*len` says how many, and the
/// buffer is as it was. So a call with `capacity` 0 asks for the length.
///
/// Errors: VELLUM_TRIMMED for a position that is no longer kept; VELLUM_OUT_OF_RANGE for one that
/// is not published, or where no whole record starts: in a text log in the middle of a line. In a
/// framed log that is also how damage shows.
///
/// Cost: one pread of little more than the last record took, and another one for a longer record.
/// The log keeps up to four files open for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_read_at(
    log: Option<&vellum_log>,
    lsn: u64,
    buffer: *mut c_void,
    capacity: usize,
    len: Option<&mut MaybeUninit<usize>>,
    next_lsn: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    guard(|| {
        let record = required(log, "log")?.log.read_at(Lsn::new(lsn))?;
        // SAFETY: the caller has room for `capacity` bytes there, which no other code uses.
        let buffer = unsafe { bytes_mut(buffer, capacity) }?;
        give(len, record.payload.len());
        give(next_lsn, record.next_lsn.get());
        let Some(target) = buffer.get_mut(..record.payload.len()) else {
            let message = format!(
                "the record has {} bytes, the buffer room for {capacity}",
                record.payload.len()
            );
            return Err(Failure::of(LastError::new(VELLUM_RECORD_TOO_LARGE, &message)));
        };
        for (place, byte) in target.iter_mut().zip(&record.payload) {
            place.write(*byte);
        }
        Ok(VELLUM_OK)
    })
}

/// The position of the newest record that is published, for vellum_read_at; VELLUM_END in an empty
/// log.
///
/// Errors: VELLUM_CORRUPT for damage on the way to it.
///
/// Cost: a walk over 64 KiB at the end of a log that is committed, of a framed log that is not over
/// its last segment. The length of the log makes no difference.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_last_record(
    log: Option<&vellum_log>,
    lsn: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    guard(|| {
        let log = required(log, "log")?;
        let place = required(lsn, "lsn")?;
        let Some(record) = log.log.backwards(Lsn::MAX)?.next().transpose()? else {
            return Ok(VELLUM_END);
        };
        place.write(record.lsn.get());
        Ok(VELLUM_OK)
    })
}
