//! The state of a log, as plain dictionaries.

use std::time::{Duration, SystemTime};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use vellum::ship::ShipState;
use vellum::stat::{
    CursorStat, Damage, Hold, ParticipantStat, Policy, Recovery, RemovedFiles, SegmentStat, Stat,
    VerifyReport,
};
use vellum::{Gap, Lsn};
use vellum_ship_figures::Figures;

/// A dictionary of `name: value` pairs.
macro_rules! dict {
    ($py:expr, $($name:literal: $value:expr),+ $(,)?) => {{
        let dict = PyDict::new($py);
        $(dict.set_item($name, $value)?;)+
        Ok(dict)
    }};
}

type Made<'py> = PyResult<Bound<'py, PyDict>>;

pub(crate) fn stat<'py>(py: Python<'py>, stat: &Stat, figures: &Figures) -> Made<'py> {
    let last_recovery = stat.last_recovery.as_ref();
    dict!(py,
        "log_id": stat.log_id.map(|id| id.to_string()),
        "epoch": stat.epoch,
        "application_tag": stat.application_tag,
        "lost": stat.lost.map(|(from, end)| (from.get(), end.get())),
        "last_recovery": last_recovery.map(|found| recovery(py, found)).transpose()?,
        "layout": stat.layout.to_string(),
        "begin": stat.begin.get(),
        "durable": stat.durable.get(),
        "published": stat.published.get(),
        "tail": stat.tail.get(),
        "prepared_end": stat.prepared_end.get(),
        "checkpoint": stat.checkpoint.get(),
        "segment_capacity_bytes": stat.segment_capacity_bytes,
        "preallocate": stat.preallocate.to_string(),
        "fill": stat.fill.to_string(),
        "filesystem": &stat.filesystem,
        "can_sync_name": stat.can_sync_name,
        "policy": policy(py, &stat.policy)?,
        "records": stat.records,
        "record_bytes": stat.record_bytes,
        "segments_made": stat.segments_made,
        "staged_bytes": stat.staged_bytes,
        "repairs": stat.repairs,
        "repaired_bytes": stat.repaired_bytes,
        "dropped": stat.dropped,
        "removed": removed(py, stat)?,
        "gaps": list(py, &stat.gaps, gap)?,
        "commits": stat.commits.commits,
        "syncs": stat.commits.syncs,
        "synced_bytes": stat.commits.synced_bytes,
        "sync_micros": stat.commits.sync_micros.to_vec(),
        "sync_micros_sum": stat.commits.sync_micros_sum,
        "poison": &stat.poison,
        "segments": list(py, &stat.segments, segment)?,
        "cursors": list(py, &stat.cursors, cursor)?,
        "cursors_fault": &stat.cursors_fault,
        "participants": list(py, &stat.participants, participant)?,
        "holds": list(py, &stat.holds, hold)?,
        "envelope": stat.has_envelope,
        "ship": stat.ship.is_shipped().then(|| ship(py, &stat.ship, figures)).transpose()?,
    )
}

/// Seconds since 1970; `None` for a time before that.
fn seconds(time: SystemTime) -> Option<u64> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(since.as_secs())
}

/// Times in seconds since 1970; `None` where nothing tells.
fn ship<'py>(py: Python<'py>, state: &ShipState, figures: &Figures) -> Made<'py> {
    dict!(py,
        "status": state.status.as_str(),
        "fault": state.fault.map(|(fault, _)| fault.as_str()),
        "fault_number": state.fault.map(|(_, number)| number),
        "pid": state.pid,
        "generation": figures.generation,
        "shipped": state.shipped.get(),
        "shipped_at": figures.shipped_at.and_then(seconds),
        "lag_bytes": state.lag_bytes,
        "held_from": state.held_from.map(Lsn::get),
        "gap": state.gap.map(|(from, to)| (from.get(), to.get())),
        "puts": figures.puts,
        "gets": figures.gets,
        "log_bytes": figures.log_bytes,
        "sent_bytes": figures.sent_bytes,
        "retries": figures.retries,
    )
}

/// Times in seconds since 1970; `None` where nothing tells.
pub(crate) fn gap<'py>(py: Python<'py>, gap: &Gap) -> Made<'py> {
    dict!(py,
        "path": gap.path.as_os_str(),
        "from": gap.from.get(),
        "to": gap.to.get(),
        "bytes_max": gap.bytes_max,
        "after": gap.after.and_then(seconds),
        "before": gap.before.and_then(seconds),
        "text": gap.what(),
    )
}

