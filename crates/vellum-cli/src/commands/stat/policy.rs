//! The policy of a log, for people and as JSON.

use std::time::Duration;

use serde::Serialize;
use vellum::stat::{Policy, RemovedFiles, RemovedStat, Stat};
use vellum::{Compression, Layout};

use crate::table::{bytes, count};

/// The library's `Policy`, spans in seconds; `null` is no limit.
#[derive(Serialize)]
pub(super) struct JsonPolicy {
    rotate_bytes: Option<u64>,
    rotate_every_seconds: Option<u64>,
    rotate_offset_seconds: u64,
    retain_bytes: Option<u64>,
    retain_age_seconds: Option<u64>,
    retain_files: Option<u64>,
    /// `none`, `zstd` or `gzip`.
    compress: String,
}

impl From<&Policy> for JsonPolicy {
    fn from(policy: &Policy) -> JsonPolicy {
        JsonPolicy {
            rotate_bytes: policy.rotate_bytes,
            rotate_every_seconds: policy.rotate_every.map(|span| span.as_secs()),
            rotate_offset_seconds: policy.rotate_offset.as_secs(),
            retain_bytes: policy.retain_bytes,
            retain_age_seconds: policy.retain_age.map(|span| span.as_secs()),
            retain_files: policy.retain_files,
            compress: policy.compression.to_string(),
        }
    }
}

/// Whether there is something to tell: a framed log usually has no policy.
pub(super) fn has_policy(stat: &Stat) -> bool {
    let keeps_all = stat.policy.retain_bytes.is_none() && stat.policy.retain_age.is_none();
    stat.layout == Layout::Text || !keeps_all
}

/// When it continues in a new file, and which ones it keeps.
pub(super) fn facts(stat: &Stat) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if stat.layout == Layout::Text {
        facts.push(("rotates", rotates(stat)));
    }
    if has_policy(stat) {
        facts.push(("keeps", keeps(&stat.policy)));
        facts.extend(removed(&stat.removed).map(|removed| ("removed", removed)));
    }
    facts.extend(left_over(stat.left_over).map(|left_over| ("left over", left_over)));
    facts
}

fn rotates(stat: &Stat) -> String {
    let policy = &stat.policy;
    let mut parts = Vec::new();
    if let Some(limit) = policy.rotate_bytes {
        parts.push(format!("at {}", bytes(limit)));
    }
    if let Some(every) = policy.rotate_every {
        parts.push(format!("every {}", span(every)));
    }
    if !policy.rotate_offset.is_zero() {
        parts.push(format!("moved by {}", span(policy.rotate_offset)));
    }
    if parts.is_empty() {
        parts.push("when it is asked to".into());
    }
    if policy.compression != Compression::None {
        parts.push(format!("and compresses what it has left with {}", policy.compression));
    }
    parts.join(", ")
}

fn keeps(policy: &Policy) -> String {
    let parts: Vec<String> = [
        policy.retain_bytes.map(bytes),
        policy.retain_age.map(|age| format!("{} after the last record", span(age))),
        policy.retain_files.map(|files| format!("{} beside the current one", count(files, "file"))),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() { "everything".into() } else { format!("at most {}", parts.join(", ")) }
}

/// Files that the policy has removed, by the rule that each went by.
#[derive(Serialize)]
pub(super) struct JsonRemoved {
    by_bytes: JsonFiles,
    by_age: JsonFiles,
    by_files: JsonFiles,
    left_over: JsonFiles,
}

#[derive(Serialize)]
struct JsonFiles {
    files: u64,
    bytes: u64,
}

impl From<&Stat> for JsonRemoved {
    fn from(Stat { removed: stat, left_over, .. }: &Stat) -> JsonRemoved {
        let files = |RemovedFiles { files, bytes, .. }| JsonFiles { files, bytes };
        JsonRemoved {
            by_bytes: files(stat.by_bytes),
            by_age: files(stat.by_age),
            by_files: files(stat.by_files),
            left_over: files(*left_over),
        }
    }
}

/// The files that the policy has removed, and why; nothing where it has removed nothing.
fn removed(stat: &RemovedStat) -> Option<String> {
    let rules = [(stat.by_bytes, "bytes"), (stat.by_age, "age"), (stat.by_files, "files")];
    let has_some = |(removed, _): &(RemovedFiles, &str)| removed.files > 0;
    let parts: Vec<String> = rules
        .into_iter()
        .filter(has_some)
        .map(|(removed, rule)| {
            format!("{}, {}, by retain-{rule}", count(removed.files, "file"), bytes(removed.bytes))
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Files that could not be removed, and the remedy; nothing where there are none.
fn left_over(RemovedFiles { files, bytes: len, .. }: RemovedFiles) -> Option<String> {
    let what = format!("{}, {}, not removed", count(files, "file"), bytes(len));
    let remedy = "open the log as a user who may, such as their owner in a sticky directory";
    (files > 0).then(|| format!("{what}; {remedy}"))
}

/// A span in the largest unit that measures it whole.
fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let units = [(604_800, "w"), (86_400, "d"), (3600, "h"), (60, "min")];
    let unit = units.into_iter().find(|(unit, _)| seconds > 0 && seconds.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or((1, "s"));
    format!("{} {name}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_the_largest_unit_that_measures_them() {
        for (seconds, text) in
            [(0, "0 s"), (90, "90 s"), (900, "15 min"), (86_400, "1 d"), (79_200, "22 h")]
        {
            assert_eq!(span(Duration::from_secs(seconds)), text);
        }
    }
}
