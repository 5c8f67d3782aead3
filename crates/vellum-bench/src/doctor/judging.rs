//! From the measurements to verdicts: the observations in the turns of each program, and the
//! findings about the disk, from the turns of all programs.

use super::causes;
use super::disk;
use super::evidence::{Evidence, Finding, FlatOut};
use super::machine::{OtherIo, Processors};
use super::program::Program;
use super::series::Series;
use super::trials::Probe;
use super::verdict::{Judged, OfDisk, Places, judge};
use crate::cause::Cause;

/// The observations of one program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) program: &'a Program,
    pub(super) series: &'a Series,
    pub(super) processors: Processors,
    /// How many turns do not count because others used the processors, and of how many.
    pub(super) left_out: (usize, usize),
}

/// The facts beside these observations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) around: &'a [Finding],
    pub(super) probe: Option<Probe>,
    pub(super) flat_out: Option<&'a FlatOut>,
    /// The requests of others to the disk, at each pause.
    pub(super) others: &'a [OtherIo],
    pub(super) accepted: &'a [Cause],
    pub(super) places: &'a Places,
}

/// A verdict for each.
pub(super) fn all(seen: &[Seen<'_>], known: &Known<'_>) -> Vec<Judged> {
    let disk = disk::merged(&waiting(seen, None));
    let findings: Vec<Vec<Finding>> = seen
        .iter()
        .map(|one| {
            let evidence = Evidence {
                program: one.program,
                series: one.series,
                disk: &disk,
                flat_out: known.flat_out,
                processors: one.processors,
                left_out: one.left_out,
                others: known.others,
                probe: known.probe,
            };
            causes::causes(&evidence, known.around)
        })
        .collect();
    let longest = |own: usize| {
        let others = waiting(seen, Some(own)).into_iter();
        others.filter_map(Series::longest_call_ms).max_by(f64::total_cmp)
    };
    let judged = seen.iter().enumerate().map(|(own, one)| {
        let causes = of_disk(own, seen, &findings);
        let of_disk = if one.program.waits() {
            OfDisk { longest_ms: longest(own), others: waiting(seen, Some(own)) }
        } else {
            OfDisk::default()
        };
        judge(one.program, one.series, causes, known.accepted, &of_disk, known.places)
    });
    judged.collect()
}

/// The series of programs that wait for the disk at each write, but for `own`.
fn waiting<'a>(seen: &[Seen<'a>], own: Option<usize>) -> Vec<&'a Series> {
    let all = seen.iter().enumerate();
    let waiting = all.filter(|(index, one)| one.program.waits() && Some(*index) != own);
    waiting.map(|(_, one)| one.series).collect()
}

/// The findings in the turns of the program `own`, and the failures in other turns.
fn of_disk(own: usize, seen: &[Seen<'_>], findings: &[Vec<Finding>]) -> Vec<Finding> {
    let mut causes = findings[own].clone();
    for (one, others) in seen.iter().zip(findings) {
        for finding in others.iter().filter(|one| one.cause.is_of_disk()) {
            if !causes.iter().any(|known| known.cause == finding.cause) {
                let what = format!("while {} wrote, {}", one.program.name, finding.what);
                causes.push(Finding::new(finding.cause, finding.weight, what));
            }
        }
    }
    causes.sort_by_key(|one| (one.weight, one.cause));
    causes
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
