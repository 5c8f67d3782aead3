//! Named cursors: places in a log that survive processes and power cuts.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::time::{Duration, SystemTime};

use vellum::stat::CursorStat;
use vellum::{Cursor, CursorHold, Gap, Lsn};

use crate::boundary::{self, guard, guard_or, required};
use crate::gap::{GapTexts, gap_of, vellum_gap};
use crate::growing::{Growing, Place};
use crate::log::vellum_log;
use crate::reader::vellum_reader;
use crate::stat::vellum_stat;
use crate::status::vellum_status::{VELLUM_END, VELLUM_OK};
use crate::verify::element;

/// A named position in a log: its reader has finished everything before it.
///
/// From vellum_cursor_open, until vellum_cursor_close. Any number of threads may use it at once,
/// except for vellum_cursor_skip_overrun: that one thread at a time.
pub struct vellum_cursor {
    cursor: Cursor,
    /// The texts of the gap that was skipped last.
    texts: Option<GapTexts>,
}

/// The cursor of this name; a new one is made at `at`, or at the oldest record for 0, and holds
/// nothing. A name has 1 to 64 letters, digits, '.', '_' and '-'. A log has up to 128 cursors.
///
/// Errors: VELLUM_INVALID_OPTION for another name; VELLUM_BUSY when the log has 128 cursors;
/// VELLUM_NOT_FOUND when the log was opened for reading only and has no such cursor;
/// VELLUM_NO_SPACE for the first cursor of a log on a full disk; otherwise as vellum_cursor_set.
///
/// Durable: on return, a new cursor survives a power cut. Cost: a new one takes two syncs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_cursor_open(
    log: Option<&vellum_log>,
    name: *const c_char,
    at: u64,
    cursor: Option<&mut MaybeUninit<*mut vellum_cursor>>,
) -> c_int {
    guard(|| {
        let log = required(log, "log")?;
        // SAFETY: the caller's name ends with a NUL.
        let name = unsafe { boundary::path(name, "name") }?;
        let place = required(cursor, "cursor")?;
        let cursor = log.log.cursor(&name.to_string_lossy(), Lsn::new(at))?;
        place.write(Box::into_raw(Box::new(vellum_cursor { cursor, texts: None })));
        Ok(VELLUM_OK)
    })
}

/// Where the cursor is: the position of the first record that its reader has not finished.
///
/// Errors: VELLUM_NOT_FOUND when the cursor was removed; VELLUM_IO and VELLUM_CORRUPT where its
/// file cannot be read.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_cursor_position(
    cursor: Option<&vellum_cursor>,
    lsn: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    guard(|| {
        let (cursor, place) = (required(cursor, "cursor")?, required(lsn, "lsn")?);
        place.write(cursor.cursor.position()?.get());
        Ok(VELLUM_OK)
    })
}

/// A reader that starts at the cursor. Reading does not move the cursor.
///
/// Errors: VELLUM_TRIMMED if records were removed in front of the cursor; then
/// vellum_cursor_skip_overrun reports how much that was, and continues behind it. Otherwise as
/// vellum_reader_open.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_cursor_reader(
    cursor: Option<&vellum_cursor>,
    reader: Option<&mut MaybeUninit<*mut vellum_reader>>,
) -> c_int {
    guard(|| {
        let (cursor, place) = (required(cursor, "cursor")?, required(reader, "reader")?);
        place.write(Box::into_raw(Box::new(vellum_reader::from(cursor.cursor.reader()?))));
        Ok(VELLUM_OK)
    })
}

