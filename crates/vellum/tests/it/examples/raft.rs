//! `examples/raft_log`: a random schedule against a model, in one process that opens its log again
//! and again, and in one that is killed at any moment.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use vellum::{Options, Tuning};

use super::{as_after_power_cut, once_unlocked};
use crate::support::child::{self, Child};
use crate::support::{Numbers, memory_scratch, scratch};

#[path = "../../../examples/raft_log/store.rs"]
mod store;

use store::{Entry, LogId, RaftLog, State, Vote};

const ROUNDS: u64 = 40;

fn options() -> Options {
    Options::wal().tuning(Tuning::new().segment_capacity_bytes(16384))
}

fn open(dir: &Path) -> RaftLog {
    let is_locked = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    once_unlocked(|| RaftLog::open(dir, &options()), is_locked).unwrap()
}

/// The expected content of a Raft log.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    state: State,
    entries: BTreeMap<u64, Entry>,
}

/// One call of the log.
#[derive(Clone, Debug)]
enum Step {
    Append(Vec<Entry>),
    Truncate(u64),
    Purge(LogId),
    Vote(Vote),
    Committed(LogId),
}

impl Model {
    fn of(log: &RaftLog) -> Model {
        let entries = log.read(0..u64::MAX).unwrap();
        let entries = entries.into_iter().map(|entry| (entry.id.index, entry)).collect();
        Model { state: log.state(), entries }
    }

    fn purged(&self) -> u64 {
        self.state.purged.map_or(0, |id| id.index)
    }

    fn last(&self) -> u64 {
        self.entries.last_key_value().map_or(self.purged(), |(index, _)| *index)
    }

    /// A step that a node could take next.
    fn next_step(&self, numbers: &mut Numbers) -> Step {
        let mut below = |end: u64| numbers.next() % end;
        let term = self.state.vote.map_or(1, |vote| vote.term);
        let held = self.last() - self.purged();
        let held_index = self.purged() + 1 + below(held.max(1));
        let id = |index| LogId { term, leader: term % 3, index };
        match below(16) {
            0 => {
                Step::Vote(Vote { term: term + 1, candidate: below(3), is_granted: below(2) == 0 })
            }
            1 => Step::Committed(id(held_index)),
            2 if held > 0 => Step::Truncate(held_index),
            3 if held > 20 => Step::Purge(id(held_index)),
            4 if held > 20 => Step::Purge(id(self.last() + below(5))),
            what => {
                let start = if what == 5 { held_index } else { self.last() + 1 };
                let entry = |index| {
                    let payload = vec![index as u8; (index * 7919 % 600) as usize];
                    Entry { id: id(index), payload }
                };
                Step::Append((start..=start + below(4)).map(entry).collect())
            }
        }
    }

    /// The states that a log goes through in this step, the last one included.
    fn take(&mut self, step: &Step) -> Vec<Model> {
        let mut seen = Vec::new();
        match step {
            Step::Append(entries) => {
                for entry in entries {
                    self.entries.split_off(&entry.id.index);
                    self.entries.insert(entry.id.index, entry.clone());
                    seen.push(self.clone());
                }
                return seen;
            }
            Step::Truncate(from) => drop(self.entries.split_off(from)),
            Step::Purge(upto) => {
                self.entries = self.entries.split_off(&(upto.index + 1));
                self.state.purged = Some(*upto);
            }
            Step::Vote(vote) => self.state.vote = Some(*vote),
            Step::Committed(id) => self.state.committed = Some(*id),
        }
        seen.push(self.clone());
        seen
    }
}

/// Takes a step, so that it is durable.
fn take(log: &RaftLog, step: &Step) {
    let lsn = match step {
        Step::Append(entries) => log.append(entries).unwrap(),
        Step::Truncate(from) => log.truncate(*from).unwrap(),
        Step::Purge(upto) => return log.purge(*upto).unwrap(),
        Step::Vote(vote) => return log.save_vote(*vote).unwrap(),
        Step::Committed(id) => log.save_committed(Some(*id)).unwrap(),
    };
    log.commit(lsn).unwrap();
}

#[test]
fn a_raft_log_holds_what_a_model_does_through_any_schedule() {
    let dir = scratch();
    let mut numbers = Numbers::new(20);
    let mut model = Model::default();
    let mut log = open(dir.path());
    for number in 0..3000 {
        let step = model.next_step(&mut numbers);
        take(&log, &step);
        model.take(&step);
        if number % 50 == 0 {
            drop(log);
            log = open(dir.path());
        }
        let (from, to) = (numbers.next() % (model.last() + 2), numbers.next() % (model.last() + 3));
        let read = log.read(from..to).unwrap();
        let expected = model.entries.range(from..to.max(from)).map(|(_, entry)| entry.clone());
        assert_eq!(read, expected.collect::<Vec<_>>(), "{from} to {to} after step {number}");
        assert_eq!(log.last().map_or(0, |id| id.index), model.last());
    }
    assert_eq!(Model::of(&log), model);
    drop(log);
    let files = std::fs::read_dir(dir.path().join("log")).unwrap().count();
    assert!(files < 20, "the space of what was purged is given back: {files} files");
}

