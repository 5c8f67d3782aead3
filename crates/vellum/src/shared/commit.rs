//! How groups of records become durable, in any process.
//!
//! **Begin**: a committer that finds a free *lane* takes everything that is published and in no
//! group yet, as the next group, and writes it. **Finish**: a group that is written raises
//! `durable` when all before it are written too, and wakes the threads that wait for it. Several
//! groups may be on their way at the same time; no two of them cover the same block.
//!
//! **Waiting**: each group has a word that its waiters sleep on, so that one call wakes all threads
//! of a finished group. Another call wakes one thread of the next group, which leads it. Words only
//! count up, by two: their lowest bit says that a thread may sleep on them, so that a thread alone
//! makes no call. A prototype that woke all threads through one word put two records into a group
//! instead of eight, and was three times slower.
//!
//! **If the process dies here**: a lane names its owner. A process that waits in vain finds the
//! owner dead, takes the lane over and writes the same bytes once more: they have begun, so they do
//! not change. A write of the dead has ended before the kernel releases its locks. Everything else
//! is done under the lock and is right when done twice; a wake-up that was not made costs each
//! sleeper one look at the clock.

use std::time::Duration;

use super::lock::{self, Held, Timeout, Until};
use super::notice::Holding;
use super::participants::{Liveness, Owner};
use super::primitive::{self, AtomicU32, Ordering};
use super::words::{CommitWords, GROUP_WORD_COUNT, LANE_COUNT, LaneWords};
use crate::Lsn;

/// Batches that end on a block boundary after one had to wait for another.
const CROWDED_BATCHES: u64 = 64;

/// In the word of a group: a thread may sleep on it.
const SLEEPER: u32 = 1;
/// The step of a group's word.
const COUNT: u32 = 2;

/// A stretch of the log on its way to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommitGroup {
    pub(super) lane: usize,
    pub(super) number: u64,
    pub(crate) start: Lsn,
    pub(crate) end: Lsn,
}

impl CommitGroup {
    /// Whether everything before `end` is durable once this group is, and not before.
    fn covers(&self, end: Lsn) -> bool {
        self.start < end && end <= self.end
    }
}

/// The next step of a thread that waits for a position to be durable.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    /// It is durable.
    Done,
    /// It never will be.
    Poisoned,
    /// Begin a group.
    Lead,
    /// Take over a group that was handed back.
    Replace,
    /// Sleep on the word while it has this value.
    Wait(&'a AtomicU32, u32),
}

/// The first failed write or sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) errno: i32,
    /// First position of the segment.
    pub(crate) segment: Lsn,
    pub(crate) operation: Operation,
}

/// The operation that failed.
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

/// End of the records that survive a power cut.
#[inline]
pub(crate) fn durable(words: &CommitWords) -> Lsn {
    Lsn::new(words.ends.durable.load(Ordering::Acquire))
}

/// Whether nothing more can be made durable.
#[inline]
pub(crate) fn is_poisoned(words: &CommitWords) -> bool {
    words.poison.errno.load(Ordering::Acquire) != 0
}

/// Error numbers of the kernel are below this; `EIO` stands for any other.
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

