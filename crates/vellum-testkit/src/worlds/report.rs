//! The lines of a worker about its operations and the promises to it.
//!
//! All write to one pipe, a line with one call. A line comes after the call of the log that it
//! speaks of; of those that take something away (`Trimming`, `Cutting`) one comes before, too.

use crate::worlds::sys;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// This side of a process has begun.
    Begun,
    /// It has opened the log.
    Opened,
    /// Opening had to recover the log. Up to here it is unchanged; uncommitted records behind that
    /// may be gone.
    Recovered(u64),
    /// Its record with this number and length was appended at this position or, in a batch, behind
    /// it.
    Appended {
        number: u32,
        len: usize,
        lsn: u64,
    },
    /// The record that starts at this position, and everything before it, is durable.
    Committed(u64),
    /// Records before this position may be gone.
    Trimming(u64),
    /// The checkpoint may be, and then is, at this position.
    Marking(u64),
    Marked(u64),
    /// Records at this position and behind it may be gone, and then are.
    Cutting(u64),
    Cut(u64),
    /// An operation failed: which, the kind of the error, and its words.
    Failed {
        what: String,
        kind: String,
        words: String,
    },
    /// It has finished its tasks, and waits for its end.
    Done,
}

/// Says `report` for `side`.
pub(crate) fn say(side: char, report: &Report) {
    let line = match report {
        Report::Begun => "begun".to_string(),
        Report::Opened => "opened".to_string(),
        Report::Recovered(lsn) => format!("recovered {lsn}"),
        Report::Appended { number, len, lsn } => format!("appended {number} {len} {lsn}"),
        Report::Committed(lsn) => format!("committed {lsn}"),
        Report::Trimming(lsn) => format!("trimming {lsn}"),
        Report::Marking(lsn) => format!("marking {lsn}"),
        Report::Marked(lsn) => format!("marked {lsn}"),
        Report::Cutting(lsn) => format!("cutting {lsn}"),
        Report::Cut(lsn) => format!("cut {lsn}"),
        Report::Failed { what, kind, words } => {
            let words: String = words.replace('\n', " ").chars().take(600).collect();
            format!("failed {what} {kind} {words}")
        }
        Report::Done => "done".to_string(),
    };
    // Longer lines would not be one write.
    let mut line: String = format!("{side} {line}");
    line.truncate(line.floor_char_boundary_at(1000));
    line.push('\n');
    sys::tell(&line);
}

/// `str::floor_char_boundary`, which is younger than our oldest compiler.
trait FloorCharBoundary {
    fn floor_char_boundary_at(&self, index: usize) -> usize;
}

impl FloorCharBoundary for str {
    fn floor_char_boundary_at(&self, index: usize) -> usize {
        (0..=index.min(self.len())).rev().find(|at| self.is_char_boundary(*at)).unwrap_or(0)
    }
}

/// The side that says a line, and its report; `None` for a line that is none of these.
pub(crate) fn parse(line: &str) -> Option<(char, Report)> {
    let mut words = line.splitn(3, ' ');
    let side = words.next()?.parse().ok()?;
    let (word, rest) = (words.next()?, words.next().unwrap_or_default());
    let lsn = || rest.parse().ok();
    let report = match word {
        "begun" => Report::Begun,
        "opened" => Report::Opened,
        "recovered" => Report::Recovered(lsn()?),
        "appended" => {
            let numbers: Vec<u64> = rest.split(' ').filter_map(|word| word.parse().ok()).collect();
            let [number, len, lsn] = numbers[..] else { return None };
            Report::Appended { number: number as u32, len: len as usize, lsn }
        }
        "committed" => Report::Committed(lsn()?),
        "trimming" => Report::Trimming(lsn()?),
        "marking" => Report::Marking(lsn()?),
        "marked" => Report::Marked(lsn()?),
        "cutting" => Report::Cutting(lsn()?),
        "cut" => Report::Cut(lsn()?),
        "failed" => {
            let mut words = rest.splitn(3, ' ').map(String::from);
            Report::Failed { what: words.next()?, kind: words.next()?, words: words.next()? }
        }
        "done" => Report::Done,
        _ => return None,
    };
    Some((side, report))
}
