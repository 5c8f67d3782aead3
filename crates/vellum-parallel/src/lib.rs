//! One result file, written by several threads: disjoint pieces, in any order.
//!
//! Threads that write pieces of one file through the page cache take turns, because the kernel
//! locks a file for each write. A [`ResultFile`] goes around that lock the way the filesystem at
//! hand allows, and ends with the exact length, whatever the method needed on the way.
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("result");
//! use vellum_parallel::FileOptions;
//!
//! let halves = [vec![1; 500_000], vec![2; 300_000]];
//! let file = FileOptions::new().len(800_000).create(&path)?;
//! std::thread::scope(|scope| {
//!     let (file, halves) = (&file, &halves);
//!     scope.spawn(move || file.write_at(500_000, &halves[1]));
//!     scope.spawn(move || file.write_at(0, &halves[0]));
//! });
//! // The first error of any thread is an error here.
//! let finished = file.finish()?;
//! assert_eq!(finished.len, 800_000);
//! # assert_eq!(std::fs::read(&path).unwrap(), halves.concat());
//! # Ok::<(), vellum_parallel::Error>(())
//! ```
//!
//! Where the size of a piece is known only when it is there, as with compressed data, pieces are
//! numbered instead: see [`FileOptions::slots`].
//!
//! # Which method where
//!
//! | filesystem | with [`FileOptions::sync`] | without |
//! |---|---|---|
//! | ext4 | allocated, then [`Method::Direct`] | allocated, then [`Method::Mapped`] |
//! | XFS | the same | [`Method::Buffered`] |
//! | btrfs | the same, without copy-on-write | [`Method::Buffered`] |
//! | tmpfs | [`Method::Mapped`] | the same |
//! | others (FUSE, overlay, network) | [`Method::Buffered`] | [`Method::Buffered`] |
//!
//! The measurements behind this are in `docs/decisions/0007-one-file-by-many-threads.md`.

#![forbid(unsafe_code)]

mod buffer;
mod coverage;
mod direct;
mod file;
mod ground;
mod line;
mod mapped;
mod options;
mod way;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use buffer::Buffer;
pub use file::{Finished, ResultFile};
pub use options::FileOptions;
pub use vellum::{Error, ErrorKind, Method, Result};

/// Takes a lock. What it guards is whole at every step, so a panic of another thread is no reason
/// to fail here too.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
