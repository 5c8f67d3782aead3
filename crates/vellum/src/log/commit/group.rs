//! Making records survive a power cut.
//!
//! The protocol between those who wait is `shared::commit`; what a batch ends with is in
//! `framed::seal`, and how it reaches the device in `device`: in a staged log by direct,
//! synchronous writes of whole blocks from the stage, in others by `fdatasync`.
//!
//! **If the process dies here**: see `shared::commit`.

use std::time::{Duration, Instant};

use crate::log::commit::Commit;
use crate::log::layout::framed::seal::{LOOK_FOR_THE_DEAD, Patience};
use crate::log::repair::pad;
use crate::log::state::busy::Busy;
use crate::log::state::wait;
use crate::log::state::writer::Writer;
use crate::shared::commit::{self, Step};
use crate::shared::lock::Until;
use crate::shared::primitive::{self};
use crate::shared::{event_count, tail_word};
use crate::{Error, ErrorKind, Layout, Lsn, Result, sys};

/// How long those sleep at most who have found another one looking.
const NAP_MAX: Duration = Duration::from_millis(80);

/// A participant that leads a commit group, or waits for one.
#[derive(Clone, Copy)]
pub(crate) struct Leader<'a> {
    pub(crate) writer: Writer<'a>,
}

impl<'a> Leader<'a> {
    #[inline]
    pub(crate) fn of(writer: Writer<'a>) -> Leader<'a> {
        Leader { writer }
    }
}

impl Commit<'_> {
    /// Makes the record at `lsn`, and everything before it, durable.
    pub(crate) fn commit(self, lsn: Lsn) -> Result<()> {
        self.commit_to(self.end_of_commit(lsn)?).map_err(|error| self.core.explain(error))
    }

    /// Up to where the log must be durable for the record at `lsn` to be.
    pub(crate) fn end_of_commit(self, lsn: Lsn) -> Result<Lsn> {
        let tail = tail_word::tail(self.core.words());
        self.core.check_region()?;
        if lsn >= tail {
            let message = format!("cannot commit {lsn}: the log ends at {tail}");
            return Err(Error::new(ErrorKind::OutOfRange, message)
                .at_path(&self.core.dir)
                .at_lsn(lsn));
        }
        // Whatever is durable ends where a record does, so one byte more is all of it.
        Ok(Lsn::new(lsn.get() + 1))
    }

    /// Makes everything durable that is published now.
    pub(crate) fn sync(self) -> Result<Lsn> {
        let published = tail_word::published(self.core.words());
        self.commit_to(published)?;
        Ok(commit::durable(&self.core.words().commits))
    }

    /// Makes everything before `end` durable.
    pub(crate) fn commit_to(self, end: Lsn) -> Result<()> {
        self.commit_until(end, self.core.deadline())
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
        words.counts.count_commit();
        let (mut patience, mut nap) = (Patience::new(until), LOOK_FOR_THE_DEAD);
        loop {
            match commit::next_step(words, end, self.core.commits.block, self.core.commits.lanes())
            {
                Step::Done => return Ok(()),
                Step::Poisoned => return Err(self.core.poisoned()),
                _ if wait::is_over(until) => return Err(self.core.commit_timed_out(end)),
                Step::Lead => Leader::of(writer)
                    .lead(end, &mut patience)
                    .inspect_err(|_| commit::pass_on(words))?,
                Step::Replace => Leader::of(writer).replace(until)?,
                Step::Wait(word, seen) => {
                    let since = Instant::now();
                    primitive::wait(word, seen, nap);
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
        let writer = self.core.writer()?;
        if self.core.geometry.layout != Layout::Framed {
            let message = "a text log has no room for a checkpoint; use a framed one";
            return Err(Error::new(ErrorKind::Unsupported, message).at_path(&self.core.dir));
        }
        let words = self.core.words();
        let (begin, tail) = (words.begin(), tail_word::tail(words));
        if lsn < begin || lsn > tail {
            let message = format!("checkpoint {lsn} lies outside of the log, {begin} to {tail}");
            return Err(Error::new(ErrorKind::OutOfRange, message)
                .at_path(&self.core.dir)
                .at_lsn(lsn));
        }
        let before = words.commits.set_checkpoint(lsn);
        // Later seals carry what holds.
        let sealed = Leader::of(writer).seal_and_sync();
        sealed.inspect_err(|_| words.commits.take_back_checkpoint(lsn, before))
    }

    /// Whether everything before `end` is in a batch.
    pub(crate) fn is_sealed(self, end: Lsn) -> bool {
        self.core.words().commits.sealed() >= end
    }
}

impl Leader<'_> {
    /// Waits until everything before `wanted` is published: somebody is in the middle of an
    /// append, or died there.
    pub(crate) fn wait_for_writers(self, end: Lsn, wanted: Lsn, until: Until) -> Result<()> {
        let words = self.writer.core.words();
        let (rings, _) = event_count::prepare_wait(&words.event_count);
        // Nobody rings for what others have sealed meanwhile.
        if Commit::of(self.writer.core).is_sealed(end) || tail_word::published(words) >= wanted {
            return Ok(());
        }
        let since = Instant::now();
        event_count::wait(&words.event_count, rings, LOOK_FOR_THE_DEAD);
        if since.elapsed() < LOOK_FOR_THE_DEAD {
            return Ok(());
        }
        self.repair_what_holds_back(until)
    }

    /// Pads what a dead writer left in front of everything; notes that a living one is waited for.
    pub(crate) fn repair_what_holds_back(self, until: Until) -> Result<()> {
        tail_word::note_wait(self.writer.core.words());
        if pad::is_held_back_by_the_dead(self.writer) {
            pad::repair_until(self.writer, until)?;
        }
        Ok(())
    }

    /// Has one of all who wait look for the dead; returns how long to sleep now. The others sleep
    /// longer: where the device is slow nobody is dead.
    fn look_for_the_dead(self, nap: Duration, until: Until) -> Result<Duration> {
        let every = LOOK_FOR_THE_DEAD.as_micros() as u64;
        if !commit::claim_look(&self.writer.core.words().commits, sys::clock::micros(), every) {
            // Who has a deadline must not oversleep it.
            return Ok(if until.is_some() { nap } else { (nap * 2).min(NAP_MAX) });
        }
        self.replace(until)?;
        Ok(LOOK_FOR_THE_DEAD)
    }

    /// Does what others were about to do and will not: they died, or have handed it back.
    fn replace(self, until: Until) -> Result<()> {
        let (liveness, busy) = (self.writer.liveness(), Busy::of(self.writer));
        let Ok(sealer) = self.writer.sealer(until, &busy) else { return Ok(()) };
        let (left, is_stuck) = (sealer.take_over(&liveness), sealer.is_stuck());
        let kept = left.and_then(|batch| self.kept_while_writing(sealer, batch.end));
        if is_stuck {
            let what = "batches are sealed that nobody writes, behind what is durable";
            return Err(self.writer.core.nonsense(what.into()));
        }
        match left {
            Some(batch) => self.write_left_batch(batch, kept, until),
            None => {
                commit::advance(
                    &self.writer.core.words().commits,
                    self.writer.attachment.me(),
                    &liveness,
                    until,
                );
                Commit::of(self.writer.core).notify_durable();
                Ok(())
            }
        }
    }
}
