//! A log that commits, alone and beside a neighbour.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use vellum_command::samples;

use super::super::slice::{self, Order};
use super::super::target::Target;
use crate::error::{Context, Error, Result};
use crate::sys;
use crate::ways::direct::AlignedBuffer;

/// What a neighbour writes at a time.
const PIECE_BYTES: usize = 1 << 20;
/// So many writes of a neighbour are in flight.
const DEPTH: usize = 8;
/// A neighbour that waits looks so often whether it is over.
const LOOK: Duration = Duration::from_millis(20);
/// One part of so many of the time goes before anything is counted.
const WARM_UP: u32 = 10;

/// A log that is written.
pub(super) struct Log(Vec<Target>);

/// Somebody who writes beside it, until `has_ended`.
pub(super) trait Neighbour: Sync {
    fn write(&self, has_ended: &AtomicBool) -> io::Result<()>;
}

impl Log {
    pub(super) fn of(target: Target) -> Log {
        Log(vec![target])
    }

    /// p99 of its commits, in milliseconds.
    pub(super) fn alone(&mut self, length: Duration) -> Result<f64> {
        let order = Order { length, rate: None, alone: true, flush_every: None };
        let slice = slice::run(&mut self.0, order);
        if let Some(failure) = slice.failure {
            return Err(Error::failed(failure.what));
        }
        let from = (length / WARM_UP).as_nanos() as u64;
        let counted = slice.operations.iter().filter(|one| one.end_ns > from);
        let mut times: Vec<u64> = counted.map(|one| one.whole_ns).collect();
        times.sort_unstable();
        // One that has not come to its end is as long as the run.
        let p99 = samples::quantile(&times, 0.99);
        Ok(p99.map_or(length.as_secs_f64() * 1e3, |nanos| nanos as f64 / 1e6))
    }

    /// The same beside a neighbour.
    pub(super) fn beside(&mut self, length: Duration, other: &dyn Neighbour) -> Result<f64> {
        let has_ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let neighbour = scope.spawn(|| other.write(&has_ended));
            let p99 = self.alone(length);
            has_ended.store(true, Ordering::Relaxed);
            let wrote = neighbour.join().unwrap_or(Ok(()));
            wrote.context(|| "write as a neighbour")?;
            p99
        })
    }
}

/// Writes past the page cache: what a limit of `io.max` is spent on.
pub(super) struct Paced<'a> {
    pub(super) file: &'a File,
    /// Of the file.
    pub(super) bytes: u64,
    /// Bytes a second; as fast as it goes without.
    pub(super) rate: Option<u64>,
}

impl Neighbour for Paced<'_> {
    fn write(&self, has_ended: &AtomicBool) -> io::Result<()> {
        let (next, begun) = (AtomicU64::new(0), Instant::now());
        let one = || {
            let buffer = AlignedBuffer::new(PIECE_BYTES);
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let offset = number * PIECE_BYTES as u64;
                let due = self.rate.map_or(0.0, |rate| offset as f64 / rate as f64);
                if !waited(begun, Duration::from_secs_f64(due), has_ended) {
                    return Ok(());
                }
                let offset = offset % (self.bytes / PIECE_BYTES as u64 * PIECE_BYTES as u64);
                self.file.write_all_at(buffer.as_slice(), offset)?;
            }
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..DEPTH).map(|_| scope.spawn(one)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
        })
    }
}

/// Writes into the page cache, and has it written back at once: what waits in memory under
/// `vm.dirty_bytes`.
pub(super) struct Burst<'a> {
    pub(super) file: &'a File,
    /// Of the file.
    pub(super) bytes: u64,
    pub(super) burst: u64,
    /// Bytes a second, in the mean.
    pub(super) rate: u64,
}

impl Burst<'_> {
    /// From one burst to the next.
    pub(super) fn every(&self) -> Duration {
        Duration::from_secs_f64(self.burst as f64 / self.rate.max(1) as f64)
    }
}

impl Neighbour for Burst<'_> {
    fn write(&self, has_ended: &AtomicBool) -> io::Result<()> {
        let (piece, begun, mut count) = (vec![5; PIECE_BYTES], Instant::now(), 0);
        while waited(begun, self.every() * count, has_ended) {
            let bursts = (self.bytes / self.burst).max(1);
            let start = u64::from(count) % bursts * self.burst;
            for offset in (0..self.burst).step_by(PIECE_BYTES) {
                self.file.write_all_at(&piece, start + offset)?;
            }
            sys::write_back(self.file, start, self.burst)?;
            count += 1;
        }
        Ok(())
    }
}

/// Waits until `due` after `begun`; whether it goes on then.
fn waited(begun: Instant, due: Duration, has_ended: &AtomicBool) -> bool {
    loop {
        let left = due.saturating_sub(begun.elapsed());
        if has_ended.load(Ordering::Relaxed) || left.is_zero() {
            return !has_ended.load(Ordering::Relaxed);
        }
        thread::sleep(left.min(LOOK));
    }
}
