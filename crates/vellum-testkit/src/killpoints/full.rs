//! A log on a full disk: the dropped records, the reports of them, and the processes that wait for
//! space.
//!
//! Each such case has a small filesystem of its own. It is mounted where only the case's processes
//! see it, so it is gone when they are. A file beside the log takes the rest of the space: the
//! ballast.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;

use anyhow::ensure;
use vellum::{Log, Lsn, OnFull};

use super::check::{self, Fault};
use super::scenario::{Case, Operation};
use super::survivor::Scene;
use super::victim::DONE;
use crate::payload::{self, Payload};
use crate::trace::{self, Stop};

/// Room for a log, its copy, and the control file made once more.
const DISK_SIZE: &str = "size=2m";
/// Bytes of a record for which the file being written has no room.
const LONG_LEN: usize = 3800;
/// The size of the two closed files of such a log and of the current one together, but for a record
/// or two: nothing is removed before the disk is full.
pub const RETAINED_BYTES: u64 = 9950;

impl Operation {
    /// Whether the disk is full when it begins, or was.
    pub fn is_on_full_disk(self) -> bool {
        use Operation::{Block, BlockRetain, Drop, DropAgain, Tell, TellRollOver};
        matches!(self, Drop | DropAgain | Tell | TellRollOver | Block | BlockRetain)
    }

    /// The behaviour of its processes on a full disk.
    pub fn on_full(self) -> OnFull {
        match self {
            _ if !self.is_on_full_disk() => OnFull::Error,
            Operation::Block | Operation::BlockRetain => OnFull::Block,
            _ => OnFull::Drop,
        }
    }

    /// Whether its record is dropped.
    pub fn drops(self) -> bool {
        matches!(self, Operation::Drop | Operation::DropAgain)
    }

    /// After how many system calls an operation that never ends is left: it has looked for space
    /// twice by then, and sleeps.
    pub fn calls_max(self) -> Option<usize> {
        (self == Operation::Block).then_some(24)
    }

    /// Records that the victim drops before it starts.
    fn dropped_before(self) -> u64 {
        use Operation::{DropAgain, Tell, TellRollOver};
        if matches!(self, DropAgain | Tell | TellRollOver) { 3 } else { 0 }
    }

    /// Records that the victim appends on the full disk before it starts: the first goes into the
    /// file that was made ahead of need.
    pub fn records_on_full_disk(self) -> Vec<Payload> {
        let lens: &[usize] = if self.is_on_full_disk() { &[LONG_LEN, 100] } else { &[] };
        lens.iter().zip(10..).map(|(len, number)| Payload::new('v', number, *len)).collect()
    }

    /// A record for which there is no room on the full disk.
    pub fn long_record(self, writer: char, number: u32) -> Payload {
        Payload::new(writer, number, LONG_LEN)
    }
}

/// Gives this process, and its children, a small filesystem at `at`.
pub fn mount(at: &Path) -> io::Result<()> {
    fs::create_dir_all(at)?;
    trace::leave_mounts()?;
    run(Command::new("mount").args(["--make-rprivate", "/"]))?;
    run(Command::new("mount").args(["-t", "tmpfs", "-o", DISK_SIZE, "tmpfs"]).arg(at))
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_string()))
}

/// Whether such a filesystem can be had, which takes the rights of root.
pub fn try_mounting(at: &Path) -> bool {
    let child = trace::fork(|| i32::from(mount(at).is_err()));
    child.and_then(trace::wait).is_ok_and(|stop| stop == Stop::Exited(0))
}

fn ballast(log: &Path) -> PathBuf {
    log.with_file_name("ballast")
}

/// Takes all the space there is beside the log in `log`.
fn fill(log: &Path) -> io::Result<()> {
    let mut file = fs::File::create(ballast(log))?;
    loop {
        match file.write(&[1; 4096]) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Gives it back, where it was taken.
pub fn make_space(log: &Path) -> io::Result<()> {
    match fs::remove_file(ballast(log)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        answer => answer,
    }
}

/// The acknowledged steps of the victim before the operation begins.
pub(crate) fn prepare(case: &Case, log: &Log, dir: &Path) -> anyhow::Result<()> {
    let operation = case.operation;
    fill(dir)?;
    for record in operation.records_on_full_disk() {
        let at = log.append(&record.bytes(case.layout))?;
        ensure!(at != Lsn::ZERO, "{record:?} has no room");
    }
    for number in 0..operation.dropped_before() {
        drop_one(log, &operation.long_record('v', 20 + number as u32).bytes(case.layout))?;
    }
    if matches!(operation, Operation::Tell | Operation::TellRollOver) {
        make_space(dir)?;
        // Has the next record look for space at once, and not after a pause.
        log.trim(log.begin())?;
    }
    Ok(())
}

/// Appends a record for which there is no room.
pub(crate) fn drop_one(log: &Log, record: &[u8]) -> anyhow::Result<()> {
    let at = log.append(record)?;
    ensure!(at == Lsn::ZERO, "a record was to be dropped, and is at {at}");
    Ok(())
}

impl Scene<'_> {
    /// The steps of a survivor that has appended `appended`, on the full disk until there is space.
    pub(crate) fn leave_full_disk(
        &self,
        log: &Log,
        own: Option<Payload>,
        appended: &[Payload],
    ) -> Result<(), Fault> {
        let Case { operation, layout, .. } = *self.case;
        if !operation.is_on_full_disk() {
            return Ok(());
        }
        let fault = |what: String| format!("on the full disk: {what}");
        let is_done = self.page.word(DONE).load(Ordering::SeqCst) == 1;
        let expected = self.case.expected(own, is_done, appended);
        check::records(self.case, &expected, &check::read_all(log)?).map_err(fault)?;
        if operation.drops() {
            drop_one(log, &operation.long_record('w', 20).bytes(layout))
                .map_err(|error| fault(error.to_string()))?;
        }
        self.make_space()?;
        // From here on everything is kept.
        let keeping = self.case.options().retain_bytes(0).open(self.dir);
        keeping.map(drop).map_err(|error| format!("the policy cannot be changed: {error}"))
    }

    pub(crate) fn make_space(&self) -> Result<(), Fault> {
        make_space(self.dir).map_err(|error| format!("cannot make space: {error}"))
    }

    /// Each dropped record is reported once, right before a record.
    pub(crate) fn check_told(&self, log: &Log, found: &[Vec<u8>]) -> Result<(), Fault> {
        let operation = self.case.operation;
        if operation.on_full() != OnFull::Drop {
            return Ok(());
        }
        let told: u64 = found.iter().filter_map(|line| payload::told(line)).sum();
        let dropped = log.stat().map_err(|error| format!("stat failed: {error}"))?.dropped;
        let is_done = self.page.word(DONE).load(Ordering::SeqCst) == 1;
        // The victim's may have been counted when it was killed; a survivor has dropped one too.
        let drops = u64::from(operation.drops());
        let least = operation.dropped_before() + drops + if is_done { drops } else { 0 };
        let most = operation.dropped_before() + drops + drops;
        if !(least..=most).contains(&dropped) {
            return Err(format!("{dropped} records were dropped, not {least} to {most}"));
        }
        if told != dropped {
            return Err(format!("{told} of {dropped} dropped records are told of"));
        }
        let stands_alone =
            |pair: &[Vec<u8>]| payload::told(&pair[0]).is_some() && payload::is_marker(&pair[1]);
        let is_last = found.last().is_some_and(|line| payload::told(line).is_some());
        if is_last || found.windows(2).any(stands_alone) {
            return Err("a line that tells of drops stands before no record".into());
        }
        Ok(())
    }
}
