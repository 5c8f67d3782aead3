//! Commit under the model checker: groups on their way, and the death of their writer.
//!
//! Processes append, and commit as `log::commit::group` does: with the functions of
//! `shared::commit` that are shipped, over a [`Device`] that loses what it may lose.
//!
//! The checks, before every step: everything below `durable`, and every range that a lane calls
//! written, is on the device and final; `durable` and `grouped` only grow, in this order, and
//! `durable` not once a write has failed; lanes hold different groups that do not overlap. Besides:
//! two writes that run at the same time never cover the same block; a commit that returns is right;
//! no write that failed is tried again once that is known; a group is finished once; a process that
//! lacks something blocks no other; every living process ends, by a timeout only if another died;
//! and one more process can make the records of the dead durable.
//!
//! Not checked: commit records, several threads of one process, the ways of the files, and a
//! timeout that passes while a process can continue, so that a take-over from the living would not
//! be noticed.

use std::cell::Cell;
use std::sync::Arc;

use shuttle::thread;

use super::committer::Lack;
use super::device::{Device, LOG_LEN};
use super::explore::{Extent, explore};
use super::{BEGIN, deaths, index, tag};
use crate::Lsn;
use crate::shared::model_atomics;
use crate::shared::participants::Owner;
use crate::shared::primitive::AtomicU64;
use crate::shared::tail_word::{self, TailWord};
use crate::shared::words::{CommitWords, LANE_COUNT, LaneWords, Words};

/// The shared memory, the device, and facts that only the model knows.
#[derive(Default)]
pub(super) struct World {
    pub(super) words: Words,
    /// The content of each byte: the tag of an append, or the byte of a repairer.
    pub(super) stage: [AtomicU64; LOG_LEN],
    pub(super) device: Device,
    /// 1 for each finished group.
    pub(super) finished: [AtomicU64; LOG_LEN],
    pub(super) lanes: usize,
    /// A process that can append and not commit.
    pub(super) lack: Option<(usize, Lack)>,
}

/// The actions of the processes.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    lanes: usize,
    /// Lengths of the records that each process appends, and commits one by one.
    pub(super) appends: &'static [&'static [u64]],
    /// So many processes find their first record already appended.
    pub(super) appended: usize,
    /// The group whose first write fails.
    failing: Option<u64>,
    lack: Option<(usize, Lack)>,
    /// Whether processes commit all that was appended, and not their own records.
    pub(super) syncs: bool,
}

impl World {
    fn begin(plan: Plan) -> Arc<World> {
        let world = Arc::new(World { lanes: plan.lanes, lack: plan.lack, ..World::default() });
        model_atomics::begin(std::ptr::from_ref(&*world).addr());
        let words = &world.words;
        words.tail.poke(TailWord::new(Lsn::new(BEGIN), 0).to_word());
        words.ready_end.poke(BEGIN + LOG_LEN as u64);
        words.commits.ends.durable.poke(BEGIN);
        words.commits.ends.grouped.poke(BEGIN);
        for (index, slot) in words.slots[..plan.appends.len()].iter().enumerate() {
            slot.owner.poke(Owner::new(index + 1, 1).to_word());
        }
        words.counts.slots_used.poke(plan.appends.len() as u64);
        world.append_first(&plan.appends[..plan.appended]);
        world.device.failing.poke(plan.failing.map_or(0, |number| number + 1));
        let (watched, seen) = (Arc::clone(&world), Cell::new((0, 0, false)));
        model_atomics::watch(move || watched.check(&seen));
        world
    }

    /// The checks of every moment.
    fn check(&self, seen: &Cell<(u64, u64, bool)>) {
        let CommitWords { ends, poison, .. } = &self.words.commits;
        let (durable, grouped) = (ends.durable.peek(), ends.grouped.peek());
        let is_poisoned = poison.errno.peek() != 0;
        let (durable_before, grouped_before, was_poisoned) =
            seen.replace((durable, grouped, is_poisoned));
        assert!(durable >= durable_before && grouped >= grouped_before, "a position went back");
        assert!(!was_poisoned || durable == durable_before, "promised after a failure");
        assert!(durable <= grouped, "what is durable was grouped before");
        self.check_device(BEGIN, durable);
        let mut groups = [None; LANE_COUNT];
        for (lane, group) in self.words.commits.lanes.iter().zip(&mut groups) {
            if lane.owner.peek() != 0 {
                let (start, end) = (lane.start.peek(), lane.end.peek());
                *group = Some((lane.number.peek(), start, end));
                self.check_lane(lane, start, end);
            }
        }
        if let [Some((number, start, end)), Some((other, other_start, other_end))] = groups {
            let is_apart = end <= other_start || other_end <= start;
            assert!(number != other && is_apart, "two lanes hold the same");
        }
    }

    fn check_lane(&self, lane: &LaneWords, start: u64, end: u64) {
        assert!(start < end, "a group of nothing");
        if lane.is_written.peek() != 0 {
            self.check_device(start, end);
        }
    }

    /// The bytes there were appended, and are on the device.
    pub(super) fn check_device(&self, start: u64, end: u64) {
        for at in index(start)..index(end) {
            let value = self.stage[at].peek();
            assert!(value != 0 && self.device.is_sure(at, value), "byte {at} can be lost");
        }
    }

    /// Appends the first record of each process, one after the other.
    fn append_first(&self, appends: &[&[u64]]) {
        let mut end = BEGIN;
        for (slot, appends) in appends.iter().enumerate() {
            for byte in &self.stage[index(end)..][..appends[0] as usize] {
                byte.poke(tag(slot + 1, 0));
            }
            end += appends[0];
            self.words.slots[slot].confirmed.poke(end);
            self.words.tail.poke(TailWord::new(Lsn::new(end), slot).to_word());
        }
    }

