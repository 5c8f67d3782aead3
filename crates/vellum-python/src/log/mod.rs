//! `vellum_log.Log`.

mod calls;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use vellum::{ErrorKind, Layout, Lsn};
use vellum_ship_figures::Figures;

use crate::bytes::{Payload, written};
use crate::checkpoint::CheckpointEvent;
use crate::cursor::Cursor;
use crate::error::Raise;
use crate::options::{for_a_copy, options, span};
use crate::position::{Moment, Position, Start};
use crate::reader::{Backwards, Reader, Record, Source, Waits, owned_to_python};
use crate::stat;
use crate::unfinished::Unfinished;

/// A log that any number of threads and processes append to.
///
/// `path` is the log's directory; it is created, or joined. Keyword arguments left out, or None,
/// leave the log as it is, and a new one with the usual. Use it as a context manager, or call
/// `close()`. After `os.fork()` the child may keep using it, and a pickled copy joins the same log.
/// Errors are `vellum_log.Error`.
///
/// The purpose of the log, stored when it is created: `kind` ("wal" for programs that commit often,
/// "events" for records at the speed of memory, "text" for lines that every tool can read at any
/// time, "mapped-text" for text at the speed of memory; without it the log is taken as it is, and a
/// new one has events), `mode`, `application_tag` (a number; opening with another is an error),
/// `envelope` (each record of a framed log has its time and writer, in 16 bytes), `file_link` (the
/// path of a text log is that of a file: the log is in `PATH.d`, and PATH is a link to its newest
/// file). For tuning a new log: `fill` ("mapped", "pwrite", "staged"), `segment_capacity_bytes`,
/// `preallocate`; one that is there keeps its own, which `stat` reports.
///
/// The policy of a text log, stored with it, which replaces what is stored for all processes:
/// `rotate_bytes`, `rotate_every`, `rotate_offset`, `retain_bytes`, `retain_age`, `retain_files`,
/// `compress`. Times are seconds or `timedelta`; 0 is no limit. `retain_bytes` and `retain_age` are
/// for framed logs too.
///
/// Of this process alone: `create`, `create_new`, `read_only`, `exclusive` (no other process has
/// the log open for writing; the default of `kind="wal"`), `advice`, `prefault_bytes`,
/// `mapped_bytes_max`, `on_full` ("error", "block" or "drop" when the disk is full), and of staged
/// logs `staged_segments_max` and `on_stage_full` ("commit" or "error" when so many segments hold
/// records that are not durable). `spare_segments_max`: segments that may wait for new records
/// behind a trim; 0 gives all removed ones back to the disk. `checkpoint_after_bytes`: bytes of log
/// behind the checkpoint after which the next one is due (`checkpoint_due`).
#[pyclass(module = "vellum_log", frozen, weakref)]
pub(crate) struct Log {
    /// See [locks](crate#locks).
    open: Mutex<Option<vellum::Log>>,
    path: PathBuf,
    for_a_copy: Py<PyDict>,
    unfinished: Unfinished,
}

