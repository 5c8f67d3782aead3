//! Waiting at the end of the log: how a reader sleeps, and its events.

use std::sync::Arc;
use std::time::Duration;

use crate::log::commit::durable;
use crate::log::read::reader::{Reader, beyond_the_end};
use crate::log::repair::read_limit::ReadLimit;
use crate::log::state::core::Core;
use crate::log::state::holds::{self, Hold, ProcessState};
use crate::log::state::{poison, wait};
use crate::record::Record;
use crate::shared::lock::Until;
use crate::shared::participants::Standing;
use crate::shared::{event_count, tail_word};
use crate::{Lsn, Result};

/// How often to check whether the writer in the way still lives: a death wakes no waiter.
const LOOK_FOR_THE_DEAD: Duration = Duration::from_millis(10);

/// Waits until readers see the record at `lsn` and everything before it, for `timeout` at most.
/// A handle that may write pads a dead writer's range meanwhile.
pub(crate) fn wait_published(core: &Arc<Core>, lsn: Lsn, timeout: Option<Duration>) -> Result<()> {
    if core.writer.is_some() {
        wait::check_not_for_self(core, core.attachment()?, lsn)?;
    }
    let until = timeout.and_then(wait::after);
    let mut reader = Reader::unchecked_at(Arc::clone(core), lsn);
    while !reader.has_more()? {
        let core = &reader.core;
        let tail = tail_word::tail(core.words());
        if lsn >= tail {
            return Err(beyond_the_end(core, lsn, tail));
        }
        if wait::is_over(until) {
            return Err(wait::timed_out(core, holds::oldest_append(core)));
        }
        reader.wait(until);
        reader.take_up_words();
    }
    Ok(())
}

impl Reader {
    /// The next record, waiting for one at the published end; `None` only after `timeout`, or where
    /// the reader [stops](Reader::stop_at).
    ///
    /// Sleeps on a futex in the control file and is woken by the writer. A reader without write
    /// permission on the control file looks again every 20 ms instead.
    ///
    /// # Errors
    ///
    /// As for [`next`](Reader::next), and [`Poisoned`](crate::ErrorKind::Poisoned) for a
    /// [durable](Reader::durable) reader.
    pub fn follow(&mut self, timeout: Option<Duration>) -> Result<Option<Record<'_>>> {
        // A time-out beyond the clock's end is none.
        let deadline = timeout.and_then(wait::after);
        loop {
            // Read first: records that were durable before the failure come before the error.
            let poison = self.poison();
            if let Some(place) = self.locate()? {
                return self.lend(place).map(Some);
            }
            if self.is_at_stop() {
                return Ok(None);
            }
            poison?;
            if wait::is_over(deadline) {
                return Ok(None);
            }
            match self.is_durable {
                true => durable::sleep(&self.core, self.position, deadline),
                false => self.wait(deadline),
            }
            self.take_up_words();
        }
    }

    /// The obstacle before later records, which may stay: a reservation of a process that is
    /// stopped, or of one of which this process cannot tell whether it lives. `None` for a
    /// [durable](Reader::durable) reader, which waits for commits.
    pub fn obstacle(&self) -> Option<Hold> {
        if self.is_durable {
            return None;
        }
        let core = &self.core;
        let (slot, standing) = ReadLimit::of(core).held_back_by?;
        let hold = holds::append_in(core, slot)?;
        let is_stuck = standing == Standing::Unknown || hold.state == ProcessState::Stopped;
        is_stuck.then_some(hold)
    }

    /// Sleeps until something may have been published.
    fn wait(&self, until: Until) {
        let (core, words) = (&self.core, self.core.words());
        let (rings, is_armed) = match core.writer {
            Some(_) => event_count::prepare_wait(&words.event_count),
            None => (event_count::listen(&words.event_count), false),
        };
        let end = ReadLimit::of(core).end;
        if end > self.position {
            return;
        }
        event_count::wait(&words.event_count, rings, wait::nap(self.pause(is_armed), until));
        if core.writer.is_some() && tail_word::published(words) == end {
            tail_word::note_wait(words);
        }
    }

    /// How long to sleep before looking again by itself.
    pub(crate) fn pause(&self, is_armed: bool) -> Duration {
        let is_in_flight = || self.read_limit.end < tail_word::tail(self.core.words());
        match is_armed {
            _ if !self.is_durable && is_in_flight() => LOOK_FOR_THE_DEAD,
            true => wait::LOOK_AGAIN,
            false => wait::LOOK_AGAIN_UNARMED,
        }
    }

    /// Says that this reader is about to poll; returns whether it will be woken.
    pub(crate) fn prepare_poll(&self) -> bool {
        let words = self.core.words();
        match self.core.writer {
            None => false,
            Some(_) if self.is_durable => durable::prepare_poll(&self.core),
            Some(_) => event_count::prepare_poll(&words.event_count),
        }
    }

    /// The error of a log that will have nothing more for a durable reader.
    pub(crate) fn poison(&self) -> Result<()> {
        if self.is_durable { poison::check(&self.core) } else { Ok(()) }
    }
}
