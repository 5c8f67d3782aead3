//! The rest of a log after a power cut, and after the last process has closed it.
//!
//! The power cut takes only bytes that the kernel does not hold yet: the files are copied as they
//! are, and opened as in another boot. Of a staged log these are the bytes that commits have
//! written; of other logs they show whether recovery copes with the files of a dead process.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vellum::{ErrorKind, Layout, Log, Lsn, Options};

use super::check::{self, Fault};
use super::power;
use super::scenario::{Case, Expected, Need, Operation, Survivor};
use super::survivor::{READY, Scene, Strike, later};
use super::victim::{DONE, TRIM_TO};
use crate::payload::Payload;
use crate::trace;

/// Words of the shared page through which the process that commits all the time speaks.
const STOP: usize = 10;
const COMMITTED: usize = 11;
/// Where the checkpoint is of a process that comes and goes.
pub(crate) const MARKED: usize = 12;
/// It is in a hurry for so many records, and commits one now and then from there on.
const HURRIED: u32 = 40;
const PAUSE: Duration = Duration::from_millis(1);
/// Segment files of a log in which one record is left.
const FILES_MAX: usize = 20;
/// One power cut of so many is tried of those that come when all is well again.
const LATER_CUT_EVERY: u64 = 2;

impl Scene<'_> {
    /// Cuts the power in the moment of the victim's death, when the survivor has done nothing but
    /// append `own`.
    pub(crate) fn cut_power(&self, own: Option<Payload>) -> Result<(), Fault> {
        // A line that is half there cannot be judged after a power cut.
        if !self.case.is_durable() || self.case.layout == Layout::Text || !self.dir.exists() {
            return Ok(());
        }
        let is_done = self.page.word(DONE).load(Ordering::SeqCst) == 1;
        let expected = self.expected_after_power_cut(own, is_done);
        if own.is_none() {
            self.look_on(&expected)?;
        }
        self.with_copy("at death", |log| {
            let found = check::read_all(log)?;
            check::records_after_power_cut(self.case, &expected, &found)?;
            check::verified(log, &found)?;
            self.check_mark(log, is_done)?;
            let next = Payload::new('y', 0, 90).bytes(Layout::Framed);
            let answer = log.append_durable(&next);
            answer.map(drop).map_err(|error| format!("the next commit failed: {error}"))
        })
    }

    /// Reads what the victim left before a process that may write has mended it.
    fn look_on(&self, expected: &Expected) -> Result<(), Fault> {
        let operation = self.case.operation;
        if matches!(operation, Operation::Create | Operation::RecoverStage) {
            // There may be no log yet; and the records that the words count are gone with the
            // stage.
            return Ok(());
        }
        let fault = |what: String| format!("reading only, at death: {what}");
        let log = Options::default().read_only(true).open(self.dir);
        let is_cut = log.as_ref().is_err_and(|error| error.kind() == ErrorKind::Busy);
        if operation == Operation::Truncate && is_cut {
            return Ok(());
        }
        let log = log.map_err(|error| fault(format!("opening failed: {error}")))?;
        let found = check::read_all(&log).map_err(fault)?;
        check::records_after_power_cut(self.case, expected, &found).map_err(fault)
    }

    /// Cuts the power when one record has been committed where the log was cut: records from behind
    /// the cut must not follow it.
    pub(crate) fn cut_power_again(&self, log: &Log) -> Result<(), Fault> {
        let operation = self.case.operation;
        if !operation.recovers() && operation != Operation::Truncate {
            return Ok(());
        }
        let (found, begin, mark) = (check::read_all(log)?, log.begin(), log.checkpoint().lsn());
        self.with_copy("behind the cut", |log| same(log, begin, mark, &found))
    }

    fn expected_after_power_cut(&self, own: Option<Payload>, is_done: bool) -> Expected {
        let operation = self.case.operation;
        let mut expected = self.case.expected(own, is_done, &[]);
        let is_last = self.case.survivor == Survivor::Opener;
        let commits_all = operation.commits()
            || operation == Operation::SetCheckpoint
            || operation == Operation::Close && is_last;
        for (payload, need) in &mut expected {
            let is_durable = match (payload.writer, payload.number) {
                ('t', _) => true,
                ('v', 0) => operation.has_committed_before() || is_done && commits_all,
                _ => is_done && commits_all,
            };
            if *need == Need::Must && !is_durable {
                *need = Need::Should;
            }
        }
        if operation == Operation::Trim {
            let trimmed = if is_done { Need::Never } else { Need::May(2) };
            let begin = expected.iter_mut().take(Operation::TRIM_TO as usize);
            begin.for_each(|(_, need)| *need = trimmed);
        }
        expected
    }

    /// The user's mark is where it was set, or was never set.
    fn check_mark(&self, log: &Log, is_done: bool) -> Result<(), Fault> {
        let target = Lsn::new(self.page.word(TRIM_TO).load(Ordering::SeqCst));
        let mark = log.checkpoint().lsn();
        let operation = self.case.operation;
        let has_one = operation.has_checkpoint_before() && self.case.layout == Layout::Framed;
        let sets = operation == Operation::SetCheckpoint;
        let must_be = has_one || sets && is_done;
        let of_another = Lsn::new(self.page.word(MARKED).load(Ordering::SeqCst));
        if matches!(self.case.survivor, Survivor::Marking | Survivor::Trimming) {
            // Where both store one, either may be the later.
            return match mark == of_another || sets && mark == target {
                true => Ok(()),
                false => Err(format!("the checkpoint is {mark}, not {of_another} nor {target}")),
            };
        }
        if (must_be || sets) && mark == target || !must_be && mark == Lsn::ZERO {
            return Ok(());
        }
        Err(format!("the checkpoint is {mark} and not {target}"))
    }

    /// Appends a record, and commits it in a log that is about that.
    pub(crate) fn append_and_commit(&self, log: &Log, record: Payload) -> Result<Lsn, Fault> {
        let lsn = self.append(log, record)?;
        if self.case.is_durable() {
            log.commit(lsn).map_err(|error| format!("committing failed: {error}"))?;
            if log.durable() <= lsn {
                return Err(format!("{lsn} is committed, and {} durable", log.durable()));
            }
        }
        Ok(lsn)
    }

    /// Has another process commit one record after the other while the victim comes to its end.
    pub(crate) fn play_committing(&self, strike: &mut dyn Strike) -> Result<u64, Fault> {
        let work = || {
            let log = self.open().map_err(anyhow::Error::msg)?;
            for number in 0.. {
                let is_last = self.page.word(STOP).load(Ordering::SeqCst) == 1;
                self.append_and_commit(&log, steady(number)).map_err(anyhow::Error::msg)?;
                self.page.word(COMMITTED).store(u64::from(number) + 1, Ordering::SeqCst);
                self.page.word(READY).store(1, Ordering::SeqCst);
                if is_last {
                    break;
                }
                if number > HURRIED {
                    std::thread::sleep(PAUSE);
                }
            }
            Ok(())
        };
        let worker = self.start(work)?;
        while self.page.word(READY).load(Ordering::SeqCst) == 0 && self.page.text().is_empty() {
            std::thread::yield_now();
        }
        strike.reach()?;
        // It comes as far as it can beside the victim.
        std::thread::sleep(PAUSE);
        strike.kill()?;
        let start = trace::now_ns();
        self.page.word(STOP).store(1, Ordering::SeqCst);
        self.await_end(worker)?;
        let elapsed = trace::now_ns() - start;
        let count = self.page.word(COMMITTED).load(Ordering::SeqCst) as u32;
        let mut records: Vec<_> = (0..count).map(steady).collect();
        let log = self.open()?;
        for record in later(self.case) {
            self.append(&log, record)?;
            records.push(record);
        }
        self.finish_with(log, None, &records)?;
        Ok(elapsed)
    }

    /// With everything committed, a power cut takes nothing.
    pub(crate) fn finish_durable(
        &self,
        log: &Log,
        is_done: bool,
        found: &[Vec<u8>],
    ) -> Result<(), Fault> {
        if !self.case.is_durable() {
            return Ok(());
        }
        self.check_mark(log, is_done)?;
        log.sync().map_err(|error| format!("syncing failed: {error}"))?;
        if log.durable() != log.published() {
            return Err(format!("{} of {} are durable", log.durable(), log.published()));
        }
        if !self.turn.is_multiple_of(LATER_CUT_EVERY) {
            return Ok(());
        }
        let (begin, mark) = (log.begin(), log.checkpoint().lsn());
        self.with_copy("when all is committed", |log| same(log, begin, mark, found))
    }

    /// Looks at a log that the last participant has closed.
    pub(crate) fn check_closed(&self, found: &[Vec<u8>]) -> Result<(), Fault> {
        self.check_stage_is_gone()?;
        if !self.case.is_durable() || self.turn.is_multiple_of(LATER_CUT_EVERY) {
            return Ok(());
        }
        self.with_copy("when it is closed", |log| {
            same(log, log.begin(), log.checkpoint().lsn(), found)
        })
    }

    fn check_stage_is_gone(&self) -> Result<(), Fault> {
        let stages = power::stages(self.dir).map_err(|error| format!("cannot list: {error}"))?;
        match stages.first() {
            Some(stage) => Err(format!("{} is left over", stage.display())),
            None => Ok(()),
        }
    }

    /// Trims everything but one record, and continues with the files that are left.
    pub(crate) fn go_round(&self) -> Result<(), Fault> {
        let log = self.open()?;
        let long = self.case.operation.segment_capacity() as usize / 3;
        for number in 0..4 {
            let record = Payload::new('z', number, long);
            let lsn = self.append_and_commit(&log, record)?;
            log.trim(lsn).map_err(|error| format!("trimming failed: {error}"))?;
            if self.case.layout == Layout::Framed {
                let only = [record.bytes(self.case.layout)];
                same(&log, lsn, log.checkpoint().lsn(), &only)?;
            }
        }
        drop(log);
        let files = fs::read_dir(self.dir).map_err(|error| format!("cannot list: {error}"))?;
        let count = files.count();
        if count > FILES_MAX {
            return Err(format!("{count} files are left of a log with one record"));
        }
        self.check_stage_is_gone()
    }

    /// Copies the log as it is, opens the copy as in another boot, and looks.
    fn with_copy(
        &self,
        when: &str,
        look: impl FnOnce(&Log) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let dir = self.dir.with_extension("cut");
        let make = || {
            if dir.exists() {
                fs::remove_dir_all(&dir)?;
            }
            power::copy(self.dir, &dir)?;
            power::enter_another_boot(&dir)
        };
        make().map_err(|error| format!("cannot copy the log: {error}"))?;
        let fault = |what: String| format!("power cut {when}: {what}");
        let log = self.case.options().open(&dir);
        let log = log.map_err(|error| fault(format!("opening failed: {error}")))?;
        look(&log).map_err(fault)?;
        // Another record may have taken the place of a lost one.
        self.taken.borrow().hold(&log).map_err(fault)
    }
}

