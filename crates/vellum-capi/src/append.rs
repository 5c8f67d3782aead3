//! Appending single records.

use std::ffi::{c_int, c_void};
use std::io::IoSlice;
use std::mem::MaybeUninit;

use libc::iovec;

use vellum::{Log, Lsn};

use crate::boundary::{Failure, Outcome, bytes, give, guard, null, required};
use crate::log::vellum_log;
use crate::status::vellum_status::VELLUM_OK;

/// Appends one record of `len` bytes; `*lsn` is its position. `lsn` may be NULL.
///
/// In a text log the bytes go in as they are: bring the newline.
///
/// Errors: VELLUM_NO_SPACE (see vellum_options.on_full) and VELLUM_RECORD_TOO_LARGE before anything
/// is reserved; VELLUM_READ_ONLY; VELLUM_POISONED; VELLUM_IO where the operating system refuses.
/// After an error the record is not in the log, and the log continues.
///
/// Durable: on return the record survives the death of this process and of every other. It does
/// not yet survive a power cut: vellum_commit.
///
/// Cost: two contended atomic operations and a copy; one pwrite for a record over 128 KiB. No
/// system call, no allocation and no lock else, but for preparing space: one append now and then
/// writes zeros for the next millisecond of records to the page cache (14 µs for 16 KiB, 300 for a
/// MiB). In a staged log that one also gets on with the next file (twice as much to the device, two
/// syncs at the end; with records of 64 KiB and more all of the file at once), and one that finds
/// the stage full commits up to staged_segments_max segments (vellum_options.on_stage_full). Each
/// takes as long as the device does: the whole of a segment 5 to 25 ms as measured. A keeper or a
/// committer of the process does all that for records of up to 64 KiB, as long as it keeps up: no
/// append syncs anything then, or writes to the device, and hardly one writes zeros.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_append(
    log: Option<&vellum_log>,
    data: *const c_void,
    len: usize,
    lsn: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    // SAFETY: the caller's bytes, which stay as they are while this function runs.
    unsafe { append_one(log, data, len, lsn, Log::append) }
}

/// Appends one record given in `count` parts, one after the other; `lsn` may be NULL.
///
/// Otherwise as vellum_append. More than eight parts cost an allocation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_appendv(
    log: Option<&vellum_log>,
    parts: *const iovec,
    count: usize,
    lsn: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    const FEW: usize = 8;
    guard(|| {
        let log = required(log, "log")?;
        // SAFETY: the caller's parts, which stay as they are while this function runs.
        let parts = unsafe { part_list(parts, count) }?;
        let at = if parts.len() <= FEW {
            let mut slices = [IoSlice::new(&[]); FEW];
            // SAFETY: as above, each with the bytes that it says.
            unsafe { to_slices(parts, &mut slices) }?;
            log.log.append_vectored(&slices[..parts.len()])?
        } else {
            let mut slices = vec![IoSlice::new(&[]); parts.len()];
            // SAFETY: as above.
            unsafe { to_slices(parts, &mut slices) }?;
            log.log.append_vectored(&slices)?
        };
        give(lsn, at.get());
        Ok(VELLUM_OK)
    })
}

/// Appends one record and commits it; `lsn` may be NULL.
///
/// As vellum_append and vellum_commit. After an error of the commit the record may be in the log.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_append_durable(
    log: Option<&vellum_log>,
    data: *const c_void,
    len: usize,
    lsn: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    // SAFETY: the caller's bytes, which stay as they are while this function runs.
    unsafe { append_one(log, data, len, lsn, Log::append_durable) }
}

/// Hands one record to `append`.
///
/// # Safety
///
/// There are `len` bytes at `data`, and no thread changes them meanwhile.
#[inline]
unsafe fn append_one(
    log: Option<&vellum_log>,
    data: *const c_void,
    len: usize,
    lsn: Option<&mut MaybeUninit<u64>>,
    append: impl FnOnce(&Log, &[u8]) -> vellum::Result<Lsn>,
) -> c_int {
    guard(|| {
        let log = required(log, "log")?;
        // SAFETY: as this function requires.
        let record = unsafe { bytes(data, len) }?;
        give(lsn, append(&log.log, record)?.get());
        Ok(VELLUM_OK)
    })
}

/// The caller's list of parts.
///
/// # Safety
///
/// There are `count` parts at `parts`, and no thread changes them while the slice is in use.
unsafe fn part_list<'a>(parts: *const iovec, count: usize) -> Outcome<&'a [iovec]> {
    if count == 0 {
        return Ok(&[]);
    }
    if parts.is_null() {
        return Err(null("parts"));
    }
    if count > isize::MAX as usize / size_of::<iovec>() {
        return Err(Failure::argument(&format!("a count of {count} parts is negative, or absurd")));
    }
    // SAFETY: not NULL, and not too long for a slice; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(parts, count) })
}

/// The bytes of each part.
///
/// # Safety
///
/// Each part has the bytes that it says, and no thread changes them while the slices are in use.
unsafe fn to_slices<'a>(parts: &[iovec], slices: &mut [IoSlice<'a>]) -> Outcome<()> {
    for (part, slice) in parts.iter().zip(slices) {
        // SAFETY: the caller's promise.
        *slice = IoSlice::new(unsafe { bytes(part.iov_base, part.iov_len) }?);
    }
    Ok(())
}
