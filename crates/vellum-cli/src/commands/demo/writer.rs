//! A writer process of the demo, from both sides.
//!
//! The child says on its standard output, 8 bytes each: that it is ready; the position of every
//! record once it is appended; and that it is in the middle of a record. It waits on its standard
//! input for the start, and in the middle of that record for being killed. If the parent dies, both
//! pipes tell.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use vellum::{Create, Log, Lsn, Options};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::stdio;

use super::corpus::Corpus;
use vellum_doctor::scratch::INTERNAL;

use crate::args::DemoWriterArgs;

/// No position is this: the child is ready.
const READY: u64 = 0;
/// No position is this either: the child has filled half of a record.
const MIDDLE: u64 = u64::MAX;

/// The child: appends and reports.
pub(super) fn run(args: &DemoWriterArgs) -> Result<Outcome> {
    let log = Options::default().create(Create::Never).open(&args.log)?;
    let corpus = Corpus::new(log.layout());
    let mut reports = stdio::stdout();
    reports.write_all(&READY.to_ne_bytes())?;
    wait_for_parent()?;
    let mut record = Vec::new();
    for sequence in 1..=args.records {
        corpus.write_record(args.writer, sequence, &mut record);
        if args.stop_after == Some(sequence - 1) {
            stop_in_the_middle(&log, &record, &mut reports)?;
        }
        let lsn = log.append(&record)?;
        reports.write_all(&lsn.get().to_ne_bytes())?;
    }
    Ok(Outcome::Good)
}

/// Fills half of a record, which all processes now have to wait for, and waits for being killed.
fn stop_in_the_middle(log: &Log, record: &[u8], reports: &mut impl Write) -> Result<()> {
    let mut reservation = log.reserve(record.len())?;
    reservation.write_all(&record[..record.len() / 2])?;
    reports.write_all(&MIDDLE.to_ne_bytes())?;
    wait_for_parent()?;
    bail!("nobody killed writer process {}", std::process::id())
}

fn wait_for_parent() -> Result<()> {
    stdio::stdin().read_exact(&mut [0]).context("the demo that started this writer is gone")
}

/// The parent's side: a process that has been started.
pub(super) struct Writer {
    number: u32,
    child: Child,
    start: ChildStdin,
    reports: BufReader<ChildStdout>,
}

/// The end of a writer.
pub(super) struct Fate {
    /// Its process number.
    pub(super) pid: u32,
    /// Where its records were acknowledged, in order.
    pub(super) acknowledged: Vec<Lsn>,
    /// When it was killed, if it was.
    pub(super) killed_at: Option<Instant>,
}

impl Writer {
    /// Starts this program once more and waits until it is ready.
    pub(super) fn start(
        log: &Path,
        number: u32,
        records: u64,
        stop_after: Option<u64>,
    ) -> Result<Writer> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.args([INTERNAL, "demo-writer"]).arg(log);
        command.args(["--writer", &number.to_string(), "--records", &records.to_string()]);
        if let Some(stop_after) = stop_after {
            command.args(["--stop-after", &stop_after.to_string()]);
        }
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.with_context(|| format!("cannot start writer {number}"))?;
        let (Some(start), Some(reports)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("writer {number} has no pipes");
        };
        let mut writer = Writer { number, child, start, reports: BufReader::new(reports) };
        ensure!(writer.next_report()? == Some(READY), "writer {number} did not start");
        Ok(writer)
    }

    /// Its process number.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it append.
    pub(super) fn release(&mut self) -> Result<()> {
        let number = self.number;
        self.start.write_all(b"!").with_context(|| format!("cannot release writer {number}"))
    }

    /// Listens to it until it is done; kills it when it is in the middle of a record.
    pub(super) fn attend(mut self) -> Result<Fate> {
        let mut fate = Fate { pid: self.pid(), acknowledged: Vec::new(), killed_at: None };
        while let Some(report) = self.next_report()? {
            if report == MIDDLE {
                self.child.kill().context("cannot kill a writer")?;
                fate.killed_at = Some(Instant::now());
            } else {
                fate.acknowledged.push(Lsn::new(report));
            }
        }
        let status = self.child.wait().context("cannot wait for a writer")?;
        let number = self.number;
        ensure!(status.success() || fate.killed_at.is_some(), "writer {number} failed: {status}");
        Ok(fate)
    }

    /// `None` when it has gone.
    fn next_report(&mut self) -> Result<Option<u64>> {
        let mut report = [0; 8];
        match self.reports.read_exact(&mut report) {
            Ok(()) => Ok(Some(u64::from_ne_bytes(report))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error).context("cannot hear a writer"),
        }
    }
}
