//! Reading a file once without a trace in the page cache.
//!
//! The pages that a reader brings in take the place of pages that other programs use. So pages that
//! were not cached before are dropped behind the reader. Cached pages stay: a program uses them.
//! The kernel reports them from Linux 6.5 on, to processes that may write the file. For others
//! nothing is dropped, nor where system calls are filtered.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::{Advice, fadvise};

use crate::file;

/// This many bytes are kept or dropped as one.
const PIECE: u64 = 1 << 20;
/// The number of the system call, the same on all architectures.
const CACHESTAT: libc::c_long = 451;

/// The pieces of a file of which nothing was cached.
#[derive(Debug, Default)]
pub struct Uncached {
    /// Where they begin, in order.
    pieces: Vec<u64>,
    /// How many were dropped.
    dropped: usize,
}

/// `struct cachestat_range`.
#[repr(C)]
struct Range {
    offset: u64,
    len: u64,
}

/// `struct cachestat`.
#[repr(C)]
#[derive(Default)]
struct Counts {
    cached: u64,
    dirty: u64,
    written_back: u64,
    evicted: u64,
    evicted_a_moment_ago: u64,
}

impl Uncached {
    /// Those of the file now, up to `len_max`. Pages that the kernel does not report count as
    /// cached.
    pub fn of(fd: impl AsFd, len_max: u64) -> Uncached {
        if has_filter() {
            return Uncached::default();
        }
        let len = file::len(&fd).unwrap_or(0).min(len_max);
        let starts = (0..len.div_ceil(PIECE)).map(|piece| piece * PIECE);
        let pieces = starts.filter(|start| cached(&fd, *start, PIECE) == Some(0)).collect();
        Uncached { pieces, dropped: 0 }
    }

    /// Drops those that end before `end`, as far as they are clean and not mapped.
    pub fn drop_before(&mut self, fd: impl AsFd, end: u64) {
        while let Some(start) = self.pieces.get(self.dropped).filter(|start| *start + PIECE <= end)
        {
            drop_piece(&fd, *start);
            self.dropped += 1;
        }
    }

    /// Drops all of them, also what was read again after it was dropped.
    pub fn drop_all(&self, fd: impl AsFd) {
        self.pieces.iter().for_each(|start| drop_piece(&fd, *start));
    }
}

fn drop_piece(fd: impl AsFd, start: u64) {
    let _ = fadvise(&fd, start, NonZeroU64::new(PIECE), Advice::DontNeed);
}

/// Whether system calls of this thread are filtered, or that is not known. A filter that is older
/// than `cachestat(2)`, as those of systemd 252, may end the process for it.
fn has_filter() -> bool {
    std::fs::read_to_string("/proc/thread-self/status")
        .map_or(true, |status| status.lines().any(|line| line == "Seccomp:\t2"))
}

/// How many pages of `len` bytes at `offset` are in the page cache, where the kernel tells.
fn cached(fd: impl AsFd, offset: u64, len: u64) -> Option<u64> {
    let (range, mut counts) = (Range { offset, len }, Counts::default());
    let no_flags: libc::c_uint = 0;
    // SAFETY: the descriptor is open for the length of the borrow, and the call reads and writes
    // the two structures, which are those of the kernel, and nothing else.
    let answer = unsafe {
        libc::syscall(
            CACHESTAT,
            fd.as_fd().as_raw_fd(),
            &raw const range,
            &raw mut counts,
            no_flags,
        )
    };
    (answer == 0).then_some(counts.cached)
}
