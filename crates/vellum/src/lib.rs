#![doc = include_str!("../README.md")]
//!
//! # What is where
//!
//! The [`guide`] has a write-ahead log step by step, and reading, shipping and the rest behind it.
//!
//! - [`Options`] opens or creates a log: a [write-ahead log](Options::wal),
//!   [events](Options::events) at the speed of memory, or [text](Options::text). [`Tuning`] has
//!   options that few programs need.
//! - [`Log::append`], [`Log::reserve`] and [`Log::batch`] write records.
//! - [`Log::commit`] makes them survive a power cut, with one write of the device for all waiters.
//!   [`Committer`] does it for tasks, which await it.
//! - [`Reader`] reads them, from any position, and [follows](Reader::follow) the log without
//!   polling; a [durable](Reader::durable) one returns committed records, and a
//!   [pollable](Reader::pollable) one has a descriptor for event loops. [`Log::read_at`] reads one
//!   record, [`Log::backwards`] the newest first.
//! - [`Position`] is a position to be stored outside of the log: the same record, or an error.
//!   [`Cursor`] is one that is stored with the log under a name.
//! - [`Checkpoint`] is where a program recovers from, and [`CheckpointEvent`] says when the next
//!   one is due.
//! - [`Error`] has a [kind](ErrorKind), the file and the position that it is about, and the remedy.
//! - [`Log::stat`], [`Log::verify`], [`Log::trim`], [`Log::truncate`] and [`repair`] look after a
//!   log. What they report is in [`stat`]; programs that ship a log find theirs in [`ship`].
//! - [`Tuning::advice_from`] follows a measurement of `vellum advise` when a log is created: the
//!   crate `vellum-advice` reads it.
//!
//! With the crate `vellum-loggers` a log is the place where `tracing` and the crate `log` write to.
//! The crate `vellum-parallel` is apart from the log: with it, several threads write one ordinary
//! file at the speed of many.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod bus_errors;
// In the documentation alone; `vellum-docs` compiles its programs.
#[cfg(all(doc, not(doctest)))]
pub mod guide;
mod knowledge;
mod log;
mod options;
mod segment;
mod shared;

// The rooms of the crate `vellum-files`, by the names that they have there.
use vellum_files::{error, escape, files, format, identity, lsn, record, restore};

pub use self::log::{
    Backwards, Batch, Checkpoint, CheckpointEvent, Committer, Completion, Cursor, CursorHold, Log,
    PollableReader, Reader, RecordWriter, Records, Reservation, SegmentKeeper, repair,
};
pub use bus_errors::guard_bus_errors;
pub use options::Options;
pub use options::choice::{Create, OnStageFull};
pub use options::commit_path::{CommitPath, DeviceWrite};
pub use options::policy::OnFull;
pub use options::tuning::Tuning;
#[doc(inline)]
pub use vellum_files::{
    Compression, Error, ErrorKind, Fill, Gap, Layout, LogId, Lsn, OwnedRecord, Position,
    Preallocate, Record, Result, WriterId,
};

/// For programs that find a tuning for a new log where it is created: [`Tuning::advice_from`].
pub mod advice {
    pub use crate::options::method::Method;
    pub use crate::options::tuning::{AdviceSource, NewLog};
}

/// What a log reports: its state, its figures, its damage, and what a call has done.
pub mod stat {
    #[doc(inline)]
    pub use crate::files::verify::{Damage, RepairReport, VerifyReport};
    #[doc(inline)]
    pub use crate::identity::{Recovery, RecoveryReason};
    pub use crate::log::{
        CommitPathStat, CursorStat, Hold, HoldKind, InFlight, Metrics, ParticipantStat,
        ProcessState, RemovedFiles, RemovedStat, SegmentStat, SegmentState, Stat, TrimReport,
    };
    pub use crate::options::commit_path::PathOrigin;
    pub use crate::shared::ends::CommitStat;
    #[doc(inline)]
    pub use vellum_files::policy::Policy;
}

/// The interface for a program that ships a log or restores one. The command `vellum ship` is made
/// of it.
pub mod ship {
    #[doc(inline)]
    pub use crate::files::raw::{Piece, PieceSegment};
    pub use crate::log::{Ship, ShipFault, ShipState, ShipStatus, Shipper, open_to_ship as open};
    #[doc(inline)]
    pub use crate::restore::decode::Decoder;
    #[doc(inline)]
    pub use crate::restore::options::{FileName, RestoreOptions};
    #[doc(inline)]
    pub use crate::restore::restorer::Restorer;
    #[doc(inline)]
    pub use crate::restore::shape::LogShape;
}

pub(crate) use vellum_sys as sys;

/// Items that other crates of this repository share with this one, beside the hidden functions of
/// [`Error`]. It is no part of the interface: any release may change it.
#[doc(hidden)]
pub mod internal {
    /// Options for a log of this layout; a text log is filled as its filesystem allows.
    pub fn options(layout: crate::Layout) -> crate::Options {
        with_layout(crate::Options::default(), layout)
    }

    /// The same with all that `options` has.
    pub fn with_layout(options: crate::Options, layout: crate::Layout) -> crate::Options {
        crate::Options { layout: Some(layout), ..options }
    }

    /// The directory of the log that `path` names.
    pub fn log_directory(path: &std::path::Path) -> std::path::PathBuf {
        crate::files::named::directory(path, false)
    }

    /// Where the link to the log in `directory` is, if that has the name for one.
    pub fn log_link(directory: &std::path::Path) -> Option<std::path::PathBuf> {
        crate::files::named::link(directory)
    }

    /// The reader, which drops from the page cache what it brings there of closed segments.
    pub fn leave_no_trace(reader: crate::Reader) -> crate::Reader {
        reader.leave_no_trace()
    }

    /// Whether the log is still at its path.
    pub fn is_in_place(log: &crate::Log) -> bool {
        log.is_in_place()
    }

    pub use crate::error::OsResult;
    pub use crate::escape::{escaped, escaped_lines};
    pub use crate::format::utc::Moment;
    pub use crate::log::Buffer;
    pub use crate::options::limits::{
        PREFAULT_BYTES_DEFAULT, check_prefault, check_segment_capacity, check_sparse,
    };

    /// Refuses options that contradict each other, as opening does.
    pub fn check(options: &crate::Options) -> crate::Result<()> {
        options.check()
    }

    /// What is known of filesystems.
    pub mod knowledge {
        pub use crate::knowledge::{
            Preparation, fill, method, preparation, refusal, segment_capacity_bytes,
        };
    }
}
