//! Making records survive a power cut.
//!
//! The protocol between those who wait is `shared::commit`; what a batch ends with is in
//! `commit::record`, and how it reaches the device in `device`: in a staged log by direct,
//! synchronous writes of whole blocks from the stage, in others by `fdatasync`.
//!
//! **If the process dies here**: see `shared::commit`.

use std::time::{Duration, Instant};

use crate::log::commit::checkpoint::require_commit_records;
use crate::log::commit::record::Sealed;
use crate::log::commit::waiting::LOOK_FOR_THE_DEAD;
use crate::log::commit::{Commit, Leader};
use crate::log::repair::pad;
use crate::log::state::{place, poison, wait, wakeup};
use crate::shared::commit::{self, Sealer, Step};
use crate::shared::lock::Until;
use crate::shared::primitive::{self};
use crate::shared::tail_word;
use crate::{Error, ErrorKind, Lsn, Result, sys};

/// How long those sleep at most who have found another one looking.
const NAP_MAX: Duration = Duration::from_millis(80);

/// A batch of so many bytes is followed by a seal at once.
const LONG_BATCH_BYTES: u64 = 16 << 20;

/// How often to wait for as long as `LOOK_FOR_THE_DEAD` until a batch is written without a seal at
/// its end, because somebody does not go on.
const SEAL_PATIENCE: u32 = 3;

/// For what somebody who commits still waits.
pub(crate) struct Patience {
    /// So many more times for the writers in front of a seal.
    left: u32,
    /// Whether there is room for a seal.
    is_sealing: bool,
    /// For everything.
    until: Until,
}

impl Patience {
    pub(crate) fn new(until: Until) -> Patience {
        Patience { left: SEAL_PATIENCE, is_sealing: true, until }
    }

