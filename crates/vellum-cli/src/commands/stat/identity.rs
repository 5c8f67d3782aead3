//! Which log it is, for people and as JSON: its id, its epoch, its newest recovery.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use vellum::stat::{Recovery, Stat};

use crate::table::{age, bytes};

/// The facts for people.
pub(super) fn facts(stat: &Stat, has_positions: bool) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(id) = stat.log_id {
        facts.push(("log id", id.to_string()));
        facts.push(("epoch", stat.epoch.to_string()));
    }
    facts.extend(stat.application_tag.map(|tag| ("tag", tag_text(tag))));
    if let Some((from, end)) = stat.lost {
        facts.push(("left out", format!("records between {from} and {end}, which were lost")));
    }
    if let Some(recovery) = &stat.last_recovery {
        facts.push(("recovered", told(recovery)));
        if has_positions {
            facts.push(("", format!("the same as before up to {}", recovery.from)));
        }
    }
    facts
}

fn told(recovery: &Recovery) -> String {
    let ago = age(recovery.time.elapsed().unwrap_or_default());
    let reason = recovery.reason;
    let (cut, padded) = (bytes(recovery.cut_bytes), bytes(recovery.padded_bytes));
    format!("{ago}: {reason}; {cut} cut, {padded} filled in")
}

fn tag_text(tag: u64) -> String {
    format!("{tag:#018x}")
}

/// The part of this that goes into JSON.
#[derive(Serialize)]
pub(super) struct JsonIdentity {
    /// 32 hexadecimal digits; `null` where an earlier version made the log.
    log_id: Option<String>,
    epoch: u64,
    /// Hexadecimal with `0x`, because numbers of JSON have 53 bits; `null` for none.
    application_tag: Option<String>,
    /// Between which positions records were left out; `null` where none were.
    lost: Option<[u64; 2]>,
    last_recovery: Option<JsonRecovery>,
}

#[derive(Serialize)]
struct JsonRecovery {
    /// In seconds since 1970.
    seconds: u64,
    reason: &'static str,
    end: u64,
    durable: u64,
    cut_bytes: u64,
    padded_bytes: u64,
    from: u64,
}

impl From<&Stat> for JsonIdentity {
    fn from(stat: &Stat) -> JsonIdentity {
        JsonIdentity {
            log_id: stat.log_id.map(|id| id.to_string()),
            epoch: stat.epoch,
            application_tag: stat.application_tag.map(tag_text),
            lost: stat.lost.map(|(from, end)| [from.get(), end.get()]),
            last_recovery: stat.last_recovery.as_ref().map(JsonRecovery::from),
        }
    }
}

impl From<&Recovery> for JsonRecovery {
    fn from(recovery: &Recovery) -> JsonRecovery {
        let since = recovery.time.duration_since(SystemTime::UNIX_EPOCH);
        JsonRecovery {
            seconds: since.unwrap_or(Duration::ZERO).as_secs(),
            reason: recovery.reason.name(),
            end: recovery.end.get(),
            durable: recovery.durable.get(),
            cut_bytes: recovery.cut_bytes,
            padded_bytes: recovery.padded_bytes,
            from: recovery.from.get(),
        }
    }
}