/// The next step to make everything before `end` durable. Batches are written in blocks of `block`
/// bytes, up to `lanes` at a time.
pub(crate) fn next_step(words: &CommitWords, end: Lsn, block: u64, lanes: usize) -> Step<'_> {
    let mut word = word(words, words.ends.next_group.load(Ordering::Acquire));
    loop {
        // Everything else is read after the word: a finisher changes it first and counts up then,
        // so either its change is seen here, or the sleep ends at once.
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

/// Sleeps on a word of [`Step::Wait`] for `nap` at most, while it has the value that was seen.
pub(crate) fn sleep(word: &AtomicU32, seen: u32, nap: Duration) {
    let marked = seen | SLEEPER;
    let mark = || word.compare_exchange(seen, marked, Ordering::Relaxed, Ordering::Relaxed);
    // Otherwise it was counted up, or another one has marked it: a look tells.
    if seen == marked || mark().is_ok() {
        primitive::wait(word, marked, nap);
    }
}

/// Counts a word up, and wakes all its sleepers.
pub(super) fn wake_all(word: &AtomicU32) {
    if word.fetch_add(COUNT, Ordering::AcqRel) & SLEEPER != 0 {
        // Before the call, which wakes the threads that have marked it until then.
        word.fetch_and(!SLEEPER, Ordering::Relaxed);
        primitive::wake_all(word);
    }
}

/// Counts a word up, and wakes one sleeper. The others stay asleep, and the mark stays too.
pub(super) fn wake_one(word: &AtomicU32) {
    if word.fetch_add(COUNT, Ordering::AcqRel) & SLEEPER != 0 {
        primitive::wake_one(word);
    }
}

/// Number of the group to wait for until there is news of `end`, or `None` if it can begin.
fn awaited(words: &CommitWords, end: Lsn, block: u64, lanes: usize) -> Option<u64> {
    // Before `grouped`: a group with this number or a later one covers what is in no group yet.
    let next = words.ends.next_group.load(Ordering::Acquire);
    let grouped = Lsn::new(words.ends.grouped.load(Ordering::Acquire));
    let is_grouped = end <= grouped;
    let group = match is_grouped {
        true => lanes_in_use(words).map(|(_, group)| group).find(|group| group.covers(end)),
        false => in_the_way(words, grouped, block).inspect(|_| end_on_blocks(words, next)),
    };
    match group {
        Some(group) => Some(group.number),
        // Placed and in no lane: it has just been finished.
        None if is_grouped => Some(next),
        None => (lanes_in_use(words).count() >= lanes.min(LANE_COUNT)).then_some(next),
    }
}

/// The right to begin groups and to finish them: the commit lock.
pub(crate) struct CommitLock<'a> {
    words: &'a CommitWords,
    me: Owner,
    _held: Held<'a>,
}

impl<'a> CommitLock<'a> {
    /// Waits for the lock, and completes what a dead holder left half done.
    pub(crate) fn new(words: &'a CommitWords, me: Owner, who: &impl Liveness) -> CommitLock<'a> {
        CommitLock::with(words, me, lock::acquire(&words.lock, me, who))
    }

    /// As [`new`](CommitLock::new), but waits for a living holder no longer than `until`.
    pub(crate) fn within(
        words: &'a CommitWords,
        me: Owner,
        who: &impl Liveness,
        until: Until,
    ) -> Option<CommitLock<'a>> {
        let held = lock::acquire_within(&words.lock, me, who, Timeout::from(until))?;
        Some(CommitLock::with(words, me, held))
    }

