//! Events of `tracing`, written by the `fmt` subscriber of tracing-subscriber into files of several
//! kinds. It is told to add nothing to the message, so that the line is the record.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;

use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_appender::rolling;
use tracing_subscriber::fmt::MakeWriter;
use vellum_bench::loggers::{Contender, Kept, Logger, Session, VELLUM_DIR};
use vellum_bench::{Error, Result};
use vellum_loggers::LogWriter;

use super::{FILE_NAME, text};

/// Where the lines go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tracing {
    /// Into a Vellum text log.
    Vellum,
    /// Into a file opened with `O_APPEND`, by one `write` each.
    Write,
    /// tracing-appender: into a file that changes every hour.
    Rolling,
    /// tracing-appender: to a thread that writes the same file; a caller that finds its queue full
    /// waits, or the line is dropped.
    NonBlocking { is_lossy: bool },
}

impl Contender for Tracing {
    fn name(&self) -> &str {
        match self {
            Tracing::Vellum => "tracing-vellum",
            Tracing::Write => "tracing-write",
            Tracing::Rolling => "tracing-rolling",
            Tracing::NonBlocking { is_lossy: false } => "tracing-non-blocking",
            Tracing::NonBlocking { is_lossy: true } => "tracing-non-blocking-lossy",
        }
    }

    fn software(&self) -> Option<String> {
        Some(match self {
            Tracing::Vellum | Tracing::Write => {
                format!("tracing-subscriber {}", env!("TRACING_SUBSCRIBER_VERSION"))
            }
            _ => format!("tracing-appender {}", env!("TRACING_APPENDER_VERSION")),
        })
    }

    fn kept(&self) -> Kept {
        if *self == Tracing::Vellum { Kept::VellumLog } else { Kept::Files }
    }

    fn open(&self, dir: &Path, _bytes: usize) -> Result<Box<dyn Logger>> {
        let rolling = || rolling::hourly(dir, FILE_NAME);
        let mut rest = Rest::Nothing;
        match *self {
            Tracing::Vellum => {
                let options = vellum::Options::mapped_text();
                let log = options.open(dir.join(VELLUM_DIR)).map_err(failed)?;
                let writer = LogWriter::new(log);
                rest = Rest::Counted(writer.clone());
                subscribe(writer)?;
            }
            Tracing::Write => {
                let file =
                    OpenOptions::new().create_new(true).append(true).open(dir.join(FILE_NAME));
                subscribe(Arc::new(file.map_err(failed)?))?;
            }
            Tracing::Rolling => subscribe(rolling())?,
            Tracing::NonBlocking { is_lossy } => {
                let (writer, guard) =
                    NonBlockingBuilder::default().lossy(is_lossy).finish(rolling());
                rest = Rest::Background { dropped: writer.error_counter(), guard };
                subscribe::<NonBlocking>(writer)?;
            }
        }
        Ok(Box::new(Subscribed { rest }))
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::failed(error.to_string())
}

/// Makes `writer` the place of all events of this process, which logs with one logger only.
fn subscribe<W>(writer: W) -> Result<()>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let subscriber = tracing_subscriber::fmt()
        .without_time()
        .with_level(false)
        .with_target(false)
        .with_ansi(false)
        .with_writer(writer)
        .finish();
    tracing::subscriber::set_global_default(subscriber).map_err(failed)
}

struct Subscribed {
    rest: Rest,
}

/// The rest of the work in the end.
enum Rest {
    Nothing,
    /// To ask what could not be appended.
    Counted(LogWriter),
    /// To wait for the thread that writes.
    Background {
        dropped: ErrorCounter,
        guard: WorkerGuard,
    },
}

impl Logger for Subscribed {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Thread))
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        Ok(match self.rest {
            Rest::Nothing => 0,
            Rest::Counted(writer) => writer.lost(),
            Rest::Background { dropped, guard } => {
                // The documented way to have everything written. It gives up after a second, and
                // then records are missing.
                drop(guard);
                dropped.dropped_lines() as u64
            }
        })
    }
}

struct Thread;

impl Session for Thread {
    fn log(&mut self, record: &[u8]) -> Result<()> {
        tracing::info!("{}", text(record)?);
        Ok(())
    }
}
