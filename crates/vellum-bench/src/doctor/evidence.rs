//! What is known of a program on a disk, and what is found in it.

use serde::Serialize;

use super::machine::{OtherIo, Processors};
use super::program::{Figure, Limit, Program};
use super::series::Series;
use super::trials::Probe;
use crate::cause::Cause;

/// Stops that take more of the time than this are in p99.
const OFTEN: f64 = 0.01;

/// What a cause is to the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// What a program was promised may not be kept: the disk is not good enough.
    Danger,
    /// It explains figures that are not good.
    Reason,
    /// The figures are to be taken with care.
    Care,
    /// Good to know.
    Note,
}

/// A cause that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Its name.
    pub cause: Cause,
    /// What it is to the verdict.
    pub weight: Weight,
    /// How it is seen.
    pub what: String,
}

impl Finding {
    pub(super) fn new(cause: Cause, weight: Weight, what: impl Into<String>) -> Finding {
        Finding { cause, weight, what: what.into() }
    }
}

/// Writes as fast as they go, beside what is counted.
#[derive(Clone, Debug, Default)]
pub(super) struct FlatOut {
    pub(super) fastest: Series,
    /// At half of that pace, if it was always the same.
    pub(super) halved: Option<Series>,
}

/// Everything that is known of one program on this disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    pub(super) program: &'a Program,
    pub(super) series: &'a Series,
    /// The calls of all programs that wait for this disk, as if they were those of one.
    pub(super) disk: &'a Series,
    pub(super) flat_out: Option<&'a FlatOut>,
    pub(super) processors: Processors,
    /// How many turns do not count because others used the processors, and of how many.
    pub(super) left_out: (usize, usize),
    /// What others did with the disk, at each pause.
    pub(super) others: &'a [OtherIo],
    pub(super) probe: Option<Probe>,
}

impl Evidence<'_> {
    /// Does each write wait for the device?
    pub(super) fn is_synced(&self) -> bool {
        self.program.waits()
    }

    /// Would writes that take so much longer for a while be too long for the program? If not, that
    /// they do is good to know.
    pub(super) fn weight_of(&self, longer_us: f64) -> Weight {
        let usual_ms = self.series.figure_ms(Figure::P50).unwrap_or(0.0);
        let good_ms = self.program.limits.first().map_or(0.0, |limit| limit.good_ms);
        let hurts = self.is_synced() && usual_ms + longer_us / 1e3 > good_ms;
        if hurts { Weight::Reason } else { Weight::Note }
    }

    /// Are stops of this length, which take this share of the time, too long for the program?
    pub(super) fn weight_of_stops(&self, longest_us: f64, share: f64) -> Weight {
        let is_of_stops = |limit: &&Limit| matches!(limit.figure, Figure::Max | Figure::FlushMax);
        let limits = &self.program.limits;
        let limit = limits.iter().find(is_of_stops).or_else(|| limits.last());
        let is_long = limit.is_some_and(|limit| longest_us / 1e3 > limit.good_ms);
        let is_often = share > OFTEN && self.weight_of(longest_us) == Weight::Reason;
        if is_long || is_often { Weight::Reason } else { Weight::Note }
    }
}
