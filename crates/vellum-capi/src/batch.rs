//! Several records that appear all or none.

use std::ffi::{c_int, c_void};
use std::mem::{MaybeUninit, transmute};
use std::sync::Arc;

use vellum::{Batch, Log};

use crate::boundary::{bytes, give, guard, guard_or, null, required};
use crate::log::vellum_log;
use crate::status::vellum_status::VELLUM_OK;

/// Records that are appended together: readers see all of them or none, one after the other with
/// nothing between, also after the death of any process.
///
/// From vellum_batch_begin, until vellum_batch_append or vellum_batch_discard. One thread at a
/// time.
pub struct vellum_batch {
    // Dropped before the log that it borrows from.
    batch: Batch<'static>,
    _log: Arc<Log>,
}

/// Begins an empty batch. Costs an allocation.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_batch_begin(
    log: Option<&vellum_log>,
    batch: Option<&mut MaybeUninit<*mut vellum_batch>>,
) -> c_int {
    guard(|| {
        let log = Arc::clone(&required(log, "log")?.log);
        let place = required(batch, "batch")?;
        // SAFETY: it borrows from the log, which stays where it is as long as `_log` is held.
        let batch = unsafe { transmute::<Batch<'_>, Batch<'static>>(log.batch()) };
        place.write(Box::into_raw(Box::new(vellum_batch { batch, _log: log })));
        Ok(VELLUM_OK)
    })
}

/// Adds a record of `len` bytes, which are copied.
///
/// Errors: VELLUM_RECORD_TOO_LARGE when the batch would take more than 4 GiB - 1; it stays as it
/// was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_batch_push(
    batch: Option<&mut vellum_batch>,
    data: *const c_void,
    len: usize,
) -> c_int {
    guard(|| {
        let batch = required(batch, "batch")?;
        // SAFETY: the caller's bytes, which stay as they are while this function runs.
        batch.batch.push(unsafe { bytes(data, len) }?)?;
        Ok(VELLUM_OK)
    })
}

/// Records added so far. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_batch_count(batch: Option<&vellum_batch>) -> u64 {
    guard_or(0, || Ok(required(batch, "batch")?.batch.len()))
}

/// Appends all records of the batch; `*lsn` is the position of the first. `lsn` may be NULL.
///
/// Ends the batch, whatever it returns. Errors, durability and cost as for vellum_append, and
/// VELLUM_INVALID_OPTION for a batch without records. After an error none of them is in the log.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_batch_append(
    batch: Option<Box<vellum_batch>>,
    lsn: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    guard(|| {
        let vellum_batch { batch, _log } = *required(batch, "batch")?;
        let at = batch.append()?;
        give(lsn, at.get());
        Ok(VELLUM_OK)
    })
}

/// As vellum_batch_append, and stores the position of each record in `lsns`, which has room for
/// `count` of them; of a longer batch, those of its first `count` records.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_batch_append_each(
    batch: Option<Box<vellum_batch>>,
    lsns: *mut u64,
    count: usize,
) -> c_int {
    guard(|| {
        let vellum_batch { batch, _log } = *required(batch, "batch")?;
        if lsns.is_null() && count > 0 {
            return Err(null("lsns"));
        }
        for (index, lsn) in batch.append_each()?.into_iter().take(count).enumerate() {
            // SAFETY: the caller has room for `count` positions there.
            unsafe { lsns.add(index).write(lsn.get()) };
        }
        Ok(VELLUM_OK)
    })
}

/// Ends a batch without appending anything; NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_batch_discard(batch: Option<Box<vellum_batch>>) {
    guard_or((), || {
        drop(batch);
        Ok(())
    });
}
