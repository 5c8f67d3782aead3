//! How batches of records become durable, whoever writes them.
//!
//! **Seal**: who finds a free *lane* takes everything that is published and in no batch yet, as
//! the next batch, and writes it. **Finish**: a batch that is written raises `durable` when all
//! before it are written too, and wakes those who wait for it. Several batches may be on their
//! way at the same time; no two of them cover the same block.
//!
//! **Waiting**: each batch has a word that its waiters sleep on, so that a finished batch wakes
//! those it carried with one call, and one of those whose records are next, who seals them. Words
//! only count up. A prototype that woke everybody through one word put two records into a batch
//! instead of eight, and was three times slower.
//!
//! **If the process dies here**: a lane names its owner. Who waits in vain finds the owner dead,
//! takes the lane over and writes the same bytes once more: they are sealed, so they do not
//! change. A write of the dead has ended before the kernel lets go of its locks. Everything else
//! is done under the lock and is right when done twice; a wake-up that was not made costs those who
//! sleep one look at the clock.

use super::lock::{self, Held, Patience, Until};
use super::notice::Holding;
use super::participants::{Liveness, Owner};
use super::primitive::{self, AtomicU32, Ordering};
use super::words::{BATCH_WORD_COUNT, CommitWords, LANE_COUNT, LaneWords};
use crate::Lsn;

/// Batches that end on a block boundary after one had to wait for another.
const CROWDED_BATCHES: u64 = 64;

/// A stretch of the log on its way to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(super) lane: usize,
    pub(super) number: u64,
    pub(crate) start: Lsn,
    pub(crate) end: Lsn,
}

impl Batch {
    /// Whether everything before `end` is durable once this batch is, and not before.
    fn covers(&self, end: Lsn) -> bool {
        self.start < end && end <= self.end
    }
}

/// What somebody who waits for a position to be durable does next.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    /// It is durable.
    Done,
    /// It never will be.
    Poisoned,
    /// Seal a batch.
    Lead,
    /// Take over a batch that was handed back.
    Replace,
    /// Sleep on the word while it has this value.
    Wait(&'a AtomicU32, u32),
}

/// What the first failed write or sync was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) errno: i32,
    /// First position of the segment.
    pub(crate) segment: Lsn,
    pub(crate) operation: Operation,
}

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Write,
    Sync,
    Name,
    /// Cutting the log off, which is half done.
    Cut,
    /// The kernel was to write a stage to the device, on its own account.
    Stage,
    /// A sync beside the commits.
    Beside,
    /// A store into the control file: in the copy of a process that has lost it (`lost`).
    Control,
}

/// End of what survives a power cut.
#[inline]
pub(crate) fn durable(words: &CommitWords) -> Lsn {
    Lsn::new(words.ends.durable.load(Ordering::Acquire))
}

/// Whether nothing more can be made durable.
#[inline]
pub(crate) fn is_poisoned(words: &CommitWords) -> bool {
    words.poison.errno.load(Ordering::Acquire) != 0
}

/// What the kernel answers with lies below; `EIO` stands for what does not.
const ERRNO_MAX: u64 = 4095;
const EIO: u64 = 5;

/// The failure that poisoned the log.
pub(crate) fn failure(words: &CommitWords) -> Option<Failure> {
    let errno = words.poison.errno.load(Ordering::Acquire);
    let errno = if errno > ERRNO_MAX { EIO } else { errno } as i32;
    let operation = match words.poison.operation.load(Ordering::Relaxed) {
        1 => Operation::Sync,
        2 => Operation::Name,
        3 => Operation::Cut,
        4 => Operation::Stage,
        5 => Operation::Beside,
        6 => Operation::Control,
        _ => Operation::Write,
    };
    let segment = Lsn::new(words.poison.segment.load(Ordering::Relaxed));
    (errno != 0).then_some(Failure { errno, segment, operation })
}

/// What to do so that everything before `end` becomes durable. Batches are written in blocks of
/// `block` bytes, up to `lanes` at a time.
pub(crate) fn next_step(words: &CommitWords, end: Lsn, block: u64, lanes: usize) -> Step<'_> {
    let mut word = word(words, words.ends.next_batch.load(Ordering::Acquire));
    loop {
        // Everything else after the word: who finishes changes it first and counts up then, so
        // that either it is seen here, or the sleep ends at once.
        let seen = word.load(Ordering::Acquire);
        let awaited = awaited(words, end, block, lanes).map(|number| self::word(words, number));
        if durable(words) >= end {
            return Step::Done;
        }
        if is_poisoned(words) {
            return Step::Poisoned;
        }
        if lanes_in_use(words).any(|(lane, _)| owner_of(lane) == Owner::GIVEN_UP) {
            return Step::Replace;
        }
        match awaited {
            None => return Step::Lead,
            Some(awaited) if std::ptr::eq(awaited, word) => return Step::Wait(word, seen),
            Some(awaited) => word = awaited,
        }
    }
}