    fn with(words: &'a CommitWords, me: Owner, held: Held<'a>) -> CommitLock<'a> {
        let lock = CommitLock { words, me, _held: held };
        for (_, group) in lanes_in_use(words) {
            words.ends.grouped.fetch_max(group.end.get(), Ordering::AcqRel);
            words.ends.next_group.fetch_max(group.number + 1, Ordering::AcqRel);
        }
        lock
    }

    /// Where the next group starts, if it may begin now.
    pub(crate) fn next_start(&self, block: u64, lanes: usize) -> Option<Lsn> {
        let ends = &self.words.ends;
        let grouped = Lsn::new(ends.grouped.load(Ordering::Acquire));
        if is_poisoned(self.words) || lanes_in_use(self.words).count() >= lanes.min(LANE_COUNT) {
            return None;
        }
        if in_the_way(self.words, grouped, block).is_some() {
            return None;
        }
        Some(grouped)
    }

    /// Whether the next group should end on a block boundary, because others are on their way.
    pub(crate) fn is_crowded(&self) -> bool {
        let ends = &self.words.ends;
        lanes_in_use(self.words).next().is_some()
            || ends.next_group.load(Ordering::Relaxed)
                < ends.pad_until_group.load(Ordering::Relaxed)
    }

    /// End of the newest commit record, which may be behind the published end, or in a group
    /// already.
    pub(crate) fn record_end(&self) -> Lsn {
        self.words.record_end()
    }

    /// Whether a commit record that ends at `record_end` is in no group yet.
    pub(crate) fn is_to_come(&self, record_end: Lsn) -> bool {
        record_end.get() > self.words.ends.grouped.load(Ordering::Acquire)
    }

    /// Notes a commit record that has been published in its place.
    pub(crate) fn note_record(&self, end: Lsn) {
        self.words.ends.record_end.store(end.get(), Ordering::Release);
    }

    /// Begins a group with everything from [`next_start`](CommitLock::next_start) to `end`, which
    /// is published.
    pub(crate) fn begin_group(&self, start: Lsn, end: Lsn) -> Option<CommitGroup> {
        let ends = &self.words.ends;
        let is_free = |lane: &LaneWords| lane.owner.load(Ordering::Acquire) == 0;
        let index = self.words.lanes.iter().position(is_free)?;
        let number = ends.next_group.load(Ordering::Acquire);
        let lane = &self.words.lanes[index];
        lane.start.store(start.get(), Ordering::Relaxed);
        lane.end.store(end.get(), Ordering::Relaxed);
        lane.number.store(number, Ordering::Relaxed);
        lane.is_written.store(0, Ordering::Relaxed);
        // From here on the group exists; the next holder of the lock raises the rest.
        lane.owner.store(self.me.to_word(), Ordering::Release);
        ends.grouped.store(end.get(), Ordering::Release);
        ends.next_group.store(number + 1, Ordering::Release);
        Some(CommitGroup { lane: index, number, start, end })
    }

    /// Takes over a group whose owner is dead, or has handed it back.
    pub(crate) fn take_over(&self, who: &impl Liveness) -> Option<CommitGroup> {
        // It may be the one that could not be written, and its owner may have said so and died.
        if is_poisoned(self.words) {
            return None;
        }
        let is_left = |(lane, _): &(&LaneWords, CommitGroup)| {
            lane.is_written.load(Ordering::Acquire) == 0 && owner_of(lane).is_gone(who)
        };
        let (lane, group) = lanes_in_use(self.words).find(is_left)?;
        lane.owner.store(self.me.to_word(), Ordering::Release);
        Some(group)
    }

    /// Whether something has begun and will never be durable, because no group starts where
    /// `durable` ends: the words make no sense.
    pub(crate) fn is_stuck(&self) -> bool {
        let durable = durable(self.words);
        let is_on_its_way = lanes_in_use(self.words).any(|(_, group)| group.start <= durable);
        !is_on_its_way && self.words.ends.grouped.load(Ordering::Acquire) > durable.get()
    }

    /// Whether no group is on its way.
    pub(crate) fn is_idle(&self) -> bool {
        lanes_in_use(self.words).next().is_none()
    }

    /// Raises `durable` over the groups that are written, and frees their lanes. Once something
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
            let is_next = |(lane, group): &(&LaneWords, CommitGroup)| {
                lane.is_written.load(Ordering::Acquire) != 0 && group.start <= reached
            };
            let Some((lane, group)) = lanes_in_use(self.words).find(is_next) else {
                return finished;
            };
            durable.fetch_max(group.end.get(), Ordering::AcqRel);
            lane.owner.store(0, Ordering::Release);
            if let Some(place) = finished.get_mut(count) {
                *place = Some(group.number);
            }
            count += 1;
        }
    }
}

/// Marks a group as written; wakes its waiters, and one thread that can begin the next.
///
/// A process that does not get the lock by `until` leaves both to the waiters: they look after 10
/// ms.
pub(crate) fn finish(
    words: &CommitWords,
    me: Owner,
    who: &impl Liveness,
    group: CommitGroup,
    until: Until,
) {
    words.lanes[group.lane].is_written.store(1, Ordering::Release);
    advance(words, me, who, until);
}

/// Raises `durable` as far as groups are written, and wakes the threads that can continue.
pub(crate) fn advance(words: &CommitWords, me: Owner, who: &impl Liveness, until: Until) {
    let Some(lock) = CommitLock::within(words, me, who, until) else { return };
    let finished = lock.advance();
    drop(lock);
    for number in finished.into_iter().flatten() {
        wake_all(word(words, number));
    }
    pass_on(words);
}

/// The groups on their way: their owners, and since when a process waits for each, in microseconds
/// of the machine's own clock.
pub(crate) fn on_their_way(
    words: &CommitWords,
) -> impl Iterator<Item = (Owner, CommitGroup, Option<u64>)> {
    let unwritten = unwritten_lanes(words);
    unwritten.map(|(lane, group)| {
        let holding = holding(lane, group);
        (Owner::from_word(holding.holder), group, lane.noticed.since(holding))
    })
}

