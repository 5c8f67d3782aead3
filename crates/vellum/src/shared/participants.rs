//! The attached processes, their liveness, and the owners of slots.
//!
//! A participant's place is guarded by an exclusive lock on one byte of the `lock` file, which the
//! kernel releases when the process dies. A forked child shares that lock until it attaches for
//! itself, so a held lock is believed only while `/proc` does not say that the process is gone.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::io;

use super::primitive::Ordering;
use super::tail_word;
use super::words::{PARTICIPANT_COUNT, ParticipantWords, Words};
use crate::sys::lock::{self, Kind};
use crate::sys::process::{Incarnation, Life};

/// Byte of the lock file that attaching, detaching and recovering exclude each other with.
pub(crate) const GATE_BYTE: u64 = 0;
/// Byte of the lock file on which every attached process holds a shared lock.
pub(crate) const PRESENCE_BYTE: u64 = 1;
/// Byte of the lock file: its holder compresses closed files.
pub(crate) const COMPRESS_BYTE: u64 = 2;
/// Byte of the lock file: its holder changes a named cursor.
pub(crate) const CURSORS_BYTE: u64 = 3;
/// Byte of the lock file: its holder ships the log.
pub(crate) const SHIPPER_BYTE: u64 = 4;
/// Byte of the lock file of the first participant; the others follow.
const PARTICIPANT_BYTE: u64 = 64;
/// Byte of the lock file that the owner of the first named cursor holds; the others follow.
pub(crate) const CURSOR_OWNER_BYTE: u64 = 4096;

/// One life of one participant: its place, and the generation of the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner(u64);

impl Owner {
    /// No owner: a living owner has given up its work here, for any process to finish.
    ///
    /// No life has this identity, so that even a process that does not know it takes its owner to
    /// be gone.
    pub(crate) const GIVEN_UP: Owner = Owner(u64::MAX);

    pub(crate) fn new(index: usize, generation: u64) -> Owner {
        Owner(generation << 10 | index as u64)
    }

    pub(crate) fn from_word(word: u64) -> Owner {
        Owner(word)
    }

    pub(crate) fn to_word(self) -> u64 {
        self.0
    }

    pub(crate) fn index(self) -> usize {
        (self.0 & 1023) as usize
    }

    fn generation(self) -> u64 {
        self.0 >> 10
    }

    /// Whether this owner will not finish its work: it is dead, or has given it up.
    pub(crate) fn is_gone(self, who: &impl Liveness) -> bool {
        self == Owner::GIVEN_UP || !who.is_alive(self)
    }
}

/// The processes that a participant lets append beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Claim {
    #[default]
    Everybody = 0,
    Nobody = 1,
    /// It appends nothing itself, and so is in no other's way.
    IsNotAsked = 2,
}

impl Claim {
    fn from_word(word: u64) -> Claim {
        let claims = [Claim::Nobody, Claim::IsNotAsked];
        claims.into_iter().find(|claim| *claim as u64 == word).unwrap_or_default()
    }

    /// Whether one of the two keeps the other out.
    fn excludes(self, other: Claim) -> bool {
        let has_company = self != Claim::IsNotAsked && other != Claim::IsNotAsked;
        has_company && (self == Claim::Nobody || other == Claim::Nobody)
    }
}

/// Tells the living from the dead.
pub(crate) trait Liveness {
    /// Whether the participant with this identity may still act. Never false for a living one.
    fn is_alive(&self, owner: Owner) -> bool;
}

/// The liveness of the participants of one log, as the kernel knows it.
pub(crate) struct LockLiveness<'a> {
    pub(crate) words: &'a Words,
    /// The lock file, through the open file that holds the caller's own lock.
    pub(crate) lock_file: &'a OwnedFd,
    pub(crate) me: Owner,
}

impl Liveness for LockLiveness<'_> {
    fn is_alive(&self, owner: Owner) -> bool {
        if owner == self.me {
            return true;
        }
        let Some(place) = place_of(self.words, owner) else { return false };
        let byte = PARTICIPANT_BYTE + owner.index() as u64;
        match lock::is_held_by_another(self.lock_file, byte) {
            Ok(false) => false,
            // Where the kernel cannot say, no process is declared dead.
            Ok(true) | Err(_) => incarnation(place).life() != Life::Gone,
        }
    }
}

