//! A few single calls, aside of any program: what a write costs without a flush, what the flush
//! costs, and what writes of less than a block cost.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use serde::Serialize;
use vellum_sys::Dir;

use super::series::median;
use crate::suite::commit::write_zeros;
use crate::ways::direct::{AlignedBuffer, BLOCK_BYTES};

/// So many calls of each sort, or as many as there is time for.
const ROUNDS: u64 = 32;
const ROUNDS_MIN: u64 = 5;
/// The unit that disks say they have; many have a larger one inside.
const SECTOR_BYTES: usize = 512;

/// What single calls cost, in the median.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Probe {
    /// A direct write of 4096 bytes, which the device need not keep.
    pub write_us: f64,
    /// A flush after it.
    pub flush_us: f64,
    /// A direct write of 512 bytes, where the filesystem takes it.
    pub sector_us: Option<f64>,
}

/// Tries in the directory `dir` for `time`; `None` where direct writes do not work.
pub(super) fn probe(dir: &Dir, time: Duration) -> Option<Probe> {
    let name = Path::new("probe");
    let probed = probed(dir, name, time);
    // The directory of the run goes in the end, with whatever is left.
    let _ = dir.unlink(name);
    probed
}

fn probed(dir: &Dir, name: &Path, time: Duration) -> Option<Probe> {
    let made = File::from(dir.create(name, 0o600).ok()?);
    write_zeros(&made, ROUNDS * BLOCK_BYTES as u64).ok()?;
    let file = File::from(dir.open_file(name, OFlags::WRONLY | OFlags::DIRECT).ok()?);
    let block = AlignedBuffer::new(BLOCK_BYTES);
    let (mut writes, mut flushes, mut sectors) = (Vec::new(), Vec::new(), Vec::new());
    let begun = Instant::now();
    for round in 0..ROUNDS {
        if round >= ROUNDS_MIN && begun.elapsed() > time {
            break;
        }
        let offset = round * BLOCK_BYTES as u64;
        writes.push(micros(|| file.write_all_at(block.as_slice(), offset))?);
        flushes.push(micros(|| file.sync_data())?);
        let sector = &block.as_slice()[..SECTOR_BYTES];
        sectors.extend(micros(|| file.write_all_at(sector, offset)));
        // The next round starts with an empty cache, as this one did.
        file.sync_data().ok()?;
    }
    let sector_us = (sectors.len() == writes.len()).then(|| median(&sectors));
    Some(Probe { write_us: median(&writes), flush_us: median(&flushes), sector_us })
}

fn micros(call: impl FnOnce() -> std::io::Result<()>) -> Option<f64> {
    let from = Instant::now();
    call().ok()?;
    Some(from.elapsed().as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_calls_are_timed_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        if let Some(probe) = probe(&Dir::open(dir.path()).unwrap(), Duration::ZERO) {
            assert!(probe.write_us > 0.0 && probe.flush_us > 0.0);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
