//! Reading records, and waiting for more.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::time::{Duration, SystemTime};

use vellum::{Log, Lsn, PollableReader, Reader, Record};

use crate::boundary::{Failure, Outcome, give, guard, guard_or, required, timeout};
use crate::gap::{Gaps, vellum_gap};
use crate::growing::Place;
use crate::log::vellum_log;
use crate::record::{Stamp, lent, vellum_record};
use crate::status::vellum_status::{self, VELLUM_END, VELLUM_OK};

/// For vellum_reader_open_with: return a record only after some process has committed it.
pub const VELLUM_READ_DURABLE: u32 = 1;
/// For vellum_reader_open_with: have a file descriptor, vellum_reader_fd.
pub const VELLUM_READ_POLLABLE: u32 = 2;

/// A place in a log, and the way to the next record.
///
/// From vellum_reader_open or vellum_reader_open_with, until vellum_reader_close. One thread at a
/// time; any thread.
pub struct vellum_reader {
    source: Source,
    gaps: Gaps,
    stamp: Stamp,
}

impl vellum_reader {
    pub(crate) fn reader(&self) -> &Reader {
        self.source.reader()
    }
}

impl From<Reader> for vellum_reader {
    fn from(reader: Reader) -> vellum_reader {
        vellum_reader::from(Source::Plain(reader))
    }
}

impl From<Source> for vellum_reader {
    fn from(source: Source) -> vellum_reader {
        vellum_reader { source, gaps: Gaps::default(), stamp: Stamp::default() }
    }
}

/// Where records come from.
enum Source {
    Plain(Reader),
    Pollable(PollableReader),
}

impl Source {
    fn open(reader: Reader, flags: u32) -> Outcome<Source> {
        if flags & !(VELLUM_READ_DURABLE | VELLUM_READ_POLLABLE) != 0 {
            return Err(Failure::argument("`flags` has bits that mean nothing"));
        }
        let reader = if flags & VELLUM_READ_DURABLE != 0 { reader.durable() } else { reader };
        Ok(match flags & VELLUM_READ_POLLABLE != 0 {
            true => Source::Pollable(reader.pollable()?),
            false => Source::Plain(reader),
        })
    }

    fn next(&mut self) -> vellum::Result<Option<Record<'_>>> {
        match self {
            Source::Plain(reader) => reader.next(),
            Source::Pollable(reader) => reader.next(),
        }
    }

    fn reader(&self) -> &Reader {
        match self {
            Source::Plain(reader) => reader,
            Source::Pollable(reader) => reader.reader(),
        }
    }

    fn reader_mut(&mut self) -> &mut Reader {
        match self {
            Source::Plain(reader) => reader,
            Source::Pollable(reader) => reader.reader_mut(),
        }
    }
}

/// A reader that starts at the record at `from`, or at the oldest for 0.
///
/// Errors: VELLUM_TRIMMED for a position that is no longer kept, VELLUM_OUT_OF_RANGE for one beyond
/// the end, or where no record (in a text log: no line) starts.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_open(
    log: Option<&vellum_log>,
    from: u64,
    reader: Option<&mut MaybeUninit<*mut vellum_reader>>,
) -> c_int {
    vellum_reader_open_with(log, from, 0, reader)
}

/// As vellum_reader_open, with `flags`: VELLUM_READ_DURABLE, VELLUM_READ_POLLABLE, or both, or 0.
///
/// Records of a durable reader survive a power cut. It commits nothing itself. Its
/// vellum_reader_follow returns VELLUM_POISONED after a failed write or sync, when it has returned
/// everything that is durable; so does its vellum_reader_next if it is pollable.
///
/// Errors: as for vellum_reader_open; VELLUM_IO where no file descriptor is left;
/// VELLUM_INVALID_ARGUMENT for other flags.
///
/// Cost: three file descriptors for a pollable one.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_open_with(
    log: Option<&vellum_log>,
    from: u64,
    flags: u32,
    reader: Option<&mut MaybeUninit<*mut vellum_reader>>,
) -> c_int {
    open(log, flags, reader, |log| log.reader(Lsn::new(from)))
}

