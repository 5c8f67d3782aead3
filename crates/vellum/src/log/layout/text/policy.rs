//! The policy of a text log: stored with the log, and followed by each process that appends.
//!
//! The geometry file holds it for ever; shared words hold it for the processes that have the log
//! open, which read them at every append. Opening the log with another policy changes both.
//!
//! **If the process dies here**: the words are marked as invalid first; the next opener of the log
//! takes the policy from the file, old or new, where it is within one sector.

use crate::Result;
use crate::error::OsResult;
use crate::files::names::{GEOMETRY_NAME, SMALL_LEN_MAX};
use crate::format::control::GEOMETRY_LEN;
use crate::log::layout::text::{TextLog, TextSpace};
use crate::log::state::control::{open_geometry, stored_geometry};
use crate::log::state::core::Core;
use crate::log::state::poison;
use crate::log::state::writer::Writer;
use crate::options::policy::{Policy, PolicyUpdate};
use crate::segment::listing::Listing;
use crate::shared::files::Newest;
use crate::sys::{self, clock};

/// The policy that is followed.
pub(crate) fn of(core: &Core) -> Policy {
    let followed = core.words().files.policy.load();
    followed.unwrap_or_else(|| stored(core))
}

/// The policy in the geometry file.
fn stored(core: &Core) -> Policy {
    let bytes =
        core.files.dir.read(&core.files.dir.join(GEOMETRY_NAME), SMALL_LEN_MAX).unwrap_or_default();
    bytes.get(GEOMETRY_LEN..).and_then(Policy::parse).unwrap_or_default()
}

/// Writes the policy into the geometry file, durably.
fn store(core: &Core, policy: &Policy) -> Result<()> {
    let geometry = stored_geometry(&core.files.dir).unwrap_or(core.files.geometry);
    let bytes = [geometry.to_bytes(), policy.to_bytes()].concat();
    let path = core.files.dir.join(GEOMETRY_NAME);
    let fd = open_geometry(&core.files.dir)?;
    sys::file::write_all_at(&fd, &bytes, 0).or_os("store the policy in", &path)?;
    let synced = sys::sync::sync_data(&fd);
    poison::heed_sync(core, synced.or_unsynced("store the policy in", &path))
}

impl TextSpace<'_> {
    /// Has every process follow the policy.
    fn follow(self, policy: &Policy) -> Result<()> {
        let files = &self.prepare.writer.core.words().files;
        if files.names.newest().is_none() {
            self.recall_name()?;
        }
        self.set_limit(policy);
        // The file that is written must not hold records from both sides of a moment.
        let now = clock::seconds();
        let since = files.names.newest().map_or(now, |newest| newest.time.min(now));
        self.set_moment(policy, since);
        files.rule.forget_edge();
        files.policy.store(policy);
        Ok(())
    }

    /// Takes the name of the newest segment from the directory.
    fn recall_name(self) -> Result<()> {
        let core = self.prepare.writer.core;
        let listing = Listing::read(&core.files.dir)?;
        let allocated = core.words().allocated_end();
        if let Some(file) = listing.files.last()
            && let Some(time) = file.time
            && !file.is_compressed()
            && core.files.segment_end(file.first).get() == allocated
        {
            let (before, is_continuation) =
                (listing.newest_group().len() - 1, file.is_continuation);
            let group_bytes = TextLog::of(core).text_len_of(&listing.newest_group()[..before])?;
            let newest = Newest { first: file.first, time, is_continuation, group_bytes };
            core.words().files.names.store(newest);
        }
        Ok(())
    }
}

/// Changes the policy as `wish` says, for all processes, and stores it in the words.
pub(crate) fn join(writer: Writer<'_>, update: &PolicyUpdate) -> Result<()> {
    let words = writer.core.words();
    let followed = words.files.policy.load();
    let is_settled = followed.is_some_and(|policy| update.applied_to(policy) == policy);
    let rotates = writer.core.files.geometry.layout.rotates();
    // Most framed logs have no policy, and need no lock to know that.
    let has_none = || !rotates && update.is_empty() && stored(writer.core) == Policy::default();
    if is_settled || followed.is_none() && has_none() {
        return Ok(());
    }
    let prepare = writer.lock_prepare()?;
    let stored = stored(writer.core);
    let policy = update.applied_to(stored);
    words.files.policy.unload();
    if policy != stored {
        store(writer.core, &policy)?;
    }
    if rotates {
        return TextSpace::of(&prepare).follow(&policy);
    }
    words.files.policy.store(&policy);
    Ok(())
}