/// The log holds just these records.
fn same(log: &Log, begin: Lsn, mark: Lsn, records: &[Vec<u8>]) -> Result<(), Fault> {
    let found = check::read_all(log)?;
    if found != records {
        return Err(format!("{} records are there and not {}", found.len(), records.len()));
    }
    if (log.begin(), log.checkpoint().lsn()) != (begin, mark) {
        let (begins, marks) = (log.begin(), log.checkpoint().lsn());
        return Err(format!("begin {begins}, checkpoint {marks}; not {begin}, {mark}"));
    }
    check::verified(log, &found)
}

/// The record with this number of the process that commits all the time.
fn steady(number: u32) -> Payload {
    Payload::new('c', number, 60)
}

/// Moves the records of the dead to where they were found among those of a process beside them.
pub(crate) fn put_in_place(case: &Case, expected: &mut Expected, found: &[Vec<u8>]) {
    let of_dead = case.operation.record_of_dead();
    for record in of_dead.into_iter().chain(case.operation.records()) {
        let bytes = record.bytes(case.layout);
        let Some(at) = found.iter().position(|found| *found == bytes) else { continue };
        let Some(from) = expected.iter().position(|(payload, _)| *payload == record) else {
            continue;
        };
        let moved = expected.remove(from);
        let is_before =
            |(payload, _): &(Payload, Need)| at > 0 && payload.bytes(case.layout) == found[at - 1];
        let to = expected.iter().position(is_before).map_or(0, |index| index + 1);
        expected.insert(to, moved);
    }
}