/// A reader that starts at the first record that was appended at `time_ns` or later, in nanoseconds
/// since 1970, or at the end of the log; `flags` as for vellum_reader_open_with.
///
/// Behind it may come records with an earlier time, because clocks are set back and appends
/// overlap: vellum_reader_time tells. In a log without envelopes it starts earlier: in a text log
/// at the file whose name has that time or the last one before it; in a framed log that removes
/// records by age at the start of a segment. Records from before a clock was set back by more than
/// a minute may be missing.
///
/// Errors: VELLUM_UNSUPPORTED where nothing in the log tells a time; otherwise as for
/// vellum_reader_open_with.
///
/// Cost: one record is read for each doubling of the number of segments, then up to one segment and
/// the records of the minute before.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_open_at_time(
    log: Option<&vellum_log>,
    time_ns: u64,
    flags: u32,
    reader: Option<&mut MaybeUninit<*mut vellum_reader>>,
) -> c_int {
    open(log, flags, reader, |log| log.reader_at_time(time(time_ns)))
}

/// Positions that enclose all records that were appended from `since_ns` on and before `until_ns`,
/// in nanoseconds since 1970; UINT64_MAX for `until_ns` is no bound. `*end` is UINT64_MAX where the
/// log has not come that far. Each of the two may be NULL.
///
/// Records of other times are among them: up to a segment and a minute of them at each end, where
/// records have envelopes; otherwise whole files or segments. Missing records, errors and cost: as
/// for vellum_reader_open_at_time, without reading a segment.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_positions_of_time(
    log: Option<&vellum_log>,
    since_ns: u64,
    until_ns: u64,
    start: Option<&mut MaybeUninit<u64>>,
    end: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    guard(|| {
        let log = required(log, "log")?;
        let until = (until_ns != u64::MAX).then(|| time(until_ns));
        let found = log.log.positions_of_time(Some(time(since_ns)), until)?;
        give(start, found.start.get());
        give(end, if found.end == Lsn::MAX { u64::MAX } else { found.end.get() });
        Ok(VELLUM_OK)
    })
}

/// When the record that this reader returned last was appended, in nanoseconds since 1970. 0 in a
/// log without envelopes (VELLUM_ENVELOPE), before the first record, and for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_time(reader: Option<&vellum_reader>) -> u64 {
    guard_or(0, || Ok(required(reader, "reader")?.stamp.time_ns))
}

/// The writer of the record that this reader returned last: a process, from when it opened the log
/// until it closed it. The low 32 bits are its process id, the high ones are random. 0 as for
/// vellum_reader_time.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_writer(reader: Option<&vellum_reader>) -> u64 {
    guard_or(0, || Ok(required(reader, "reader")?.stamp.writer))
}

/// A file descriptor that becomes readable (POLLIN) when vellum_reader_next may have more, after it
/// returned VELLUM_END. -1 for NULL, and for a reader that was opened without VELLUM_READ_POLLABLE.
///
/// Borrowed until vellum_reader_close: do not close it, nothing needs to be read from it. It may be
/// readable although there is nothing new, at least 10 times a second. In a forked child
/// vellum_reader_next returns VELLUM_UNSUPPORTED at the end of the log: open another reader there.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_fd(reader: Option<&vellum_reader>) -> c_int {
    guard_or(-1, || {
        Ok(match &required(reader, "reader")?.source {
            Source::Pollable(reader) => reader.as_raw_fd(),
            Source::Plain(_) => -1,
        })
    })
}

/// Continues at `to`, where a record starts, or at the oldest record for 0; vellum_reader_next
/// returns that record. This is how to read many records at random: the reader keeps the files that
/// it read last open.
///
/// Errors: as for vellum_reader_open; the position stays as it was.
///
/// Cost: one pread of little more than the last record, unless the record was read ahead, and
/// another one if it is longer; opening a file where it is in none of the last four segments.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_seek(reader: Option<&mut vellum_reader>, to: u64) -> c_int {
    guard(|| {
        required(reader, "reader")?.source.reader_mut().seek(Lsn::new(to))?;
        Ok(VELLUM_OK)
    })
}