/// The state of a participant, as others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// No process will finish its work.
    Gone,
    Lives,
    /// It cannot be seen from here, and its lock cannot be asked for.
    Unknown,
}

/// The liveness of participants, as a process without a place among them finds it out.
pub(crate) struct Outsider<'a> {
    pub(crate) words: &'a Words,
    /// Where this process may open it.
    pub(crate) lock_file: Option<OwnedFd>,
}

impl Outsider<'_> {
    /// Never [`Standing::Gone`] for a living participant.
    pub(crate) fn standing(&self, owner: Owner) -> Standing {
        if owner == Owner::GIVEN_UP {
            return Standing::Gone;
        }
        let Some(place) = place_of(self.words, owner) else { return Standing::Gone };
        let byte = PARTICIPANT_BYTE + owner.index() as u64;
        let held = self.lock_file.as_ref().map(|file| lock::is_held_by_another(file, byte));
        match (held, incarnation(place).life()) {
            (_, Life::Gone) | (Some(Ok(false)), _) => Standing::Gone,
            (None | Some(Err(_)), Life::Unknown) => Standing::Unknown,
            _ => Standing::Lives,
        }
    }
}

/// Remembers answers, for a look at many slots of few participants.
pub(crate) struct CachedLiveness<'a, L> {
    who: &'a L,
    answers: RefCell<HashMap<Owner, bool>>,
}

impl<'a, L: Liveness> CachedLiveness<'a, L> {
    pub(crate) fn new(who: &'a L) -> CachedLiveness<'a, L> {
        CachedLiveness { who, answers: RefCell::default() }
    }
}

impl<L: Liveness> Liveness for CachedLiveness<'_, L> {
    fn is_alive(&self, owner: Owner) -> bool {
        *self.answers.borrow_mut().entry(owner).or_insert_with(|| self.who.is_alive(owner))
    }
}

/// The place of a participant, as long as no other has taken it since.
pub(crate) fn place_of(words: &Words, owner: Owner) -> Option<&ParticipantWords> {
    let place = words.participants.get(owner.index())?;
    (place.generation.load(Ordering::Acquire) == owner.generation()).then_some(place)
}

/// The process that the words of a place name.
pub(crate) fn incarnation(place: &ParticipantWords) -> Incarnation {
    Incarnation {
        pid: place.pid.load(Ordering::Relaxed) as u32,
        start_ticks: place.start_ticks.load(Ordering::Relaxed),
        namespace: place.namespace.load(Ordering::Relaxed),
    }
}

/// The living participant that keeps a process with this claim out, and its claim. The caller is in
/// the gate, and asks through an open file of its own.
pub(crate) fn in_the_way(
    words: &Words,
    lock_file: &OwnedFd,
    claim: Claim,
) -> Option<(Incarnation, Claim)> {
    // No participant is the caller: another handle of its process is another participant.
    let who = LockLiveness { words, lock_file, me: Owner::GIVEN_UP };
    let claims = attached(words).map(|(owner, place)| {
        (owner, place, Claim::from_word(place.claim.load(Ordering::Relaxed)))
    });
    let mut excluded = claims.filter(|(_, _, other)| claim.excludes(*other));
    let found = excluded.find(|(owner, ..)| who.is_alive(*owner));
    found.map(|(_, place, other)| (incarnation(place), other))
}