    /// Where the first record of the calling process ends, which others have appended.
    pub(super) fn end_of_first(&self, appends: &[&[u64]]) -> Lsn {
        Lsn::new(
            BEGIN + appends[..model_atomics::me()].iter().map(|appends| appends[0]).sum::<u64>(),
        )
    }
}

/// Processes that append and commit, and one more that commits what they left.
fn run(plan: Plan) {
    let world = World::begin(plan);
    let start = |_| {
        let world = Arc::clone(&world);
        thread::spawn(move || model_atomics::live(|| world.live(plan)))
    };
    let processes: Vec<_> = plan.appends.iter().map(start).collect();
    for process in processes {
        process.join().expect("a process fails the whole model");
    }
    let is_poisoned = world.commit_to(tail_word::tail(&world.words), 0).is_err();
    assert!(!is_poisoned || world.device.has_failed.peek() != 0, "poisoned for nothing");
}

/// Looks at a plan; without deaths, no process may need the timeout.
fn look(plan: Plan, death_count: usize, extent: Extent) {
    let Plan { lanes, appends, failing, .. } = plan;
    let failing = failing.map_or(String::new(), |number| format!(", group {number} fails"));
    let name = format!("commit {appends:?}, lanes: {lanes}{failing}");
    let counts = explore(&name, deaths(death_count, appends.len()), extent, move || run(plan));
    assert_eq!(counts.timeouts_without_death(), 0, "only the timeout ended a sleep");
}

const fn plan(lanes: usize, appends: &'static [&'static [u64]]) -> Plan {
    Plan { lanes, appends, appended: appends.len(), failing: None, lack: None, syncs: false }
}

/// Both records are there; or the second is appended while the first is on its way.
#[test]
fn commits_of_two_need_no_timeout() {
    for lanes in [1, 2] {
        look(plan(lanes, &[&[3], &[2]]), 0, Extent::All);
    }
    look(Plan { appended: 1, ..plan(1, &[&[3], &[2]]) }, 0, Extent::All);
    look(Plan { appended: 1, ..plan(2, &[&[4], &[4]]) }, 0, Extent::All);
}

#[test]
fn commits_of_two_survive_any_two_deaths() {
    for lanes in [1, 2] {
        look(plan(lanes, &[&[3], &[2]]), 2, Extent::All);
    }
}

/// While one process syncs, the other is between any two steps of its append, or dead.
#[test]
fn what_was_appended_before_a_sync_is_on_the_device_after_it() {
    for lanes in [1, 2] {
        let plan = Plan { appended: 0, syncs: true, ..plan(lanes, &[&[3], &[2]]) };
        look(plan, 0, Extent::Random(20_000));
        look(plan, 1, Extent::Random(20_000));
    }
}

#[test]
fn a_group_that_fails_is_not_tried_again_by_who_survives() {
    look(Plan { failing: Some(0), ..plan(2, &[&[4], &[4]]) }, 1, Extent::All);
}

#[test]
fn what_one_process_lacks_keeps_no_other_from_committing() {
    for lack in [Lack::Seen, Lack::Unseen] {
        let lack = Some((1, lack));
        for lanes in [1, 2] {
            look(Plan { lack, ..plan(lanes, &[&[3], &[2]]) }, 0, Extent::All);
        }
        look(Plan { lack, ..plan(2, &[&[4], &[4]]) }, 1, Extent::Random(10_000));
    }
}

#[test]
fn commits_of_three_at_random() {
    let appends: &[&[u64]] = &[&[4, 3], &[3, 2], &[4, 1]];
    for lanes in [1, 2] {
        let plan = Plan { appended: 0, ..plan(lanes, appends) };
        for lack in [Lack::Seen, Lack::Unseen] {
            look(Plan { lack: Some((2, lack)), ..plan }, 0, Extent::Random(5_000));
            look(Plan { lack: Some((2, lack)), ..plan }, 2, Extent::Random(5_000));
        }
        look(plan, 0, Extent::Random(10_000));
        look(plan, 2, Extent::Random(10_000));
        look(Plan { failing: Some(1), ..plan }, 2, Extent::Random(5_000));
    }
}

#[test]
#[ignore = "takes minutes; run when the protocol is changed"]
fn commits_of_two_that_append_survive_any_two_deaths() {
    for lanes in [1, 2] {
        look(Plan { appended: 1, ..plan(lanes, &[&[3], &[2]]) }, 2, Extent::All);
        look(Plan { appended: 1, ..plan(lanes, &[&[4], &[4]]) }, 2, Extent::All);
    }
}

#[test]
#[ignore = "takes minutes; run when the protocol is changed"]
fn two_commits_of_one_beside_one_of_another() {
    look(plan(2, &[&[3, 2], &[2]]), 0, Extent::All);
    look(plan(2, &[&[4, 4], &[4]]), 1, Extent::All);
}

#[test]
#[ignore = "takes minutes; run when the protocol is changed"]
fn commits_of_three_many_times_at_random() {
    let appends: &[&[u64]] = &[&[4, 3], &[3, 2], &[4, 1]];
    for lanes in [1, 2] {
        let plan = Plan { appended: 0, ..plan(lanes, appends) };
        look(plan, 0, Extent::Random(200_000));
        look(plan, 2, Extent::Random(200_000));
        look(Plan { failing: Some(1), ..plan }, 2, Extent::Random(100_000));
    }
}