/// The next record, or VELLUM_END at the published end; later calls continue there.
///
/// `record->data` is borrowed until the next call with the same reader.
///
/// Errors: VELLUM_TRIMMED when the position has been trimmed away meanwhile; VELLUM_OUT_OF_RANGE
/// when it was truncated away; VELLUM_CORRUPT for damage, with file and position.
///
/// Cost: one pread for 256 KiB, and a checksum of the record. A reader that keeps up with the
/// writers of a mapped log, and whose log was opened for writing, makes no system call.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_next(
    reader: Option<&mut vellum_reader>,
    record: Option<&mut MaybeUninit<vellum_record>>,
) -> c_int {
    guard(|| {
        let (reader, place) = (required(reader, "reader")?, required(record, "record")?);
        Ok(lend(reader.source.next()?, &mut reader.stamp, place))
    })
}

/// The next record, waiting for one up to `timeout_ns` nanoseconds; -1 is for ever. VELLUM_END when
/// the time is over.
///
/// Sleeps, and is woken by an append of any process. A signal does not end it. A reader that may
/// not write the log's control file looks again every 20 ms instead. Otherwise as
/// vellum_reader_next.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_follow(
    reader: Option<&mut vellum_reader>,
    timeout_ns: i64,
    record: Option<&mut MaybeUninit<vellum_record>>,
) -> c_int {
    guard(|| {
        let (reader, place) = (required(reader, "reader")?, required(record, "record")?);
        let record = reader.source.reader_mut().follow(timeout(timeout_ns))?;
        Ok(lend(record, &mut reader.stamp, place))
    })
}

/// Whether to continue behind missing files and damaged ranges, instead of returning
/// VELLUM_CORRUPT: 1 or 0, which is the default. vellum_reader_take_gap reports the skipped ranges.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_skip_damage(
    reader: Option<&mut vellum_reader>,
    skip: c_int,
) -> c_int {
    guard(|| {
        required(reader, "reader")?.source.reader_mut().skip_damage(skip != 0);
        Ok(VELLUM_OK)
    })
}

/// The oldest gap that the reader has left out and that was not taken yet, or VELLUM_END.
///
/// Texts are borrowed until the next call of this function with the same reader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_reader_take_gap(
    reader: Option<&mut vellum_reader>,
    gap: *mut vellum_gap,
) -> c_int {
    guard(|| {
        let reader = required(reader, "reader")?;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::required(gap, "gap") }?;
        Ok(reader.gaps.take(place, || reader.source.reader_mut().take_gaps()))
    })
}

/// Has a reader stop at `end`: it returns the records that start before. UINT64_MAX takes it back.
///
/// There vellum_reader_next returns VELLUM_END, and vellum_reader_follow does not wait. Unlike at
/// the end of the log, vellum_reader_position is not below `end`.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_stop_at(reader: Option<&mut vellum_reader>, end: u64) -> c_int {
    guard(|| {
        required(reader, "reader")?.source.reader_mut().stop_at(Lsn::new(end));
        Ok(VELLUM_OK)
    })
}

/// Where the next record will be looked for: behind all that was returned or left out, and not
/// behind a record that is to come. So it may be compared with the position of a record, and with
/// an earlier vellum_published. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_position(reader: Option<&vellum_reader>) -> u64 {
    guard_or(0, || Ok(required(reader, "reader")?.reader().position().get()))
}

/// Closes a reader; NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_reader_close(reader: Option<Box<vellum_reader>>) {
    guard_or((), || {
        drop(reader);
        Ok(())
    });
}

fn lend(
    record: Option<Record<'_>>,
    stamp: &mut Stamp,
    place: &mut MaybeUninit<vellum_record>,
) -> vellum_status {
    let Some(record) = record else { return VELLUM_END };
    *stamp = Stamp::new(record.time(), record.writer());
    place.write(lent(record.payload, record.lsn, record.next_lsn));
    VELLUM_OK
}

/// Hands out the reader of the log that `begin` makes.
fn open(
    log: Option<&vellum_log>,
    flags: u32,
    reader: Option<&mut MaybeUninit<*mut vellum_reader>>,
    begin: impl FnOnce(&Log) -> vellum::Result<Reader>,
) -> c_int {
    guard(|| {
        let log = required(log, "log")?;
        let place = required(reader, "reader")?;
        let source = Source::open(begin(&log.log)?, flags)?;
        place.write(Box::into_raw(Box::new(vellum_reader::from(source))));
        Ok(VELLUM_OK)
    })
}

/// The moment so many nanoseconds after 1970.
fn time(nanos: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos)
}