/// Notes that a process waits for the groups on their way.
pub(crate) fn note_wait(words: &CommitWords) {
    for (lane, group) in unwritten_lanes(words) {
        lane.noticed.note(holding(lane, group));
    }
}

fn unwritten_lanes(words: &CommitWords) -> impl Iterator<Item = (&LaneWords, CommitGroup)> {
    lanes_in_use(words).filter(|(lane, _)| lane.is_written.load(Ordering::Acquire) == 0)
}

fn holding(lane: &LaneWords, group: CommitGroup) -> Holding {
    Holding { holder: lane.owner.load(Ordering::Acquire), number: group.number }
}

/// Whether the caller is to look for the dead at `now`, for all waiters: no process has looked for
/// as long as `every`, both in microseconds.
pub(crate) fn claim_look(words: &CommitWords, now: u64, every: u64) -> bool {
    let looked_at = &words.ends.looked_at;
    let last = looked_at.load(Ordering::Relaxed);
    // Either way: the clock may be another one in another time namespace.
    let exchange = || looked_at.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed);
    now.abs_diff(last) >= every && exchange().is_ok()
}

/// Hands back a group that the caller has taken and cannot write, for a reason of its own; wakes
/// all waiters, so that one of them takes it over.
pub(crate) fn hand_back(words: &CommitWords, group: CommitGroup) {
    words.lanes[group.lane].owner.store(Owner::GIVEN_UP.to_word(), Ordering::Release);
    wake_everybody(words);
}

/// Wakes another thread that can begin the next group, because the caller will not.
pub(crate) fn pass_on(words: &CommitWords) {
    wake_one(word(words, words.ends.next_group.load(Ordering::Acquire)));
}

/// Remembers the first failure, and wakes all waiters to learn of it.
pub(crate) fn poison(words: &CommitWords, me: Owner, who: &impl Liveness, failure: Failure) {
    let lock = CommitLock::new(words, me, who);
    remember(words, failure);
    drop(lock);
    wake_everybody(words);
}

/// The same for a sync that failed beside the commits, and is not tried again. Without the lock: a
/// holder of the prepare lock must not wait for it.
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
    for word in &words.groups {
        wake_all(word);
    }
}

/// Starts again from `durable`, with no group on its way. No other process uses the log.
pub(crate) fn reset(words: &CommitWords, durable: Lsn) {
    for lane in &words.lanes {
        lane.owner.store(0, Ordering::Release);
    }
    words.ends.durable.store(durable.get(), Ordering::Release);
    words.ends.grouped.store(durable.get(), Ordering::Release);
    words.ends.record_end.store(0, Ordering::Release);
    words.poison.errno.store(0, Ordering::Release);
}

/// Lets groups end on block boundaries for a while, because one had to wait for another's block.
fn end_on_blocks(words: &CommitWords, next: u64) {
    words.ends.pad_until_group.store(next + CROWDED_BATCHES, Ordering::Relaxed);
}

/// A group that is being written and covers the block of `start`.
fn in_the_way(words: &CommitWords, start: Lsn, block: u64) -> Option<CommitGroup> {
    let block_start = start.get() / block * block;
    let covers = |(lane, group): &(&LaneWords, CommitGroup)| {
        group.end.get() > block_start && lane.is_written.load(Ordering::Acquire) == 0
    };
    (start.get() != block_start)
        .then(|| lanes_in_use(words).find(covers).map(|(_, group)| group))
        .flatten()
}

fn lanes_in_use(words: &CommitWords) -> impl Iterator<Item = (&LaneWords, CommitGroup)> {
    words.lanes.iter().enumerate().filter_map(|(index, lane)| {
        let is_used = lane.owner.load(Ordering::Acquire) != 0;
        is_used.then(|| (lane, group_of(index, lane)))
    })
}

fn owner_of(lane: &LaneWords) -> Owner {
    Owner::from_word(lane.owner.load(Ordering::Acquire))
}

fn group_of(index: usize, lane: &LaneWords) -> CommitGroup {
    CommitGroup {
        lane: index,
        number: lane.number.load(Ordering::Acquire),
        start: Lsn::new(lane.start.load(Ordering::Acquire)),
        end: Lsn::new(lane.end.load(Ordering::Acquire)),
    }
}

fn word(words: &CommitWords, number: u64) -> &AtomicU32 {
    &words.groups[number as usize % GROUP_WORD_COUNT]
}
