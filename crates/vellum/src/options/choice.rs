//! The choices that options offer, beside those of the files.

use std::str::FromStr;

use crate::{Error, ErrorKind, Result};

pub(crate) use vellum_files::choice::{Compression, Fill, Layout, Preallocate, named};

/// Whether opening makes a log, or takes one that is there:
/// [`Options::create`](crate::Options::create).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Create {
    /// It takes the log that is there, and makes one where there is none.
    #[default]
    IfMissing,
    /// It makes one, and returns [`ErrorKind::AlreadyExists`] where there is one.
    New,
    /// It makes none, and returns [`ErrorKind::NotFound`] where there is none.
    Never,
}

/// The behaviour of an append when the stage is full:
/// [`Tuning::on_stage_full`](crate::Tuning::on_stage_full).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnStageFull {
    /// It commits what was appended before, and then appends.
    #[default]
    Commit,
    /// It returns [`ErrorKind::NoSpace`]; nothing was reserved. A process has to commit.
    Error,
}

named!(OnStageFull, "answer to a full stage", Commit = "commit", Error = "error");
