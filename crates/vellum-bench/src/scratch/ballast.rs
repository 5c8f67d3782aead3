//! A filesystem that is nearly full, as one is that was in use for long: its free space is in many
//! pieces.
//!
//! Files of different lengths take all of its space. Then some of them go, here and there. They are
//! allocated and not written, so they take no memory of the image.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate, statvfs, syncfs};

use crate::error::{Context, Error, Result};

/// A file has a number of such units, so that it fits clusters of this size.
const UNIT_BYTES: u64 = 64 << 10;
const UNITS_MAX: u64 = 16;
/// Any number; the same in every run, so that runs can be compared.
const SEED: u64 = 0x5eed_ba11_a570_0001;

/// XFS gives space back in the background: it is asked so often, for so long.
const RETURN_PAUSE: Duration = Duration::from_millis(5);
const RETURN_TIME_MAX: Duration = Duration::from_secs(5);

/// A file that takes space.
struct Filler {
    path: PathBuf,
    bytes: u64,
}

/// Fills the filesystem of `dir`, in which a new directory is made, to so many percent.
pub(super) fn fill(dir: &Path, percent: u8) -> Result<()> {
    let ballast = dir.join("ballast");
    fs::create_dir(&ballast).context(|| format!("make {}", ballast.display()))?;
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut fillers = take_all(&ballast, &mut random)?;
    random.shuffle(&mut fillers);
    let (total, free) = space(dir)?;
    let wanted = total / 100 * (100 - u64::from(percent));
    remove(fillers, wanted.saturating_sub(free))?;
    let begun = Instant::now();
    while space(dir)?.1 < wanted && begun.elapsed() < RETURN_TIME_MAX {
        thread::sleep(RETURN_PAUSE);
    }
    Ok(())
}

/// Makes files until nothing is free.
fn take_all(ballast: &Path, random: &mut fastrand::Rng) -> Result<Vec<Filler>> {
    let mut fillers = Vec::new();
    loop {
        let path = ballast.join(fillers.len().to_string());
        let bytes = random.u64(1..=UNITS_MAX) * UNIT_BYTES;
        match allocate(&path, bytes) {
            Ok(()) => fillers.push(Filler { path, bytes }),
            Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(fillers),
            Err(error) => return Err(Error::os("make a file that takes space", error)),
        }
    }
}

fn allocate(path: &Path, bytes: u64) -> io::Result<()> {
    Ok(fallocate(File::create_new(path)?, FallocateFlags::empty(), 0, bytes)?)
}

/// Removes so many of them that so many bytes are free again.
fn remove(fillers: Vec<Filler>, mut bytes: u64) -> Result<()> {
    for filler in fillers {
        if bytes == 0 {
            return Ok(());
        }
        fs::remove_file(&filler.path).context(|| "remove a file that takes space")?;
        bytes = bytes.saturating_sub(filler.bytes);
    }
    Ok(())
}

/// How many bytes the filesystem has, and how many of them are free.
fn space(dir: &Path) -> Result<(u64, u64)> {
    let file = File::open(dir).context(|| format!("open {}", dir.display()))?;
    syncfs(&file).context(|| "sync a filesystem that is filled")?;
    let stat = statvfs(dir).context(|| "ask for the free space")?;
    Ok((stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize))
}
