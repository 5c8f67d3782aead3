//! The content of `vellum.toml` as values.

use vellum::advice::Method;
use vellum::{Fill, Preallocate};

/// The advice of a measurement for the files of a directory.
///
/// [`read`](crate::read) takes it from a file `vellum.toml`, which `vellum advise` writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// For logs that commit: those of [`Options::wal`](vellum::Options::wal), and others that ask
    /// for [`Fill::Staged`].
    pub wal: LogAdvice,
    /// For all other logs. Its `fill` is never [`Fill::Staged`].
    pub log: LogAdvice,
    /// For one large file that several threads write with the crate `vellum-parallel`.
    pub file: FileAdvice,
}

/// The advice for logs; `None` where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogAdvice {
    /// How file space is made ready.
    pub preallocate: Option<Preallocate>,
    /// How records are written to the segment files.
    pub fill: Option<Fill>,
    /// Bytes of log a segment holds, as in
    /// [`Tuning::segment_capacity_bytes`](vellum::Tuning::segment_capacity_bytes).
    pub segment_capacity_bytes: Option<u64>,
    /// How far ahead the process that creates the log makes pages ready, as in
    /// [`Tuning::prefault_bytes`](vellum::Tuning::prefault_bytes). It is not stored with the log,
    /// so a process that opens the log later has its own.
    pub prefault_bytes: Option<u64>,
}

/// The advice for one large file that several threads write; `None` where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileAdvice {
    /// Which way pieces take into the file.
    pub method: Option<Method>,
    /// Bytes to write at a time: a multiple of 4096, at most 1 GiB.
    pub piece_bytes: Option<u64>,
    /// How many threads write: from 1 to 1024.
    pub threads: Option<u32>,
}
