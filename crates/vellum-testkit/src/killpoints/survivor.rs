//! The processes that continue after a death, and how soon.

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vellum::{Log, Lsn, Options};

use super::check::{self, Extent, Fault, Seen};
use super::cursors;
use super::durable;
use super::glimpse::Glimpse;
use super::positions::Taken;
use super::scenario::{Case, Expected, Need, Operation, Survivor};
use super::victim::{DONE, TRIM_TO, end_lingering, report};
use crate::payload::Payload;
use crate::trace::{self, Pid, SharedPage};

/// Words of the shared page through which another survivor speaks.
pub(crate) const READY: usize = 8;
const SAW_AT: usize = 9;
/// A survivor that has not seen its own record by then waits in vain.
const PATIENCE: Duration = Duration::from_secs(5);
/// Which of the further checks a point gets, so that the common ones stay cheap.
const REOPEN_EVERY: u64 = 4;
const REBUILD_EVERY: u64 = 8;

/// The surroundings of a survivor.
pub struct Scene<'a> {
    /// The case that is tested.
    pub case: &'a Case,
    /// The log.
    pub dir: &'a Path,
    /// Shared with the victim and the sleeping reader.
    pub page: &'a SharedPage,
    /// Number of the point, which decides about the costly checks.
    pub turn: u64,
    /// Positions that were stored before the death and right after it.
    pub(crate) taken: RefCell<Taken>,
}

/// How the victim is brought to its end, in two steps.
pub trait Strike {
    /// Takes the victim to its point.
    fn reach(&mut self) -> Result<(), Fault>;
    /// Kills it there.
    fn kill(&mut self) -> Result<(), Fault>;
    /// Takes it to the end of the operation, if it can continue, and kills it there.
    fn finish(&mut self) -> Result<(), Fault>;
}

