//! Leaving a log: what the last handle of a process does.

use crate::Result;
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

/// Gives everything back; the last to leave tidies the end of the log.
pub(crate) fn detach(core: &Core, attachment: &Attachment) -> Result<()> {
    let writer = Writer { core, attachment };
    let gate = Gate::enter(&core.dir);
    if participants::has_given_up_slots(core.words()) {
        // What cannot be padded is left to whoever can.
        let _ = pad::repair(writer);
    }
    if let Ok(gate) = &gate {
        drop(attachment.presence().take());
        let is_alone = gate.is_soon_alone(|| Presence::of(writer).has_company()) == Ok(true);
        // Another log may have taken the place; its files are not ours.
        if is_alone && place::has_own_files(core) {
            // An error leaves what is not durable in the stage, or a longer file.
            let _ = Leader::of(writer).end_commits();
            let _ = shrink::to_data(writer);
            let _ = words_check::note_closed(core);
        }
    }
    attachment.empty_slots(core.words());
    let left = participants::detach(core.words(), attachment.lock_file(), attachment.me());
    left.or_os("unlock", &core.dir)
}
