//! Commit groups: a position that is reported durable is on the device; poison; lanes that change
//! hands.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use super::{
    BEGIN, FILE_LEN, Kernel, Place, explore, for_each_death, index, join, make_watched_lock, owner,
    start,
};
use crate::Lsn;
use crate::shared::commit::{self, CommitGroup, CommitLock, Failure, Operation, Step};
use crate::shared::primitive::{AtomicU32, Ordering};
use crate::shared::weak_atomics;
use crate::shared::words::{CommitWords, LaneWords};

/// Bytes that are written at once.
const BLOCK: u64 = 4;
const FAILURE: Failure = Failure { errno: 28, segment: Lsn::new(4096), operation: Operation::Sync };

/// The fault of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The first write of this group.
    Write(u64),
    /// A sync beside the commits.
    Beside,
    /// This process cannot write.
    Lack(usize),
}

/// The words and the device.
struct World {
    words: CommitWords,
    blocks: [Place; FILE_LEN / BLOCK as usize],
    bytes: [Place; FILE_LEN],
    /// The published end: all records were appended before.
    published: Lsn,
    fault: Fault,
    has_failed: Cell<bool>,
    lanes: usize,
    kernel: Kernel,
}

impl World {
    fn begin(published: u64, lanes: usize, fault: Fault) -> Rc<World> {
        let world = World {
            words: CommitWords::default(),
            blocks: Default::default(),
            bytes: Default::default(),
            published: Lsn::new(BEGIN + published),
            fault,
            has_failed: Cell::new(false),
            lanes,
            kernel: Kernel::begin(),
        };
        make_commits(&world.words);
        Rc::new(world)
    }

    /// As `log::commit::group::commit_to`; false if the log is poisoned, or this process cannot
    /// commit.
    fn commit_to(&self, number: usize, end: Lsn) -> bool {
        loop {
            match commit::next_step(&self.words, end, BLOCK, self.lanes) {
                Step::Done => return self.read(end),
                Step::Poisoned => return self.check_failure(),
                Step::Replace if !self.replace(number) => return false,
                Step::Lead if !self.lead(number) => return false,
                Step::Replace | Step::Lead => {}
                Step::Wait(word, seen) => {
                    commit::sleep(word, seen, Duration::MAX);
                    // Its time is over at once where a process can die.
                    if weak_atomics::can_die() && !self.replace(number) {
                        return false;
                    }
                }
            }
        }
    }

    /// Durable bytes are on the device, for every process.
    fn read(&self, end: Lsn) -> bool {
        self.bytes[..index(end)].iter().for_each(Place::read);
        true
    }

    fn check_failure(&self) -> bool {
        assert_eq!(commit::failure(&self.words), Some(FAILURE), "half a failure");
        false
    }

    /// As `log::commit::group::lead`, without a commit record.
    fn lead(&self, number: usize) -> bool {
        let lock = CommitLock::new(&self.words, owner(number), &self.kernel);
        let Some(start) = lock.next_start(BLOCK, self.lanes) else { return true };
        if self.published <= start {
            return true;
        }
        let end = match self.lanes {
            1 => self.published,
            _ => Lsn::new((start.get() + BLOCK).min(self.published.get())),
        };
        let Some(group) = lock.begin_group(start, end) else { return true };
        drop(lock);
        self.write_group(number, group)
    }

    /// As `log::commit::device::write_group`.
    fn write_group(&self, number: usize, group: CommitGroup) -> bool {
        let (words, me) = (&self.words, owner(number));
        if self.fault == Fault::Lack(number) {
            commit::hand_back(words, group);
            return false;
        }
        let start = group.start.get() / BLOCK * BLOCK - BEGIN;
        let end = group.end.get().next_multiple_of(BLOCK) - BEGIN;
        self.blocks[(start / BLOCK) as usize..(end / BLOCK) as usize].iter().for_each(Place::write);
        if self.fault == Fault::Write(group.number) && !self.has_failed.replace(true) {
            commit::poison(words, me, &self.kernel, FAILURE);
            return false;
        }
        self.bytes[index(group.start)..index(group.end)].iter().for_each(Place::write);
        commit::finish(words, me, &self.kernel, group, None);
        true
    }

    /// As `log::commit::group::replace`.
    fn replace(&self, number: usize) -> bool {
        let left =
            CommitLock::new(&self.words, owner(number), &self.kernel).take_over(&self.kernel);
        match left {
            Some(group) => self.write_group(number, group),
            None => {
                commit::advance(&self.words, owner(number), &self.kernel, None);
                true
            }
        }
    }
}

fn make_commits(words: &CommitWords) {
    let CommitWords { poison, lock, ends, lanes, groups, .. } = words;
    make_watched_lock(lock);
    for word in [&ends.durable, &ends.grouped] {
        word.poke(BEGIN);
    }
    let zeros = [
        &poison.errno,
        &poison.segment,
        &poison.operation,
        &ends.next_group,
        &ends.pad_until_group,
        &ends.record_end,
    ];
    zeros.iter().for_each(|word| word.poke(0));
    for LaneWords { owner, start, end, number, is_written, .. } in lanes {
        [owner, start, end, number, is_written].iter().for_each(|word| word.poke(0));
    }
    groups.iter().for_each(|word| word.poke(0));
}

