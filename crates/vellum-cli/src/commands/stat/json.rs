//! The state of a log as JSON. Names and units are those of the library's `Stat`.

use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;
use vellum_command::outcome::{Result, as_typed};
use vellum_command::output;

use super::commits;
use super::identity::JsonIdentity;
use super::logs::{Found, State};
use super::policy::{JsonPolicy, JsonRemoved, has_policy};
use super::rates::Rates;
use super::ship::JsonShip;
use crate::commands::cursor::JsonCursor;

#[derive(Serialize)]
struct Stat<'a> {
    log: String,
    #[serde(flatten)]
    identity: JsonIdentity,
    layout: String,
    envelope: bool,
    begin: u64,
    durable: u64,
    published: u64,
    tail: u64,
    kept_bytes: u64,
    unsynced_bytes: u64,
    disk_bytes: u64,
    prepared_end: u64,
    segment_capacity_bytes: u64,
    filesystem: String,
    can_sync_name: bool,
    preallocate: String,
    preallocate_reason: String,
    fill: String,
    fill_reason: String,
    records: u64,
    record_bytes: u64,
    segments_made: u64,
    staged_bytes: u64,
    repairs: u64,
    repaired_bytes: u64,
    dropped: u64,
    /// `null` for a framed log that has none.
    policy: Option<JsonPolicy>,
    /// `null` for a framed log without a policy.
    removed: Option<JsonRemoved>,
    checkpoint: u64,
    commits: Commits,
    /// `null` for a log that is not staged.
    commit_path: Option<CommitPath>,
    /// Segments that are ready beyond the active one, without spares.
    prepared_segments: u64,
    poison: Option<String>,
    /// Index and process number of the participant that holds `published` back.
    held_back_by: Option<Holder>,
    segments: Vec<Segment>,
    /// Files that are missing, empty or cut short.
    gaps: Vec<Gap>,
    cursors: Vec<JsonCursor>,
    /// Why the cursors cannot be read.
    cursors_fault: Option<String>,
    /// `null` for a log that is not shipped.
    ship: Option<JsonShip>,
    participants: Vec<Participant>,
    holds: Vec<Hold>,
    /// The records of the last second, with --watch.
    #[serde(skip_serializing_if = "Option::is_none")]
    rates: Option<&'a Rates>,
}

#[derive(Serialize)]
struct Commits {
    commits: u64,
    syncs: u64,
    commits_per_sync: Option<f64>,
    synced_bytes: u64,
    /// Entry `i` counts syncs of less than 2^i microseconds that are in no earlier one, the last
    /// all longer ones too.
    sync_micros: [u64; 24],
    /// How long they took together.
    sync_micros_sum: u64,
    /// Half of the syncs, and 99 of 100, take no longer than these.
    sync_micros_p50: Option<u64>,
    sync_micros_p99: Option<u64>,
}

#[derive(Serialize)]
struct Holder {
    index: u32,
    pid: u32,
}

#[derive(Serialize)]
struct Segment {
    path: String,
    state: String,
    first_lsn: u64,
    end_lsn: u64,
    file_bytes: u64,
    allocated_bytes: u64,
}

#[derive(Serialize)]
struct Gap {
    path: String,
    reason: String,
    first_lsn: u64,
    end_lsn: u64,
    /// How many bytes are missing, at most.
    bytes_max: u64,
    /// Between which moments they were appended, in seconds since 1970; `null` where nothing tells.
    after_seconds: Option<u64>,
    before_seconds: Option<u64>,
}

#[derive(Serialize)]
struct Participant {
    index: u32,
    pid: u32,
    alive: bool,
    stopped: bool,
    in_flight: Vec<InFlight>,
}

/// Something that others may wait for.
#[derive(Serialize)]
struct Hold {
    what: String,
    /// `null` where it cannot be told.
    pid: Option<u32>,
    other_namespace: bool,
    state: String,
    /// For how long others have waited; `null` where none had to.
    waited_us: Option<u64>,
    /// Of a batch or an append.
    first_lsn: Option<u64>,
    bytes: Option<u64>,
}

#[derive(Serialize)]
struct InFlight {
    first_lsn: u64,
    bytes: u64,
}

/// Prints a log as one line.
pub(super) fn print(found: &Found) -> Result<()> {
    match &found.state {
        Ok(state) => output::print_json(&Stat::new(&found.path, state)),
        Err(error) => {
            let log = found.path.display().to_string();
            output::print_json(&Unseen { log, error: as_typed(error) })
        }
    }
}

/// One of many logs that cannot be looked at.
#[derive(Serialize)]
struct Unseen {
    log: String,
    error: String,
}

