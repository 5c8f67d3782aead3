//! The steps of a process in the model of commits, one by one as `log` makes them.

use std::time::Duration;

use super::commits::{Plan, World};
use super::device::BLOCK;
use super::{BEGIN, Kernel, KernelAtLock, PAD, index, indices, me, tag};
use crate::Lsn;
use crate::shared::commit::{self, CommitGroup, CommitLock, Failure, Operation, Step};
use crate::shared::primitive::Ordering;
use crate::shared::{event_count, lock, model_atomics, participants, tail_word};

/// The log is poisoned, or this process cannot commit.
pub(super) struct Refused;

/// A resource that a process lacks and others have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// It sees so before it begins a group.
    Seen,
    /// It sees so when it writes one.
    Unseen,
}

impl World {
    /// Runs one process.
    pub(super) fn live(&self, plan: Plan) {
        for (append, len) in (0..).zip(plan.appends[model_atomics::me() - 1]) {
            let tag = tag(model_atomics::me(), append);
            model_atomics::forget(tag);
            let end = match append == 0 && model_atomics::me() <= plan.appended {
                true => self.end_of_first(plan.appends),
                false => self.append(tag, *len),
            };
            // As `log::commit::group::commit_all`.
            let all = || tail_word::end_of_appended(&self.words);
            let target = if plan.syncs { all() } else { end };
            if self.commit_to(target, tag).is_err() {
                return;
            }
            self.check_device(BEGIN, end.get());
        }
    }

    /// As `log::append::general`. Returns where the record ends.
    fn append(&self, tag: u64, len: u64) -> Lsn {
        let (words, slot) = (&self.words, model_atomics::me() - 1);
        let range = super::reserve(words, slot, tag, len);
        // One step for all: what matters is before or after a write of the block.
        self.stage[index(range.start.get())].store(tag, Ordering::Relaxed);
        for byte in &self.stage[indices(range)] {
            byte.poke(tag);
        }
        tail_word::publish(words, slot);
        event_count::notify(&words.event_count, true);
        range.end()
    }

    /// As `log::commit::group::commit_to`. `label` says how far the process is.
    pub(super) fn commit_to(&self, end: Lsn, label: u64) -> Result<(), Refused> {
        let words = &self.words.commits;
        let label = model_atomics::mix(label, end.get());
        loop {
            model_atomics::forget(label);
            match commit::next_step(words, end, BLOCK, self.lanes) {
                Step::Done => return Ok(self.check_device(BEGIN, end.get())),
                Step::Poisoned => return Err(Refused),
                Step::Replace => self.replace(label)?,
                Step::Lead if self.lead(end, label)? => {}
                Step::Lead => self.wait_for_writers(end, label),
                Step::Wait(word, seen) => {
                    let place = std::ptr::from_ref(word).addr() - std::ptr::from_ref(self).addr();
                    model_atomics::forget(model_atomics::mix(
                        label,
                        (place as u64) << 32 | u64::from(seen),
                    ));
                    commit::sleep(word, seen, Duration::MAX);
                    if model_atomics::was_late() {
                        self.replace(label)?;
                    }
                }
            }
        }
    }

    fn lock_commits(&self) -> CommitLock<'_> {
        let before = model_atomics::memory();
        let lock = CommitLock::new(&self.words.commits, me(), &KernelAtLock { before });
        model_atomics::forget(before);
        lock
    }

    /// As `log::commit::group::lead`, without a commit record.
    fn lead(&self, end: Lsn, label: u64) -> Result<bool, Refused> {
        model_atomics::forget(model_atomics::mix(label, 1));
        let lock = self.lock_commits();
        let Some(start) = lock.next_start(BLOCK, self.lanes) else { return Ok(true) };
        let published = tail_word::published(&self.words);
        if published <= start {
            return Ok(start >= end);
        }
        if self.lacks(Lack::Seen) {
            drop(lock);
            commit::pass_on(&self.words.commits);
            return Err(Refused);
        }
        model_atomics::forget(model_atomics::mix(label, published.get() << 16 | start.get() << 8));
        let Some(group) = lock.begin_group(start, published) else { return Ok(true) };
        drop(lock);
        self.write_group(group, label).map(|()| true)
    }

    fn lacks(&self, lack: Lack) -> bool {
        self.lack == Some((model_atomics::me(), lack))
    }

    /// As `log::commit::device::write_group`.
    fn write_group(&self, group: CommitGroup, label: u64) -> Result<(), Refused> {
        let words = &self.words.commits;
        if self.lacks(Lack::Seen) || self.lacks(Lack::Unseen) {
            commit::hand_back(words, group);
            return Err(Refused);
        }
        let (start, end) = (group.start.get(), group.end.get());
        let what = group.number << 24 | (group.lane as u64) << 16 | end << 8 | start;
        model_atomics::forget(model_atomics::mix(label, what << 8 | 2));
        let is_hopeless = || words.poison.errno.peek() != 0;
        let is_written = self.device.write(&self.stage, group, is_hopeless);
        let before = model_atomics::memory();
        let who = KernelAtLock { before };
        if is_written {
            commit::finish(words, me(), &who, group, None);
            let finished = self.finished[group.number as usize].poke(1);
            assert_eq!(finished, 0, "a group was finished twice");
        } else {
            let segment = group.start;
            let failure = Failure { errno: 5, segment, operation: Operation::Write };
            commit::poison(words, me(), &who, failure);
        }
        Ok(())
    }

    /// As `log::commit::group::wait_for_writers`.
    fn wait_for_writers(&self, end: Lsn, label: u64) {
        let words = &self.words;
        model_atomics::forget(model_atomics::mix(label, 3));
        let (rings, _) = event_count::prepare_wait(&words.event_count);
        let grouped = words.commits.ends.grouped.load(Ordering::Acquire);
        if grouped >= end.get() || tail_word::published(words).get() > grouped {
            return;
        }
        model_atomics::forget(model_atomics::mix(label, u64::from(rings) << 8 | 4));
        event_count::wait(&words.event_count, rings, Duration::MAX);
        if model_atomics::was_late() {
            model_atomics::forget(model_atomics::mix(label, 5));
            self.repair();
        }
    }

    /// As `log::commit::group::replace`.
    fn replace(&self, label: u64) -> Result<(), Refused> {
        model_atomics::forget(model_atomics::mix(label, 6));
        let left = self.lock_commits().take_over(&Kernel);
        match left {
            Some(group) => self.write_group(group, label),
            None => {
                model_atomics::forget(model_atomics::mix(label, 7));
                let who = KernelAtLock { before: model_atomics::memory() };
                commit::advance(&self.words.commits, me(), &who, None);
                Ok(())
            }
        }
    }

    /// As `log::repair::pad::repair`.
    fn repair(&self) {
        let words = &self.words;
        let _held = lock::acquire(&words.repair, me(), &Kernel);
        for slot in participants::orphaned_slots(words, &Kernel) {
            if let Some(range) = tail_word::granted(words, slot, tail_word::load(words)) {
                self.stage[index(range.start.get())].store(PAD, Ordering::Relaxed);
                for byte in &self.stage[indices(range)] {
                    byte.poke(PAD);
                }
            }
            tail_word::publish(words, slot);
            participants::release_slot(words, slot);
        }
        event_count::notify(&words.event_count, false);
    }
}
