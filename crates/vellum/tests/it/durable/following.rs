//! Readers that end at the durable end, and waiting for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use vellum::{ErrorKind, Layout, Log, Lsn, Options, Reader};

use super::{after_power_cut, kinds};
use crate::support::child::{Child, hear, say};
use crate::support::{LAYOUTS, PATIENCE, Read, payload, place, read_all, scratch, small};

/// Everything that the reader returns now.
fn drain(reader: &mut Reader) -> Vec<Read> {
    let mut all = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        all.push((record.lsn, record.payload.to_vec()));
    }
    all
}

fn append(log: &Log, seed: u64) -> Read {
    let bytes = payload(log.layout(), seed, 30);
    (log.append(&bytes).unwrap(), bytes)
}

#[test]
fn a_durable_reader_returns_what_was_committed_and_no_more() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let view = Options::default().read_only(true).open(place(&dir)).unwrap();
        for log in [&log, &view] {
            assert_eq!(log.reader(Lsn::ZERO).unwrap().durable().next().unwrap(), None);
        }
        let first = append(&log, 1);
        let mut readers = [&log, &view].map(|log| log.reader(Lsn::ZERO).unwrap().durable());
        readers.iter_mut().for_each(|reader| assert_eq!(drain(reader), []));
        log.commit(first.0).unwrap();
        let second = append(&log, 2);
        for reader in &mut readers {
            assert_eq!(drain(reader), std::slice::from_ref(&first));
            assert_eq!(reader.follow(Some(Duration::ZERO)).unwrap(), None);
        }
        assert_eq!(read_all(&view).len(), 2, "others see both");
        log.sync().unwrap();
        for reader in &mut readers {
            assert_eq!(drain(reader), std::slice::from_ref(&second));
        }
    }
}

#[test]
fn a_durable_reader_may_start_behind_what_is_durable() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        append(&log, 1);
        let second = append(&log, 2);
        let mut reader = log.reader(second.0).unwrap().durable();
        assert_eq!(drain(&mut reader), []);
        log.sync().unwrap();
        assert_eq!(drain(&mut reader), [second]);
    }
}

/// Appends a line for each that it hears, and commits it, until the other side is gone.
pub(crate) fn answering_committer(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    say("ready");
    while let Some(line) = hear() {
        log.append_durable(format!("{line}\n").as_bytes()).unwrap();
    }
}

#[test]
fn a_durable_follower_sees_the_commits_of_another_process() {
    for layout in LAYOUTS {
        for read_only in [false, true] {
            let dir = scratch();
            let log = small(layout).open(place(&dir)).unwrap();
            let view = Options::default().read_only(read_only).open(place(&dir)).unwrap();
            let mut other = Child::start("answering committer", &[place(&dir).to_str().unwrap()]);
            other.expect("ready");
            let mut reader = view.reader(Lsn::ZERO).unwrap().durable();
            for round in 0..50 {
                other.tell(&round.to_string());
                let record = reader.follow(Some(PATIENCE)).unwrap().expect("in time");
                assert_eq!(record.payload, format!("{round}\n").as_bytes());
                assert!(log.durable() >= record.next_lsn);
            }
            other.kill();
        }
    }
}

#[test]
fn waiting_commits_nothing_and_ends_when_somebody_commits() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let view = Options::default().read_only(true).open(place(&dir)).unwrap();
        let (lsn, _) = append(&log, 1);
        for log in [&log, &view] {
            let error = log.wait_durable(lsn, Some(Duration::from_millis(1))).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert!(error.to_string().contains("nobody has committed"), "{error}");
            let beyond = log.wait_durable(log.tail(), None).unwrap_err();
            assert_eq!(beyond.kind(), ErrorKind::OutOfRange);
        }
        assert_eq!((log.durable(), log.stat().unwrap().commits.commits), (log.begin(), 0));
        let is_committed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let waiters = [&log, &view, &log].map(|log| {
                let is_committed = &is_committed;
                scope.spawn(move || {
                    log.wait_durable(lsn, Some(PATIENCE)).unwrap();
                    assert!(is_committed.load(Ordering::SeqCst));
                })
            });
            is_committed.store(true, Ordering::SeqCst);
            log.commit(lsn).unwrap();
            waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        });
        view.wait_durable(lsn, Some(Duration::ZERO)).unwrap();
    }
}

#[test]
fn waiting_for_what_is_truncated_meanwhile_ends() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let first = append(&log, 1);
        let (view, lsn) = (Options::default().read_only(true).open(place(&dir)).unwrap(), first.0);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| view.wait_durable(lsn, Some(PATIENCE)));
            // It commits first, so the waiter may see that.
            log.truncate(lsn).unwrap();
            if let Err(error) = waiter.join().unwrap() {
                assert_eq!(error.kind(), ErrorKind::OutOfRange);
            }
        });
        assert_eq!(log.wait_durable(lsn, None).unwrap_err().kind(), ErrorKind::OutOfRange);
    }
}

