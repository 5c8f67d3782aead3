//! Counts of commits, for people and for programs.

use std::fmt::Write;

use vellum::stat::{CommitStat, SegmentState, Stat};

use crate::table::{HEADING, bytes, count};

/// How wide the longest bar of the histogram is.
const BAR_WIDTH: u64 = 40;

/// Records, or moments, per sync; `None` before the first sync.
pub(super) fn per_sync(commits: &CommitStat) -> Option<f64> {
    (commits.syncs > 0).then(|| commits.commits as f64 / commits.syncs as f64)
}

/// A time, in microseconds, that `percent` of the syncs stay below; `None` without syncs, or where
/// it is beyond what is told apart.
pub(super) fn percentile_micros(commits: &CommitStat, percent: u64) -> Option<u64> {
    let syncs = total(commits);
    let wanted = (syncs * percent).div_ceil(100);
    let mut seen = 0;
    let (_, beyond) = commits.sync_micros.split_last()?;
    beyond.iter().zip(bounds()).find_map(|(count, bound)| {
        seen += count;
        (syncs > 0 && seen >= wanted).then_some(bound)
    })
}

/// How many segments are ready, without spares.
pub(crate) fn prepared_segments(stat: &Stat) -> u64 {
    let states = stat.segments.iter().map(|segment| segment.state);
    states.filter(|state| *state == SegmentState::Prepared).count() as u64
}

/// The facts for the top of the page.
pub(super) fn facts(commits: &CommitStat) -> Vec<(&'static str, String)> {
    let mut text = commits.commits.to_string();
    if let Some(per_sync) = per_sync(commits) {
        let syncs = count(commits.syncs, "sync");
        let _ = write!(text, " in {syncs} of {}, ", bytes(commits.synced_bytes));
        let _ = write!(text, "{per_sync:.1} a sync");
    }
    let mut facts = vec![("commits", text)];
    if total(commits) > 0 {
        let time = |percent| percentile_micros(commits, percent).map_or_else(longest, below);
        facts.push(("time in sync", format!("p50 {}, p99 {}", time(50), time(99))));
    }
    facts
}

/// How many syncs took how long, as bars; empty without syncs.
pub(super) fn histogram(commits: &CommitStat) -> String {
    let counts = &commits.sync_micros;
    let is_used = |count: &u64| *count > 0;
    let Some(first) = counts.iter().position(is_used) else { return String::new() };
    let last = counts.iter().rposition(is_used).unwrap_or(first);
    let most = counts.iter().max().copied().unwrap_or(1);
    let mut text = format!("\n{HEADING}  time in sync     syncs{HEADING:#}\n");
    for (index, count) in counts.iter().enumerate().take(last + 1).skip(first) {
        let time = if index + 1 < counts.len() { below(1 << index) } else { longest() };
        let bar = "▪".repeat(count.saturating_mul(BAR_WIDTH).div_ceil(most) as usize);
        let line = format!("  {time:>12}  {count:>8}  {bar}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn total(commits: &CommitStat) -> u64 {
    commits.sync_micros.iter().sum()
}

/// The upper bounds of the histogram's entries, in microseconds.
fn bounds() -> impl Iterator<Item = u64> {
    (0..).map(|index| 1 << index)
}

fn below(micros: u64) -> String {
    match micros {
        0..1_000 => format!("< {micros} µs"),
        1_000..1_000_000 => format!("< {:.1} ms", micros as f64 / 1e3),
        _ => format!("< {:.1} s", micros as f64 / 1e6),
    }
}

/// Of the last entry.
fn longest() -> String {
    let counted_apart = CommitStat::default().sync_micros.len() - 1;
    below(1 << (counted_apart - 1)).replace('<', ">")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commits(counts: &[(usize, u64)]) -> CommitStat {
        let mut commits = CommitStat::default();
        for (index, count) in counts {
            commits.sync_micros[*index] = *count;
            commits.syncs += count;
        }
        commits.commits = commits.syncs * 3;
        commits
    }

    #[test]
    fn percentiles_are_bounds_that_so_many_stay_below() {
        let some = commits(&[(7, 98), (9, 1), (20, 1)]);
        let percentiles = [1, 50, 98, 99, 100].map(|percent| percentile_micros(&some, percent));
        assert_eq!(percentiles, [128, 128, 128, 512, 1 << 20].map(Some));
        assert_eq!(percentile_micros(&commits(&[(0, 1)]), 50), Some(1));
        assert_eq!(percentile_micros(&commits(&[(23, 1)]), 50), None);
        assert_eq!(percentile_micros(&commits(&[]), 50), None);
        assert_eq!(per_sync(&some), Some(3.0));
        assert_eq!(per_sync(&commits(&[])), None);
    }

    #[test]
    fn the_histogram_shows_all_syncs_between_the_shortest_and_the_longest() {
        let text = histogram(&commits(&[(7, 1000), (9, 1), (10, 500)]));
        let plain = anstream::adapter::strip_str(&text).to_string();
        let bars = plain.lines().skip(2).map(|line| line.matches('▪').count());
        assert!(bars.eq([40, 0, 1, 20]), "{plain}");
        assert!(plain.contains("< 128 µs") && plain.contains("< 1.0 ms"), "{plain}");
        assert!(plain.lines().all(|line| line.chars().count() <= 100));
        assert_eq!(histogram(&commits(&[])), "");
        assert!(histogram(&commits(&[(23, 1)])).contains("> 4.2 s"));
    }

    #[test]
    fn facts_say_how_many_commits_share_a_sync() {
        let facts = facts(&commits(&[(7, 2), (9, 2)]));
        assert_eq!(facts[0].1, "12 in 4 syncs of 0 B, 3.0 a sync");
        assert_eq!(facts[1].1, "p50 < 128 µs, p99 < 512 µs");
        assert_eq!(super::facts(&CommitStat::default()), [("commits", "0".to_string())]);
    }
}
