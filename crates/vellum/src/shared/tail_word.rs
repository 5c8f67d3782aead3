//! Reserve, publish, and the verdict on the range of a dead writer.
//!
//! **Reserve**: the writer stores `len`, then `start` = the tail it read, and tries to move the
//! tail word from (start, other slot) to (start + len, own slot). Before it takes away another
//! slot's tag it raises that slot's `confirmed` to the tail it read.
//!
//! **Publish**: `start` = 0.
//!
//! **Verdict**: a slot with `start` below the tail was granted that range if and only if the tail
//! word still is (start + len, slot), or `confirmed` ≥ start + len: the process that moved the tail
//! word on has raised `confirmed` before, so nothing is guessed. If the range was not granted, it
//! never will be, because the tail word has left `start` for good. Everything is published below
//! the smallest range that was granted and is in flight; an attempt that lost holds nothing back.
//!
//! The idea of taking the published end from slots is that of PostgreSQL's WAL insertion locks
//! (`WaitXLogInsertionsToFinish`) and of FASTER's epochs; the tag and the confirmation are ours.
//!
//! **If the process dies here**: before the exchange, nothing was reserved and the slot says so;
//! after it, the verdict is "granted" and the exact bytes are known.

use std::cell::Cell;

use super::notice::Holding;
use super::primitive::{self, HintU64, Ordering};
use super::words::{SLOT_COUNT, SlotWords, Words};
use crate::Lsn;
use crate::lsn::Range;

/// Bits of the tail word that name the slot of the last winner.
pub(crate) const SLOT_BITS: u32 = 10;

/// How long a writer that lost the tail word stays away from it: about ten microseconds.
const BACK_OFF_SPINS: u32 = 1024;

/// Stays away for up to eight times that, in steps of a quarter.
const CHANGES_MAX: u32 = 28;
/// After so many looks at which no other one had appended, none is there.
const AWAY_MIN: u32 = 64;

/// The tail word's value: the tail and the slot of its last winner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailWord(u64);

impl TailWord {
    pub(crate) fn new(tail: Lsn, slot: usize) -> TailWord {
        TailWord(tail.get() << SLOT_BITS | slot as u64)
    }

    #[inline]
    pub(crate) fn tail(self) -> Lsn {
        Lsn::new(self.0 >> SLOT_BITS)
    }

    #[inline]
    pub(crate) fn slot(self) -> usize {
        (self.0 & ((1 << SLOT_BITS) - 1)) as usize
    }

    pub(crate) fn to_word(self) -> u64 {
        self.0
    }
}

/// A range that was granted, and its predecessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) range: Range,
    /// The slot of the reservation before.
    pub(crate) before: usize,
}

/// The rivals to which a writer lost the tail word: an estimate of their number.
///
/// Among two writers it is always the same one. Among n it is the same one twice in a row about
/// each n-th time, so the changes between two such times count the writers.
#[derive(Debug, Default)]
pub(crate) struct Rivals {
    last: Cell<usize>,
    /// How often in a row it was another one than the time before.
    changes: Cell<u32>,
    /// How often in a row none was there when it was asked.
    away: Cell<u32>,
}

impl Rivals {
    /// Whether none has appended between the last records of `slot`, each time that was asked, for
    /// a while.
    pub(crate) fn are_away(&self, words: &Words, slot: usize) -> bool {
        let away = if load(words).slot() == slot { self.away.get().saturating_add(1) } else { 0 };
        self.away.set(away);
        away > AWAY_MIN
    }

    /// How long to stay away from the tail word after it was lost to `winner`.
    fn spins_after(&self, winner: usize) -> u32 {
        self.away.set(0);
        let is_other = self.last.replace(winner) != winner;
        let changes = if is_other { (self.changes.get() + 1).min(CHANGES_MAX) } else { 0 };
        self.changes.set(changes);
        BACK_OFF_SPINS + BACK_OFF_SPINS / 4 * changes
    }
}

