//! Filling what was reserved and will never be written, and finding it after a death.
//!
//! Padding twice gives the same bytes (`files::padding`), so the next repairer takes the place of
//! one that dies.
//!
//! A line that was written by a system call and is whole stays: a program that follows the file may
//! have read it.

use std::sync::Arc;

use crate::files::padding::{self, Reason};
use crate::log::state::core::Core;
use crate::log::state::holds::HoldKind;
use crate::log::state::writer::Writer;
use crate::log::state::{wait, wakeup};
use crate::lsn::Range;
use crate::shared::event_count;
use crate::shared::lock::Until;
use crate::shared::participants::{self, CachedLiveness, Owner};
use crate::shared::tail_word;
use crate::{Error, ErrorKind, Result};

/// Pads a reservation that no other process can touch.
pub(crate) fn write(core: &Core, range: Range, reason: Reason) -> Result<()> {
    padding::write_to(&core.files, range, reason, |first| {
        core.open_segment_briefly(first).map(Arc::new)
    })
}

/// Pads what dead participants left and living ones gave up, and gives the slots back. Returns how
/// many reservations.
///
/// A range that cannot be padded keeps no other one from being padded; the first error is returned.
pub(crate) fn repair(writer: Writer<'_>) -> Result<u64> {
    let core = writer.core;
    repair_until(writer, wait::deadline(core))
}

/// As [`repair`], waiting for another repairer no longer than `until`.
pub(crate) fn repair_until(writer: Writer<'_>, until: Until) -> Result<u64> {
    let core = writer.core;
    let words = core.words();
    let liveness = writer.liveness();
    let who = CachedLiveness::new(&liveness);
    if participants::orphaned_slots(words, &who).is_empty() {
        return Ok(0);
    }
    let busy = writer.busy();
    let _held = writer.hold_until(HoldKind::Repair, until, &busy)?;
    let mut answer = Ok(0);
    // Under the lock: a dead process stays dead, and no other process pads.
    for slot in participants::orphaned_slots(words, &who) {
        match repair_slot(core, slot) {
            Ok(count) => answer = answer.map(|sum| sum + count),
            Err(error) => answer = answer.and(Err(error)),
        }
    }
    if event_count::notify(&words.event_count, false) {
        wakeup::wake_pollers(core);
    }
    answer
}

/// As [`repair`] for a caller that can do without: a range without space for its pad stays in
/// flight until there is some.
pub(crate) fn repair_with_space(writer: Writer<'_>) -> Result<()> {
    match repair(writer) {
        Err(error) if error.kind() != ErrorKind::NoSpace => Err(error),
        _ => Ok(()),
    }
}

/// Pads what is in flight in a slot whose owner is gone, and gives it back. The repair lock is
/// held.
fn repair_slot(core: &Core, slot: usize) -> Result<u64> {
    let words = core.words();
    let granted = tail_word::granted(words, slot, tail_word::load(words));
    if let Some(range) = granted {
        let is_given_up = participants::owner_of(words, slot) == Some(Owner::GIVEN_UP);
        check_range(core, range)?;
        if !is_given_up && stands_whole(core, range)? {
            end_skipped(core, range)?;
        } else {
            write(core, range, if is_given_up { Reason::Failed } else { Reason::Died })?;
            tail_word::count_repair(words, range.len);
        }
    }
    tail_word::publish(words, slot);
    participants::release_slot(words, slot);
    Ok(u64::from(granted.is_some()))
}

/// Cuts off what `range` skips, as its writer would have done.
fn end_skipped(core: &Core, range: Range) -> Result<()> {
    if !padding::is_skipped(&core.files, range) {
        return Ok(());
    }
    let segment = core.open_segment_briefly(core.files.segment_of(range.start))?;
    padding::cut_off(&segment.file, range.start)
}

/// Whether a line that its dead writer did not publish is there to its last byte. The repair lock
/// is held, or the caller only reads.
///
/// Where text is written by system calls, an unwritten part is beyond the end of the file, or reads
/// as NULs. The last byte of a [`Reservation`](crate::Reservation) is written when it is published.
/// A line that begins as a marker may be half a marker, of a repairer that died.
pub(crate) fn stands_whole(core: &Core, range: Range) -> Result<bool> {
    Ok(core.files.writes_text() && padding::is_whole_line(core, range)?)
}

/// Whether the oldest reservation in flight, the one that holds `published` back, is a dead
/// participant's, or has been given up.
pub(crate) fn is_held_back_by_the_dead(writer: Writer<'_>) -> bool {
    let core = writer.core;
    let words = core.words();
    tail_word::oldest_in_flight(words, tail_word::load(words))
        .and_then(|(slot, _)| participants::owner_of(words, slot))
        .is_some_and(|owner| owner.is_gone(&writer.liveness()))
}

/// Refuses to pad what cannot have been reserved.
fn check_range(core: &Core, range: Range) -> Result<(), Error> {
    let tail = tail_word::tail(core.words());
    let begin = core.begin().get();
    if range.start.get() < begin || range.end() > tail {
        return Err(core.nonsense(format!(
            "an abandoned reservation from {} to {} lies outside of {begin} to {tail}",
            range.start,
            range.end()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::append::Append;
    use crate::log::open::enter;
    use crate::{Lsn, Options, Tuning};

    #[test]
    fn padding_again_writes_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let tuning = Tuning::new().segment_capacity_bytes(1 << 20);
        let log = enter::open(&dir.path().join("log"), &Options::text().tuning(tuning)).unwrap();
        let at = Append::of(&log).append_parts(&[&[b'x'; 100]]).unwrap();
        let range = Range { start: Lsn::new(at.get() + 100), len: 174_635 };
        let path = log.segment_path(at);
        write(&log, range, Reason::Died).unwrap();
        let once = std::fs::read(&path).unwrap();
        assert_eq!(once.len(), 100 + 174_635);
        // Of the first repairer only some pages are there.
        std::fs::write(&path, [&once[..4096], &[0; 90_000], &once[94_096..]].concat()).unwrap();
        write(&log, range, Reason::Died).unwrap();
        assert!(std::fs::read(&path).unwrap() == once);
    }
}
