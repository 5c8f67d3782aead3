//! One way, one setting, one time: append under the clock, then verify; or count syscalls.

use std::path::Path;
use std::time::Duration;

use super::between::{self, Times};
use crate::error::{Error, Result};
use crate::process::{Race, Runner, now_ns, race};
use crate::record::Records;
use crate::setting::Setting;
use crate::shared::Shared;
use crate::suite::foreign::{Foreign, Job, Part};
use crate::suite::settle;
use crate::trace::{Stretch, syscalls_per_record};
use crate::verify::Ledger;
use crate::ways::{Prepared, Way};

/// The traced run appends no more than this: its counts settle long before.
const TRACED_BYTES_MAX: u64 = 256 << 20;

/// The figures of the clock and the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Where each append was timed alone: all those of the slowest process.
    pub(super) wall_ns: u64,
    pub(super) page_faults: Option<u64>,
    /// The deduction for each append that was timed alone.
    pub(super) clock_ns: Option<u64>,
}

/// Appends with all processes, each of which walks over `between_bytes` before an append, and
/// verifies what is there then. `dir` is empty and stays behind with the log in it.
pub(super) fn measure(
    way: &dyn Way,
    setting: &Setting,
    between_bytes: u64,
    dir: &Path,
    limit: Duration,
) -> Result<Sample> {
    let prepared = way.prepare(dir, setting)?;
    settle(dir)?;
    let times = Shared::<Times>::new(setting.processes as usize)?;
    let race = race(setting.processes, limit, &|runner| match between_bytes {
        0 => append(runner, setting, prepared.as_ref()),
        bytes => between::append(runner, setting, prepared.as_ref(), bytes, &times),
    })?;
    verify(setting, prepared.as_ref(), &race)?;
    let (wall_ns, clock_ns) = match between_bytes {
        0 => (race.wall_ns, None),
        _ => {
            let (appends_ns, clock_ns) = between::slowest(&times);
            (appends_ns, Some(clock_ns))
        }
    };
    Ok(Sample { wall_ns, page_faults: Some(race.page_faults), clock_ns })
}

/// The same by the programs of another system. One more of them checks the records at the end.
pub(super) fn measure_foreign(
    other: &dyn Foreign,
    setting: &Setting,
    dir: &Path,
    limit: Duration,
) -> Result<Sample> {
    let prepared =
        other.prepare(&Job::new(dir, setting.processes, setting.records, setting.bytes))?;
    settle(dir)?;
    let race = race(setting.processes, limit, &|runner| {
        let mut program = prepared.start(Part::Writer(runner.index()))?;
        let standing = runner.stand_ready()?;
        program.run(now_ns())?;
        runner.finish(standing, setting.records)
    })?;
    prepared.start(Part::Checker)?.run(now_ns())?;
    Ok(Sample { wall_ns: race.wall_ns, page_faults: None, clock_ns: None })
}

/// The work of each process.
pub(crate) fn append(
    runner: &Runner<'_>,
    setting: &Setting,
    prepared: &dyn Prepared,
) -> Result<()> {
    let mut appender = prepared.open(runner.index())?;
    let mut records = Records::new(runner.index(), setting.bytes);
    let mut acknowledged = 0;
    let standing = runner.stand_ready()?;
    appender.append_all(&mut records, setting.records, &mut acknowledged).map_err(|error| {
        Error::failed(format!("{error} (after {acknowledged} acknowledged records)"))
    })?;
    // The clock runs until the last record can be read.
    if runner.is_last() {
        appender.wait_readable()?;
    }
    runner.finish(standing, acknowledged)
}

/// Was everything acknowledged, and is all that in the log?
pub(crate) fn verify(setting: &Setting, prepared: &dyn Prepared, race: &Race) -> Result<()> {
    for (process, acknowledged) in race.acknowledged.iter().enumerate() {
        if *acknowledged != setting.records {
            return Err(Error::failed(format!(
                "process {process} was acknowledged {acknowledged} of {} records",
                setting.records
            )));
        }
    }
    let mut ledger = Ledger::new(setting);
    prepared.read_back(&mut |record| ledger.enter(record))?;
    ledger.close().map(drop)
}

/// Counts the syscalls of one process that appends alone.
pub(super) fn count_syscalls(
    way: &dyn Way,
    setting: &Setting,
    dir: &Path,
    limit: Duration,
) -> Result<f64> {
    let alone = Setting { processes: 1, ..*setting };
    let records_max = setting.records.min((TRACED_BYTES_MAX / setting.bytes as u64).max(1));
    let prepared = way.prepare(dir, &alone)?;
    syscalls_per_record(limit, &|stretch: &Stretch| {
        let mut appender = prepared.open(0)?;
        let mut records = Records::new(0, setting.bytes);
        let mut appended = 0;
        stretch.begin();
        while appended < records_max && !stretch.is_enough() {
            appender.append(records.next_record())?;
            appended += 1;
        }
        stretch.end(appended);
        Ok(())
    })
}
