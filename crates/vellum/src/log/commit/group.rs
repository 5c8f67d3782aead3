//! Making records survive a power cut.
//!
//! The protocol between waiters is `shared::commit`; the record at the end of a group is in
//! `commit::record`, and its way to the device in `device`: in a staged log by direct, synchronous
//! writes of whole blocks from the stage, in others by `fdatasync`.
//!
//! **If the process dies here**: see `shared::commit`.

use std::mem;
use std::time::{Duration, Instant};

use crate::log::commit::checkpoint::require_commit_records;
use crate::log::commit::record::{self, Placed};
use crate::log::commit::waiting::LOOK_FOR_THE_DEAD;
use crate::log::commit::{Commit, Leader};
use crate::log::repair::pad;
use crate::log::state::returning::Gathering;
use crate::log::state::{place, poison, wait, wakeup};
use crate::segment::listing::Listing;
use crate::shared::commit::{self, CommitLock, Step};
use crate::shared::lock::Until;
use crate::shared::tail_word;
use crate::{Error, ErrorKind, Lsn, Result, sys};

/// How long a waiter sleeps at most that has found another one looking.
const NAP_MAX: Duration = Duration::from_millis(80);

/// A group of so many bytes is followed by a commit record at once.
const LONG_GROUP_BYTES: u64 = 16 << 20;

/// How often to wait for as long as `LOOK_FOR_THE_DEAD` until a group is written without a commit
/// record at its end, because a writer does not continue.
const RECORD_WAITS: u32 = 3;

/// For what a commit still waits before it writes a group.
pub(crate) struct GroupWait {
    /// So many more times for the writers in front of a commit record.
    left: u32,
    /// Whether there is room for a commit record.
    has_room: bool,
    /// For everything.
    until: Until,
}

impl GroupWait {
    pub(crate) fn new(until: Until) -> GroupWait {
        GroupWait { left: RECORD_WAITS, has_room: true, until }
    }

    fn is_left(&self) -> bool {
        self.left > 0 && self.has_room
    }
}

impl Commit<'_> {
    /// Makes the record at `lsn`, and everything before it, durable.
    pub(crate) fn commit(self, lsn: Lsn) -> Result<()> {
        self.commit_to(self.end_of_commit(lsn)?).map_err(|error| place::explain(self.core, error))
    }

    /// Up to where the log must be durable for the record at `lsn` to be.
    pub(crate) fn end_of_commit(self, lsn: Lsn) -> Result<Lsn> {
        let core = self.core;
        let tail = tail_word::tail(core.words());
        core.check_region()?;
        if lsn >= tail {
            let message = format!("cannot commit {lsn}: the log ends at {tail}");
            return Err(Error::new(ErrorKind::OutOfRange, message)
                .at_path(&core.files.dir)
                .at_lsn(lsn));
        }
        // Whatever is durable ends where a record does, so one byte more is all of it.
        Ok(Lsn::new(lsn.get() + 1))
    }

    /// Makes each record durable whose append had returned when this was called, in any process.
    /// Waits for the appends in front of them.
    pub(crate) fn commit_all(self) -> Result<Lsn> {
        self.commit_to(tail_word::end_of_appended(self.core.words()))?;
        Ok(commit::durable(&self.core.words().commits))
    }

    /// Makes everything durable that readers see now, and waits for no append.
    pub(crate) fn commit_published(self) -> Result<()> {
        self.commit_to(tail_word::published(self.core.words()))
    }

    /// Makes something durable, so that the stage has room again. Where all that is published is
    /// durable already, it waits for the append in front of the rest.
    pub(crate) fn commit_for_room(self, until: Until) -> Result<()> {
        let words = self.core.words();
        let (published, durable) = (tail_word::published(words), commit::durable(&words.commits));
        let next = Lsn::new(durable.get() + 1).min(tail_word::tail(words));
        self.commit_until(published.max(next), until)
    }

    /// Makes everything before `end` durable.
    pub(crate) fn commit_to(self, end: Lsn) -> Result<()> {
        self.commit_until(end, wait::deadline(self.core))
    }

    /// Makes everything before `end` durable, waiting for others no longer than `until`; sets
    /// the event where that makes a checkpoint due.
    pub(crate) fn commit_until(self, end: Lsn, until: Until) -> Result<()> {
        self.core.check_region()?;
        let answer = self.wait_until_durable(end, until);
        self.core.commits.trigger.notify_if_due(self.core.words());
        answer
    }

    fn wait_until_durable(self, end: Lsn, until: Until) -> Result<()> {
        let words = &self.core.words().commits;
        if commit::durable(words) >= end {
            return Ok(());
        }
        let writer = self.core.writer()?;
        wait::check_not_for_self(self.core, writer.attachment, end)?;
        words.counts.count_commit();
        let returning = &writer.attachment.returning;
        returning.count_waiting();
        let (mut wait_left, mut nap) = (GroupWait::new(until), LOOK_FOR_THE_DEAD);
        let mut has_time = true;
        loop {
            // No lane is for this thread while another one is about to begin a group.
            let is_led = returning.is_gathering();
            let lanes = if is_led { 0 } else { returning.allowed_lanes(self.core.commits.lanes()) };
            match commit::next_step(words, end, self.core.commits.block, lanes) {
                Step::Done => return Ok(()),
                Step::Poisoned => return Err(poison::error(self.core)),
                _ if wait::is_over(until) => return Err(wait::commit_timed_out(self.core, end)),
                Step::Lead => {
                    if let Some(gathering) = returning.begin_gathering(words) {
                        gathering.wait_for_return();
                        Leader::of(writer).lead(end, &mut wait_left, gathering)?;
                    }
                }
                Step::Replace => Leader::of(writer).finish_for_others(until)?,
                // The word may have been counted up for this thread before the look at it.
                Step::Wait(..) if is_led && !returning.is_gathering() => {}
                Step::Wait(..)
                    if mem::take(&mut has_time) && Leader::of(writer).prepare_meanwhile() => {}
                Step::Wait(word, seen) => {
                    let since = Instant::now();
                    commit::sleep(word, seen, nap);
                    if since.elapsed() >= nap {
                        commit::note_wait(words);
                        nap = Leader::of(writer).look_for_the_dead(nap, until)?;
                    }
                }
            }
        }
    }

    /// Stores the user's mark with the log, durably.
    pub(crate) fn set_checkpoint(self, lsn: Lsn) -> Result<()> {
        let core = self.core;
        let writer = core.writer()?;
        let message = "a text log has no room for a checkpoint; use a framed one";
        require_commit_records(core, message)?;
        let words = core.words();
        let (begin, tail) = (words.begin(), tail_word::tail(words));
        if lsn < begin || lsn > tail {
            let message = format!("checkpoint {lsn} lies outside of the log, {begin} to {tail}");
            return Err(Error::new(ErrorKind::OutOfRange, message)
                .at_path(&core.files.dir)
                .at_lsn(lsn));
        }
        let before = words.commits.set_checkpoint(lsn);
        // Later commit records carry what holds.
        let committed = Leader::of(writer).commit_with_record();
        committed.inspect_err(|_| words.commits.take_back_checkpoint(lsn, before))
    }
}

