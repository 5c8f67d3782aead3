//! A writer for `tracing-subscriber`.

use std::io;
use std::sync::Arc;

use tracing_subscriber::fmt::MakeWriter;
use vellum::Log;
use vellum::internal::Buffer;

use crate::events::Events;

/// What `tracing-subscriber` writes events to: a [`Log`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("app.log");
/// use vellum::Options;
/// use vellum_loggers::LogWriter;
///
/// let log = Options::text().rotate_bytes(10 << 20).open(&path)?;
/// let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(LogWriter::new(log));
/// subscriber.init();
/// tracing::info!(answer = 42, "every process that does this writes to the same log");
/// # Ok::<(), vellum::Error>(())
/// ```
///
/// Each event is one record, in one piece and in the order in which its thread made it, whatever
/// the format. It is in the log when the macro returns: it has no thread, no guard has
/// to be kept, nothing is lost when the process is killed, and a forked child may keep logging.
///
/// Clones write to the same log and count together.
///
/// An event that cannot be appended is lost: the first one in a row is reported on standard error,
/// and [`lost`](LogWriter::lost) counts them. What happens on a full disk can be chosen:
/// [`Tuning::on_full`](vellum::Tuning::on_full). Where the log is removed or moved, events go to a
/// new one at its path within a second, as by [`Log::reopen`].
///
/// # Cost
///
/// A copy of the event into memory that the thread uses again, and [`Log::append`].
#[derive(Clone, Debug)]
pub struct LogWriter {
    events: Arc<Events>,
}

impl LogWriter {
    /// A writer to `log`. An event ends in a newline in a text log, and not in a framed one.
    pub fn new(log: Log) -> LogWriter {
        LogWriter { events: Arc::new(Events::new(log)) }
    }

    /// How many events could not be appended.
    pub fn lost(&self) -> u64 {
        self.events.lost()
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = EventWriter<'a>;

    fn make_writer(&'a self) -> EventWriter<'a> {
        EventWriter { events: &self.events, bytes: Buffer::take() }
    }
}

/// One event: all that is written becomes one record, when it is dropped or flushed.
#[derive(Debug)]
pub struct EventWriter<'a> {
    events: &'a Events,
    bytes: Buffer,
}

impl io::Write for EventWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let answer = self.events.append(&self.bytes);
        self.bytes.clear();
        Ok(answer?)
    }
}

impl Drop for EventWriter<'_> {
    fn drop(&mut self) {
        // Counted and reported where it happened.
        let _ = io::Write::flush(self);
    }
}
