//! The six rates of the kernel's linear model of costs, measured past the page cache.
//!
//! As `tools/cgroup/iocost_coef_gen.py` has it: long blocks one after the other for bytes a second,
//! and 4096 bytes at a time with 64 in flight for operations a second. It turns off the scheduler
//! and merging of the disk meanwhile; nothing of the system is changed here.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Context, Result};
use crate::interrupt::is_asked;
use crate::ways::direct::{AlignedBuffer, BLOCK_BYTES};

/// The kernel splits a long block, and has all parts in flight.
pub(super) const LONG_BYTES: usize = 16 << 20;
/// So many short ones are in flight.
const DEPTH: usize = 64;
/// None of the six reads or writes more.
const BYTES_MAX: u64 = 3 << 30;
/// How often a thread looks whether the run is to end.
const LOOK: u64 = 64;

/// Bytes and operations a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Model {
    pub(super) rbps: u64,
    pub(super) rseqiops: u64,
    pub(super) rrandiops: u64,
    pub(super) wbps: u64,
    pub(super) wseqiops: u64,
    pub(super) wrandiops: u64,
}

/// How a file is read or written.
#[derive(Clone, Copy)]
struct Load {
    is_write: bool,
    is_random: bool,
    is_long: bool,
}

/// Measures in the first `bytes` of `file`, `time` for each of the six; `begun` hears of each.
pub(super) fn measured(
    file: &File,
    bytes: u64,
    time: Duration,
    begun: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<Model> {
    let mut rate = |what, is_write, is_random, is_long| {
        begun(what)?;
        let load = Load { is_write, is_random, is_long };
        let rate = rate(file, bytes, load, time)?;
        // The kernel takes no 0.
        Ok(if is_long { rate as u64 } else { (rate / BLOCK_BYTES as f64) as u64 }.max(1))
    };
    Ok(Model {
        rbps: rate("reading", false, false, true)?,
        rseqiops: rate("reading 4096 bytes in order", false, false, false)?,
        rrandiops: rate("reading 4096 bytes at random", false, true, false)?,
        wbps: rate("writing", true, false, true)?,
        wseqiops: rate("writing 4096 bytes in order", true, false, false)?,
        wrandiops: rate("writing 4096 bytes at random", true, true, false)?,
    })
}

/// Bytes a second.
fn rate(file: &File, bytes: u64, load: Load, time: Duration) -> Result<f64> {
    let (depth, block) = if load.is_long { (1, LONG_BYTES) } else { (DEPTH, BLOCK_BYTES) };
    let (next, begun) = (AtomicU64::new(0), Instant::now());
    let one = |seed| {
        let mut buffer = AlignedBuffer::new(block);
        let mut random = fastrand::Rng::with_seed(seed);
        random.fill(buffer.as_mut_slice());
        let mut done = 0;
        while begun.elapsed() < time {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let is_end = number % LOOK == LOOK - 1 && is_asked();
            if is_end || number * block as u64 >= BYTES_MAX {
                break;
            }
            let blocks = bytes / block as u64;
            let place = if load.is_random { random.u64(..blocks) } else { number % blocks };
            let offset = place * block as u64;
            if load.is_write {
                file.write_all_at(buffer.as_slice(), offset)?;
            } else {
                file.read_exact_at(buffer.as_mut_slice(), offset)?;
            }
            done += block as u64;
        }
        Ok::<u64, std::io::Error>(done)
    };
    let done: std::io::Result<u64> = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..depth as u64).map(|seed| scope.spawn(move || one(seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(0))).sum()
    });
    let done = done.context(|| if load.is_write { "write" } else { "read" })?;
    Ok(done as f64 / begun.elapsed().as_secs_f64())
}
