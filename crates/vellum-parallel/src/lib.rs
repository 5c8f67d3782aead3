//! One result file, written by several threads: disjoint pieces, in any order.
//!
//! The kernel locks a file for each buffered write, so threads that write one file wait for each
//! other. A [`ResultFile`] avoids that lock in the way that its filesystem allows. The finished
//! file has the exact length, whatever the method needed meanwhile.
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
//! Some pieces have no known size before they exist, as those of a compressor. Such pieces are
//! numbered: see [`FileOptions::slots`].
//!
//! # Which method where
//!
//! | filesystem | with [`FileOptions::sync`] | without |
//! |---|---|---|
//! | ext4 | allocated, then [`Method::Direct`] | allocated, then [`Method::Buffered`] |
//! | XFS | the same | [`Method::Buffered`] |
//! | btrfs | the same, without copy-on-write | [`Method::Buffered`] |
//! | tmpfs | [`Method::Mapped`], in huge pages | the same |
//! | others (FUSE, overlay, network) | [`Method::Buffered`] | [`Method::Buffered`] |
//!
//! The measurements behind this are in `docs/decisions/0007-one-file-by-many-threads.md`.

#![forbid(unsafe_code)]

mod buffer;
mod coverage;
mod direct;
mod file;
mod mapped;
mod options;
mod preallocation;
mod reorder;
mod write_path;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use buffer::Buffer;
pub use file::{Finished, ResultFile};
pub use options::FileOptions;
pub use vellum::advice::Method;
pub use vellum::{Error, ErrorKind, Result};

/// Takes a lock. The guarded value is whole at every step, so a panic of another thread is no
/// reason to fail here too.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
