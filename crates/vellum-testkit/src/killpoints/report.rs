//! The reports of a campaign to the process that started it, and the time that it may take.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::trace::{self, SharedPage};

/// Words of the page on which a campaign reports to the process that started it.
pub mod word {
    /// Points tried.
    pub const POINTS: usize = 0;
    /// Instructions of the operation, as far as they were counted.
    pub const INSTRUCTIONS: usize = 1;
    /// System calls of the operation.
    pub const CALLS: usize = 2;
    /// Writes that were cut short.
    pub const TORN: usize = 3;
    /// Longest time until a survivor had read its own record.
    pub const SLOWEST_NS: usize = 4;
    /// Points whose survivor took longer than [`super::SLOW`].
    pub const SLOW: usize = 5;
    /// Points at which something was wrong.
    pub const FAULTS: usize = 6;
    /// 1 if every instruction was tried.
    pub const IS_COMPLETE: usize = 7;
    /// The phase of the campaign ([`super::Phase`]).
    pub const PHASE: usize = 8;
    /// Stretches between system calls too long to be tried whole.
    pub const LONG_STRETCHES: usize = 9;
    /// Faults that were met and are known.
    pub const KNOWN: usize = 10;
}

/// A survivor that takes longer than this is reported, though not as a fault.
pub const SLOW: Duration = Duration::from_millis(250);
/// Seconds after which a survivor counts as held up for ever. It does more in them than continue:
/// it checks everything several times, perhaps on a machine with other things to do.
const SURVIVOR_SECONDS: u32 = 15;
/// Seconds for making things ready and stepping.
const HARNESS_SECONDS: u32 = 60;

/// The phases of a campaign; a watchdog that bites in `Survive` has found a survivor held up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Phase {
    /// Making the log and the victim.
    Prepare = 0,
    /// Taking the victim to its point.
    Step = 1,
    /// Continuing after its death.
    Survive = 2,
    /// Having its operation fail.
    Fail = 3,
}

/// Says what the campaign does from now on, and ends it if that takes too long.
pub(super) fn enter(report: &SharedPage, phase: Phase) {
    report.word(word::PHASE).store(phase as u64, Ordering::SeqCst);
    let is_short = matches!(phase, Phase::Survive | Phase::Fail);
    trace::watchdog(if is_short { SURVIVOR_SECONDS } else { HARNESS_SECONDS });
}
