//! Several processes log to one file with the macros of `log`:
//! `cargo run -p vellum-loggers --example log_file --features log`.
//!
//! The program starts itself three more times. Each opens the same log; nothing else is shared.

use std::error::Error;
use std::process::Command;

use vellum::Options;
use vellum_loggers::Logger;

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
    Logger::new(log).level(log::LevelFilter::Debug).init()?;
    for order in 0..3 {
        log::info!("worker {worker} shipped order {order}");
    }
    // Nothing to flush: all of it is in the log.
    std::process::exit(0)
}
