//! Records from the newest back to the oldest.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use vellum::{Backwards, Lsn, OwnedRecord};

use crate::boundary::{guard, guard_or, required};
use crate::gap::{Gaps, vellum_gap};
use crate::growing::Place;
use crate::log::vellum_log;
use crate::record::{Stamp, lent, vellum_record};
use crate::status::vellum_status::{VELLUM_END, VELLUM_OK};

/// A place in a log, and the way to the record before it.
///
/// From vellum_backwards_open, until vellum_backwards_close. One thread at a time; any thread.
pub struct vellum_backwards {
    records: Backwards,
    /// The record that was returned last.
    record: Option<OwnedRecord>,
    gaps: Gaps,
}

/// Records that start before `before`, the newest first; UINT64_MAX is all of them.
///
/// Errors: VELLUM_IO where a file cannot be read.
///
/// Cost: nothing yet. The first record takes a walk over 64 KiB, of a framed log that is not
/// committed over its last segment. The length of the log makes no difference.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_backwards_open(
    log: Option<&vellum_log>,
    before: u64,
    backwards: Option<&mut MaybeUninit<*mut vellum_backwards>>,
) -> c_int {
    guard(|| {
        let log = required(log, "log")?;
        let place = required(backwards, "backwards")?;
        let records = log.log.backwards(Lsn::new(before))?;
        let new = vellum_backwards { records, record: None, gaps: Gaps::default() };
        place.write(Box::into_raw(Box::new(new)));
        Ok(VELLUM_OK)
    })
}

/// The next older record, or VELLUM_END where the log begins. After VELLUM_END, and after an error,
/// it is over.
///
/// `record->data` is borrowed until the next call with the same handle.
///
/// Errors: VELLUM_CORRUPT for damage, with file and position.
///
/// Cost: it reads each returned byte three times at most, and copies it once.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_backwards_next(
    backwards: Option<&mut vellum_backwards>,
    record: Option<&mut MaybeUninit<vellum_record>>,
) -> c_int {
    guard(|| {
        let backwards = required(backwards, "backwards")?;
        let place = required(record, "record")?;
        backwards.record = backwards.records.next().transpose()?;
        let Some(found) = &backwards.record else { return Ok(VELLUM_END) };
        place.write(lent(&found.payload, found.lsn, found.next_lsn));
        Ok(VELLUM_OK)
    })
}

/// When the record that was returned last was appended, in nanoseconds since 1970. 0 in a log
/// without envelopes (VELLUM_ENVELOPE), before the first record, at the end, and for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_backwards_time(backwards: Option<&vellum_backwards>) -> u64 {
    guard_or(0, || Ok(required(backwards, "backwards")?.stamp().time_ns))
}

/// The writer of the record that was returned last, as of vellum_reader_writer. 0 as for
/// vellum_backwards_time.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_backwards_writer(backwards: Option<&vellum_backwards>) -> u64 {
    guard_or(0, || Ok(required(backwards, "backwards")?.stamp().writer))
}

/// As vellum_reader_skip_damage.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_backwards_skip_damage(
    backwards: Option<&mut vellum_backwards>,
    skip: c_int,
) -> c_int {
    guard(|| {
        required(backwards, "backwards")?.records.skip_damage(skip != 0);
        Ok(VELLUM_OK)
    })
}

/// As vellum_reader_take_gap. A gap may be told more than once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_backwards_take_gap(
    backwards: Option<&mut vellum_backwards>,
    gap: *mut vellum_gap,
) -> c_int {
    guard(|| {
        let backwards = required(backwards, "backwards")?;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::required(gap, "gap") }?;
        Ok(backwards.gaps.take(place, || backwards.records.take_gaps()))
    })
}

/// Ends it; NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_backwards_close(backwards: Option<Box<vellum_backwards>>) {
    guard_or((), || {
        drop(backwards);
        Ok(())
    });
}

impl vellum_backwards {
    fn stamp(&self) -> Stamp {
        let record = self.record.as_ref();
        Stamp::new(record.and_then(|r| r.time()), record.and_then(|r| r.writer()))
    }
}