/// Moves the cursor forward to `lsn`: its reader has finished everything before. That is the
/// next_lsn of the last record it has finished.
///
/// Errors: VELLUM_OUT_OF_RANGE for a position before the cursor, beyond the end of the log, or
/// (framed) where no record starts; VELLUM_BUSY when another handle owns the cursor;
/// VELLUM_NOT_FOUND when it was removed; VELLUM_READ_ONLY; otherwise as vellum_commit.
///
/// Durable: on return, the records before `lsn` and the cursor survive a power cut. Cost: a commit
/// of the log if something before `lsn` is not durable, a write of 512 bytes, one fdatasync.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_cursor_commit(cursor: Option<&vellum_cursor>, lsn: u64) -> c_int {
    guard(|| {
        required(cursor, "cursor")?.cursor.commit(Lsn::new(lsn))?;
        Ok(VELLUM_OK)
    })
}

/// Moves the cursor to any position of the log, forward or back; 0 is the oldest record.
///
/// Errors: VELLUM_TRIMMED for a position that is no longer kept; otherwise as
/// vellum_cursor_commit.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_cursor_set(cursor: Option<&vellum_cursor>, lsn: u64) -> c_int {
    guard(|| {
        required(cursor, "cursor")?.cursor.set(Lsn::new(lsn))?;
        Ok(VELLUM_OK)
    })
}

/// Keeps the records from the cursor on from being removed: no more than `max_bytes` of them, and
/// none older than `max_age_s` seconds, both counted in whole files; 0 is no limit. It lasts until
/// vellum_cursor_unhold or vellum_cursor_remove, whether the cursor has an owner or not.
///
/// Errors: VELLUM_TRIMMED if records were removed in front of the cursor already;
/// VELLUM_UNSUPPORTED for an age in a framed log whose records have no times (VELLUM_ENVELOPE) and
/// that removes none by their age; otherwise as vellum_cursor_set.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_cursor_hold(
    cursor: Option<&vellum_cursor>,
    max_bytes: u64,
    max_age_s: u64,
) -> c_int {
    guard(|| {
        let mut hold = CursorHold::new();
        hold.max_bytes = (max_bytes != 0).then_some(max_bytes);
        hold.max_age = (max_age_s != 0).then(|| Duration::from_secs(max_age_s));
        required(cursor, "cursor")?.cursor.hold(hold)?;
        Ok(VELLUM_OK)
    })
}

/// Keeps nothing from being removed any more. Errors: as vellum_cursor_set.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_cursor_unhold(cursor: Option<&vellum_cursor>) -> c_int {
    guard(|| {
        required(cursor, "cursor")?.cursor.unhold()?;
        Ok(VELLUM_OK)
    })
}

/// Continues behind records that were removed in front of the cursor: moves it to the oldest
/// record, counts the gap and reports it. VELLUM_END if nothing was removed. `gap` may be NULL.
///
/// Texts are borrowed until the next call of this function with the same cursor. Errors: as
/// vellum_cursor_set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_cursor_skip_overrun(
    cursor: Option<&mut vellum_cursor>,
    gap: *mut vellum_gap,
) -> c_int {
    guard(|| {
        let cursor = required(cursor, "cursor")?;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::new(gap) }?;
        let found: Option<Gap> = cursor.cursor.skip_overrun()?;
        let Some(found) = found else { return Ok(VELLUM_END) };
        let texts = cursor.texts.insert(GapTexts::of(&found));
        place.put(&gap_of(&found, texts));
        Ok(VELLUM_OK)
    })
}

/// Makes this process the owner of the cursor, so that no other one can change it: until
/// vellum_cursor_disown, vellum_cursor_close or the death of the process. A forked child does not
/// own it.
///
/// Errors: VELLUM_BUSY when another handle owns it, here or in another process, which the message
/// names; VELLUM_NOT_FOUND when it was removed; VELLUM_READ_ONLY.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_cursor_own(cursor: Option<&vellum_cursor>) -> c_int {
    guard(|| {
        required(cursor, "cursor")?.cursor.own()?;
        Ok(VELLUM_OK)
    })
}

/// Gives the cursor up, so that another process can own it.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_cursor_disown(cursor: Option<&vellum_cursor>) -> c_int {
    guard(|| {
        required(cursor, "cursor")?.cursor.disown();
        Ok(VELLUM_OK)
    })
}

