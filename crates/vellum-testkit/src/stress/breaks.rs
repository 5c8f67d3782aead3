//! The places where a power cut has torn a text log, and the lines behind them.
//!
//! **The rule.** A text log has no checksums. After a power cut, once it is open again, it has this
//! shape:
//!
//! - Every line before the end of the last commit is there, whole and once, and those of a writer
//!   in its order.
//! - Behind that, lines may be there, or be missing, or be there in part. The place of missing
//!   lines shows: as a line that is not whole, as one of tildes, or as the end of a file.
//! - Later records start a line of their own.
//!
//! So all lines behind such a place, up to the marker of the check that found it, were not
//! committed. They are not counted: a promised one is missed.

use vellum::Lsn;

/// The part of a log that was read so far, line by line.
#[derive(Debug)]
pub(super) struct Breaks {
    segment_capacity: u64,
    /// The last line.
    last: Lsn,
    /// The newest place where lines may be missing.
    newest: Lsn,
    /// Whether what comes now was not committed.
    is_behind: bool,
}

impl Breaks {
    /// Before the first line.
    pub(super) fn new(segment_capacity: u64) -> Breaks {
        Breaks { segment_capacity, last: Lsn::ZERO, newest: Lsn::ZERO, is_behind: false }
    }

    /// Notes that a line starts at `lsn`.
    pub(super) fn pass(&mut self, lsn: Lsn) {
        let [last, here] = [self.last, lsn].map(|lsn| lsn.get() / self.segment_capacity);
        if last != here {
            self.newest = lsn;
        }
        self.last = lsn;
    }

    /// The line there fills the place of others.
    pub(super) fn fill(&mut self) {
        self.newest = self.last;
    }

    /// The line there is not whole.
    pub(super) fn tear(&mut self) {
        self.newest = self.last;
        self.is_behind = true;
    }

    /// Records between the line at `since` and this one are missing. Returns from where on nothing
    /// counts, if there is a place that shows it.
    pub(super) fn miss(&mut self, since: Lsn) -> Option<Lsn> {
        self.is_behind |= self.newest > since;
        (self.newest > since).then_some(self.newest)
    }

    /// A check has appended its marker.
    pub(super) fn mark(&mut self) {
        self.is_behind = false;
    }

    /// Whether the text there can't have been committed.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind
    }
}
