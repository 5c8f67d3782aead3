//! flexi_logger behind the macros of the crate `log`, as a file that is written by the threads that
//! log or, behind a channel, by a thread of its own.

use std::path::Path;

use flexi_logger::{DeferredNow, FileSpec, LoggerHandle, WriteMode};
use log::Record;
use vellum_bench::loggers::{Contender, Logger, Session};
use vellum_bench::{Error, Result};

use super::{FILE_NAME, text};

/// One of its modes of writing.
pub(super) struct Flexi {
    pub(super) is_async: bool,
}

impl Contender for Flexi {
    fn name(&self) -> &str {
        if self.is_async { "flexi_logger-async" } else { "flexi_logger" }
    }

    fn software(&self) -> Option<String> {
        Some(format!("flexi_logger {}", env!("FLEXI_LOGGER_VERSION")))
    }

    fn open(&self, dir: &Path, _bytes: usize) -> Result<Box<dyn Logger>> {
        let file = FileSpec::default().directory(dir).basename(FILE_NAME).suppress_timestamp();
        let mode = if self.is_async { WriteMode::Async } else { WriteMode::Direct };
        let logger = flexi_logger::Logger::with(log::LevelFilter::Info)
            .log_to_file(file)
            .format(message_alone)
            .write_mode(mode);
        let handle = logger.start().map_err(|error| Error::failed(error.to_string()))?;
        Ok(Box::new(Started { handle }))
    }
}

/// The line is the record.
fn message_alone(
    to: &mut dyn std::io::Write,
    _now: &mut DeferredNow,
    record: &Record<'_>,
) -> std::io::Result<()> {
    write!(to, "{}", record.args())
}

struct Started {
    handle: LoggerHandle,
}

impl Logger for Started {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Thread))
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        self.handle.shutdown();
        Ok(0)
    }
}

struct Thread;

impl Session for Thread {
    fn log(&mut self, record: &[u8]) -> Result<()> {
        log::info!("{}", text(record)?);
        Ok(())
    }
}
