//! Reading records, and waiting for more.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::time::Duration;

use vellum::{Lsn, Reader, Record};

use crate::boundary::{guard, guard_or, required};
use crate::log::vellum_log;
use crate::status::vellum_status::{self, VELLUM_END, VELLUM_OK};

/// A place in a log, and the way to the next record.
///
/// From vellum_reader_open, until vellum_reader_close. One thread at a time; any thread.
pub struct vellum_reader {
    reader: Reader,
}

/// A record, as a reader lends it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_record {
    /// The caller's bytes; in a text log a line with its newline, which only the last may lack.
    /// Borrowed until the next call with the same reader. Not followed by a NUL.
    pub data: *const c_void,
    /// How many.
    pub len: usize,
    /// Where the record stands.
    pub lsn: u64,
    /// Where to go on reading after it.
    pub next_lsn: u64,
}

/// A reader that starts at the record at `from`, or at the oldest for 0.
///
/// Errors: VELLUM_TRIMMED for a position that is no longer kept, VELLUM_OUT_OF_RANGE for one beyond
/// the end or (framed) where no record starts.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_open(
    log: Option<&vellum_log>,
    from: u64,
    reader: Option<&mut MaybeUninit<*mut vellum_reader>>,
) -> c_int {
    guard(|| {
        let log = required(log, "log")?;
        let place = required(reader, "reader")?;
        let reader = log.log.reader(Lsn::new(from))?;
        place.write(Box::into_raw(Box::new(vellum_reader { reader })));
        Ok(VELLUM_OK)
    })
}

/// The next record, or VELLUM_END at the published end; later calls go on from there.
///
/// `record->data` is borrowed until the next call with the same reader.
///
/// Errors: VELLUM_TRIMMED when the position has been trimmed away meanwhile; VELLUM_OUT_OF_RANGE
/// when it was truncated away; VELLUM_CORRUPT for damage, with file and position.
///
/// Cost: one pread for 256 KiB, and a checksum of the record.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_next(
    reader: Option<&mut vellum_reader>,
    record: Option<&mut MaybeUninit<vellum_record>>,
) -> c_int {
    guard(|| {
        let (reader, place) = (required(reader, "reader")?, required(record, "record")?);
        Ok(lend(reader.reader.next()?, place))
    })
}

/// The next record, waiting for one up to `timeout_ns` nanoseconds; -1 is for ever. VELLUM_END when
/// the time is over.
///
/// Sleeps, and is woken by whoever appends, in whatever process. A signal does not end it. A reader
/// that may not write the log's control file looks again every 20 ms instead. Otherwise as
/// vellum_reader_next.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_follow(
    reader: Option<&mut vellum_reader>,
    timeout_ns: i64,
    record: Option<&mut MaybeUninit<vellum_record>>,
) -> c_int {
    guard(|| {
        let (reader, place) = (required(reader, "reader")?, required(record, "record")?);
        // Negative is for ever.
        let timeout = u64::try_from(timeout_ns).ok().map(Duration::from_nanos);
        Ok(lend(reader.reader.follow(timeout)?, place))
    })
}

/// Where the next record will be looked for. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_position(reader: Option<&vellum_reader>) -> u64 {
    guard_or(0, || Ok(required(reader, "reader")?.reader.position().get()))
}

/// Closes a reader; NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_close(reader: Option<Box<vellum_reader>>) {
    guard_or((), || {
        drop(reader);
        Ok(())
    });
}

fn lend(record: Option<Record<'_>>, place: &mut MaybeUninit<vellum_record>) -> vellum_status {
    let Some(record) = record else { return VELLUM_END };
    place.write(vellum_record {
        data: record.payload.as_ptr().cast(),
        len: record.payload.len(),
        lsn: record.lsn.get(),
        next_lsn: record.next_lsn.get(),
    });
    VELLUM_OK
}