#[test]
fn before_the_first_opener_no_more_is_durable_than_a_commit_record_vouches_for() {
    for (index, options) in kinds().into_iter().enumerate() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let (first, _) = append(&log, 1);
        log.commit(first).unwrap();
        append(&log, 2);
        log.sync().unwrap();
        let copy = after_power_cut(&place(&dir));
        drop(log);
        let view = Options::default().read_only(true).open(place(&copy)).unwrap();
        assert_eq!(read_all(&view).len(), 2);
        let mut reader = view.reader(Lsn::ZERO).unwrap().durable();
        let before = drain(&mut reader);
        // A log that stages its records is known to have commit records from its first moment.
        let vouched_for = usize::from(index == STAGED);
        assert_eq!(before.len(), vouched_for, "{options:?}");
        // The opener syncs what it finds, and from then on all of it is durable.
        let log = Options::default().open(place(&copy)).unwrap();
        assert_eq!(log.durable(), log.published());
        let next = reader.follow(Some(PATIENCE)).unwrap().unwrap().lsn;
        assert_eq!(next, read_all(&log)[vouched_for].0);
    }
}

/// Which of `kinds` stages its records.
const STAGED: usize = 0;

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Batch(usize),
    Commit,
    Rotate,
    Trim,
    Read,
    Reopen,
    LosePower,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1..3000usize).prop_map(Step::Append),
        2 => (1..9usize).prop_map(Step::Batch),
        4 => Just(Step::Commit),
        1 => Just(Step::Rotate),
        1 => Just(Step::Trim),
        6 => Just(Step::Read),
        1 => Just(Step::Reopen),
        1 => Just(Step::LosePower),
    ]
}

/// A log, its records, and a durable reader beside it.
struct World {
    dir: tempfile::TempDir,
    log: Option<Log>,
    reader: Option<Reader>,
    appended: u64,
    returned: Vec<Read>,
}

impl World {
    fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    fn open(&mut self, options: &Options) {
        self.log = Some(options.open(place(&self.dir)).unwrap());
        let from = self.returned.last().map_or(Lsn::ZERO, |last| last.0);
        let log = self.log();
        let from = if from < log.begin() { Lsn::ZERO } else { from };
        let mut reader = log.reader(from).unwrap().durable();
        if from != Lsn::ZERO {
            let again = reader.next().unwrap().expect("what was returned is there");
            let last = self.returned.last().unwrap();
            assert_eq!((again.lsn, again.payload), (last.0, &last.1[..]));
        }
        self.reader = Some(reader);
    }

    fn take(&mut self, step: &Step, options: &Options) {
        match step {
            Step::Append(len) => {
                self.appended += 1;
                let bytes = payload(self.log().layout(), self.appended, *len);
                self.log().append(&bytes).unwrap();
            }
            Step::Batch(count) => {
                let log = self.log.as_ref().unwrap();
                let mut batch = log.batch();
                for _ in 0..*count {
                    self.appended += 1;
                    batch.push(&payload(log.layout(), self.appended, 50)).unwrap();
                }
                batch.append().unwrap();
            }
            Step::Commit => drop(self.log().sync().unwrap()),
            Step::Rotate if self.log().layout() == Layout::Text => self.log().rotate().unwrap(),
            Step::Rotate => {}
            Step::Trim => {
                let middle = self.returned.len() / 2;
                if let Some((lsn, _)) = self.returned.get(middle).cloned() {
                    self.log().trim(lsn).unwrap();
                }
            }
            Step::Read => self.read(),
            Step::Reopen => {
                (self.reader, self.log) = (None, None);
                self.open(options);
            }
            Step::LosePower => {
                let copy = after_power_cut(&place(&self.dir));
                (self.reader, self.log) = (None, None);
                self.dir = copy;
                self.open(options);
            }
        }
    }

    fn read(&mut self) {
        let durable = self.log().durable();
        let reader = self.reader.as_mut().unwrap();
        let found = match reader.next() {
            Err(error) if error.kind() == ErrorKind::Trimmed => return self.start_over(),
            found => found.unwrap().map(|record| {
                assert!(record.next_lsn <= durable);
                (record.lsn, record.payload.to_vec())
            }),
        };
        self.returned.extend(found);
        self.returned.extend(drain(reader));
    }

    fn start_over(&mut self) {
        self.reader = Some(self.log().reader(Lsn::ZERO).unwrap().durable());
    }

    /// Returned records are there, but for trimmed ones; and all durable ones were returned.
    fn check(mut self) {
        self.log().sync().unwrap();
        self.read();
        self.read();
        let begin = self.log().begin();
        self.returned.retain(|(lsn, _)| *lsn >= begin);
        self.returned.dedup();
        assert_eq!(self.returned, read_all(self.log()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_a_durable_reader_returned_is_there_after_a_power_cut(
        kind in 0..5usize,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let options = kinds()[kind].clone();
        let dir = crate::support::memory_scratch();
        let (log, reader, appended, returned) = (None, None, 0, Vec::new());
        let mut world = World { dir, log, reader, appended, returned };
        world.open(&options);
        steps.iter().for_each(|step| world.take(step, &options));
        world.check();
    }
}
