//! A logger for the macros of the crate `log`.

use std::io::Write;
use std::time::{Duration, SystemTime};

use log::{LevelFilter, Metadata, Record, SetLoggerError};
use vellum::Log;
use vellum::internal::{Buffer, Moment};

use crate::events::Events;

/// A logger that appends to a [`Log`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("app.log");
/// use vellum::Options;
/// use vellum_loggers::Logger;
///
/// let log = Options::text().rotate_bytes(10 << 20).open(&path)?;
/// Logger::new(log).level(log::LevelFilter::Debug).init().expect("the first logger");
/// log::info!("every process that does this writes to the same log");
/// # Ok::<(), vellum::Error>(())
/// ```
///
/// A line says when, how bad, which process, which part of the program, and what:
///
/// ```text
/// 2026-11-22T01:57:23.405168Z INFO  [4711] app::orders: every process that does this ...
/// ```
///
/// Each message is one record, in one piece even if it has several lines. It is in the log when the
/// macro returns: no thread stands behind this, nothing is lost when the process is killed, and a
/// forked child may go on logging.
///
/// A message that cannot be appended is lost: the first one in a row is told of on standard error,
/// and [`lost`](Logger::lost) counts them. What happens on a full disk can be chosen:
/// [`Tuning::on_full`](vellum::Tuning::on_full). Where the log is removed or moved, messages go to
/// a new one at its path within a second, as by [`Log::reopen`].
#[derive(Debug)]
pub struct Logger {
    events: Events,
    level: LevelFilter,
}

impl Logger {
    /// A logger of messages of level info and above to `log`.
    pub fn new(log: Log) -> Logger {
        Logger { events: Events::new(log), level: LevelFilter::Info }
    }

    /// The least important level that is logged.
    pub fn level(mut self, level: LevelFilter) -> Logger {
        self.level = level;
        self
    }

    /// Makes this the logger of the program, for good.
    ///
    /// # Errors
    ///
    /// The program has a logger already.
    pub fn init(self) -> Result<(), SetLoggerError> {
        let level = self.level;
        log::set_boxed_logger(Box::new(self))?;
        log::set_max_level(level);
        Ok(())
    }

    /// How many messages could not be appended.
    pub fn lost(&self) -> u64 {
        self.events.lost()
    }
}

impl log::Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= self.level
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let mut line = Buffer::take();
        write_line(&mut line, record, now());
        // Counted and told of where it happened.
        let _ = self.events.append(&line);
    }

    /// Does nothing: messages are in the log already. To make them survive a power cut, there is
    /// [`Log::sync`].
    fn flush(&self) {}
}

/// Time since 1970-01-01 00:00:00 UTC.
fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn write_line(line: &mut Vec<u8>, record: &Record<'_>, now: Duration) {
    let Moment { date: (year, month, day), time: (hour, minute, second) } =
        Moment::of(now.as_secs());
    let micros = now.subsec_micros();
    let (level, target, pid) = (record.level(), record.target(), std::process::id());
    // Memory takes everything; only a value's own `Display` can fail, and then the rest is there.
    let _ = write!(line, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    let _ = writeln!(line, ".{micros:06}Z {level:<5} [{pid}] {target}: {}", record.args());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_when_how_bad_who_where_and_what() {
        let record = Record::builder()
            .level(log::Level::Warn)
            .target("app::orders")
            .args(format_args!("one\ntwo"))
            .build();
        let mut line = Vec::new();
        write_line(&mut line, &record, Duration::new(1_795_312_643, 405_168_999));
        let pid = std::process::id();
        let expected = format!("2026-11-22T01:57:23.405168Z WARN  [{pid}] app::orders: one\ntwo\n");
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }
}