/// Why no range could be reserved yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The range would end beyond the limit; nothing was changed.
    Beyond { tail: Lsn, end: Lsn },
}

/// The tail: first position not yet reserved.
pub(crate) fn tail(words: &Words) -> Lsn {
    load(words).tail()
}

/// End of each record whose append had returned when this was called, in any process.
///
/// An earlier reservation may still be in flight, so `published` can be less.
pub(crate) fn end_of_appended(words: &Words) -> Lsn {
    tail(words)
}

/// The tail word now.
#[inline]
pub(crate) fn load(words: &Words) -> TailWord {
    // Pairs with the exchange in `reserve`: a process that reads a tail sees the slots that it
    // rests upon.
    TailWord(words.tail.load(Ordering::Acquire))
}

/// Up to where space is ready to be reserved.
#[inline]
pub(crate) fn ready_end(words: &Words) -> Lsn {
    Lsn::new(words.ready_end.load(Ordering::Acquire))
}

/// Reserves `len_at(tail)` bytes at the tail for the owner of `slot`, if they end by `limit()`.
///
/// The caller owns the slot and nothing is in flight in it.
#[inline]
pub(crate) fn reserve(
    words: &Words,
    slot: usize,
    rivals: &Rivals,
    limit: impl Fn() -> Lsn,
    mut len_at: impl FnMut(Lsn) -> u64,
) -> Result<Grant, Refused> {
    let own = &words.slots[slot];
    let mut seen = load(words);
    loop {
        let start = seen.tail();
        let len = len_at(start);
        let end = Lsn::new(start.get().saturating_add(len));
        if end > limit() {
            own.start.store(0, Ordering::Release);
            return Err(Refused::Beyond { tail: start, end });
        }
        match attempt(words, slot, seen, len) {
            Ok(grant) => return Ok(grant),
            Err(winner) => seen = back_off(words, rivals, winner),
        }
    }
}

/// Reserves `len` bytes at the tail of `seen` for the owner of `slot`, if the tail word is still
/// that one. The error is the other tail word, as a hint.
#[inline(always)]
pub(crate) fn attempt(
    words: &Words,
    slot: usize,
    seen: TailWord,
    len: u64,
) -> Result<Grant, TailWord> {
    let own = &words.slots[slot];
    let start = seen.tail();
    let range = Range { start, len };
    // `len` before `start`: a slot with a new start never shows an old length. Release, because a
    // process that reads the new length beside the old start concludes that the old range was
    // published.
    own.len.store(len, Ordering::Release);
    own.start.store(start.get(), Ordering::Release);
    if seen.slot() != slot {
        confirm(words, seen);
    }
    // Release: a process that reads the new tail sees `start`, `len` and the confirmation.
    match words.tail.compare_exchange_weak(
        seen.to_word(),
        TailWord::new(range.end(), slot).to_word(),
        Ordering::AcqRel,
        Ordering::Acquire,
    ) {
        Ok(_) => Ok(Grant { range, before: seen.slot() }),
        Err(now) => Err(TailWord(now)),
    }
}

/// Takes back an attempt that has lost to `winner`, and stays away for a while.
#[cold]
pub(crate) fn give_way(words: &Words, slot: usize, rivals: &Rivals, winner: TailWord) -> TailWord {
    publish(words, slot);
    back_off(words, rivals, winner)
}

/// Lets the winner append a few more while the tail word is in its cache, then takes the tail word
/// over.
///
/// Passing the line back and forth for each record costs several times as much
/// (`docs/benchmarks.md`). So a writer that comes back does it for certain: it confirms the winner
/// beforehand, and then fetches the line to write. A writer that only looks at the tail word still
/// has to wait for two lines, and the winner is faster.
#[cold]
fn back_off(words: &Words, rivals: &Rivals, winner: TailWord) -> TailWord {
    for _ in 0..rivals.spins_after(winner.slot()) {
        primitive::spin_loop();
    }
    confirm(words, load(words));
    // Adds nothing: this is the load that fetches a line to write.
    TailWord(words.tail.fetch_add(0, Ordering::Acquire))
}

