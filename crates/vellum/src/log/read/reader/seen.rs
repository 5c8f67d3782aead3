//! The end of reading behind a position: the published end as this reader sees it, and the reasons
//! that it is no further.

use std::sync::Arc;

use crate::log::open::reading;
use crate::log::read::reader::{Reader, truncated};
use crate::log::repair::pad;
use crate::log::repair::read_limit::ReadLimit;
use crate::shared::tail_word;
use crate::sys::clock;
use crate::{Fill, Result};

/// How often to look whether a writer is done before checking whether it lives.
const SPINS: u32 = 64;
/// How long a writer that was alive is believed to be, in microseconds.
const BELIEVED_MICROS: u64 = 100;

impl Reader {
    /// Whether something is published beyond the position, which moves past what the dead had
    /// reserved.
    pub(crate) fn has_more(&mut self) -> Result<bool> {
        loop {
            if self.is_at_stop() || self.position >= self.read_limit.end && !self.sees_more()? {
                return Ok(false);
            }
            let Some(hole) = self.read_limit.hole_at(self.position) else { return Ok(true) };
            if hole.is_there(&self.core) {
                self.position = hole.range.end();
            } else {
                self.core.check_region()?;
                // Padded meanwhile: the bytes that are there now count.
                self.read_limit.holes.retain(|other| *other != hole);
                self.window.forget();
            }
        }
    }

    /// Looks for more beyond the position; a reader that may write pads what the dead left.
    fn sees_more(&mut self) -> Result<bool> {
        let is_at_tail = tail_word::tail(self.core.words()) == self.position;
        if is_at_tail && self.read_limit.end == self.position {
            // A reader that polls at the end reads one word, which only a reservation changes.
            return self.check_epoch().map(|()| false);
        }
        let is_held_back = self.is_held_back();
        if is_held_back && self.is_believed_alive() {
            return Ok(false);
        }
        self.look()?;
        if self.position < self.read_limit.end {
            return Ok(true);
        }
        let core = &self.core;
        let tail = tail_word::tail(core.words());
        if tail < self.position {
            return Err(truncated(&self.core, self.position, tail));
        }
        // A process that commits pads for a durable reader.
        if is_held_back
            && self.read_limit.end < tail_word::tail(core.words())
            && core.writer.is_some()
            && !self.is_durable
            && pad::is_held_back_by_the_dead(core.writer()?)
        {
            pad::repair_with_space(core.writer()?)?;
            self.look()?;
        }
        if is_held_back {
            self.held_back = (self.position, clock::micros() + BELIEVED_MICROS);
        }
        Ok(self.position < self.read_limit.end)
    }

    /// Whether a reservation keeps records from this reader for longer than most appends take: one
    /// that began a moment ago is not checked, because checking liveness costs a few system calls.
    fn is_held_back(&self) -> bool {
        let words = self.core.words();
        (0..SPINS).all(|_| {
            let (end, tail) = (tail_word::published(words), tail_word::tail(words));
            let is_in_flight = end <= self.position && end < tail;
            if is_in_flight {
                std::hint::spin_loop();
            }
            is_in_flight
        })
    }

    /// Whether a moment ago the writer was alive that holds back what starts at the position.
    fn is_believed_alive(&self) -> bool {
        self.held_back.0 == self.position && clock::micros() < self.held_back.1
    }

    /// Reads the newest end; earlier results may have changed.
    ///
    /// In the words of a process that has lost the control file nothing is in flight: ranges that
    /// others have reserved would count as published.
    fn look(&mut self) -> Result<()> {
        let see = if self.is_durable { ReadLimit::of_durable } else { ReadLimit::of };
        let (end, read_limit) = (self.read_limit.end, see(&self.core));
        self.check_epoch()?;
        self.read_limit = read_limit;
        if self.read_limit.end > end {
            let maps = self.core.writer.is_some() && self.core.files.geometry.fill == Fill::Mapped;
            self.window.forget_until(self.read_limit.end, maps);
        }
        // The published end never goes back, but for a truncation, which shows in the tail.
        self.read_limit.end = self.read_limit.end.max(end);
        Ok(())
    }

    /// Continues with the words of the control file where they had to be worked out, once there are
    /// any, or where the file is another by now. Returns whether it does.
    pub(crate) fn take_up_words(&mut self) -> bool {
        let Some(core) = reading::taken_up(&self.core) else { return false };
        self.core = core;
        self.window = self.window.successor(Arc::clone(&self.core));
        self.read_limit = ReadLimit::default();
        true
    }
}
