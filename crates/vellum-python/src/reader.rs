//! Reading a log: an iterator of records, which may wait for more.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::Raise;
use crate::log::Log;
use crate::position::Position;
use crate::stat;

/// How long a wait lasts before Python checks for signals such as Ctrl-C.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

/// A record: its position, and its bytes (in a text log: one line with its newline).
#[pyclass(module = "vellum_log", frozen, get_all)]
pub(crate) struct Record {
    /// Its position.
    lsn: u64,
    /// The position of the next one.
    next_lsn: u64,
    /// The bytes that were appended.
    payload: Py<PyBytes>,
    /// When it was appended, in nanoseconds since 1970 as `time.time_ns` counts them. None in a log
    /// without envelopes.
    time_ns: Option<u64>,
    /// Its writer: a random part and the process, with a hyphen between. None in a log without
    /// envelopes.
    writer: Option<String>,
}

#[pymethods]
impl Record {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Record(lsn={}, payload={})", self.lsn, self.payload.bind(py).repr()?))
    }

    /// When it was appended: a `datetime` in UTC, to the microsecond. None in a log without
    /// envelopes.
    #[getter]
    fn time(&self) -> Option<SystemTime> {
        Some(SystemTime::UNIX_EPOCH + Duration::from_nanos(self.time_ns?))
    }

    fn __bytes__(&self, py: Python<'_>) -> Py<PyBytes> {
        self.payload.clone_ref(py)
    }

    fn __eq__(&self, py: Python<'_>, other: &Record) -> bool {
        self.lsn == other.lsn && self.payload.as_bytes(py) == other.payload.as_bytes(py)
    }

    fn __hash__(&self) -> u64 {
        self.lsn
    }
}

/// Records from a position on, oldest first. Made by `Log.read` and `Log.follow`.
///
/// Belongs to one thread at a time.
#[pyclass(module = "vellum_log", frozen)]
pub(crate) struct Reader {
    log: Py<Log>,
    inner: Mutex<Source>,
    waits: Waits,
}

/// Where records come from.
pub(crate) enum Source {
    Plain(vellum::Reader),
    Pollable(vellum::PollableReader),
}

impl Source {
    pub(crate) fn new(reader: vellum::Reader, pollable: bool) -> vellum::Result<Source> {
        Ok(match pollable {
            true => Source::Pollable(reader.pollable()?),
            false => Source::Plain(reader),
        })
    }

    fn next(&mut self) -> vellum::Result<Option<vellum::Record<'_>>> {
        match self {
            Source::Plain(reader) => reader.next(),
            Source::Pollable(reader) => reader.next(),
        }
    }

    fn reader_mut(&mut self) -> &mut vellum::Reader {
        match self {
            Source::Plain(reader) => reader,
            Source::Pollable(reader) => reader.reader_mut(),
        }
    }
}

/// The behaviour of a reader at the end of the log.
#[derive(Clone, Copy)]
pub(crate) enum Waits {
    /// It stops, until it is asked again.
    Never,
    /// It waits this long for each record, for ever without a time, up to a position.
    UpTo(Option<Duration>, vellum::Lsn),
}

impl Reader {
    pub(crate) fn new(log: Py<Log>, inner: Source, waits: Waits) -> Reader {
        Reader { log, inner: Mutex::new(inner), waits }
    }
}

#[pymethods]
impl Reader {
    /// Where the next record will be looked for: behind all that was returned or left out, and not
    /// behind a record that is to come. So it may be compared with the position of a record.
    #[getter]
    fn position(&self) -> PyResult<u64> {
        self.with(|source| Ok(source.reader_mut().position().get()))
    }

    /// Continues at `lsn`, where a record starts, or at the oldest record for 0. Raises as
    /// `Log.read` does, and stays where it was.
    fn seek(&self, py: Python<'_>, lsn: u64) -> PyResult<()> {
        self.log.get().open()?;
        self.with(|source| source.reader_mut().seek(vellum::Lsn::new(lsn)).or_raise(py))
    }

    /// The position `lsn`, which this reader has come to or passed, in a form to be stored. Right
    /// also while others truncate.
    fn position_of(&self, py: Python<'_>, lsn: u64) -> PyResult<Position> {
        self.with(|reader| {
            reader.reader_mut().position_of(vellum::Lsn::new(lsn)).map(Position).or_raise(py)
        })
    }