/// Raises the proof of the last winner to the tail, unless it is there already.
#[inline]
fn confirm(words: &Words, seen: TailWord) {
    let (Some(slot), lsn) = (words.slots.get(seen.slot()), seen.tail()) else { return };
    let mut seen = slot.confirmed.load(Ordering::Relaxed);
    while seen < lsn.get() {
        match slot.confirmed.compare_exchange_weak(
            seen,
            lsn.get(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        ) {
            Ok(_) => return,
            Err(now) => seen = now,
        }
    }
}

/// Makes the slot's reservation visible: everything in it has been filled.
#[inline]
pub(crate) fn publish(words: &Words, slot: usize) {
    // Pairs with the load in `published`: a process that reads 0 sees the bytes.
    words.slots[slot].start.store(0, Ordering::Release);
}

/// Moves the tail. Nothing is in flight, and no other process uses the log.
pub(crate) fn set(words: &Words, tail: TailWord) {
    words.tail.store(tail.to_word(), Ordering::SeqCst);
}

/// The tail word as it is, for a reader that looks whether it has changed.
pub(crate) fn raw(words: &Words) -> u64 {
    words.tail.load(Ordering::SeqCst)
}

/// Counts a reservation of a dead participant that was padded.
pub(crate) fn count_repair(words: &Words, bytes: u64) {
    words.counts.repairs.fetch_add(1, Ordering::Relaxed);
    words.counts.repaired_bytes.fetch_add(bytes, Ordering::Relaxed);
}

/// Reservations of dead participants that were padded, and their bytes.
pub(crate) fn repairs(words: &Words) -> (u64, u64) {
    let counts = &words.counts;
    (counts.repairs.load(Ordering::Relaxed), counts.repaired_bytes.load(Ordering::Relaxed))
}

/// Counts what the owner of `slot` has appended. A load and a store of a line that the owner has
/// written a moment ago.
#[inline]
pub(crate) fn count(words: &Words, slot: usize, records: u64, bytes: u64) {
    let appended = &words.slots[slot].appended;
    let add = |word: &HintU64, more: u64| {
        // One process uses a slot at a time, one thread of it.
        word.store(word.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    };
    add(&appended.records, records);
    add(&appended.bytes, bytes);
}

/// Records that were appended since the control file was made, and the bytes of log they take.
pub(crate) fn appended(words: &Words) -> (u64, u64) {
    let slots = words.slots[..used_slots(words)].iter().map(|slot| &slot.appended);
    slots.fold((0, 0), |(records, bytes), appended| {
        let records = records + appended.records.load(Ordering::Relaxed);
        (records, bytes + appended.bytes.load(Ordering::Relaxed))
    })
}

/// Whether the reservation before `grant` is published.
///
/// Its slot may have a new range since: that one starts behind `grant`.
#[inline]
pub(crate) fn is_next(words: &Words, grant: Grant) -> bool {
    let Some(slot) = words.slots.get(grant.before) else { return true };
    // Pairs with the store in `publish`.
    let start = slot.start.load(Ordering::Acquire);
    start == 0 || start >= grant.range.start.get()
}

/// The range in flight in a slot, granted or not.
fn in_flight(slot: &SlotWords) -> Option<Range> {
    // Pairs with the store in `publish`.
    let start = slot.start.load(Ordering::Acquire);
    // Pairs with the store in `reserve`: a later length comes with the `start` of 0 before it, and
    // with the bytes of the record before that.
    let len = slot.len.load(Ordering::Acquire);
    (start != 0).then_some(Range { start: Lsn::new(start), len })
}

/// The range below the tail of `seen` that `slot` was granted and has not published.
///
/// `seen` is read before. The owner may continue meanwhile: if it published between the two loads
/// of `in_flight`, the length read may be that of its next attempt, and "not granted" is as right.
pub(crate) fn granted(words: &Words, slot: usize, seen: TailWord) -> Option<Range> {
    let own = words.slots.get(slot)?;
    let range = in_flight(own).filter(|range| range.start < seen.tail())?;
    let end = Lsn::new(range.start.get().checked_add(range.len)?);
    // The tail word before the confirmation: once it has moved on, the confirmation is there.
    let is_last_winner = seen == TailWord::new(end, slot);
    let is_granted = is_last_winner || own.confirmed.load(Ordering::Acquire) >= end.get();
    // Still the same attempt: a later one that was granted raises `confirmed` past a lost one.
    (is_granted && own.start.load(Ordering::Acquire) == range.start.get()).then_some(range)
}

/// The oldest range that was granted and is in flight, with its slot.
pub(crate) fn oldest_in_flight(words: &Words, seen: TailWord) -> Option<(usize, Range)> {
    let granted = |slot| Some((slot, granted(words, slot, seen)?));
    (0..used_slots(words)).filter_map(granted).min_by_key(|(_, range)| range.start)
}

/// End of the contiguous published prefix: all bytes below are filled and stay as they are.
///
/// Costs a look at each slot ever used.
pub(crate) fn published(words: &Words) -> Lsn {
    // The tail word first: a reservation that moves it later starts at or beyond what is read here.
    let seen = load(words);
    oldest_in_flight(words, seen).map_or(seen.tail(), |(_, range)| range.start)
}

/// Notes that a process waits for the oldest reservation in flight.
pub(crate) fn note_wait(words: &Words) {
    if let Some((slot, range)) = oldest_in_flight(words, load(words)) {
        words.slots[slot].noticed.note(holding(words, slot, range));
    }
}

/// Since when a process waits for the range in flight in a slot, in microseconds of the machine's
/// own clock.
pub(crate) fn waited_since(words: &Words, slot: usize, range: Range) -> Option<u64> {
    words.slots[slot].noticed.since(holding(words, slot, range))
}

fn holding(words: &Words, slot: usize, range: Range) -> Holding {
    Holding { holder: words.slots[slot].owner.load(Ordering::Acquire), number: range.start.get() }
}

/// How many slots have ever been claimed.
pub(crate) fn used_slots(words: &Words) -> usize {
    // Pairs with the raise in `participants::claim_slot`.
    (words.counts.slots_used.load(Ordering::Acquire) as usize).min(SLOT_COUNT)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::shared::region::Region;

    fn words() -> Region {
        let region = Region::on_heap();
        let words = region.words();
        words.tail.store(TailWord::new(Lsn::new(4096), 0).to_word(), Ordering::Relaxed);
        words.ready_end.store(8192, Ordering::Relaxed);
        words.counts.slots_used.store(3, Ordering::Relaxed);
        region
    }

    fn reserve_len(words: &Words, slot: usize, len: u64) -> Result<Range, Refused> {
        reserve(words, slot, &Rivals::default(), || ready_end(words), |_| len)
            .map(|grant| grant.range)
    }

    #[test]
    fn published_stops_at_the_oldest_reservation_in_flight() {
        let region = words();
        let words = region.words();
        let first = reserve_len(words, 0, 100).unwrap();
        let second = reserve_len(words, 1, 50).unwrap();
        assert_eq!(second.start, first.end());
        publish(words, 1);
        assert_eq!(published(words), first.start);
        publish(words, 0);
        assert_eq!(published(words), second.end());
        assert_eq!(tail(words), second.end());
    }

    #[test]
    fn the_next_is_who_finds_nothing_in_flight_right_before_it() {
        let region = words();
        let words = region.words();
        let rivals = Rivals::default();
        let grant = |slot| reserve(words, slot, &rivals, || ready_end(words), |_| 100).unwrap();
        let [first, second, third] = [0, 1, 2].map(grant);
        assert!(is_next(words, first), "slot 0 was the last winner, and holds this very range");
        assert!(!is_next(words, second) && !is_next(words, third));
        publish(words, 1);
        assert!(is_next(words, third) && !is_next(words, second));
        publish(words, 0);
        assert!(is_next(words, second));
        let fourth = grant(0);
        assert!(is_next(words, second), "slot 0 goes on behind it");
        assert!(!is_next(words, fourth));
    }

    #[test]
    fn a_refused_reservation_changes_nothing() {
        let region = words();
        let words = region.words();
        let tail = Lsn::new(4096);
        let end = Lsn::new(4096 + 5000);
        assert_eq!(reserve_len(words, 0, 5000), Err(Refused::Beyond { tail, end }));
        assert_eq!(published(words), tail);
        assert!(reserve_len(words, 0, 4096).is_ok());
    }

    #[test]
    fn the_verdict_tells_granted_from_attempted() {
        let region = words();
        let words = region.words();
        let range = reserve_len(words, 0, 100).unwrap();
        assert_eq!(granted(words, 0, load(words)), Some(range), "the last winner");
        reserve_len(words, 1, 8).unwrap();
        assert_eq!(granted(words, 0, load(words)), Some(range), "confirmed by the next");
        // An attempt that lost: start and length are stored, the exchange did not happen.
        words.slots[2].len.store(64, Ordering::Relaxed);
        words.slots[2].start.store(range.end().get(), Ordering::Relaxed);
        assert_eq!(granted(words, 2, load(words)), None);
        publish(words, 1);
        assert_eq!(published(words), range.start, "a lost attempt holds nothing back");
        publish(words, 0);
        assert_eq!(granted(words, 0, load(words)), None, "nothing in flight");
    }

    #[test]
    fn who_loses_to_many_stays_away_for_longer_and_to_one_does_not() {
        let rivals = Rivals::default();
        let wait = |winner| rivals.spins_after(winner) / BACK_OFF_SPINS;
        assert_eq!([1, 1, 1].map(wait), [1; 3], "one other writer");
        assert_eq!([2, 3, 1, 3, 2, 1].map(wait).last(), Some(&2), "three");
        assert_eq!((1..64).map(wait).max(), Some(8), "many");
        assert_eq!(wait(63), 1, "the same one twice");
    }

    #[test]
    fn rivals_are_away_after_a_while_without_one() {
        let region = words();
        let words = region.words();
        let rivals = Rivals::default();
        let append = |slot| {
            reserve_len(words, slot, 8).unwrap();
            publish(words, slot);
            rivals.are_away(words, 1)
        };
        assert!((0..AWAY_MIN).all(|_| !append(1)) && append(1));
        assert!(!append(2), "here is one");
        assert!((0..AWAY_MIN).all(|_| !append(1)) && append(1));
        rivals.spins_after(2);
        assert!(!append(1), "the tail word was lost to one");
    }

    #[test]
    fn who_gives_way_confirms_the_winner_and_leaves_the_tail_as_it_is() {
        let region = words();
        let words = region.words();
        let seen = load(words);
        let range = reserve_len(words, 1, 100).unwrap();
        let winner = attempt(words, 2, seen, 50).unwrap_err();
        assert_eq!(winner, TailWord::new(range.end(), 1));
        let now = give_way(words, 2, &Rivals::default(), winner);
        assert_eq!((now, load(words)), (winner, winner));
        assert_eq!(words.slots[1].confirmed.load(Ordering::Relaxed), range.end().get());
        assert_eq!(in_flight(&words.slots[2]), None, "the attempt is taken back");
        assert_eq!(granted(words, 1, now), Some(range));
        assert!(attempt(words, 2, now, 50).is_ok());
    }
}
