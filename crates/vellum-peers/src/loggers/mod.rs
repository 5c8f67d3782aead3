//! Other loggers as cases of the suite `loggers`: each is told to write the message alone, so that
//! a line is the record that it was given.
//!
//! | case | who writes | a call that returned has |
//! |---|---|---|
//! | `tracing-vellum` | the thread that logs, a Vellum text log | appended the record |
//! | `tracing-write` | the thread that logs, `write` | written the file |
//! | `tracing-rolling` | the same, a new file every hour | written the file |
//! | `tracing-non-blocking` | a thread behind a queue of 128 000 lines | queued; waits where that is full |
//! | `tracing-non-blocking-lossy` | the same | queued, or dropped and counted |
//! | `flexi_logger` | the thread that logs | written the file |
//! | `flexi_logger-async` | a thread behind a channel | queued |
//! | `spdlog` | the thread that logs, `fwrite` | filled the buffer of the C library |
//! | `spdlog-async` | a thread behind a queue of 8192 lines, `fwrite` | queued; waits where that is full |
//! | `quill` | a thread behind queues of up to 2 GiB, `fwrite` | queued; waits where one is full |

use vellum_bench::loggers::Contender;
use vellum_bench::{Error, Result};

mod flexi;
#[cfg(not(all(has_spdlog, has_quill)))]
mod missing;
#[cfg(any(has_spdlog, has_quill))]
mod native;
mod tracing_fmt;

#[cfg(not(has_quill))]
use missing::quill;
#[cfg(not(has_spdlog))]
use missing::spdlog;
#[cfg(has_quill)]
use native::quill;
#[cfg(has_spdlog)]
use native::spdlog;
use tracing_fmt::Tracing;

/// The beginning of the files' names.
const FILE_NAME: &str = "log";

/// All of them, in the order in which they take their turns.
pub fn all() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Tracing::Vellum),
        Box::new(Tracing::Write),
        Box::new(Tracing::Rolling),
        Box::new(Tracing::NonBlocking { is_lossy: false }),
        Box::new(Tracing::NonBlocking { is_lossy: true }),
        Box::new(flexi::Flexi { is_async: false }),
        Box::new(flexi::Flexi { is_async: true }),
        spdlog(false),
        spdlog(true),
        quill(),
    ]
}

/// A record without its newline, which a logger adds itself.
fn line(record: &[u8]) -> &[u8] {
    record.strip_suffix(b"\n").unwrap_or(record)
}

/// The same as text.
fn text(record: &[u8]) -> Result<&str> {
    std::str::from_utf8(line(record)).map_err(|error| Error::failed(error.to_string()))
}