/// Number of the batch to wait for until there is news of `end`, or `None` if it can be sealed.
fn awaited(words: &CommitWords, end: Lsn, block: u64, lanes: usize) -> Option<u64> {
    // Before `sealed`: a batch with this number or a later one covers what is not sealed yet.
    let next = words.ends.next_batch.load(Ordering::Acquire);
    let sealed = Lsn::new(words.ends.sealed.load(Ordering::Acquire));
    let is_sealed = end <= sealed;
    let batch = match is_sealed {
        true => lanes_in_use(words).map(|(_, batch)| batch).find(|batch| batch.covers(end)),
        false => in_the_way(words, sealed, block).inspect(|_| end_on_blocks(words, next)),
    };
    match batch {
        Some(batch) => Some(batch.number),
        // Sealed and in no lane: it has just been finished.
        None if is_sealed => Some(next),
        None => (lanes_in_use(words).count() >= lanes.min(LANE_COUNT)).then_some(next),
    }
}

/// The right to seal and to finish.
pub(crate) struct Sealer<'a> {
    words: &'a CommitWords,
    me: Owner,
    _held: Held<'a>,
}

impl<'a> Sealer<'a> {
    /// Waits for the lock, and completes what a dead holder left half done.
    pub(crate) fn new(words: &'a CommitWords, me: Owner, who: &impl Liveness) -> Sealer<'a> {
        Sealer::with(words, me, lock::acquire(&words.lock, me, who))
    }

    /// As [`new`](Sealer::new), but waits for a living holder no longer than `until`.
    pub(crate) fn within(
        words: &'a CommitWords,
        me: Owner,
        who: &impl Liveness,
        until: Until,
    ) -> Option<Sealer<'a>> {
        let held = lock::acquire_within(&words.lock, me, who, Patience::from(until))?;
        Some(Sealer::with(words, me, held))
    }