impl Scene<'_> {
    /// Prepares the survivor, has the victim killed, and continues. `inherited` is the log that the
    /// victim has from its parent, if it has. Returns how long it took until the survivor had read
    /// its own record, in nanoseconds.
    pub fn play(&self, inherited: Option<Log>, strike: &mut dyn Strike) -> Result<u64, Fault> {
        let own = Payload::new('w', 0, 40);
        match self.case.survivor {
            Survivor::Opener => self.strike_and(None, strike, || {
                self.cut_power(None)?;
                let start = trace::now_ns();
                let log = self.open()?;
                check::link(self.case, self.dir)?;
                self.go_on(log, None, start)
            }),
            Survivor::Attached => {
                let log = inherited.map_or_else(|| self.open(), Ok)?;
                self.append(&log, own)?;
                self.strike_and(Some(own), strike, || {
                    self.cut_power(Some(own))?;
                    self.go_on(log, Some(own), trace::now_ns())
                })
            }
            Survivor::Holding => self.play_holding(own, strike),
            Survivor::Waiting => self.play_waiting(own, strike),
            Survivor::Follower => self.play_follower(own, strike),
            Survivor::Committing => self.play_committing(strike),
            Survivor::Between | Survivor::Trimming | Survivor::Marking => {
                self.play_between(own, strike)
            }
        }
    }

    fn play_holding(&self, own: Payload, strike: &mut dyn Strike) -> Result<u64, Fault> {
        let log = self.open()?;
        let mut held = log.reserve(own.len).map_err(|error| format!("reserve: {error}"))?;
        strike.reach()?;
        strike.kill()?;
        let start = trace::now_ns();
        let first = later(self.case)[0];
        self.append(&log, first)?;
        let write = || -> anyhow::Result<()> {
            std::io::Write::write_all(&mut held, &own.bytes(self.case.layout))?;
            held.publish()?;
            Ok(())
        };
        write().map_err(|error| format!("a living writer's reservation failed: {error}"))?;
        self.follow_to(&log, first)?;
        let elapsed = trace::now_ns() - start;
        self.finish(log, Some(own), &later(self.case))?;
        Ok(elapsed)
    }

    fn play_waiting(&self, own: Payload, strike: &mut dyn Strike) -> Result<u64, Fault> {
        let own = match self.case.operation {
            // It waits for space as the victim does.
            Operation::Block => self.case.operation.long_record('w', 0),
            _ => own,
        };
        strike.reach()?;
        let work = || {
            self.page.word(READY).store(1, Ordering::SeqCst);
            let log = self.case.options().open(self.dir)?;
            self.append_and_commit(&log, own).map_err(anyhow::Error::msg)?;
            self.follow_to(&log, own).map_err(anyhow::Error::msg)
        };
        let waiter = self.start(work)?;
        // It has come as far as it can while the victim lives.
        self.await_sleep_or_end(waiter)?;
        strike.kill()?;
        let start = trace::now_ns();
        if self.case.operation == Operation::Block {
            self.make_space()?;
        }
        self.await_end(waiter)?;
        let elapsed = trace::now_ns() - start;
        let mut records = later(self.case);
        let log = self.open()?;
        self.leave_full_disk(&log, None, &[own])?;
        for record in &records {
            self.append(&log, *record)?;
        }
        records.insert(0, own);
        self.finish_with(log, None, &records)?;
        Ok(elapsed)
    }

    fn play_between(&self, own: Payload, strike: &mut dyn Strike) -> Result<u64, Fault> {
        strike.reach()?;
        let work = || {
            self.page.word(READY).store(1, Ordering::SeqCst);
            let log = self.case.options().open(self.dir)?;
            let lsn = self.append_and_commit(&log, own).map_err(anyhow::Error::msg)?;
            if self.case.survivor != Survivor::Between {
                self.page.word(durable::MARKED).store(lsn.get(), Ordering::SeqCst);
                log.checkpoint().set(lsn)?;
            }
            if self.case.survivor == Survivor::Trimming {
                self.trim_all(&log)?;
            }
            Ok(())
        };
        let between = self.start(work)?;
        // It waits for the victim where that holds something.
        self.await_sleep_or_end(between)?;
        strike.finish()?;
        let start = trace::now_ns();
        self.await_end(between)?;
        let elapsed = trace::now_ns() - start;
        let mut records = later(self.case);
        let log = self.open()?;
        for record in &records {
            self.append(&log, *record)?;
        }
        if self.case.survivor == Survivor::Trimming {
            records.splice(..0, trimmed(self.case));
        }
        records.insert(0, own);
        self.finish_with(log, None, &records)?;
        Ok(elapsed)
    }

    /// Appends over several segments, and trims all of it, its last commit record too.
    fn trim_all(&self, log: &Log) -> anyhow::Result<()> {
        for record in trimmed(self.case) {
            self.append_and_commit(log, record).map_err(anyhow::Error::msg)?;
        }
        log.trim(log.published())?;
        Ok(())
    }

    fn play_follower(&self, own: Payload, strike: &mut dyn Strike) -> Result<u64, Fault> {
        let first = later(self.case)[0];
        let work = || {
            let log = self.case.options().open(self.dir)?;
            self.page.word(READY).store(1, Ordering::SeqCst);
            self.follow_to(&log, first).map_err(anyhow::Error::msg)?;
            self.page.word(SAW_AT).store(trace::now_ns(), Ordering::SeqCst);
            Ok(())
        };
        let follower = self.start(work)?;
        let log = self.open()?;
        self.append(&log, own)?;
        self.await_sleep_or_end(follower)?;
        strike.reach()?;
        strike.kill()?;
        let start = trace::now_ns();
        self.append(&log, first)?;
        self.await_end(follower)?;
        let saw_at = self.page.word(SAW_AT).load(Ordering::SeqCst);
        self.finish(log, Some(own), &later(self.case))?;
        Ok(saw_at.saturating_sub(start))
    }

    /// Has the victim killed, then runs `survive`, and compares its log with the earlier files and
    /// the records that were readable. `own` is the record that the survivor has appended before.
    fn strike_and(
        &self,
        own: Option<Payload>,
        strike: &mut dyn Strike,
        survive: impl FnOnce() -> Result<u64, Fault>,
    ) -> Result<u64, Fault> {
        self.taken.borrow_mut().add(self.dir);
        strike.reach()?;
        strike.kill()?;
        let seen = Seen::of(self.case, self.dir);
        let glimpse = self.glimpse(own)?;
        self.taken.borrow_mut().add(self.dir);
        let elapsed = survive()?;
        let reader = Options::default().read_only(true).open(self.dir);
        let reader = reader.map_err(|error| format!("opening to read failed: {error}"))?;
        self.taken.borrow().hold(&reader)?;
        drop(reader);
        glimpse.map_or(Ok(()), |glimpse| glimpse.stays(self.case, self.dir))?;
        seen.stays().map(|()| elapsed)
    }

    /// The records of a reader at this moment that may not write.
    fn glimpse(&self, own: Option<Payload>) -> Result<Option<Glimpse>, Fault> {
        let is_done = self.page.word(DONE).load(Ordering::SeqCst) == 1;
        Glimpse::of(self.case, self.dir, &self.case.expected(own, is_done, &[]))
    }

    /// Appends and reads, then looks at everything.
    fn go_on(&self, log: Log, own: Option<Payload>, start: u64) -> Result<u64, Fault> {
        let records = later(self.case);
        self.append_and_commit(&log, records[0])?;
        self.follow_to(&log, records[0])?;
        let elapsed = trace::now_ns() - start;
        self.cut_power_again(&log)?;
        self.leave_full_disk(&log, own, &records[..1])?;
        self.finish(log, own, &records)?;
        Ok(elapsed)
    }

    pub(crate) fn open(&self) -> Result<Log, Fault> {
        self.case.options().open(self.dir).map_err(|error| format!("opening failed: {error}"))
    }

    pub(crate) fn append(&self, log: &Log, record: Payload) -> Result<Lsn, Fault> {
        log.append(&record.bytes(self.case.layout))
            .map_err(|error| format!("appending failed: {error}"))
    }

    /// Reads until `record` has been seen.
    pub(crate) fn follow_to(&self, log: &Log, record: Payload) -> Result<(), Fault> {
        let bytes = record.bytes(self.case.layout);
        let mut reader = log.reader(Lsn::ZERO).map_err(|error| format!("no reader: {error}"))?;
        loop {
            match reader.follow(Some(PATIENCE)) {
                Ok(Some(found)) if found.payload == bytes => return Ok(()),
                Ok(Some(_)) => {}
                Ok(None) => return Err("the survivor waits in vain for its own record".into()),
                Err(error) => return Err(format!("following failed: {error}")),
            }
        }
    }

    /// Rolls over to the next segments, then looks at everything.
    fn finish(&self, log: Log, own: Option<Payload>, records: &[Payload]) -> Result<(), Fault> {
        for record in &records[1..] {
            self.append(&log, *record)?;
        }
        self.finish_with(log, own, records)
    }

    /// Reads and verifies everything, closes, and looks again.
    pub(crate) fn finish_with(
        &self,
        log: Log,
        own: Option<Payload>,
        records: &[Payload],
    ) -> Result<(), Fault> {
        let case = self.case;
        let is_done = self.page.word(DONE).load(Ordering::SeqCst) == 1;
        let mut expected = case.expected(own, is_done, records);
        let found = check::read_all(&log)?;
        if case.survivor == Survivor::Committing || case.survivor.is_between() {
            durable::put_in_place(case, &mut expected, &found);
        }
        if case.survivor == Survivor::Trimming {
            forget_trimmed(case, &mut expected);
        }
        if case.operation == Operation::Trim {
            self.finish_trim(&log, is_done, &mut expected, &found)?;
        }
        if case.operation.is_of_cursors() {
            cursors::check(case.operation, &log, self.page, is_done)?;
        }
        let found = check::read_all(&log)?;
        check::records(case, &expected, &found)?;
        check::kept(case, self.dir, &found)?;
        check::verified(&log, &found)?;
        self.check_told(&log, &found)?;
        self.finish_durable(&log, is_done, &found)?;
        let extent = Extent::of(&log)?;
        // A process that only lingers with a copy of the log goes before the last one leaves.
        end_lingering(self.page);
        drop(log);
        check::files(case, self.dir, extent, &found)?;
        self.check_closed(&found)?;
        let read_only = Options::default().read_only(true).open(self.dir);
        let log = read_only.map_err(|error| format!("opening to read failed: {error}"))?;
        if check::read_all(&log)? != found {
            return Err("a read-only opener reads something else".into());
        }
        check::verified(&log, &found).map_err(|fault| format!("read-only: {fault}"))?;
        if self.turn.is_multiple_of(REOPEN_EVERY) {
            self.reopen()?;
        }
        if self.turn.is_multiple_of(REBUILD_EVERY) {
            self.rebuild(&expected)?;
        }
        if case.is_durable() && self.turn % REOPEN_EVERY == 1 {
            self.go_round()?;
        }
        Ok(())
    }

    /// A trim that died has moved the beginning or has not; the next one completes it.
    fn finish_trim(
        &self,
        log: &Log,
        is_done: bool,
        expected: &mut Expected,
        found: &[Vec<u8>],
    ) -> Result<(), Fault> {
        let target = Lsn::new(self.page.word(TRIM_TO).load(Ordering::SeqCst));
        let is_trimmed = log.begin() == target;
        if is_done && !is_trimmed {
            return Err("an acknowledged trim is undone".into());
        }
        if !is_trimmed {
            check::records(self.case, expected, found)?;
        }
        for (_, need) in expected.iter_mut().take(Operation::TRIM_TO as usize) {
            *need = Need::Never;
        }
        log.trim(target).map_err(|error| format!("trimming again failed: {error}"))?;
        Ok(())
    }

    /// The next opener finds nothing in flight after any death.
    fn reopen(&self) -> Result<(), Fault> {
        let log = self.open()?;
        let stat = log.stat().map_err(|error| format!("stat failed: {error}"))?;
        let living = stat.participants.iter().filter(|p| p.alive).count();
        if living != 1 || stat.participants.iter().any(|p| !p.in_flight.is_empty()) {
            return Err(format!("the dead are not gone: {:?}", stat.participants));
        }
        Ok(())
    }

    /// The segments alone tell the same, should the control file be lost now.
    fn rebuild(&self, expected: &Expected) -> Result<(), Fault> {
        let lost = std::fs::remove_file(self.dir.join("control"));
        lost.map_err(|error| format!("cannot remove the control file: {error}"))?;
        let log = self.open().map_err(|fault| format!("without control file: {fault}"))?;
        let found = check::read_all(&log)?;
        // A text log remembers its beginning to the segment only: older lines come back.
        let is_exact =
            self.case.operation != Operation::Trim || self.case.layout == vellum::Layout::Framed;
        if is_exact {
            check::records(self.case, expected, &found)
                .map_err(|fault| format!("without control file: {fault}"))?;
        }
        check::verified(&log, &found).map_err(|fault| format!("without control file: {fault}"))
    }

    /// Starts another survivor in a process of its own.
    pub(crate) fn start(&self, work: impl FnOnce() -> anyhow::Result<()>) -> Result<Pid, Fault> {
        trace::fork(|| report(self.page, work)).map_err(|error| format!("cannot fork: {error}"))
    }

    /// Waits until a process sleeps in the kernel or has ended.
    fn await_sleep_or_end(&self, process: Pid) -> Result<(), Fault> {
        loop {
            let is_ready = self.page.word(READY).load(Ordering::SeqCst) == 1;
            let state = trace::state(process).map_err(|error| format!("no state: {error}"))?;
            match state {
                'S' if is_ready => return Ok(()),
                'Z' => return Ok(()),
                _ => std::thread::yield_now(),
            }
        }
    }

    pub(crate) fn await_end(&self, follower: Pid) -> Result<(), Fault> {
        match trace::wait(follower) {
            Ok(trace::Stop::Exited(0)) => Ok(()),
            Ok(_) => Err(self.page.text()),
            Err(error) => Err(format!("waiting for the follower: {error}")),
        }
    }
}