#[test]
fn a_gap_is_refused_and_what_was_purged_is_left_out() {
    let dir = scratch();
    let log = open(dir.path());
    let entry = |index| Entry { id: LogId { term: 1, leader: 0, index }, payload: vec![1] };
    let is_refused = |index| log.append(&[entry(index)]).is_err();
    log.append(&[entry(5), entry(6), entry(7)]).unwrap();
    assert!(is_refused(9) && !is_refused(8));
    log.purge(entry(6).id).unwrap();
    log.append(&[entry(5), entry(6)]).unwrap();
    assert_eq!(log.read(0..9).unwrap(), [entry(7), entry(8)]);
    log.purge(entry(20).id).unwrap();
    log.purge(entry(10).id).unwrap();
    assert_eq!(log.last(), Some(entry(20).id));
    assert!(is_refused(22) && !is_refused(21));
}

#[test]
fn a_vote_is_durable_when_it_is_saved_and_a_truncation_before_the_next_entry_is() {
    let dir = scratch();
    let log = open(dir.path());
    let entry = |term, index| Entry { id: LogId { term, leader: 0, index }, payload: vec![1] };
    let after_power_cut = || {
        let copy = memory_scratch();
        as_after_power_cut(dir.path(), copy.path());
        Model::of(&open(copy.path()))
    };
    let vote = Vote { term: 7, candidate: 2, is_granted: true };
    log.save_vote(vote).unwrap();
    assert_eq!(after_power_cut().state.vote, Some(vote));
    log.append(&[entry(7, 1), entry(7, 2), entry(7, 3)]).unwrap();
    log.truncate(2).unwrap();
    log.save_committed(Some(entry(7, 1).id)).unwrap();
    let lsn = log.append(&[entry(8, 2)]).unwrap();
    assert_eq!(after_power_cut().last(), 0, "nothing of it was promised yet");
    log.commit(lsn).unwrap();
    assert_eq!(after_power_cut(), Model::of(&log));
    assert_eq!(log.last(), Some(entry(8, 2).id));
}

/// A role: takes steps of a schedule, and says each that is durable.
pub(super) fn node(arguments: &[String]) {
    let log = open(arguments[0].as_ref());
    let mut numbers = Numbers::new(arguments[1].parse().unwrap());
    let mut model = Model::of(&log);
    loop {
        let step = model.next_step(&mut numbers);
        take(&log, &step);
        model.take(&step);
        child::say("step");
    }
}

/// Checks that the log holds the model after `count` steps of the schedule, or a state that the
/// next step goes through; returns it.
fn check(dir: &Path, before: &Model, seed: u64, count: usize) -> Model {
    let mut model = before.clone();
    let mut numbers = Numbers::new(seed);
    for _ in 0..count {
        let step = model.next_step(&mut numbers);
        model.take(&step);
    }
    let mut allowed = vec![model.clone()];
    let step = model.next_step(&mut numbers);
    allowed.extend(model.take(&step));
    let found = Model::of(&open(dir));
    assert!(allowed.contains(&found), "after {count} steps, then {step:?}: {found:?}");
    found
}

#[test]
fn a_killed_node_has_every_step_that_it_acknowledged() {
    let dir = scratch();
    let mut numbers = Numbers::new(21);
    let mut model = Model::default();
    for seed in 0..ROUNDS {
        let arguments = [dir.path().to_str().unwrap(), &seed.to_string()];
        let mut child = Child::start("raft node", &arguments);
        let heard = numbers.next() % 200;
        (0..heard).for_each(|_| drop(child.hears().expect("it goes on until it is killed")));
        let count = heard as usize + child.kill_and_hear().len();
        let copy = memory_scratch();
        as_after_power_cut(dir.path(), copy.path());
        check(copy.path(), &model, seed, count);
        model = check(dir.path(), &model, seed, count);
    }
    assert!(model.last() > 100 && model.purged() > 50, "{} {}", model.last(), model.purged());
}

#[test]
fn a_repaired_log_lacks_no_vote_in_silence() {
    let dir = scratch();
    let log = open(dir.path());
    let vote = Vote { term: 7, candidate: 1, is_granted: true };
    log.save_vote(vote).unwrap();
    drop(log);
    let log = options().open(dir.path().join("log")).unwrap();
    let first = log.reader(vellum::Lsn::ZERO).unwrap().next().unwrap().unwrap().lsn;
    drop(log);
    for is_damaged in [false, true] {
        if is_damaged {
            crate::durable::seals::flip(&dir.path().join("log"), 16384, first);
        }
        let other = scratch();
        vellum::repair(dir.path().join("log"), other.path().join("log")).unwrap();
        match RaftLog::open(other.path(), &options()) {
            Ok(log) => assert!(!is_damaged && log.state().vote == Some(vote)),
            Err(error) => assert!(is_damaged && error.to_string().contains("vote"), "{error}"),
        }
    }
}