    fn with(words: &'a CommitWords, me: Owner, held: Held<'a>) -> Sealer<'a> {
        let sealer = Sealer { words, me, _held: held };
        for (_, batch) in lanes_in_use(words) {
            words.ends.sealed.fetch_max(batch.end.get(), Ordering::AcqRel);
            words.ends.next_batch.fetch_max(batch.number + 1, Ordering::AcqRel);
        }
        sealer
    }

    /// Where the next batch starts, if it may be sealed now.
    pub(crate) fn next_start(&self, block: u64, lanes: usize) -> Option<Lsn> {
        let ends = &self.words.ends;
        let sealed = Lsn::new(ends.sealed.load(Ordering::Acquire));
        if is_poisoned(self.words) || lanes_in_use(self.words).count() >= lanes.min(LANE_COUNT) {
            return None;
        }
        if in_the_way(self.words, sealed, block).is_some() {
            return None;
        }
        Some(sealed)
    }

    /// Whether the next batch should end on a block boundary, because others are on their way.
    pub(crate) fn is_crowded(&self) -> bool {
        let ends = &self.words.ends;
        lanes_in_use(self.words).next().is_some()
            || ends.next_batch.load(Ordering::Relaxed)
                < ends.pad_until_batch.load(Ordering::Relaxed)
    }

    /// End of the newest seal, which may lie behind what is published, or in a batch already.
    pub(crate) fn seal_end(&self) -> Lsn {
        Lsn::new(self.words.ends.seal_end.load(Ordering::Acquire))
    }

    /// Whether a seal that ends at `seal_end` is in no batch yet.
    pub(crate) fn is_to_come(&self, seal_end: Lsn) -> bool {
        seal_end.get() > self.words.ends.sealed.load(Ordering::Acquire)
    }

    /// Notes a seal that has been published in its place.
    pub(crate) fn note_seal(&self, end: Lsn) {
        self.words.ends.seal_end.store(end.get(), Ordering::Release);
    }

    /// Seals everything from [`next_start`](Sealer::next_start) to `end`, which is published.
    pub(crate) fn seal(&self, start: Lsn, end: Lsn) -> Option<Batch> {
        let ends = &self.words.ends;
        let is_free = |lane: &LaneWords| lane.owner.load(Ordering::Acquire) == 0;
        let index = self.words.lanes.iter().position(is_free)?;
        let number = ends.next_batch.load(Ordering::Acquire);
        let lane = &self.words.lanes[index];
        lane.start.store(start.get(), Ordering::Relaxed);
        lane.end.store(end.get(), Ordering::Relaxed);
        lane.number.store(number, Ordering::Relaxed);
        lane.is_written.store(0, Ordering::Relaxed);
        // From here on the batch exists; whoever comes next under the lock raises the rest.
        lane.owner.store(self.me.to_word(), Ordering::Release);
        ends.sealed.store(end.get(), Ordering::Release);
        ends.next_batch.store(number + 1, Ordering::Release);
        Some(Batch { lane: index, number, start, end })
    }

    /// Takes over a batch whose owner is dead, or has handed it back.
    pub(crate) fn take_over(&self, who: &impl Liveness) -> Option<Batch> {
        // It may be the one that could not be written, and its owner may have said so and died.
        if is_poisoned(self.words) {
            return None;
        }
        let is_left = |(lane, _): &(&LaneWords, Batch)| {
            lane.is_written.load(Ordering::Acquire) == 0 && owner_of(lane).is_gone(who)
        };
        let (lane, batch) = lanes_in_use(self.words).find(is_left)?;
        lane.owner.store(self.me.to_word(), Ordering::Release);
        Some(batch)
    }

    /// Whether something is sealed and will never be durable, because no batch starts where
    /// `durable` ends: the words make no sense.
    pub(crate) fn is_stuck(&self) -> bool {
        let durable = durable(self.words);
        let is_on_its_way = lanes_in_use(self.words).any(|(_, batch)| batch.start <= durable);
        !is_on_its_way && self.words.ends.sealed.load(Ordering::Acquire) > durable.get()
    }

    /// Whether no batch is on its way.
    pub(crate) fn is_idle(&self) -> bool {
        lanes_in_use(self.words).next().is_none()
    }

    /// Raises `durable` over the batches that are written, and frees their lanes. Once something
    /// has failed, nothing more: the device may have lost what these have written.
    fn advance(&self) -> [Option<u64>; LANE_COUNT] {
        let durable = &self.words.ends.durable;
        let mut finished = [None; LANE_COUNT];
        if is_poisoned(self.words) {
            return finished;
        }
        let mut count = 0;
        loop {
            let reached = Lsn::new(durable.load(Ordering::Acquire));
            let is_next = |(lane, batch): &(&LaneWords, Batch)| {
                lane.is_written.load(Ordering::Acquire) != 0 && batch.start <= reached
            };
            let Some((lane, batch)) = lanes_in_use(self.words).find(is_next) else {
                return finished;
            };
            durable.fetch_max(batch.end.get(), Ordering::AcqRel);
            lane.owner.store(0, Ordering::Release);
            if let Some(place) = finished.get_mut(count) {
                *place = Some(batch.number);
            }
            count += 1;
        }
    }
}

/// Says that a batch has been written; wakes who waited for it, and one who can seal the next.
///
/// Who does not get the lock by `until` leaves both to those who wait: they look after 10 ms.
pub(crate) fn finish(
    words: &CommitWords,
    me: Owner,
    who: &impl Liveness,
    batch: Batch,
    until: Until,
) {
    words.lanes[batch.lane].is_written.store(1, Ordering::Release);
    advance(words, me, who, until);
}

/// Raises `durable` as far as batches are written, and wakes who can go on.
pub(crate) fn advance(words: &CommitWords, me: Owner, who: &impl Liveness, until: Until) {
    let Some(sealer) = Sealer::within(words, me, who, until) else { return };
    let finished = sealer.advance();
    drop(sealer);
    for number in finished.into_iter().flatten() {
        let word = word(words, number);
        word.fetch_add(1, Ordering::AcqRel);
        primitive::wake_all(word);
    }
    pass_on(words);
}

/// The batches on their way: whose, and since when somebody waits for that one, in microseconds of
/// the machine's own clock.
pub(crate) fn on_their_way(
    words: &CommitWords,
) -> impl Iterator<Item = (Owner, Batch, Option<u64>)> {
    let unwritten = unwritten_lanes(words);
    unwritten.map(|(lane, batch)| {
        let holding = holding(lane, batch);
        (Owner::from_word(holding.holder), batch, lane.noticed.since(holding))
    })
}

/// Notes that somebody waits for the batches on their way.
pub(crate) fn note_wait(words: &CommitWords) {
    for (lane, batch) in unwritten_lanes(words) {
        lane.noticed.note(holding(lane, batch));
    }
}

fn unwritten_lanes(words: &CommitWords) -> impl Iterator<Item = (&LaneWords, Batch)> {
    lanes_in_use(words).filter(|(lane, _)| lane.is_written.load(Ordering::Acquire) == 0)
}

fn holding(lane: &LaneWords, batch: Batch) -> Holding {
    Holding { holder: lane.owner.load(Ordering::Acquire), number: batch.number }
}

