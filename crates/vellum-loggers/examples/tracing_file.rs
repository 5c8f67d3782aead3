//! Several processes log to one file with `tracing`:
//! `cargo run -p vellum-loggers --example tracing_file --features tracing`.
//!
//! The program starts itself three more times. Each opens the same log; nothing else is shared.

use std::error::Error;
use std::process::Command;

use tracing::info;
use vellum::Options;
use vellum_loggers::LogWriter;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, path, worker] = &arguments[..] {
        return work(path, worker);
    }
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("app.log");
    let start = |worker: &str| Command::new(&arguments[0]).arg(&path).arg(worker).spawn();
    for mut worker in [start("a")?, start("b")?, start("c")?] {
        worker.wait()?;
    }
    let log = Options::default().read_only(true).open(&path)?;
    let mut reader = log.reader(vellum::Lsn::ZERO)?;
    while let Some(record) = reader.next()? {
        print!("{}", String::from_utf8_lossy(record.payload));
    }
    Ok(())
}

fn work(path: &str, worker: &str) -> Result<(), Box<dyn Error>> {
    let log = Options::text().rotate_bytes(10 << 20).open(path)?;
    tracing_subscriber::fmt().with_ansi(false).with_writer(LogWriter::new(log)).init();
    for order in 0..3 {
        info!(worker, order, "shipped");
    }
    // No guard to keep, nothing to flush: all of it is in the log.
    std::process::exit(0)
}
