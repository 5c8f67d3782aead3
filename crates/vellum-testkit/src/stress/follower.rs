//! A durable reader beside the writers, which prints its records.
//!
//! Records of a durable reader survive a power cut. So with `--follow` the writers print nothing,
//! and the run promises the records of the reader.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, anyhow};
use vellum::{ErrorKind, Layout, Log, Lsn, Options, Reader};

use super::args::Args;
use super::cli::failure;
use super::payload::{Name, is_filler};
use super::reports::Reports;

/// How often the end of the writers is noticed.
const LOOK_AT_WRITERS: Duration = Duration::from_millis(20);

/// Follows the log until the writers of this process are done, and everything that was durable then
/// was returned. Every other process follows as one that may only read.
pub(super) fn run(
    log: &Log,
    args: &Args,
    process: u32,
    reports: &Reports,
    is_over: &AtomicBool,
) -> Result<()> {
    let view = (process % 2 == 1).then(|| Options::default().read_only(true).open(&args.log));
    let view = view.transpose().map_err(failure)?;
    let log = view.as_ref().unwrap_or(log);
    let mut reader = start(log, Lsn::ZERO)?;
    loop {
        let was_over = is_over.load(Ordering::SeqCst);
        let found = match reader.follow(Some(LOOK_AT_WRITERS)) {
            Ok(Some(record)) => number_of(record.payload, log.layout())?,
            Ok(None) if was_over => return Ok(()),
            Ok(None) => None,
            // The removed records were announced.
            Err(error) if error.kind() == ErrorKind::Trimmed => {
                reader = start(log, Lsn::ZERO)?;
                None
            }
            Err(error) => return Err(failure(error)),
        };
        found.map_or(Ok(()), |number| reports.acknowledge(&[number]))?;
    }
}

fn start(log: &Log, from: Lsn) -> Result<Reader> {
    Ok(log.reader(from).map_err(failure)?.durable())
}

/// The number of a record of the workload.
fn number_of(payload: &[u8], layout: Layout) -> Result<Option<u64>> {
    if layout == Layout::Text && is_filler(payload) {
        return Ok(None);
    }
    match Name::of(payload, layout) {
        Ok(Name::Record { number, .. }) => Ok(Some(number)),
        Ok(Name::Marker { .. }) => Ok(None),
        Err(fault) => Err(anyhow!("a durable reader returned a record that is not whole: {fault}")),
    }
}
