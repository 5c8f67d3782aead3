//! The end of a reader that changes nothing, and the ranges that it skips on its way.
//!
//! The range of a dead writer is known exactly, and stays as it is until a process pads it. So a
//! reader without a place among the participants skips it as if it were padded: its bytes are never
//! shown, even if they are a whole record that was not published; but for a line that a repairer
//! would leave (`pad::stands_whole`).
//!
//! A range is skipped only while its slot still has the same. Once a process has padded it, the pad
//! or the marker counts as anything else that is published.

use crate::Lsn;
use crate::log::repair::pad;
use crate::log::state::core::Core;
use crate::lsn::Range;
use crate::shared::commit;
use crate::shared::participants::{self, Owner, Standing};
use crate::shared::tail_word;

/// The part of a log that a reader sees at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadLimit {
    /// Everything before is published, or in one of the holes.
    pub(crate) end: Lsn,
    /// The ranges of the dead before the end, oldest first.
    pub(crate) holes: Vec<Hole>,
    /// The slot of the process that holds the end back, if one does, and its state.
    pub(crate) held_back_by: Option<(usize, Standing)>,
}

/// The range of a dead writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) range: Range,
    slot: usize,
    owner: Owner,
}

impl Hole {
    /// Whether it is not padded yet.
    ///
    /// Its owner is gone for good. So as long as the slot is that owner's, only a repairer changes
    /// it.
    pub(crate) fn is_there(&self, core: &Core) -> bool {
        let words = core.words();
        let granted = tail_word::granted(words, self.slot, tail_word::load(words));
        granted == Some(self.range) && participants::owner_of(words, self.slot) == Some(self.owner)
    }

    /// Whether a repairer will leave the bytes there.
    fn stays(&self, core: &Core) -> bool {
        self.owner != Owner::GIVEN_UP && pad::stands_whole(core, self.range).unwrap_or(false)
    }
}

impl ReadLimit {
    /// The limit of a reader of this handle now. A handle for writing reads up to the published
    /// end, and pads ranges of the dead in its way.
    ///
    /// In the words of a process that has lost the control file nothing is in flight, so all that
    /// others have reserved seems published. A caller that believes the end asks
    /// [`Core::check_region`] afterwards.
    pub(crate) fn of(core: &Core) -> ReadLimit {
        match core.writer {
            Some(_) => Self { end: tail_word::published(core.words()), ..Self::default() },
            None => past_the_dead(core),
        }
    }

    /// The limit of a reader that wants only records that survive a power cut. No hole is before
    /// that end: committed records were published.
    pub(crate) fn of_durable(core: &Core) -> ReadLimit {
        let words = core.words();
        let end = commit::durable(&words.commits).min(tail_word::tail(words));
        ReadLimit { end, ..ReadLimit::default() }
    }

    /// The hole that contains `lsn`.
    pub(crate) fn hole_at(&self, lsn: Lsn) -> Option<Hole> {
        self.holes.iter().copied().find(|hole| hole.range.holds(lsn))
    }
}

fn past_the_dead(core: &Core) -> ReadLimit {
    let words = core.words();
    // The tail word first: a reservation that moves it later starts at or beyond what is read here.
    let seen = tail_word::load(words);
    let in_flight = |slot| {
        // The owner first, because a slot in flight stays with its owner.
        let owner = participants::owner_of(words, slot);
        Some((slot, owner, tail_word::granted(words, slot, seen)?))
    };
    let mut in_flight: Vec<_> = (0..tail_word::used_slots(words)).filter_map(in_flight).collect();
    in_flight.sort_unstable_by_key(|(_, _, range)| range.start);
    let mut holes = Vec::new();
    let outsider = (!in_flight.is_empty()).then(|| core.outsider());
    for (slot, owner, range) in in_flight {
        let standing = match (&outsider, owner) {
            (Some(outsider), Some(owner)) => outsider.standing(owner),
            _ => Standing::Lives,
        };
        let hole = owner.map(|owner| Hole { range, slot, owner });
        match hole.filter(|hole| standing == Standing::Gone && hole.range.end() <= seen.tail()) {
            // After that verdict only a repairer changes the slot.
            Some(hole) if hole.is_there(core) && !hole.stays(core) => holes.push(hole),
            Some(_) => {}
            None => {
                return ReadLimit { end: range.start, holes, held_back_by: Some((slot, standing)) };
            }
        }
    }
    ReadLimit { end: seen.tail(), holes, held_back_by: None }
}