/// Takes a free place for the calling process, or `None` where all are held.
///
/// `lock_file` is opened by the caller for this purpose alone: its locks are the process's life.
pub(crate) fn attach(
    words: &Words,
    lock_file: &OwnedFd,
    claim: Claim,
) -> io::Result<Option<Owner>> {
    for (index, place) in words.participants.iter().enumerate() {
        if !lock::try_lock(lock_file, PARTICIPANT_BYTE + index as u64, Kind::Exclusive)? {
            continue;
        }
        let me = Incarnation::current();
        place.pid.store(u64::from(me.pid), Ordering::Relaxed);
        place.start_ticks.store(me.start_ticks, Ordering::Relaxed);
        place.namespace.store(me.namespace, Ordering::Relaxed);
        place.claim.store(claim as u64, Ordering::Relaxed);
        // The next odd number: a place left by death is odd, a place left by detaching even.
        let generation = place.generation.load(Ordering::Relaxed).wrapping_add(1) | 1;
        let generation = generation & (u64::MAX >> 10);
        words.counts.participants_used.fetch_max(index as u64 + 1, Ordering::Release);
        place.generation.store(generation, Ordering::Release);
        return Ok(Some(Owner::new(index, generation)));
    }
    Ok(None)
}

/// Leaves the place and gives up its lock, which a forked child may be holding on to.
pub(crate) fn detach(words: &Words, lock_file: &OwnedFd, me: Owner) -> io::Result<()> {
    if let Some(place) = words.participants.get(me.index()) {
        place.generation.store(me.generation() + 1, Ordering::Release);
    }
    leave_place(lock_file, me)
}

/// Gives up the lock of a place, whose owner is taken for dead then.
pub(crate) fn leave_place(lock_file: &OwnedFd, me: Owner) -> io::Result<()> {
    lock::unlock(lock_file, PARTICIPANT_BYTE + me.index() as u64)
}

/// Places that have ever been taken and were not left by detaching.
pub(crate) fn attached(words: &Words) -> impl Iterator<Item = (Owner, &ParticipantWords)> {
    let used = words.counts.participants_used.load(Ordering::Acquire) as usize;
    let places = words.participants[..used.min(PARTICIPANT_COUNT)].iter().enumerate();
    places.filter_map(|(index, place)| {
        let generation = place.generation.load(Ordering::Acquire);
        (generation % 2 == 1).then(|| (Owner::new(index, generation), place))
    })
}

/// Takes one of the slots in `among` that is free, or `None` where all are owned.
pub(crate) fn claim_slot(words: &Words, me: Owner, among: Range<usize>) -> Option<usize> {
    let take = |index: &usize| {
        let owner = &words.slots[*index].owner;
        let exchange =
            || owner.compare_exchange(0, me.to_word(), Ordering::AcqRel, Ordering::Relaxed);
        owner.load(Ordering::Relaxed) == 0 && exchange().is_ok()
    };
    let index = among.into_iter().find(take)?;
    // Before the first reservation, so that a process that reads its tail also reads this slot.
    words.counts.slots_used.fetch_max(index as u64 + 1, Ordering::Release);
    Some(index)
}

/// Gives a slot back; nothing is in flight in it.
pub(crate) fn release_slot(words: &Words, slot: usize) {
    words.slots[slot].owner.store(0, Ordering::Release);
}

/// Gives a slot away with its range in flight: its owner lives, and can neither fill nor pad that.
/// From here on the slot belongs to the repairer.
pub(crate) fn give_up_slot(words: &Words, slot: usize) {
    words.slots[slot].owner.store(Owner::GIVEN_UP.to_word(), Ordering::Release);
}

/// Whether some slot has been given up and waits to be repaired.
pub(crate) fn has_given_up_slots(words: &Words) -> bool {
    (0..tail_word::used_slots(words)).any(|slot| owner_of(words, slot) == Some(Owner::GIVEN_UP))
}

/// Slots whose owner is dead or has given them up.
pub(crate) fn orphaned_slots(words: &Words, who: &impl Liveness) -> Vec<usize> {
    let is_orphaned = |slot: &usize| owner_of(words, *slot).is_some_and(|owner| owner.is_gone(who));
    (0..tail_word::used_slots(words)).filter(is_orphaned).collect()
}

/// Whose slot it is.
pub(crate) fn owner_of(words: &Words, slot: usize) -> Option<Owner> {
    let owner = words.slots.get(slot)?.owner.load(Ordering::Acquire);
    (owner != 0).then_some(Owner(owner))
}