impl<'a> Stat<'a> {
    fn new(log: &Path, State { stat, figures, disk_bytes, rates, .. }: &'a State) -> Stat<'a> {
        let holder = stat.held_back_by();
        let epoch = stat.log_id.zip(Some(stat.epoch));
        Stat {
            log: log.display().to_string(),
            identity: JsonIdentity::from(stat),
            layout: stat.layout.to_string(),
            envelope: stat.has_envelope,
            begin: stat.begin.get(),
            durable: stat.durable.get(),
            published: stat.published.get(),
            tail: stat.tail.get(),
            kept_bytes: stat.kept_bytes,
            unsynced_bytes: stat.unsynced_bytes,
            disk_bytes: *disk_bytes,
            prepared_end: stat.prepared_end.get(),
            segment_capacity_bytes: stat.segment_capacity_bytes,
            filesystem: stat.filesystem.clone(),
            can_sync_name: stat.can_sync_name,
            preallocate: stat.preallocate.to_string(),
            preallocate_reason: stat.preallocate_reason.clone(),
            fill: stat.fill.to_string(),
            fill_reason: stat.fill_reason.clone(),
            records: stat.records,
            record_bytes: stat.record_bytes,
            segments_made: stat.segments_made,
            staged_bytes: stat.staged_bytes,
            repairs: stat.repairs,
            repaired_bytes: stat.repaired_bytes,
            dropped: stat.dropped,
            policy: has_policy(stat).then(|| JsonPolicy::from(&stat.policy)),
            removed: has_policy(stat).then(|| JsonRemoved::from(stat)),
            checkpoint: stat.checkpoint.get(),
            commits: Commits::from(&stat.commits),
            commit_path: stat.commit_path.as_ref().map(CommitPath::from),
            prepared_segments: commits::prepared_segments(stat),
            poison: stat.poison.clone(),
            held_back_by: holder.map(|holder| Holder { index: holder.index, pid: holder.pid }),
            segments: stat.segments.iter().map(Segment::from).collect(),
            gaps: stat.gaps.iter().map(Gap::from).collect(),
            cursors: stat.cursors.iter().map(|cursor| JsonCursor::new(cursor, epoch)).collect(),
            cursors_fault: stat.cursors_fault.clone(),
            ship: stat.ship.is_shipped().then(|| JsonShip::new(&stat.ship, figures)),
            participants: stat.participants.iter().map(Participant::from).collect(),
            holds: stat.holds.iter().map(Hold::from).collect(),
            rates: rates.as_ref(),
        }
    }
}

impl From<&vellum::stat::CommitStat> for Commits {
    fn from(stat: &vellum::stat::CommitStat) -> Commits {
        Commits {
            commits: stat.commits,
            syncs: stat.syncs,
            commits_per_sync: commits::per_sync(stat),
            synced_bytes: stat.synced_bytes,
            sync_micros: stat.sync_micros,
            sync_micros_sum: stat.sync_micros_sum,
            sync_micros_p50: commits::percentile_micros(stat, 50),
            sync_micros_p99: commits::percentile_micros(stat, 99),
        }
    }
}

impl From<&vellum::Gap> for Gap {
    fn from(gap: &vellum::Gap) -> Gap {
        let seconds = |time: Option<SystemTime>| {
            Some(time?.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs())
        };
        Gap {
            path: gap.path.display().to_string(),
            reason: gap.reason.clone(),
            first_lsn: gap.from.get(),
            end_lsn: gap.to.get(),
            bytes_max: gap.bytes_max,
            after_seconds: seconds(gap.after),
            before_seconds: seconds(gap.before),
        }
    }
}

impl From<&vellum::stat::SegmentStat> for Segment {
    fn from(segment: &vellum::stat::SegmentStat) -> Segment {
        Segment {
            path: segment.path.display().to_string(),
            state: segment.state.to_string(),
            first_lsn: segment.first_lsn.get(),
            end_lsn: segment.end_lsn.get(),
            file_bytes: segment.file_bytes,
            allocated_bytes: segment.allocated_bytes,
        }
    }
}

impl From<&vellum::stat::Hold> for Hold {
    fn from(hold: &vellum::stat::Hold) -> Hold {
        Hold {
            what: hold.what.to_string(),
            pid: hold.pid,
            other_namespace: hold.other_namespace,
            state: hold.state.to_string(),
            waited_us: hold.waited.map(|time| time.as_micros() as u64),
            first_lsn: hold.range.map(|range| range.first_lsn.get()),
            bytes: hold.range.map(|range| range.bytes),
        }
    }
}

impl From<&vellum::stat::ParticipantStat> for Participant {
    fn from(participant: &vellum::stat::ParticipantStat) -> Participant {
        let flights = participant.in_flight.iter();
        Participant {
            index: participant.index,
            pid: participant.pid,
            alive: participant.alive,
            stopped: participant.stopped,
            in_flight: flights
                .map(|flight| InFlight { first_lsn: flight.first_lsn.get(), bytes: flight.bytes })
                .collect(),
        }
    }
}

/// How commit groups get to the device.
#[derive(Serialize)]
struct CommitPath {
    path: String,
    write: String,
    block_bytes: u64,
    lanes: u32,
    origin: String,
    reason: String,
    /// In seconds since 1970; `null` where nothing is stored for this device.
    stored_at_seconds: Option<u64>,
    device: String,
    physical_block_bytes: Option<u64>,
    volatile_cache: Option<bool>,
    safe_block_bytes: u64,
}

impl From<&vellum::stat::CommitPathStat> for CommitPath {
    fn from(found: &vellum::stat::CommitPathStat) -> CommitPath {
        let since = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).ok();
        CommitPath {
            path: found.path.to_string(),
            write: found.path.write.to_string(),
            block_bytes: found.path.block_bytes,
            lanes: found.path.lanes,
            origin: found.origin.to_string(),
            reason: found.reason.clone(),
            stored_at_seconds: found.stored_at.and_then(since).map(|since| since.as_secs()),
            device: found.device.clone(),
            physical_block_bytes: found.physical_block_bytes,
            volatile_cache: found.has_volatile_cache,
            safe_block_bytes: found.safe_block_bytes,
        }
    }
}