#[pymethods]
impl Log {
    #[new]
    #[pyo3(
        signature = (path, **given),
        text_signature = "(path, *, kind=None, fill=None, segment_capacity_bytes=None, \
            preallocate=None, mode=None, application_tag=None, envelope=None, file_link=False, \
            rotate_bytes=None, rotate_every=None, rotate_offset=None, retain_bytes=None, \
            retain_age=None, retain_files=None, compress=None, create=True, \
            create_new=False, read_only=False, exclusive=None, advice=True, \
            prefault_bytes=None, mapped_bytes_max=None, staged_segments_max=None, \
            spare_segments_max=None, on_stage_full=None, on_full=None, timeout=None, \
            checkpoint_after_bytes=None)"
    )]
    fn open_or_create(
        py: Python<'_>,
        path: PathBuf,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Log> {
        let options = options(given)?;
        let path = std::path::absolute(path)?;
        let log = py.detach(|| options.open(&path)).or_raise(py)?;
        let none = PyDict::new(py);
        let for_a_copy = for_a_copy(given.unwrap_or(&none))?.unbind();
        Ok(Log::new(log, path, for_a_copy))
    }

    /// Opens or creates a write-ahead log: framed, staged, for programs that commit often. Takes
    /// the keyword arguments of `Log` that suit one.
    #[classmethod]
    #[pyo3(
        signature = (path, **given),
        text_signature = "(path, *, segment_capacity_bytes=None, preallocate=None, mode=None, \
            envelope=None, create=True, create_new=False, read_only=False, exclusive=None, \
            advice=True, prefault_bytes=None, mapped_bytes_max=None, staged_segments_max=None, \
            spare_segments_max=None, on_stage_full=None, on_full=None, timeout=None, \
            checkpoint_after_bytes=None)"
    )]
    fn wal<'py>(
        class: &Bound<'py, PyType>,
        path: PathBuf,
        given: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = given.unwrap_or_else(|| PyDict::new(class.py()));
        if given.contains("kind")? {
            let message = "Log.wal() got an unexpected keyword argument 'kind'";
            return Err(PyTypeError::new_err(message));
        }
        given.set_item("kind", "wal")?;
        class.call((path,), Some(&given))
    }

    /// Appends one record; returns its position. It survives the death of every process when this
    /// returns, and a power cut once it is committed. In a text log bring the newline along.
    fn append(&self, py: Python<'_>, record: Payload<'_>) -> PyResult<u64> {
        let bytes = record.as_slice();
        self.run(py, |log| log.append(bytes)).map(Lsn::get)
    }

    /// Appends several records, all or none; returns the position of the first.
    fn append_batch(&self, py: Python<'_>, records: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.append_all(py, records, |batch| batch.append()).map(Lsn::get)
    }

    /// Appends several records, all or none; returns the position of each.
    fn append_each(&self, py: Python<'_>, records: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let lsns = self.append_all(py, records, |batch| batch.append_each())?;
        Ok(lsns.into_iter().map(Lsn::get).collect())
    }

    /// Writes text as to a file, so that a text log can be the `file` of `print`: lines are
    /// appended as soon as they have their end, those of one call together. Text behind the last
    /// end of a line waits for its own end, for each thread by itself, so that lines of threads and
    /// processes stay whole. Returns how many characters or bytes were given.
    fn write(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<usize> {
        let (payload, count) = written(text)?;
        let log = self.open()?;
        if log.layout() != Layout::Text {
            let message = "only a text log can be written to like a file; `append` takes a record";
            return Err(vellum::Error::new(ErrorKind::Unsupported, message)).or_raise(py);
        }
        self.unfinished.write(py, &log, payload.as_slice())?;
        Ok(count)
    }

    /// Does nothing: each line that has its end is in the log.
    fn flush(&self) {}

    /// False.
    fn isatty(&self) -> bool {
        false
    }

    /// Appends one record and commits it; returns its position.
    fn append_durable(&self, py: Python<'_>, record: Payload<'_>) -> PyResult<u64> {
        let bytes = record.as_slice();
        self.run(py, |log| log.append_durable(bytes)).map(Lsn::get)
    }

    /// Makes the record at `lsn`, and all before it, survive a power cut. Waits for other processes
    /// no longer than `timeout` seconds, or than the log's own timeout.
    #[pyo3(signature = (lsn, timeout=None))]
    fn commit(&self, py: Python<'_>, lsn: u64, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let timeout = timeout.map(|timeout| span("timeout", timeout)).transpose()?;
        self.run(py, |log| match timeout {
            Some(timeout) => log.commit_within(Lsn::new(lsn), timeout),
            None => log.commit(Lsn::new(lsn)),
        })
    }

    /// Commits every record whose `append` had returned, in any thread of any process; returns the
    /// durable end. Waits for appends that are in progress in front of these records.
    fn sync(&self, py: Python<'_>) -> PyResult<u64> {
        self.run(py, vellum::Log::sync).map(Lsn::get)
    }

    /// Opens the log at this one's path once more, and returns it: joins the one that is there, or
    /// makes one like this. To continue after `Removed`.
    fn reopen(&self, py: Python<'_>) -> PyResult<Log> {
        let reopened = self.run(py, vellum::Log::reopen)?;
        let (path, for_a_copy) = (self.path.clone(), self.for_a_copy.clone_ref(py));
        Ok(Log::new(reopened, path, for_a_copy))
    }

    /// Oldest position still kept.
    #[getter]
    fn begin(&self) -> PyResult<u64> {
        Ok(self.open()?.begin().get())
    }

    /// End of the records that survive a power cut.
    #[getter]
    fn durable(&self) -> PyResult<u64> {
        Ok(self.open()?.durable().get())
    }

    /// End of the records that readers can see.
    #[getter]
    fn published(&self) -> PyResult<u64> {
        Ok(self.open()?.published().get())
    }

    /// End of the reserved space.
    #[getter]
    fn tail(&self) -> PyResult<u64> {
        Ok(self.open()?.tail().get())
    }

    /// An iterator over the records from `start` on, or from the oldest for 0; it ends at the end
    /// of the log, and continues there when it is asked again. With `end` it returns the records
    /// that start before, and stops there: then its `position` is not below `end`.
    ///
    /// With `skip_damage` it continues behind missing files and damaged ranges, instead of raising
    /// `Corrupt`; its `take_gaps` reports the skipped ranges. With `durable` it returns a record
    /// only after some process has committed it. With `pollable` it has a `fileno`.
    ///
    /// A `Position` for `start` is the record that it was taken for; with `after`, it is behind the
    /// handled record (a `next_lsn`). `Rewound` or `OtherLog` is raised where it does not hold.
    #[pyo3(signature = (
        start=Start::Lsn(0), *, end=None, after=false, skip_damage=false, durable=false,
        pollable=false
    ))]
    #[pyo3(text_signature = "($self, start=0, *, end=None, after=False, skip_damage=False, \
                             durable=False, pollable=False)")]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn read(
        this: Py<Self>,
        py: Python<'_>,
        start: Start,
        end: Option<u64>,
        after: bool,
        skip_damage: bool,
        durable: bool,
        pollable: bool,
    ) -> PyResult<Reader> {
        let end = end.map_or(Lsn::MAX, Lsn::new);
        let reader = this.get().reader(py, start, after, skip_damage, durable, end)?;
        let source = Source::new(reader, pollable).or_raise(py)?;
        Ok(Reader::new(this, source, Waits::Never))
    }

    /// As `read`, but waits for more at the end of the log: for ever, or until no record has come
    /// for `timeout` seconds; not at `end`. Ctrl-C interrupts it. With `durable` it raises
    /// `Poisoned` after a failed write or sync, when it has returned everything that is durable.
    #[pyo3(signature = (
        start=Start::Lsn(0), timeout=None, *, end=None, after=false, skip_damage=false,
        durable=false
    ))]
    #[pyo3(text_signature = "($self, start=0, timeout=None, *, end=None, after=False, \
                             skip_damage=False, durable=False)")]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn follow(
        this: Py<Self>,
        py: Python<'_>,
        start: Start,
        timeout: Option<&Bound<'_, PyAny>>,
        end: Option<u64>,
        after: bool,
        skip_damage: bool,
        durable: bool,
    ) -> PyResult<Reader> {
        let timeout = timeout.map(|timeout| span("timeout", timeout)).transpose()?;
        let end = end.map_or(Lsn::MAX, Lsn::new);
        let reader = this.get().reader(py, start, after, skip_damage, durable, end)?;
        Ok(Reader::new(this, Source::Plain(reader), Waits::UpTo(timeout, end)))
    }

    /// An iterator over the records from the first one on that was appended at `time` or later: a
    /// `datetime` with its time zone, or nanoseconds since 1970. It ends at the end of the log, and
    /// continues there when it is asked again.
    ///
    /// Behind the first may come records with an earlier time, because clocks are set back and
    /// appends overlap: `Record.time_ns` tells. In a log without envelopes it starts earlier, at
    /// the start of a file; `Unsupported` is raised where nothing in the log tells a time. The
    /// other arguments are those of `read`.
    #[pyo3(signature = (time, *, skip_damage=false, durable=false, pollable=false))]
    #[pyo3(text_signature = "($self, time, *, skip_damage=False, durable=False, pollable=False)")]
    fn reader_at_time(
        this: Py<Self>,
        py: Python<'_>,
        time: Moment,
        skip_damage: bool,
        durable: bool,
        pollable: bool,
    ) -> PyResult<Reader> {
        let reader = this.get().run(py, |log| log.reader_at_time(time.to_time()))?;
        let mut reader = if durable { reader.durable() } else { reader };
        reader.skip_damage(skip_damage);
        let source = Source::new(reader, pollable).or_raise(py)?;
        Ok(Reader::new(this, source, Waits::Never))
    }

    /// Positions `(start, end)` that enclose all records that were appended from `since` on and
    /// before `until`, which are as for `reader_at_time`; None is no bound. `end` is None where the
    /// log has not come that far. Records of other times are among them. No segment is read.
    #[pyo3(signature = (since=None, until=None))]
    #[pyo3(text_signature = "($self, since=None, until=None)")]
    fn positions_of_time(
        &self,
        py: Python<'_>,
        since: Option<Moment>,
        until: Option<Moment>,
    ) -> PyResult<(u64, Option<u64>)> {
        let [since, until] = [since, until].map(|time| time.map(|time| time.to_time()));
        let found = self.run(py, |log| log.positions_of_time(since, until))?;
        Ok((found.start.get(), (found.end != Lsn::MAX).then(|| found.end.get())))
    }

    /// An iterator over the records that start before `before`, or all of them, the newest first.
    /// Its cost does not grow with the log.
    #[pyo3(signature = (before=None, *, skip_damage=false))]
    #[pyo3(text_signature = "($self, before=None, *, skip_damage=False)")]
    fn backwards(
        this: Py<Self>,
        py: Python<'_>,
        before: Option<u64>,
        skip_damage: bool,
    ) -> PyResult<Backwards> {
        let before = before.map_or(Lsn::MAX, Lsn::new);
        let mut records = this.get().run(py, |log| log.backwards(before))?;
        records.skip_damage(skip_damage);
        Ok(Backwards::new(this, records))
    }

    /// The record at `lsn`, which an append or a reader returned.
    fn read_at(&self, py: Python<'_>, lsn: u64) -> PyResult<Record> {
        let record = self.run(py, |log| log.read_at(Lsn::new(lsn)))?;
        Ok(owned_to_python(py, &record))
    }

    /// The newest record that is published, or None in an empty log. Its cost does not grow with
    /// the log.
    fn last_record(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        let record = self.run(py, |log| log.backwards(Lsn::MAX)?.next().transpose())?;
        Ok(record.map(|record| owned_to_python(py, &record)))
    }

    /// Waits until every reader sees the record at `lsn`, and all before it: for ever, or for
    /// `timeout` seconds, then raises `TimedOut`. A record whose `append` has returned is seen once
    /// each append in front of it is done, in any process. Makes nothing durable. Ctrl-C interrupts
    /// it.
    #[pyo3(signature = (lsn, timeout=None))]
    fn wait_published(
        &self,
        py: Python<'_>,
        lsn: u64,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.wait(py, timeout, |log, slice| log.wait_published(Lsn::new(lsn), Some(slice)))
    }

    /// Waits until the record at `lsn`, and all before it, survives a power cut because some
    /// process has committed it: for ever, or for `timeout` seconds, then raises `TimedOut`.
    /// Commits nothing itself. Ctrl-C interrupts it.
    #[pyo3(signature = (lsn, timeout=None))]
    fn wait_durable(
        &self,
        py: Python<'_>,
        lsn: u64,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.wait(py, timeout, |log, slice| log.wait_durable(Lsn::new(lsn), Some(slice)))
    }

    /// Makes the record at `lsn` survive a power cut, and then waits until it, and all before it,
    /// is where the log is shipped to: for ever, or for `timeout` seconds, then raises `TimedOut`.
    /// Raises `NoShipper` at once where no process ships the log, and `Fenced` where another
    /// machine or copy has taken over. After these it survives a power cut. Ctrl-C interrupts the
    /// waiting.
    #[pyo3(signature = (lsn, timeout=None))]
    fn commit_remote(
        &self,
        py: Python<'_>,
        lsn: u64,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.commit(py, lsn, timeout)?;
        self.wait_shipped(py, lsn, timeout).map(drop)
    }

    /// Waits as `commit_remote` does, and commits nothing itself; returns `shipped`.
    #[pyo3(signature = (lsn, timeout=None))]
    fn wait_shipped(
        &self,
        py: Python<'_>,
        lsn: u64,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let wait = |log: &vellum::Log, slice| log.ship().wait(Lsn::new(lsn), Some(slice));
        self.wait(py, timeout, wait).map(Lsn::get)
    }

    /// End of the shipped records; 0 where no shipper has reported it since the last boot.
    #[getter]
    fn shipped(&self) -> PyResult<u64> {
        Ok(self.open()?.ship().end().get())
    }

    /// The log's id, 32 hexadecimal digits; None where an earlier version made it and no process
    /// has opened it for writing since.
    #[getter]
    fn id(&self) -> PyResult<Option<String>> {
        Ok(self.open()?.id().map(|id| id.to_string()))
    }

    /// The epoch in which this log was opened, or which its own `truncate` began: it grows whenever
    /// positions may be given out again that were visible.
    #[getter]
    fn epoch(&self) -> PyResult<u64> {
        Ok(self.open()?.epoch())
    }

    /// The position `lsn`, which this log returned, in a form to be stored outside of it.
    fn position(&self, py: Python<'_>, lsn: u64) -> PyResult<Position> {
        self.run(py, |log| log.position(Lsn::new(lsn))).map(Position)
    }

    /// The LSN of a stored position, if it holds the same record; else `Rewound`, `OtherLog`,
    /// `Trimmed` or `OutOfRange` is raised. With `after`, it is behind the handled record, and
    /// holds as long as everything before it does.
    #[pyo3(signature = (position, *, after=false))]
    fn resolve(&self, py: Python<'_>, position: Position, after: bool) -> PyResult<u64> {
        let resolved = self.run(py, |log| match after {
            true => log.reader_at_next(position.0),
            false => log.reader_at(position.0),
        });
        resolved.map(|reader| reader.position().get())
    }

    /// The cursor of this name: a position that survives processes and power cuts. A new one is
    /// made at `start`, or at the oldest record for 0, and holds nothing. A name has 1 to 64
    /// letters, digits, ".", "_" and "-".
    #[pyo3(signature = (name, start=0))]
    fn cursor(this: Py<Self>, py: Python<'_>, name: &str, start: u64) -> PyResult<Cursor> {
        let inner = this.get().run(py, |log| log.cursor(name, Lsn::new(start)))?;
        Ok(Cursor::new(this, inner))
    }

    /// The state of every cursor, in the order of their names (`vellum_log.CursorStat`).
    fn cursors<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let cursors = self.run(py, vellum::Log::cursors)?;
        cursors.iter().map(|cursor| stat::cursor(py, cursor)).collect()
    }

    /// Drops everything before `before`, or less if a cursor holds records back; returns the oldest
    /// position that is kept.
    fn trim(&self, py: Python<'_>, before: u64) -> PyResult<u64> {
        self.run(py, |log| log.trim(Lsn::new(before))).map(|report| report.begin.get())
    }

    /// Drops the record at `start` and all behind it. No other process may have the log open.
    fn truncate(&self, py: Python<'_>, start: u64) -> PyResult<()> {
        self.run(py, |log| log.truncate(Lsn::new(start)))
    }

    /// The position stored last by `set_checkpoint`, or 0.
    #[getter]
    fn checkpoint(&self) -> PyResult<u64> {
        Ok(self.open()?.checkpoint().lsn().get())
    }

    /// Stores `lsn` with the log as the position from which its user recovers, and commits.
    fn set_checkpoint(&self, py: Python<'_>, lsn: u64) -> PyResult<()> {
        self.run(py, |log| log.checkpoint().set(Lsn::new(lsn)))
    }

    /// Whether `checkpoint_after_bytes` are durable behind the checkpoint, or behind `begin` where
    /// none was stored. Counts what every process wrote.
    #[getter]
    fn checkpoint_due(&self) -> PyResult<bool> {
        Ok(self.open()?.checkpoint().is_due())
    }

    /// A `CheckpointEvent`: a descriptor that becomes readable when a commit of this process finds
    /// that a checkpoint is due; at once where it is already.
    fn checkpoint_event(&self, py: Python<'_>) -> PyResult<CheckpointEvent> {
        self.run(py, |log| log.checkpoint().event()).map(CheckpointEvent::new)
    }

    /// Has a text log continue in a new file.
    fn rotate(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, vellum::Log::rotate)
    }

    /// Makes sure that `segments` files are ready beyond the one being written; returns how many
    /// were made.
    fn prepare(&self, py: Python<'_>, segments: u64) -> PyResult<u64> {
        self.run(py, |log| log.prepare(segments))
    }

    /// Gives back the files that are ready beyond the written ones; returns how many those were.
    fn release_prepared(&self, py: Python<'_>) -> PyResult<u64> {
        self.run(py, vellum::Log::release_prepared)
    }

    /// The state of the log, its files and its processes (`vellum_log.Stat`).
    fn stat<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // Where the figures cannot be read, the rest can.
        let look = |log: &vellum::Log| Ok((log.stat()?, Figures::of(log).unwrap_or_default()));
        let (state, figures) = self.run(py, look)?;
        stat::stat(py, &state, &figures)
    }

    /// Reads every byte, changes none, and reports records and damage (`vellum_log.VerifyReport`).
    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        stat::verify(py, &self.run(py, vellum::Log::verify)?)
    }

    /// The recovery on opening the log after a crash, if it was this process that recovered it
    /// (`vellum_log.Recovery`).
    #[getter]
    fn recovery<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let recovery = self.open()?.recovery();
        recovery.map(|recovery| stat::recovery(py, &recovery)).transpose()
    }

    /// "framed" or "text".
    #[getter]
    fn layout(&self) -> PyResult<String> {
        Ok(self.open()?.layout().to_string())
    }

    /// The log's directory, absolute.
    #[getter]
    fn path(&self) -> OsString {
        self.path.clone().into_os_string()
    }

    /// Whether `close` was called.
    #[getter]
    fn closed(&self) -> bool {
        self.state().is_none()
    }

    /// Leaves the log; may be called again. What `write` was given of a line without its end is
    /// ended first. Raises what could not be committed or cut: the process
    /// has left the log all the same. Calls of other threads that are under way, readers and
    /// cursors keep the log open until they end, and then nothing is raised.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(log) = self.state().take() else { return Ok(()) };
        let begun = self.unfinished.take_all();
        let close = || {
            let ended = if begun.is_empty() { Ok(()) } else { log.append(&begun).map(drop) };
            let closed = log.close();
            ended.and(closed)
        };
        match py.detach(close) {
            Err(error) if error.kind() == ErrorKind::Busy => Ok(()),
            answer => answer.or_raise(py),
        }
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let state = if self.closed() { ", closed" } else { "" };
        format!("<vellum_log.Log {:?}{state}>", self.path.display().to_string())
    }

    /// A copy, here or in another process, joins the same log.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.open()?;
        let join = py.get_type::<Log>().getattr("_join")?;
        (join, (&self.path, self.for_a_copy.bind(py))).into_pyobject(py)
    }

    #[classmethod]
    fn _join<'py>(
        class: &Bound<'py, PyType>,
        path: PathBuf,
        given: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        class.call((path,), Some(given))
    }
}
