//! The state of a log, as others see it: positions, segments, participants.

use std::path::PathBuf;
use std::sync::Arc;

use rustix::io::Errno;

use crate::error::OsResult;
use crate::files::gap::{self, Gap};
use crate::identity::Recovery;
use crate::log::commit::commit_path::{self, CommitPathStat};
use crate::log::keep::cursors;
use crate::log::keep::cursors::stat::CursorStat;
use crate::log::layout::text::policy;
use crate::log::repair::read_limit::ReadLimit;
use crate::log::report::metrics::{self, RemovedFiles, RemovedStat};
use crate::log::ship::state::{self as ship_state, ShipState};
use crate::log::state::core::Core;
use crate::log::state::extent;
use crate::log::state::holds::{self, Hold, InFlight, ProcessState};
use crate::log::state::{identity, poison};
use crate::options::choice::named;
use crate::options::policy::Policy;
use crate::segment::listing::Listing;
use crate::segment::{SPARE_SUFFIX, names};
use crate::shared::ends::CommitStat;
use crate::shared::participants::{self, Owner};
use crate::shared::tail_word;
use crate::sys::filesystem::Filesystem;
use crate::{Fill, Layout, LogId, Lsn, Preallocate, Result};

/// The state of a log at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stat {
    /// Which log this is. `None` where an earlier version made it and no process has opened it for
    /// writing since.
    pub log_id: Option<LogId>,
    /// Grows whenever positions may be given out again that were visible: after a power cut, in a
    /// copy, with [`Log::truncate`](crate::Log::truncate). 0 without an id.
    pub epoch: u64,
    /// The application's mark of its records:
    /// [`Options::application_tag`](crate::Options::application_tag).
    pub application_tag: Option<u64>,
    /// The outcome of the newest recovery, by any process.
    pub last_recovery: Option<Recovery>,
    /// Between which positions [`repair`](crate::repair) or a
    /// [restore](crate::ship::Restorer::gap) left out records of a framed log; others between them
    /// were saved.
    pub lost: Option<(Lsn, Lsn)>,
    /// How records lie in the segments.
    pub layout: Layout,
    /// Whether each record has an [envelope](crate::Options::envelope).
    pub has_envelope: bool,
    /// When a text log continues in a new file, and which of its files a log keeps.
    pub policy: Policy,
    /// Oldest position still kept.
    pub begin: Lsn,
    /// End of the records that survive a power cut.
    pub durable: Lsn,
    /// End of the records that readers can see.
    pub published: Lsn,
    /// End of the reserved space.
    pub tail: Lsn,
    /// Bytes of log from `begin` to `published`.
    pub kept_bytes: u64,
    /// Bytes of log from `durable` to `published`: a power cut may take them.
    pub unsynced_bytes: u64,
    /// End of the last segment that exists.
    pub prepared_end: Lsn,
    /// Bytes of log per segment.
    pub segment_capacity_bytes: u64,
    /// How file space is made ready.
    pub preallocate: Preallocate,
    /// Why that.
    pub preallocate_reason: String,
    /// How records are written to the segment files.
    pub fill: Fill,
    /// Why that.
    pub fill_reason: String,
    /// The file that advised what the program left open, in the process that created the log.
    pub advice: Option<PathBuf>,
    /// The filesystem the log is on.
    pub filesystem: String,
    /// Whether this process can make the name of the log's directory survive a power cut: it cannot
    /// where it may not read the directory above. Records are as durable as ever; but a directory
    /// that was made a moment ago may be missing after a power cut, with all that is in it. So make
    /// it beforehand, or as a user that may.
    pub can_sync_name: bool,
    /// Records that were appended since the control file was made.
    pub records: u64,
    /// Bytes of log that they take: payloads, headers and padding.
    pub record_bytes: u64,
    /// Segments that were made since then.
    pub segments_made: u64,
    /// Reservations of dead participants that survivors padded.
    pub repairs: u64,
    /// Bytes of those.
    pub repaired_bytes: u64,
    /// Records that were [dropped](crate::OnFull::Drop) since the control file was made.
    pub dropped: u64,
    /// How often dropping appends have looked for space in vain, since then: at most 20 times a
    /// second for all together, and once more for a record that is shorter than those before.
    pub full_tries: u64,
    /// The files that the policy has removed since the control file was made.
    pub removed: RemovedStat,
    /// Files that the log has dropped, and that are still there: those that another user has made
    /// in a sticky directory, for example. They are removed when a user opens the log that may
    /// remove them.
    pub left_over: RemovedFiles,
    /// Where records lie in memory until they are committed, in a log that stages them.
    pub stage: Option<PathBuf>,
    /// Bytes that wait there.
    pub staged_bytes: u64,
    /// Position stored by [`Checkpoint::set`](crate::Checkpoint::set), or zero.
    pub checkpoint: Lsn,
    /// How this process brings commit groups to the device, in a log that stages records.
    pub commit_path: Option<CommitPathStat>,
    /// Counts of commits since the control file was made.
    pub commits: CommitStat,
    /// Why nothing more can be made durable until the log is opened anew.
    pub poison: Option<String>,
    /// The files, oldest first, spares last.
    pub segments: Vec<SegmentStat>,
    /// Files that are missing, empty or cut short although the log has not removed them. Checks
    /// names and lengths alone: [`Log::verify`](crate::Log::verify) finds damage inside of files.
    pub gaps: Vec<Gap>,
    /// The named cursors, in the order of their names.
    pub cursors: Vec<CursorStat>,
    /// Why the cursors cannot be read. Then no file is removed: one of them may hold it.
    pub cursors_fault: Option<String>,
    /// How the log is shipped to another machine, if it is.
    pub ship: ShipState,
    /// The attached processes.
    pub participants: Vec<ParticipantStat>,
    /// The holds that others may wait for, at this moment: in a busy log something is held nearly
    /// always, and for microseconds.
    pub holds: Vec<Hold>,
}