/// Each process commits so many bytes.
fn commit(ends: &'static [u64], lanes: usize, fault: Fault) {
    let published = ends.iter().copied().max().unwrap_or(0);
    let world = World::begin(published, lanes, fault);
    let processes = ends.iter().zip(1..).map(|(end, number)| {
        start(&world, move |world: &World| world.commit_to(number, Lsn::new(BEGIN + end)))
    });
    let mut processes: Vec<_> = processes.collect();
    if fault == Fault::Beside {
        processes.push(start(&world, |world: &World| {
            commit::poison_beside(&world.words, FAILURE);
            false
        }));
    }
    let committed = join(processes);
    if fault == Fault::None {
        assert!(committed.iter().all(|is_committed| *is_committed), "poisoned for nothing");
    }
}

#[test]
fn what_a_commit_promises_is_on_the_device() {
    explore("commit: 2, one lane", Some(2), || commit(&[3, 3], 1, Fault::None));
}

#[test]
fn what_commits_over_two_lanes_promise_is_on_the_device() {
    explore("commit: 2, two lanes", Some(1), || commit(&[8, 8], 2, Fault::None));
}

#[test]
#[ignore = "takes minutes; run when the protocol is changed"]
fn what_a_commit_promises_is_on_the_device_however_often_it_is_preempted() {
    explore("commit: 2, one lane", Some(3), || commit(&[3, 3], 1, Fault::None));
    explore("commit: 2, two lanes", Some(2), || commit(&[8, 8], 2, Fault::None));
}

#[test]
fn who_raises_durable_over_the_group_of_another_has_what_that_one_wrote() {
    explore("commit: 2 write the groups that they have placed", Some(2), || {
        let world = World::begin(2 * BLOCK, 2, Fault::None);
        let lock = CommitLock::new(&world.words, owner(0), &world.kernel);
        let [start_at, middle, end] = [0, 1, 2].map(|block| Lsn::new(BEGIN + block * BLOCK));
        let groups = [(start_at, middle), (middle, end)];
        let groups = groups.map(|(from, to)| lock.begin_group(from, to).expect("a lane is free"));
        drop(lock);
        let write = |number: usize| move |world: &World| world.write_group(number, groups[number]);
        // Only a process that has no part in the lock: its fences would order the rest as well.
        let read = start(&world, |world: &World| world.read(commit::durable(&world.words)));
        join([start(&world, write(0)), start(&world, write(1)), read]);
    });
}

#[test]
fn who_learns_of_a_failure_learns_all_of_it() {
    explore("commit: 2, the write fails", Some(2), || commit(&[3, 3], 1, Fault::Write(0)));
    explore("commit: 1, a sync beside it fails", Some(2), || commit(&[3], 1, Fault::Beside));
}

#[test]
fn who_asks_for_a_failure_gets_all_of_it() {
    explore("commit: a sync fails, 1 asks", None, || {
        let world = World::begin(3, 1, Fault::Beside);
        let fail = start(&world, |world: &World| commit::poison_beside(&world.words, FAILURE));
        let ask = start(&world, |world: &World| {
            let failure = commit::failure(&world.words);
            assert!(failure.is_none_or(|failure| failure == FAILURE), "half of it");
        });
        join([fail, ask]);
    });
}

#[test]
fn a_group_that_is_handed_back_is_written_by_another() {
    explore("commit: 2, the first lacks something", Some(2), || commit(&[3, 3], 1, Fault::Lack(1)));
}

/// The word of a group, and how much there is that its sleepers wait for.
struct GroupWord {
    word: AtomicU32,
    news: AtomicU32,
}

impl GroupWord {
    fn begin() -> Rc<GroupWord> {
        let [word, news] = [0, 0].map(AtomicU32::new);
        Rc::new(GroupWord { word, news })
    }

    fn wait_for(&self, wanted: u32) {
        loop {
            let seen = self.word.load(Ordering::Acquire);
            if self.news.load(Ordering::Relaxed) >= wanted {
                return;
            }
            commit::sleep(&self.word, seen, Duration::MAX);
        }
    }
}

#[test]
fn nobody_sleeps_on_who_is_to_be_woken() {
    // As `finish` does, and the other way round: one is woken whose turn it is not, or all are.
    for ring in [[commit::wake_one, commit::wake_all], [commit::wake_all, commit::wake_one]] {
        explore("commit: 2 sleep on one word", Some(2), move || {
            let group = GroupWord::begin();
            let sleepers =
                [1, 2].map(|wanted| start(&group, move |group: &GroupWord| group.wait_for(wanted)));
            let waker = start(&group, move |group: &GroupWord| {
                for wake in ring {
                    group.news.fetch_add(1, Ordering::Relaxed);
                    wake(&group.word);
                }
            });
            join(sleepers.into_iter().chain([waker]));
        });
    }
}

#[test]
fn a_group_of_the_dead_is_written_by_who_lives() {
    for_each_death("commit: 1 dies, 1 commits", Some(1), |steps| {
        let world = World::begin(3, 1, Fault::None);
        let live = |number: usize, steps| {
            start(&world, move |world: &World| {
                world.kernel.live(number, steps, || {
                    world.commit_to(number, Lsn::new(BEGIN + 3));
                })
            })
        };
        join([live(0, steps), live(1, u64::MAX)])[0]
    });
}
