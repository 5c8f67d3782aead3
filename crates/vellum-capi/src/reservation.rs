//! A record that is written where it will stay, piece by piece.

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::mem::{MaybeUninit, transmute};
use std::sync::Arc;

use vellum::{Log, Reservation};

use crate::boundary::{Failure, Outcome, bytes, give, guard, guard_or, required};
use crate::last_error::LastError;
use crate::log::vellum_log;
use crate::status::vellum_status::{VELLUM_IO, VELLUM_OK, VELLUM_OUT_OF_RANGE};

/// Space at the tail that belongs to the caller: a record that is written where it will stay.
///
/// From vellum_reserve, until vellum_reservation_publish or vellum_reservation_abandon. One thread
/// at a time. Nothing behind it becomes visible before: keep it short.
pub struct vellum_reservation {
    // Dropped before the log that it borrows from.
    reservation: Reservation<'static>,
    _log: Arc<Log>,
}

/// Reserves `len` bytes at the tail for one record.
///
/// The bytes are given by vellum_reservation_write; there is no pointer to write to, because they
/// may lie in two files, or in none that is mapped. Errors as for vellum_append.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reserve(
    log: Option<&vellum_log>,
    len: usize,
    reservation: Option<&mut MaybeUninit<*mut vellum_reservation>>,
) -> c_int {
    guard(|| {
        let log = Arc::clone(&required(log, "log")?.log);
        let place = required(reservation, "reservation")?;
        let reserved = log.reserve(len)?;
        // SAFETY: it borrows from the log, which stays where it is as long as `_log` is held.
        let reservation = unsafe { transmute::<Reservation<'_>, Reservation<'static>>(reserved) };
        place.write(Box::into_raw(Box::new(vellum_reservation { reservation, _log: log })));
        Ok(VELLUM_OK)
    })
}

/// The position of the record. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reservation_lsn(reservation: Option<&vellum_reservation>) -> u64 {
    guard_or(0, || Ok(required(reservation, "reservation")?.reservation.lsn().get()))
}

/// Bytes that are still to be written. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reservation_remaining(reservation: Option<&vellum_reservation>) -> usize {
    guard_or(0, || Ok(required(reservation, "reservation")?.reservation.remaining()))
}

/// Writes the next `len` bytes of the record.
///
/// Errors: VELLUM_OUT_OF_RANGE for more than remain, then nothing is written; VELLUM_IO and
/// VELLUM_NO_SPACE where the operating system refuses; VELLUM_ABANDONED in a child forked
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_reservation_write(
    reservation: Option<&mut vellum_reservation>,
    data: *const c_void,
    len: usize,
) -> c_int {
    guard(|| {
        let reservation = &mut required(reservation, "reservation")?.reservation;
        // SAFETY: the caller's bytes, which stay as they are while this function runs.
        let data = unsafe { bytes(data, len) }?;
        check_room(reservation, data.len())?;
        reservation.write_all(data).map_err(engine_error)?;
        Ok(VELLUM_OK)
    })
}

/// Changes `len` bytes that were written already, `offset` bytes from the start of the record.
///
/// For a header that is known last. Errors: VELLUM_OUT_OF_RANGE for bytes that have not been
/// written yet; otherwise as for vellum_reservation_write. Costs a second look at the record when
/// it is published.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_reservation_rewrite(
    reservation: Option<&mut vellum_reservation>,
    offset: usize,
    data: *const c_void,
    len: usize,
) -> c_int {
    guard(|| {
        let reservation = &mut required(reservation, "reservation")?.reservation;
        // SAFETY: the caller's bytes, which stay as they are while this function runs.
        reservation.rewrite(offset, unsafe { bytes(data, len) }?)?;
        Ok(VELLUM_OK)
    })
}

/// Makes the record visible to readers of every process; `*lsn` is its position, or `lsn` is NULL.
///
/// Ends the reservation, whatever it returns. Errors: VELLUM_ABANDONED when fewer bytes were
/// written than reserved; readers pass over the space. Durable as vellum_append.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reservation_publish(
    reservation: Option<Box<vellum_reservation>>,
    lsn: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    guard(|| {
        let vellum_reservation { reservation, _log } = *required(reservation, "reservation")?;
        let at = reservation.publish()?;
        give(lsn, at.get());
        Ok(VELLUM_OK)
    })
}

/// Gives the space up: readers pass over it. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reservation_abandon(reservation: Option<Box<vellum_reservation>>) {
    guard_or((), || {
        drop(reservation);
        Ok(())
    });
}

fn check_room(reservation: &Reservation<'_>, len: usize) -> Outcome<()> {
    let room = reservation.remaining();
    if len <= room {
        return Ok(());
    }
    let message = format!("cannot write {len} bytes: only {room} of the reservation remain");
    Err(Failure::of(LastError::new(VELLUM_OUT_OF_RANGE, &message)))
}

/// The engine's error out of the one that `io::Write` made of it.
fn engine_error(error: std::io::Error) -> Failure {
    let text = error.to_string();
    match error.into_inner().and_then(|inner| inner.downcast::<vellum::Error>().ok()) {
        Some(error) => Failure::from(*error),
        None => Failure::of(LastError::new(VELLUM_IO, &text)),
    }
}
