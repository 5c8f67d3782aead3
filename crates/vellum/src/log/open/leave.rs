//! Leaving a log: the steps of a process's last handle.

use crate::error::OsResult;
use crate::log::commit::Leader;
use crate::log::open::words_check;
use crate::log::repair::presence::Presence;
use crate::log::repair::{pad, shrink};
use crate::log::state::attachment::Attachment;
use crate::log::state::core::Core;
use crate::log::state::gate::Gate;
use crate::log::state::place;
use crate::log::state::writer::Writer;
use crate::shared::participants;
use crate::{Error, Result};

/// Gives everything back; the last to leave tidies the end of the log. It returns errors once all
/// the rest is done.
pub(crate) fn detach(core: &Core, attachment: &Attachment) -> Result<()> {
    let writer = Writer { core, attachment };
    let gate = Gate::enter(&core.files.dir);
    if participants::has_given_up_slots(core.words()) {
        // A range that this process cannot pad is left to a process that can.
        let _ = pad::repair(writer);
    }
    let tidied = gate.as_ref().map_err(Error::clone).and_then(|gate| tidy(writer, gate));
    attachment.empty_slots(core.words());
    let left = participants::detach(core.words(), attachment.lock_file(), attachment.me());
    tidied.and(left.or_os("unlock", &core.files.dir))
}

/// The steps of the last process to leave, in the gate.
fn tidy(writer: Writer<'_>, gate: &Gate) -> Result<()> {
    let core = writer.core;
    drop(writer.attachment.presence().take());
    let is_alone = gate.is_soon_alone(|| Presence::of(writer).has_company()) == Ok(true);
    // Another log may have taken the place; its files are not ours.
    if !is_alone || !place::has_own_files(core) {
        return Ok(());
    }
    // An error leaves what is not durable in the stage, or a longer file.
    let committed = Leader::of(writer).end_commits();
    let cut = shrink::to_data(writer);
    let noted = words_check::note_closed(core);
    committed.and(cut).and(noted)
}