impl<'a> Leader<'a> {
    /// Writes the next group if it can begin now; otherwise takes a step for the group that it
    /// waits for.
    fn lead(self, end: Lsn, wait_left: &mut GroupWait, gathering: Gathering<'_>) -> Result<()> {
        let core = self.writer.core;
        let (until, busy) = (wait_left.until, self.writer.busy());
        let lock = self.writer.lock_commits(until, &busy)?;
        // Another process may have been faster, which is as good.
        let lanes = self.writer.attachment.returning.allowed_lanes(core.commits.lanes());
        let Some(start) = lock.next_start(core.commits.block, lanes) else {
            return Ok(());
        };
        let published = tail_word::published(core.words());
        if published <= start {
            drop((lock, gathering));
            return self.wait_for_writers(end, Lsn::new(start.get() + 1), until);
        }
        let group_end = match self.end_of_group(&lock, published, end, wait_left)? {
            Placed::To(group_end) => group_end,
            Placed::Beyond(room_end) => {
                drop((lock, gathering));
                if self.extend_for_record(room_end, until).is_err() {
                    // A full disk is no reason to leave what is there unsynced.
                    wait_left.has_room = false;
                }
                return Ok(());
            }
        };
        let published = tail_word::published(core.words());
        // A group that ends before the wanted end helps no waiter.
        let is_too_short = published < end;
        if group_end > published && (is_too_short || wait_left.is_left()) {
            drop((lock, gathering));
            if !is_too_short {
                wait_left.left = wait_left.left.saturating_sub(1);
            }
            return self.wait_for_record(end, group_end, until);
        }
        let group_end = group_end.min(published);
        self.write_from(lock, start, group_end, Some(gathering), until)?;
        if group_end.get() - start.get() >= LONG_GROUP_BYTES {
            // The group itself is durable whatever comes of this.
            let _ = self.add_commit_record(until);
        }
        Ok(())
    }

    /// Writes what is from `start` to `end` as the next group, if there is nothing in the way.
    fn write_from(
        self,
        lock: CommitLock<'a>,
        start: Lsn,
        end: Lsn,
        gathering: Option<Gathering<'_>>,
        until: Until,
    ) -> Result<()> {
        let mut means = self.gather(start, end)?;
        let Some(group) = lock.begin_group(start, end) else { return Ok(()) };
        means.commits = gathering.map_or(0, Gathering::note_begun);
        let kept = self.kept_lock(lock, group.end);
        self.write_group(group, &means, kept, until)
    }