/// Times in seconds; `None` where nothing tells, or for no limit.
pub(crate) fn cursor<'py>(py: Python<'py>, cursor: &CursorStat) -> Made<'py> {
    let since_1970 = |time| seconds(time).unwrap_or(0);
    let hold = cursor.hold.unwrap_or_default();
    dict!(py,
        "name": &cursor.name,
        "lsn": cursor.lsn.get(),
        "lag_bytes": cursor.lag_bytes,
        "lag_records": cursor.lag_records,
        "lag": cursor.lag_time.map(|time| time.as_secs()),
        "committed_at": since_1970(cursor.committed_at),
        "holds": cursor.hold.is_some(),
        "max_held_bytes": hold.max_bytes,
        "max_held_age": hold.max_age.map(|age| age.as_secs()),
        "owned": cursor.is_owned,
        "owner": cursor.owner,
        "missing_bytes": cursor.missing_bytes,
        "overruns": cursor.overruns,
        "overrun_bytes": cursor.overrun_bytes,
        "overrun_at": cursor.overrun_at.map(since_1970),
    )
}

/// Files that the policy has removed, by the rule that each went by, and those that it could not
/// remove.
fn removed<'py>(py: Python<'py>, stat: &Stat) -> Made<'py> {
    let files = |of: RemovedFiles| -> PyResult<Bound<'py, PyDict>> {
        dict!(py, "files": of.files, "bytes": of.bytes,)
    };
    dict!(py,
        "by_bytes": files(stat.removed.by_bytes)?,
        "by_age": files(stat.removed.by_age)?,
        "by_files": files(stat.removed.by_files)?,
        "left_over": files(stat.left_over)?,
    )
}

/// Times in seconds; `None` is no limit.
fn policy<'py>(py: Python<'py>, policy: &Policy) -> Made<'py> {
    let seconds = |span: Option<Duration>| span.map(|span| span.as_secs());
    dict!(py,
        "rotate_bytes": policy.rotate_bytes,
        "rotate_every": seconds(policy.rotate_every),
        "rotate_offset": policy.rotate_offset.as_secs(),
        "retain_bytes": policy.retain_bytes,
        "retain_age": seconds(policy.retain_age),
        "retain_files": policy.retain_files,
        "compress": policy.compression.to_string(),
    )
}

fn segment<'py>(py: Python<'py>, segment: &SegmentStat) -> Made<'py> {
    dict!(py,
        "path": segment.path.as_os_str(),
        "first_lsn": segment.first_lsn.get(),
        "end_lsn": segment.end_lsn.get(),
        "file_bytes": segment.file_bytes,
        "allocated_bytes": segment.allocated_bytes,
        "state": segment.state.to_string(),
    )
}

fn participant<'py>(py: Python<'py>, participant: &ParticipantStat) -> Made<'py> {
    let in_flight: Vec<(u64, u64)> =
        participant.in_flight.iter().map(|held| (held.first_lsn.get(), held.bytes)).collect();
    dict!(py,
        "index": participant.index,
        "pid": participant.pid,
        "alive": participant.alive,
        "stopped": participant.stopped,
        "in_flight": in_flight,
    )
}

fn hold<'py>(py: Python<'py>, hold: &Hold) -> Made<'py> {
    dict!(py,
        "what": hold.what.to_string(),
        "pid": hold.pid,
        "other_namespace": hold.other_namespace,
        "state": hold.state.to_string(),
        "waited": hold.waited.map(|time| time.as_secs_f64()),
        "range": hold.range.map(|range| (range.first_lsn.get(), range.bytes)),
        "text": hold.to_string(),
    )
}

pub(crate) fn verify<'py>(py: Python<'py>, report: &VerifyReport) -> Made<'py> {
    dict!(py,
        "records": report.records,
        "record_bytes": report.record_bytes,
        "pads": report.pads,
        "pad_bytes": report.pad_bytes,
        "commit_records": report.commit_records,
        "batches": report.batches,
        "begin": report.begin.get(),
        "end": report.end.get(),
        "damage": list(py, &report.damage, damage)?,
    )
}

fn damage<'py>(py: Python<'py>, damage: &Damage) -> Made<'py> {
    dict!(py,
        "path": damage.path.as_os_str(),
        "offset": damage.offset,
        "lsn": damage.lsn.get(),
        "reason": &damage.reason,
    )
}

pub(crate) fn recovery<'py>(py: Python<'py>, recovery: &Recovery) -> Made<'py> {
    dict!(py,
        "end": recovery.end.get(),
        "durable": recovery.durable.get(),
        "cut_bytes": recovery.cut_bytes,
        "padded_bytes": recovery.padded_bytes,
        "from": recovery.from.get(),
        "reason": recovery.reason.name(),
        "time": seconds(recovery.time).unwrap_or(0),
    )
}

fn list<'py, T>(
    py: Python<'py>,
    items: &[T],
    to_dict: fn(Python<'py>, &T) -> Made<'py>,
) -> PyResult<Bound<'py, PyList>> {
    let dicts = items.iter().map(|item| to_dict(py, item)).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, dicts)
}