/// Whether the caller is to look for the dead at `now`, for all who wait: nobody has looked for as
/// long as `every`, both in microseconds.
pub(crate) fn claim_look(words: &CommitWords, now: u64, every: u64) -> bool {
    let looked_at = &words.ends.looked_at;
    let last = looked_at.load(Ordering::Relaxed);
    // Either way: the clock may be another one in another time namespace.
    let exchange = || looked_at.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed);
    now.abs_diff(last) >= every && exchange().is_ok()
}

/// Hands back a batch that the caller has taken and cannot write, for a reason of its own; wakes
/// everybody, so that one of them takes it over.
pub(crate) fn hand_back(words: &CommitWords, batch: Batch) {
    words.lanes[batch.lane].owner.store(Owner::GIVEN_UP.to_word(), Ordering::Release);
    wake_everybody(words);
}

/// Wakes another who can seal the next batch, because the caller will not.
pub(crate) fn pass_on(words: &CommitWords) {
    let next = word(words, words.ends.next_batch.load(Ordering::Acquire));
    next.fetch_add(1, Ordering::AcqRel);
    primitive::wake_one(next);
}

/// Remembers the first failure, and wakes everybody to learn of it.
pub(crate) fn poison(words: &CommitWords, me: Owner, who: &impl Liveness, failure: Failure) {
    let sealer = Sealer::new(words, me, who);
    remember(words, failure);
    drop(sealer);
    wake_everybody(words);
}

/// The same for a sync that failed beside the commits, and is not tried again. Without the lock,
/// which who holds the prepare lock must not wait for.
pub(crate) fn poison_beside(words: &CommitWords, failure: Failure) {
    remember(words, failure);
    wake_everybody(words);
}

pub(super) fn remember(words: &CommitWords, failure: Failure) {
    if is_poisoned(words) {
        return;
    }
    let operation = match failure.operation {
        Operation::Write => 0,
        Operation::Sync => 1,
        Operation::Name => 2,
        Operation::Cut => 3,
        Operation::Stage => 4,
        Operation::Beside => 5,
        Operation::Control => 6,
    };
    words.poison.operation.store(operation, Ordering::Relaxed);
    words.poison.segment.store(failure.segment.get(), Ordering::Relaxed);
    words.poison.errno.store(failure.errno.max(1) as u64, Ordering::Release);
}

fn wake_everybody(words: &CommitWords) {
    for word in &words.batches {
        word.fetch_add(1, Ordering::AcqRel);
        primitive::wake_all(word);
    }
}

/// Starts again from `durable`, with no batch on its way. Nobody else uses the log.
pub(crate) fn reset(words: &CommitWords, durable: Lsn) {
    for lane in &words.lanes {
        lane.owner.store(0, Ordering::Release);
    }
    words.ends.durable.store(durable.get(), Ordering::Release);
    words.ends.sealed.store(durable.get(), Ordering::Release);
    words.ends.seal_end.store(0, Ordering::Release);
    words.poison.errno.store(0, Ordering::Release);
}

/// Lets batches end on block boundaries for a while, because one had to wait for another's block.
fn end_on_blocks(words: &CommitWords, next: u64) {
    words.ends.pad_until_batch.store(next + CROWDED_BATCHES, Ordering::Relaxed);
}

/// A batch that is being written and covers the block in which `start` lies.
fn in_the_way(words: &CommitWords, start: Lsn, block: u64) -> Option<Batch> {
    let block_start = start.get() / block * block;
    let covers = |(lane, batch): &(&LaneWords, Batch)| {
        batch.end.get() > block_start && lane.is_written.load(Ordering::Acquire) == 0
    };
    (start.get() != block_start)
        .then(|| lanes_in_use(words).find(covers).map(|(_, batch)| batch))
        .flatten()
}

fn lanes_in_use(words: &CommitWords) -> impl Iterator<Item = (&LaneWords, Batch)> {
    words.lanes.iter().enumerate().filter_map(|(index, lane)| {
        let is_used = lane.owner.load(Ordering::Acquire) != 0;
        is_used.then(|| (lane, batch_of(index, lane)))
    })
}

fn owner_of(lane: &LaneWords) -> Owner {
    Owner::from_word(lane.owner.load(Ordering::Acquire))
}

fn batch_of(index: usize, lane: &LaneWords) -> Batch {
    Batch {
        lane: index,
        number: lane.number.load(Ordering::Acquire),
        start: Lsn::new(lane.start.load(Ordering::Acquire)),
        end: Lsn::new(lane.end.load(Ordering::Acquire)),
    }
}

fn word(words: &CommitWords, number: u64) -> &AtomicU32 {
    &words.batches[number as usize % BATCH_WORD_COUNT]
}