    /// Where the next group is to end: behind a commit record, which is at the tail, or was put
    /// there before and waits for writers in front of it.
    fn end_of_group(
        self,
        lock: &CommitLock<'a>,
        published: Lsn,
        end: Lsn,
        wait_left: &GroupWait,
    ) -> Result<Placed> {
        let record_end = lock.record_end();
        if !self.writer.core.files.geometry.layout.has_commit_records() || !wait_left.has_room {
            return Ok(Placed::To(published));
        }
        if record_end > published || (record_end >= end && lock.is_to_come(record_end)) {
            return Ok(Placed::To(record_end));
        }
        self.write_commit_record(lock)
    }

    /// Writes a commit record behind a long group at once, so that recovery never has to trust so
    /// much.
    fn add_commit_record(self, until: Until) -> Result<()> {
        let core = self.writer.core;
        if !core.files.geometry.layout.has_commit_records() {
            return Ok(());
        }
        let busy = self.writer.busy();
        let lock = self.writer.lock_commits(until, &busy)?;
        // A leader that is on the way now writes one.
        let Some(start) = lock.next_start(core.commits.block, core.commits.lanes()) else {
            return Ok(());
        };
        if let Placed::To(end) = self.write_commit_record(&lock)?
            && end <= tail_word::published(core.words())
        {
            self.write_from(lock, start, end, None, until)?;
        }
        Ok(())
    }

    /// Makes everything durable, with a commit record behind it that tells the newest state.
    pub(crate) fn commit_with_record(self) -> Result<()> {
        if !self.writer.core.files.geometry.layout.has_commit_records() {
            return Commit::of(self.writer.core).commit_all().map(drop);
        }
        let until = wait::deadline(self.writer.core);
        loop {
            poison::check(self.writer.core)?;
            // The lock goes before anything is waited for.
            let busy = self.writer.busy();
            let placed = self.write_commit_record(&self.writer.lock_commits(until, &busy)?)?;
            drop(busy);
            match placed {
                Placed::To(end) => return Commit::of(self.writer.core).commit_until(end, until),
                Placed::Beyond(end) => self.extend_for_record(end, until)?,
            }
        }
    }

    /// Has a durable commit record carry the checkpoint that stays when the segments before `begin`
    /// are removed.
    pub(crate) fn carry_checkpoint(self, begin: Lsn) -> Result<()> {
        let core = self.writer.core;
        let commits = &core.words().commits;
        let first = core.files.segment_of(begin);
        if commits.checkpoint() == Lsn::ZERO || first <= core.files.segment_of(core.begin()) {
            return Ok(());
        }
        match commits.record_end() {
            end if end > first => Commit::of(core).commit_to(end),
            _ => self.commit_with_record(),
        }
    }

    /// Has one of all waiters look for the dead; returns how long to sleep now. The others sleep
    /// longer: where the device is slow no process is dead.
    fn look_for_the_dead(self, nap: Duration, until: Until) -> Result<Duration> {
        let every = LOOK_FOR_THE_DEAD.as_micros() as u64;
        if !commit::claim_look(&self.writer.core.words().commits, sys::clock::micros(), every) {
            // A caller with a deadline must not oversleep it.
            return Ok(if until.is_some() { nap } else { (nap * 2).min(NAP_MAX) });
        }
        self.finish_for_others(until)?;
        Ok(LOOK_FOR_THE_DEAD)
    }

    /// Does what others were about to do and will not: they died, or have handed it back.
    fn finish_for_others(self, until: Until) -> Result<()> {
        let (liveness, busy) = (self.writer.liveness(), self.writer.busy());
        let Ok(lock) = self.writer.lock_commits(until, &busy) else { return Ok(()) };
        let (left, is_stuck) = (lock.take_over(&liveness), lock.is_stuck());
        let kept = left.and_then(|group| self.kept_lock(lock, group.end));
        if is_stuck {
            let what = "groups are placed that nobody writes, behind what is durable";
            return Err(self.writer.core.nonsense(what.into()));
        }
        match left {
            Some(group) => self.write_left_group(group, kept, until),
            None => {
                let words = &self.writer.core.words().commits;
                commit::advance(words, self.writer.attachment.me(), &liveness, until);
                wakeup::notify_durable(self.writer.core);
                Ok(())
            }
        }
    }

    /// Makes everything durable that a log that commits holds, with a commit record at its end, and
    /// lets the stage go. The caller is the only participant, and holds the gate.
    pub(crate) fn end_commits(self) -> Result<()> {
        let core = self.writer.core;
        let words = core.words();
        let has_commits = core.commits.stage.is_some() || words.commits.named_end() != 0;
        if !has_commits {
            return Ok(());
        }
        poison::check(core)?;
        pad::repair(self.writer)?;
        let tail = tail_word::tail(words);
        if tail_word::published(words) != tail {
            return Ok(());
        }
        // Commits everything first, so that the commit record at the end vouches for all of it.
        Commit::of(core).commit_all()?;
        if !record::is_at_end(core, tail)? {
            self.commit_with_record()?;
        }
        if let Some(stage) = &core.commits.stage {
            words.commits.stage.start(tail_word::tail(words), 0);
            stage.retire_all(&Listing::read(&core.files.dir).unwrap_or_default());
        }
        Ok(())
    }
}
