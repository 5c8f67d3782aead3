//! The events of a run that its caller gets.

/// Something that happened in a run. Sent between measurements, never while the clock runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The run begins.
    Started {
        /// How many [`Event::Measuring`]s follow if nothing is left out.
        steps: u64,
    },
    /// One measurement is about to be made.
    Measuring {
        /// The name of the step.
        what: &'a str,
    },
    /// The step that was begun last was as long as so many more.
    Passed {
        /// How many.
        steps: u64,
    },
    /// So many of the steps that were announced will not follow.
    Omitted {
        /// How many.
        steps: u64,
    },
    /// The numbers are to be taken with care.
    Warning(&'a str),
    /// The run is over.
    Finished,
}

/// A receiver of the events of a run.
///
/// A caller should not have a thread of its own draw while a measurement runs: it would take part
/// of a core from the measured work, and processes are forked from this one.
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