/// A segment file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SegmentStat {
    /// The file.
    pub path: PathBuf,
    /// First position it can hold; 0 for a spare.
    pub first_lsn: Lsn,
    /// End of the positions reserved in it; 0 for a spare.
    pub end_lsn: Lsn,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Bytes of blocks it occupies.
    pub allocated_bytes: u64,
    /// Where it is in its life.
    pub state: SegmentState,
}

/// Where a segment is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentState {
    /// Full: no more records, ever.
    Sealed,
    /// The one that records go to.
    Active,
    /// Made ready ahead of need.
    Prepared,
    /// Trimmed, and kept to be used again.
    Spare,
}

named!(SegmentState, Sealed = "sealed", Active = "active", Prepared = "prepared", Spare = "spare");

/// A process that is attached, or died while it was.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ParticipantStat {
    /// Its place.
    pub index: u32,
    /// Its process number, in its own PID namespace.
    pub pid: u32,
    /// Whether it lives.
    pub alive: bool,
    /// Whether it lives but does not continue by itself: [`ProcessState::Stopped`]. Its records in
    /// flight hold back the published end until it does.
    pub stopped: bool,
    /// The ranges that it has reserved and not published.
    pub in_flight: Vec<InFlight>,
}

/// Looks at everything, changes nothing.
pub(crate) fn stat(core: &Arc<Core>) -> Result<Stat> {
    let (cursors, cursors_fault) = match cursors::stat::stat(core) {
        Ok(cursors) => (cursors, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let metrics = metrics::metrics(core);
    let prepared_end = core.words().allocated_end();
    let identity = identity::current(core);
    let identity = identity.as_ref();
    Ok(Stat {
        log_id: identity.map(|identity| identity.id),
        epoch: identity.map_or(0, |identity| identity.epoch),
        application_tag: identity.map(|identity| identity.tag).filter(|tag| *tag != 0),
        lost: identity.and_then(|identity| identity.lost),
        last_recovery: identity.and_then(|identity| identity.recovery).or(core.opened.recovery),
        layout: core.files.geometry.layout,
        has_envelope: core.files.geometry.has_envelope,
        policy: policy::of(core),
        begin: metrics.begin,
        durable: metrics.durable,
        published: metrics.published,
        tail: metrics.tail,
        kept_bytes: extent::bytes_between(core, metrics.begin, metrics.published)?,
        unsynced_bytes: extent::bytes_between(core, metrics.durable, metrics.published)?,
        prepared_end: Lsn::new(prepared_end),
        segment_capacity_bytes: core.files.capacity(),
        preallocate: core.files.geometry.preallocate,
        preallocate_reason: preallocate_reason(core),
        fill: core.files.geometry.fill,
        fill_reason: fill_reason(core),
        advice: core.opened.advice.clone(),
        filesystem: core.ready.filesystem.name(),
        can_sync_name: core.files.dir.can_sync_own_name(),
        records: metrics.records,
        record_bytes: metrics.record_bytes,
        segments_made: metrics.segments_made,
        repairs: metrics.repairs,
        repaired_bytes: metrics.repaired_bytes,
        dropped: metrics.dropped,
        full_tries: metrics.full_tries,
        removed: metrics.removed,
        left_over: left_over(core)?,
        stage: core
            .commits
            .stage
            .as_ref()
            .map(|stage| stage.path(core.files.segment_of(metrics.tail))),
        staged_bytes: metrics.staged_bytes,
        checkpoint: metrics.checkpoint,
        commit_path: commit_path::stat(core),
        commits: metrics.commits,
        poison: metrics.is_poisoned.then(|| poison::error(core).to_string()),
        segments: segments(core, metrics.tail)?,
        gaps: gaps(core)?,
        cursors,
        cursors_fault,
        // A fault of the cursors is told above.
        ship: ship_state::state(core).or_else(|_| ship_state::without_hold(core))?,
        participants: participants(core),
        holds: metrics.holds,
    })
}

fn gaps(core: &Core) -> Result<Vec<Gap>> {
    let begin = core.begin();
    // What the dead had reserved may be all that a file was to hold.
    let (end, filled_end) = (ReadLimit::of(core).end, tail_word::published(core.words()));
    core.check_region()?;
    // After that: files are there before anything is reserved in them.
    gap::gaps(core, begin..end, filled_end)
}

fn preallocate_reason(core: &Core) -> String {
    let name = core.ready.filesystem.name();
    match core.files.geometry.preallocate {
        Preallocate::Auto if core.commits.stage.is_some() => {
            "written zeros, synced ahead of need, because overwriting written blocks is the \
             cheapest commit; trimmed segments are used again"
                .into()
        }
        Preallocate::Auto if core.ready.filesystem == Filesystem::Btrfs => {
            "nothing ahead: btrfs writes a block that is written again to another place".into()
        }
        Preallocate::Auto => format!("fallocate where {name} supports it, zeros ahead of the tail"),
        Preallocate::Off => "chosen: the file grows with the log".into(),
        Preallocate::Sparse => "chosen: a size without blocks".into(),
        Preallocate::Fallocate => "chosen: blocks by fallocate".into(),
        Preallocate::Zeros => "chosen: whole segments written with zeros".into(),
        _ => "chosen: trimmed segments are used again".into(),
    }
}

fn fill_reason(core: &Core) -> String {
    match (core.files.geometry.fill, core.ready.filesystem.mapping_hazard()) {
        (Fill::Mapped, None) => "a full disk cannot make a store fail here".into(),
        (Fill::Mapped, Some(hazard)) => format!("chosen although {hazard}"),
        (Fill::Staged, _) => "chosen: staged beside the segments, written when committed".into(),
        (_, Some(hazard)) => hazard.into(),
        (_, None) => "chosen when the log was created".into(),
    }
}

fn left_over(core: &Core) -> Result<RemovedFiles> {
    let files = Listing::read(&core.files.dir)?.files;
    let left_over = &files[..Listing::count_before(&files, core.begin())];
    // One that has just been removed has no length.
    let bytes = left_over.iter().map(|file| file.text_len(&core.files.dir).unwrap_or(0)).sum();
    Ok(RemovedFiles { files: left_over.len() as u64, bytes })
}

fn segments(core: &Core, tail: Lsn) -> Result<Vec<SegmentStat>> {
    let active = core.files.segment_of(tail);
    let mut all = Vec::new();
    for file in Listing::read(&core.files.dir)?.files {
        let first = file.first;
        let state = match first.cmp(&active) {
            std::cmp::Ordering::Less => SegmentState::Sealed,
            std::cmp::Ordering::Equal => SegmentState::Active,
            std::cmp::Ordering::Greater => SegmentState::Prepared,
        };
        let compressed = file.content_len(&core.files.dir).unwrap_or_default();
        let segment = segment(core, file.path, first, tail, state)?;
        all.extend(segment.map(|segment| match compressed {
            Some(len) => SegmentStat { end_lsn: Lsn::new(first.get() + len), ..segment },
            None => segment,
        }));
    }
    for name in names(&core.files.dir)?.iter().filter(|name| name.ends_with(SPARE_SUFFIX)) {
        let path = core.files.dir.join(name);
        all.extend(segment(core, path, Lsn::ZERO, Lsn::ZERO, SegmentState::Spare)?);
    }
    Ok(all)
}

/// `None` for a file that was removed meanwhile.
fn segment(
    core: &Core,
    path: PathBuf,
    first: Lsn,
    tail: Lsn,
    state: SegmentState,
) -> Result<Option<SegmentStat>> {
    let metadata = match core.files.dir.stat(&path) {
        Err(Errno::NOENT) => return Ok(None),
        answer => answer.or_os("look at", &path)?,
    };
    let file_bytes = metadata.st_size as u64;
    let end = match state {
        SegmentState::Spare | SegmentState::Prepared => first,
        SegmentState::Active => tail,
        SegmentState::Sealed if !core.files.geometry.layout.ends_with_records() => {
            core.files.segment_end(first)
        }
        SegmentState::Sealed => {
            let data = file_bytes.saturating_sub(core.files.geometry.layout.file_header_len());
            Lsn::new(first.get() + data.min(core.files.capacity()))
        }
    };
    let allocated_bytes = metadata.st_blocks as u64 * 512;
    Ok(Some(SegmentStat {
        path,
        first_lsn: first,
        end_lsn: end,
        file_bytes,
        allocated_bytes,
        state,
    }))
}

fn participants(core: &Core) -> Vec<ParticipantStat> {
    let words = core.words();
    let known = participants::attached(words).map(|(owner, place)| {
        let incarnation = participants::incarnation(place);
        let state = holds::state_of(core, owner, &incarnation);
        ParticipantStat {
            index: owner.index() as u32,
            pid: incarnation.pid,
            alive: state != ProcessState::Dead,
            stopped: state == ProcessState::Stopped,
            in_flight: in_flight(core, owner),
        }
    });
    let mut known: Vec<ParticipantStat> = known.collect();
    // The dead count while others may meet what they left; the next opener makes an end of that.
    if !known.iter().any(|participant| participant.alive) {
        known.retain(|participant| !participant.in_flight.is_empty());
    }
    known
}

fn in_flight(core: &Core, owner: Owner) -> Vec<InFlight> {
    let words = core.words();
    let seen = tail_word::load(words);
    (0..tail_word::used_slots(words))
        .filter(|slot| participants::owner_of(words, *slot) == Some(owner))
        .filter_map(|slot| tail_word::granted(words, slot, seen))
        .map(|range| InFlight { first_lsn: range.start, bytes: range.len })
        .collect()
}

impl Stat {
    /// The participant whose reservation holds the published end back, if one does.
    pub fn held_back_by(&self) -> Option<&ParticipantStat> {
        let is_oldest = |flight: &InFlight| flight.first_lsn == self.published;
        let holds = |p: &&ParticipantStat| p.in_flight.iter().any(is_oldest);
        self.participants.iter().find(holds).filter(|_| self.published < self.tail)
    }
}