    /// The gaps that this reader has skipped since the last call, oldest first: only one that skips
    /// damage has any.
    fn take_gaps<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.with(|source| {
            source.reader_mut().take_gaps().iter().map(|gap| stat::gap(py, gap)).collect()
        })
    }

    /// The file descriptor of a pollable reader: it becomes readable when there may be more, after
    /// the iterator has ended. For `select`, `selectors` and `loop.add_reader`. Raises ValueError
    /// for any other reader.
    fn fileno(&self) -> PyResult<RawFd> {
        self.with(|source| match source {
            Source::Pollable(reader) => Ok(reader.as_raw_fd()),
            Source::Plain(_) => Err(PyValueError::new_err(
                "this reader has no file descriptor; make one with read(pollable=True)",
            )),
        })
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        self.log.get().open()?;
        self.with(|source| match self.waits {
            Waits::Never => {
                let found = py.detach(|| source.next()).or_raise(py)?;
                Ok(found.map(|record| to_python(py, record)))
            }
            Waits::UpTo(timeout, end) => self.follow(py, source.reader_mut(), timeout, end),
        })
    }
}

impl Reader {
    /// Waits in slices, so that a signal is handled and a closed log noticed.
    fn follow(
        &self,
        py: Python<'_>,
        reader: &mut vellum::Reader,
        timeout: Option<Duration>,
        end: vellum::Lsn,
    ) -> PyResult<Option<Record>> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let slice = left.map_or(SLICE, |left| left.min(SLICE));
            if let Some(record) = py.detach(|| reader.follow(Some(slice))).or_raise(py)? {
                return Ok(Some(to_python(py, record)));
            }
            if left.is_some_and(|left| left <= slice) || reader.position() >= end {
                return Ok(None);
            }
            py.check_signals()?;
            self.log.get().open()?;
        }
    }

    /// Runs `act` on the reader, unless another thread does. Never waits for that: in a forked
    /// child the other thread may not exist.
    fn with<T>(&self, act: impl FnOnce(&mut Source) -> PyResult<T>) -> PyResult<T> {
        with(&self.inner, act)
    }
}

fn with<R, T>(inner: &Mutex<R>, act: impl FnOnce(&mut R) -> PyResult<T>) -> PyResult<T> {
    match inner.try_lock() {
        Ok(mut reader) => act(&mut reader),
        Err(TryLockError::Poisoned(poisoned)) => act(&mut poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
            "another thread is using this reader; give each thread one of its own",
        )),
    }
}

fn to_python(py: Python<'_>, record: vellum::Record<'_>) -> Record {
    Record {
        lsn: record.lsn.get(),
        next_lsn: record.next_lsn.get(),
        payload: PyBytes::new(py, record.payload).unbind(),
        time_ns: record.time().map(nanos),
        writer: record.writer().map(|writer| writer.to_string()),
    }
}

/// The same of a record with bytes of its own.
pub(crate) fn owned_to_python(py: Python<'_>, record: &vellum::OwnedRecord) -> Record {
    Record {
        lsn: record.lsn.get(),
        next_lsn: record.next_lsn.get(),
        payload: PyBytes::new(py, &record.payload).unbind(),
        time_ns: record.time().map(nanos),
        writer: record.writer().map(|writer| writer.to_string()),
    }
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Records from the newest back. Made by `Log.backwards`.
///
/// Belongs to one thread at a time.
#[pyclass(module = "vellum_log", frozen)]
pub(crate) struct Backwards {
    log: Py<Log>,
    inner: Mutex<vellum::Backwards>,
}

impl Backwards {
    pub(crate) fn new(log: Py<Log>, inner: vellum::Backwards) -> Backwards {
        Backwards { log, inner: Mutex::new(inner) }
    }
}

#[pymethods]
impl Backwards {
    /// The gaps that were skipped since the last call. A gap may be reported more than once.
    fn take_gaps<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        with(&self.inner, |records| {
            records.take_gaps().iter().map(|gap| stat::gap(py, gap)).collect()
        })
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        self.log.get().open()?;
        with(&self.inner, |records| {
            let found = py.detach(|| records.next()).transpose().or_raise(py)?;
            Ok(found.map(|record| owned_to_python(py, &record)))
        })
    }
}
