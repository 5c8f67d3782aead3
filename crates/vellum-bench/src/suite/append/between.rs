//! Appends with other work between them: each is timed alone.
//!
//! The walks are not under the clock, so nothing is taken off for them. The time of reading the
//! clock is measured behind walks of the same length, and taken off.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::FromZeros;

use crate::error::{Error, Result};
use crate::process::{Runner, now_ns};
use crate::record::Records;
use crate::setting::Setting;
use crate::shared::Shared;
use crate::walk::Walk;
use crate::ways::Prepared;

/// The measurements of one process. It stores them once; the parent reads when the process has
/// exited.
#[derive(FromZeros)]
#[repr(C, align(128))]
pub(super) struct Times {
    /// All its appends together.
    appends_ns: AtomicU64,
    /// One reading of the clock, which is taken off for each append.
    clock_ns: AtomicU64,
}

/// The work of each process.
pub(super) fn append(
    runner: &Runner<'_>,
    setting: &Setting,
    prepared: &dyn Prepared,
    bytes: u64,
    times: &Shared<Times>,
) -> Result<()> {
    let mut appender = prepared.open(runner.index())?;
    let mut records = Records::new(runner.index(), setting.bytes);
    let mut acknowledged = 0;
    let walk = Walk::new(bytes);
    let clock_ns = walk.clock_ns();
    let standing = runner.stand_ready()?;
    let timed = appender.append_each(&mut records, setting.records, &mut acknowledged, &walk);
    let mut appends_ns = timed
        .map_err(|error| {
            Error::failed(format!("{error} (after {acknowledged} acknowledged records)"))
        })?
        .saturating_sub(clock_ns * setting.records);
    if runner.is_last() {
        let begun = now_ns();
        appender.wait_readable()?;
        appends_ns += now_ns() - begun;
    }
    let times = &times[runner.index() as usize];
    times.appends_ns.store(appends_ns, Ordering::Relaxed);
    times.clock_ns.store(clock_ns, Ordering::Relaxed);
    black_box(walk);
    runner.finish(standing, acknowledged)
}

/// How long the appends of the slowest process took, as if the walks took no time; and the
/// deduction for each, at most.
pub(super) fn slowest(times: &Shared<Times>) -> (u64, u64) {
    let most = |word: fn(&Times) -> &AtomicU64| {
        times.iter().map(|times| word(times).load(Ordering::Relaxed)).max().unwrap_or(0)
    };
    (most(|times| &times.appends_ns), most(|times| &times.clock_ns))
}
