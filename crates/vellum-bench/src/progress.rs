//! What a run tells its caller while it goes on.

use crate::setting::Setting;

/// Something that happened in a run. Sent between measurements, never while the clock runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The run begins; `steps` is how many [`Event::Step`]s follow if no way fails.
    Started {
        /// How many steps there are.
        steps: u64,
    },
    /// One measurement is about to be made.
    Step {
        /// What is appended.
        setting: Setting,
        /// The way that appends.
        way: &'a str,
        /// What the measurement is for.
        stage: Stage,
    },
    /// One measurement of a suite that has no [`Setting`] is about to be made.
    Measuring {
        /// What it is.
        what: &'a str,
    },
    /// So many of the steps that were announced will not follow.
    Omitted {
        /// How many.
        steps: u64,
    },
    /// A way can't run here and is left out.
    Skipped {
        /// The way.
        way: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// A way failed, its data too: it takes part no more in this setting.
    Failed {
        /// What was appended.
        setting: Setting,
        /// The way.
        way: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// The numbers are to be taken with care.
    Warning(&'a str),
    /// The run is over.
    Finished,
}

/// What a single measurement is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Counting syscalls, without a clock.
    Trace,
    /// A round that is verified but not counted.
    WarmUp,
    /// A counted round, the first is 1.
    Round(u32),
}

/// Whoever wants to know how a run goes on.
///
/// A caller should not have a thread of its own draw while a measurement runs: it would take part
/// of a core from what is measured, and processes are forked from this one.
pub trait Progress {
    /// Hears of `event`.
    fn event(&mut self, event: &Event<'_>);
}

/// A [`Progress`] that says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn event(&mut self, _event: &Event<'_>) {}
}