    fn is_left(&self) -> bool {
        self.left > 0 && self.is_sealing
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
            return Err(Error::new(ErrorKind::OutOfRange, message).at_path(&core.dir).at_lsn(lsn));
        }
        // Whatever is durable ends where a record does, so one byte more is all of it.
        Ok(Lsn::new(lsn.get() + 1))
    }

    /// Makes everything durable that is published now.
    pub(crate) fn commit_all(self) -> Result<Lsn> {
        let published = tail_word::published(self.core.words());
        self.commit_to(published)?;
        Ok(commit::durable(&self.core.words().commits))
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
        words.counts.count_commit();
        let (mut patience, mut nap) = (Patience::new(until), LOOK_FOR_THE_DEAD);
        loop {
            match commit::next_step(words, end, self.core.commits.block, self.core.commits.lanes())
            {
                Step::Done => return Ok(()),
                Step::Poisoned => return Err(poison::error(self.core)),
                _ if wait::is_over(until) => return Err(wait::commit_timed_out(self.core, end)),
                Step::Lead => Leader::of(writer)
                    .lead(end, &mut patience)
                    .inspect_err(|_| commit::pass_on(words))?,
                Step::Replace => Leader::of(writer).finish_for_others(until)?,
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
        let core = self.core;
        let writer = core.writer()?;
        let message = "a text log has no room for a checkpoint; use a framed one";
        require_commit_records(core, message)?;
        let words = core.words();
        let (begin, tail) = (words.begin(), tail_word::tail(words));
        if lsn < begin || lsn > tail {
            let message = format!("checkpoint {lsn} lies outside of the log, {begin} to {tail}");
            return Err(Error::new(ErrorKind::OutOfRange, message).at_path(&core.dir).at_lsn(lsn));
        }
        let before = words.commits.set_checkpoint(lsn);
        // Later seals carry what holds.
        let sealed = Leader::of(writer).seal_and_sync();
        sealed.inspect_err(|_| words.commits.take_back_checkpoint(lsn, before))
    }
}

impl<'a> Leader<'a> {
    /// Writes the next batch if it can be sealed now; otherwise does what it waits for.
    pub(crate) fn lead(self, end: Lsn, patience: &mut Patience) -> Result<()> {
        let core = self.writer.core;
        let (until, busy) = (patience.until, self.writer.busy());
        let sealer = self.writer.sealer(until, &busy)?;
        // Somebody else may have been faster, which is as good.
        let Some(start) = sealer.next_start(core.commits.block, core.commits.lanes()) else {
            return Ok(());
        };
        let published = tail_word::published(core.words());
        if published <= start {
            drop(sealer);
            return self.wait_for_writers(end, Lsn::new(start.get() + 1), until);
        }
        let batch_end = match self.end_of_batch(&sealer, published, end, patience)? {
            Sealed::To(batch_end) => batch_end,
            Sealed::Beyond(room_end) => {
                drop(sealer);
                if self.make_room_for_seal(room_end, until).is_err() {
                    // A full disk is no reason to leave what is there unsynced.
                    patience.is_sealing = false;
                }
                return Ok(());
            }
        };
        let published = tail_word::published(core.words());
        // A batch that ends before what is to be committed helps nobody who waits.
        let is_too_short = published < end;
        if batch_end > published && (is_too_short || patience.is_left()) {
            drop(sealer);
            if !is_too_short {
                patience.left = patience.left.saturating_sub(1);
            }
            return self.wait_for_seal(end, batch_end, until);
        }
        let batch_end = batch_end.min(published);
        self.write_from(sealer, start, batch_end, until)?;
        if batch_end.get() - start.get() >= LONG_BATCH_BYTES {
            // The batch itself is durable whatever comes of this.
            let _ = self.vouch(until);
        }
        Ok(())
    }

    /// Writes what is from `start` to `end` as the next batch, if there is nothing in the way.
    fn write_from(self, sealer: Sealer<'a>, start: Lsn, end: Lsn, until: Until) -> Result<()> {
        let means = self.gather(start, end)?;
        let Some(batch) = sealer.seal(start, end) else { return Ok(()) };
        let kept = self.kept_while_writing(sealer, batch.end);
        self.write_batch(batch, &means, kept, until)
    }

    /// Where the next batch is to end: behind a seal, which stands at the tail, or was put there
    /// before and waits for writers in front of it.
    fn end_of_batch(
        self,
        sealer: &Sealer<'a>,
        published: Lsn,
        end: Lsn,
        patience: &Patience,
    ) -> Result<Sealed> {
        let seal_end = sealer.seal_end();
        if !self.writer.core.geometry.layout.has_commit_records() || !patience.is_sealing {
            return Ok(Sealed::To(published));
        }
        if seal_end > published || (seal_end >= end && sealer.is_to_come(seal_end)) {
            return Ok(Sealed::To(seal_end));
        }
        self.write_seal(sealer)
    }

    /// Writes a seal behind a long batch at once, so that recovery never has to trust so much.
    fn vouch(self, until: Until) -> Result<()> {
        let core = self.writer.core;
        if !core.geometry.layout.has_commit_records() {
            return Ok(());
        }
        let busy = self.writer.busy();
        let sealer = self.writer.sealer(until, &busy)?;
        // Whoever is on the way now writes one.
        let Some(start) = sealer.next_start(core.commits.block, core.commits.lanes()) else {
            return Ok(());
        };
        if let Sealed::To(end) = self.write_seal(&sealer)?
            && end <= tail_word::published(core.words())
        {
            self.write_from(sealer, start, end, until)?;
        }
        Ok(())
    }

    /// Makes everything durable, with a seal behind it that tells the newest state.
    pub(crate) fn seal_and_sync(self) -> Result<()> {
        if !self.writer.core.geometry.layout.has_commit_records() {
            return Commit::of(self.writer.core).commit_all().map(drop);
        }
        let until = wait::deadline(self.writer.core);
        loop {
            poison::check(self.writer.core)?;
            // The lock goes before anything is waited for.
            let busy = self.writer.busy();
            let sealed = self.write_seal(&self.writer.sealer(until, &busy)?)?;
            drop(busy);
            match sealed {
                Sealed::To(end) => return Commit::of(self.writer.core).commit_until(end, until),
                Sealed::Beyond(end) => self.make_room_for_seal(end, until)?,
            }
        }
    }

    /// Has one of all who wait look for the dead; returns how long to sleep now. The others sleep
    /// longer: where the device is slow nobody is dead.
    fn look_for_the_dead(self, nap: Duration, until: Until) -> Result<Duration> {
        let every = LOOK_FOR_THE_DEAD.as_micros() as u64;
        if !commit::claim_look(&self.writer.core.words().commits, sys::clock::micros(), every) {
            // Who has a deadline must not oversleep it.
            return Ok(if until.is_some() { nap } else { (nap * 2).min(NAP_MAX) });
        }
        self.finish_for_others(until)?;
        Ok(LOOK_FOR_THE_DEAD)
    }

    /// Does what others were about to do and will not: they died, or have handed it back.
    fn finish_for_others(self, until: Until) -> Result<()> {
        let (liveness, busy) = (self.writer.liveness(), self.writer.busy());
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
                wakeup::notify_durable(self.writer.core);
                Ok(())
            }
        }
    }

    /// Makes everything durable that a log that commits holds, with a seal at its end, and lets the
    /// stage go. The caller is the only participant, and holds the gate.
    pub(crate) fn end_commits(self) -> Result<()> {
        let core = self.writer.core;
        let words = core.words();
        let has_commits = core.commits.stage.is_some() || words.commits.named_end() != 0;
        if !has_commits || commit::is_poisoned(&words.commits) {
            return Ok(());
        }
        pad::repair(self.writer)?;
        let tail = tail_word::tail(words);
        if tail_word::published(words) != tail {
            return Ok(());
        }
        // What is durable first, so that the seal at the end vouches for all of it.
        Commit::of(core).commit_all()?;
        self.seal_and_sync()?;
        if let Some(stage) = &core.commits.stage {
            words.commits.stage.start(tail_word::tail(words), 0);
            stage.retire_all();
        }
        Ok(())
    }
}