/// Removes the cursor from the log, and closes it, whatever is returned.
///
/// Errors: as vellum_cursor_commit.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_cursor_remove(cursor: Option<Box<vellum_cursor>>) -> c_int {
    guard(|| {
        required(cursor, "cursor")?.cursor.remove()?;
        Ok(VELLUM_OK)
    })
}

/// Closes a cursor, which stays in the log; NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_cursor_close(cursor: Option<Box<vellum_cursor>>) {
    guard_or((), || {
        drop(cursor);
        Ok(())
    });
}

/// The state of a cursor. Times are in seconds since 1970.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_cursor_stat {
    /// sizeof(vellum_cursor_stat), set by the caller.
    pub struct_size: usize,
    /// Its name. Borrowed from the vellum_stat.
    pub name: *const c_char,
    /// Where it is.
    pub lsn: u64,
    /// Bytes from there to the published end, or 0 if no record is there; of a text log, bytes of
    /// text.
    pub lag_bytes: u64,
    /// Records from there; UINT64_MAX where counting them takes too long.
    pub lag_records: u64,
    /// How old the oldest record is that is not finished, at most, in seconds; UINT64_MAX where
    /// nothing tells.
    pub lag_s: u64,
    /// When it was committed or set last.
    pub committed_at_s: u64,
    /// Bytes that it keeps at most; 0 is no limit.
    pub max_held_bytes: u64,
    /// How old a record may be that it keeps, in seconds; 0 is any age.
    pub max_held_age_s: u64,
    /// 1 if it keeps records from being removed, otherwise 0.
    pub holds: u32,
    /// 1 if a process owns it, otherwise 0.
    pub owned: u32,
    /// That process; 0 where it cannot be seen.
    pub owner: u32,
    /// 0.
    pub reserved: u32,
    /// Bytes that were removed in front of it and that its reader does not know of, at most.
    pub missing_bytes: u64,
    /// How often its reader skipped such bytes.
    pub overruns: u64,
    /// How many bytes that were, at most.
    pub overrun_bytes: u64,
    /// When it did so last, or 0.
    pub overrun_at_s: u64,
}

// SAFETY: repr(C), size first, words, a pointer and two pairs of half words.
unsafe impl Growing for vellum_cursor_stat {}

/// Cursor number `index`, in the order of their names. Errors: VELLUM_OUT_OF_RANGE where there are
/// no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_stat_cursor(
    stat: Option<&vellum_stat>,
    index: usize,
    cursor: *mut vellum_cursor_stat,
) -> c_int {
    guard(|| {
        let stat = required(stat, "stat")?;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::required(cursor, "cursor") }?;
        let found = element(&stat.stat.cursors, index)?;
        place.put(&stat_of(found, stat.texts.cursors[index].as_ptr()));
        Ok(VELLUM_OK)
    })
}

fn stat_of(found: &CursorStat, name: *const c_char) -> vellum_cursor_stat {
    let seconds =
        |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |s| s.as_secs());
    let hold = found.hold.unwrap_or_default();
    vellum_cursor_stat {
        struct_size: 0,
        name,
        lsn: found.lsn.get(),
        lag_bytes: found.lag_bytes,
        lag_records: found.lag_records.unwrap_or(u64::MAX),
        lag_s: found.lag_time.map_or(u64::MAX, |time| time.as_secs()),
        committed_at_s: seconds(found.committed_at),
        max_held_bytes: hold.max_bytes.unwrap_or(0),
        max_held_age_s: hold.max_age.map_or(0, |age| age.as_secs()),
        holds: found.hold.is_some().into(),
        owned: found.is_owned.into(),
        owner: found.owner.unwrap_or(0),
        reserved: 0,
        missing_bytes: found.missing_bytes,
        overruns: found.overruns,
        overrun_bytes: found.overrun_bytes,
        overrun_at_s: found.overrun_at.map_or(0, seconds),
    }
}