/// The records that the survivor appends: one record to be read at once, and enough to come to
/// segments that the victim may have begun to prepare.
pub(crate) fn later(case: &Case) -> Vec<Payload> {
    let long = case.operation.segment_capacity() as usize / 3;
    let is_long = matches!(
        case.operation,
        Operation::LongRecord | Operation::RepairLong | Operation::CommitLong
    );
    let count = if is_long { 12 } else { 4 };
    let mut payloads = vec![Payload::new('w', 1, case.operation.len_behind_death())];
    payloads.extend((2..2 + count).map(|number| Payload::new('w', number, long)));
    payloads
}

/// What a process appends before it trims all of it.
fn trimmed(case: &Case) -> Vec<Payload> {
    let long = case.operation.segment_capacity() as usize / 2;
    (0..6).map(|number| Payload::new('s', number, long)).collect()
}

/// What came before the end of [`trimmed`] is gone; the victim's record may have come later.
fn forget_trimmed(case: &Case, expected: &mut Expected) {
    let newest = expected.iter().rposition(|(payload, _)| payload.writer == 's');
    let own = case.operation.records();
    for (payload, need) in expected.iter_mut().take(newest.map_or(0, |newest| newest + 1)) {
        *need = if own.contains(payload) { Need::May(0) } else { Need::Never };
    }
}
