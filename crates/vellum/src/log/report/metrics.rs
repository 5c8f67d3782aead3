//! The numbers of a log that a monitor collects: positions, counts and holds.

use crate::Lsn;
use crate::log::state::core::Core;
use crate::log::state::holds::{self, Hold};
use crate::shared::ends::CommitStat;
use crate::shared::files::RemovalRule;
use crate::shared::words::RemovedWords;
use crate::shared::{commit, participants, tail_word};

/// The figures of a log for a monitor ([`Log::metrics`](crate::Log::metrics)).
///
/// Counts begin at zero when the control file is made: when the log is created, after a reboot, and
/// after a recovery. They are shared by all processes that have the log open.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// Oldest position still kept.
    pub begin: Lsn,
    /// End of the records that survive a power cut.
    pub durable: Lsn,
    /// End of the records that readers can see.
    pub published: Lsn,
    /// End of the reserved space.
    pub tail: Lsn,
    /// Position stored by [`Checkpoint::set`](crate::Checkpoint::set), or zero.
    pub checkpoint: Lsn,
    /// Records that were appended.
    pub records: u64,
    /// Bytes of log that they take: payloads, headers and padding.
    pub record_bytes: u64,
    /// Segments that were made: files that a text log rotated to; files of a framed log.
    pub segments_made: u64,
    /// Bytes that wait in the stage until they are committed, in a log that stages them.
    pub staged_bytes: u64,
    /// Reservations of dead participants that survivors padded.
    pub repairs: u64,
    /// Bytes of those.
    pub repaired_bytes: u64,
    /// Records that were [dropped](crate::OnFull::Drop).
    pub dropped: u64,
    /// How often dropping appends have looked for space in vain: at most 20 times a second for all
    /// together, and once more for a record that is shorter than those before.
    pub full_tries: u64,
    /// The files that the policy has removed.
    pub removed: RemovedStat,
    /// Counts of commits.
    pub commits: CommitStat,
    /// Processes that have the log open for writing, or died while they had.
    pub participants: u64,
    /// Whether nothing more can be made durable until the log is opened anew.
    pub is_poisoned: bool,
    /// The holds that others may wait for, at this moment.
    pub holds: Vec<Hold>,
}

/// Files that the policy of a text log has removed, by the rule that each went by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovedStat {
    /// By [`retain_bytes`](crate::Options::retain_bytes).
    pub by_bytes: RemovedFiles,
    /// By [`retain_age`](crate::Options::retain_age).
    pub by_age: RemovedFiles,
    /// By [`retain_files`](crate::Options::retain_files).
    pub by_files: RemovedFiles,
}

/// How much was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovedFiles {
    /// Files.
    pub files: u64,
    /// Bytes of text in them.
    pub bytes: u64,
}

/// Reads shared words, and the states of holders from `/proc`. Changes nothing.
pub(crate) fn metrics(core: &Core) -> Metrics {
    let words = core.words();
    let (records, record_bytes) = tail_word::appended(words);
    let (repairs, repaired_bytes) = tail_word::repairs(words);
    let tail = tail_word::tail(words);
    Metrics {
        begin: core.begin(),
        durable: commit::durable(&words.commits),
        published: tail_word::published(words),
        tail,
        checkpoint: words.commits.checkpoint(),
        records,
        record_bytes,
        segments_made: words.segments_made(),
        staged_bytes: staged_bytes(core, tail),
        repairs,
        repaired_bytes,
        dropped: words.full.dropped(),
        full_tries: words.full.tries(),
        removed: removed_stat(&words.removed),
        commits: words.commits.counts.counts(),
        participants: participants::attached(words).count() as u64,
        is_poisoned: commit::is_poisoned(&words.commits),
        holds: holds::holds(core),
    }
}

fn staged_bytes(core: &Core, tail: Lsn) -> u64 {
    let durable = commit::durable(&core.words().commits);
    core.commits.stage.as_ref().map_or(0, |_| tail.get().saturating_sub(durable.get()))
}

fn removed_stat(words: &RemovedWords) -> RemovedStat {
    let by = |rule| {
        let (files, bytes) = words.removed_by(rule);
        RemovedFiles { files, bytes }
    };
    RemovedStat {
        by_bytes: by(RemovalRule::Bytes),
        by_age: by(RemovalRule::Age),
        by_files: by(RemovalRule::Files),
    }
}
