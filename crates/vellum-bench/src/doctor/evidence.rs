//! What is known of a program on a disk, and what is found in it.

use serde::Serialize;

use super::machine::{OtherIo, Processors};
use super::probe::Probe;
use super::program::{Program, SyncCall};
use super::series::Series;
use crate::cause::Cause;

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

/// Everything that is known of one program on this disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    pub(super) program: &'a Program,
    pub(super) series: &'a Series,
    /// The same at half of the pace, where that was tried.
    pub(super) paced: Option<&'a Series>,
    pub(super) processors: Processors,
    /// What others did with the disk, at each pause.
    pub(super) others: &'a [OtherIo],
    pub(super) probe: Option<Probe>,
}

impl Evidence<'_> {
    /// Does each write wait for the device?
    pub(super) fn is_synced(&self) -> bool {
        self.program.pattern.sync != SyncCall::Periodic
    }
}
