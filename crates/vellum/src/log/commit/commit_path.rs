//! How this process brings commit groups to the device: the default, the path that is stored beside
//! the log, or the program's choice.
//!
//! The choice is of a device and not of a log. So it is in a file of its own, with the identity of
//! the device it holds for: on another one it is ignored. Any choice is as durable as any other;
//! the exception is a block that is smaller than the device's physical sector, which a measurement
//! never leads to.
//!
//! **If the process dies here**: the file gets its name when it is complete. The next writer
//! replaces a file with the unfinished name.

use std::time::SystemTime;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::OsResult;
use crate::files::names::{COMMIT_PATH_NAME, CONTROL_NAME, UNFINISHED_COMMIT_PATH_NAME};
use crate::files::small_file;
use crate::knowledge;
use crate::log::commit::stored_path::{FILE_LEN_MAX, StoredPath};
use crate::log::state::core::Core;
use crate::options::commit_path::PathOrigin;
use crate::sys::clock;
use crate::sys::device::Device;
use crate::sys::filesystem::Filesystem;
use crate::sys::{self, Dir};
use crate::{CommitPath, Error, ErrorKind, Fill, Options, Result};

/// Blocks of another size than those of this process that others may write in.
const BLOCK_BYTES_MIN: u64 = 512;

/// How a staged log commits, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CommitPathStat {
    /// How this process commits.
    pub path: CommitPath,
    /// Where that comes from.
    pub origin: PathOrigin,
    /// Why, for people.
    pub reason: String,
    /// Since when it is stored, where it is.
    pub stored_at: Option<SystemTime>,
    /// The identity of the device, as far as it is known.
    pub device: String,
    /// The smallest write that the device makes without touching what is beside it.
    pub physical_block_bytes: Option<u64>,
    /// Whether a power cut empties a cache of the device.
    pub has_volatile_cache: Option<bool>,
    /// The smallest block that is safe on this device.
    pub safe_block_bytes: u64,
}

/// The device under a log.
struct Surroundings {
    device: Device,
    /// The smallest block that direct writes take.
    direct_block: u64,
    /// The smallest that leaves durable bytes alone when the power is cut.
    safe_block: u64,
    why_safe: String,
}

impl Surroundings {
    fn of(dir: &Dir, filesystem: Filesystem) -> Surroundings {
        let device = dir.device();
        let direct_block = direct_block(dir, filesystem);
        let (safe_block, why_safe) = knowledge::commit_block(filesystem, &device);
        Surroundings { device, direct_block, safe_block: safe_block.max(direct_block), why_safe }
    }
}

/// How a staged log in `dir` commits.
pub(crate) fn choose(dir: &Dir, filesystem: Filesystem, options: &Options) -> CommitPath {
    let surroundings = Surroundings::of(dir, filesystem);
    decide(&surroundings, options.tuning.commit_path, stored(dir).as_ref()).0
}

/// The path, and where it comes from. A pure function, so that tests can give it any device.
fn decide(
    here: &Surroundings,
    wanted: Option<CommitPath>,
    stored: Option<&StoredPath>,
) -> (CommitPath, PathOrigin) {
    let at_least =
        |path: CommitPath, least| CommitPath { block_bytes: path.block_bytes.max(least), ..path };
    if let Some(path) = wanted {
        return (at_least(path, here.direct_block), PathOrigin::Options);
    }
    match stored.filter(|stored| stored.device == here.device.identity()) {
        Some(StoredPath { path, origin: PathOrigin::Chosen, .. }) => {
            (at_least(*path, here.direct_block), PathOrigin::Chosen)
        }
        Some(stored) => (at_least(stored.path, here.safe_block), stored.origin),
        None => (knowledge::commit_path(here.safe_block), PathOrigin::Default),
    }
}

/// The choice in the file, for any device; `None` where there is none that can be understood.
fn stored(dir: &Dir) -> Option<StoredPath> {
    let fd = dir.open_file(&dir.join(COMMIT_PATH_NAME), OFlags::RDONLY).ok()?;
    let mut bytes = vec![0; FILE_LEN_MAX + 1];
    let count = sys::file::read_up_to_at(&fd, &mut bytes, 0).ok()?;
    StoredPath::parse(&bytes[..count])
}

/// Bytes of the smallest block that is written directly here.
fn direct_block(dir: &Dir, filesystem: Filesystem) -> u64 {
    let least = filesystem.direct_block_min();
    let control = dir.open_file(&dir.join(CONTROL_NAME), OFlags::RDONLY | OFlags::DIRECT).ok();
    control.and_then(sys::file::direct_block).unwrap_or(least).max(least)
}

/// How the log commits, and why; `None` for one that is not staged.
pub(crate) fn stat(core: &Core) -> Option<CommitPathStat> {
    core.commits.stage.as_ref()?;
    let here = Surroundings::of(&core.files.dir, core.ready.filesystem);
    let stored = stored(&core.files.dir);
    let (_, origin) = decide(&here, core.choices.options.tuning.commit_path, stored.as_ref());
    let is_stored = matches!(origin, PathOrigin::Measured | PathOrigin::Chosen);
    let stored_at = stored.as_ref().filter(|_| is_stored).map(|stored| clock::time_of(stored.at));
    Some(CommitPathStat {
        path: core.commits.commit_path,
        origin,
        reason: reason(&here, origin, stored.is_some()),
        stored_at,
        device: here.device.identity(),
        physical_block_bytes: here.device.physical_block_bytes,
        has_volatile_cache: here.device.has_volatile_cache(),
        safe_block_bytes: here.safe_block,
    })
}

fn reason(here: &Surroundings, origin: PathOrigin, has_stored: bool) -> String {
    let why = match origin {
        PathOrigin::Options => "the program says so".into(),
        PathOrigin::Chosen => "chosen for this device".into(),
        PathOrigin::Measured => "the fastest in a measurement on this device".into(),
        PathOrigin::Default if has_stored => {
            "the default: what is stored was found out on another device".into()
        }
        PathOrigin::Default if here.device.has_volatile_cache() == Some(false) => {
            "the default: the device has no volatile cache, so there is nothing to flush".into()
        }
        PathOrigin::Default => "the default: not measured on this device".to_string(),
    };
    format!("{why}; {}", here.why_safe)
}

/// Whether a process that writes in smaller blocks could write the rest of the physical sector in
/// which a batch ends, at the same time as this one, which writes blocks of `block` bytes. Two
/// writes of one sector may come in any order, so such a batch is written under the commit lock.
pub(crate) fn shares_sector(end: u64, block: u64) -> bool {
    end.is_multiple_of(BLOCK_BYTES_MIN) && !end.is_multiple_of(block)
}

/// Stores how the log commits on this device from the next opening on; `None` forgets it.
pub(crate) fn store(core: &Core, path: Option<CommitPath>, origin: PathOrigin) -> Result<()> {
    let writer = core.writer()?;
    if core.files.geometry.fill != Fill::Staged {
        let message = "only a staged log has a commit path; others sync their files";
        return Err(Error::new(ErrorKind::Unsupported, message).at_path(&core.files.dir));
    }
    let _prepare = writer.lock_prepare()?;
    let Some(path) = path else { return forget(&core.files.dir) };
    path.check()?;
    let device = core.files.dir.device().identity();
    write(core, &StoredPath { path, origin, at: clock::seconds(), device })
}

fn write(core: &Core, stored: &StoredPath) -> Result<()> {
    let (files, text) = (&core.files, stored.to_text());
    let names = [UNFINISHED_COMMIT_PATH_NAME, COMMIT_PATH_NAME];
    let what = "store the commit path in";
    let bytes = text.as_bytes();
    small_file::write(&files.dir, &files.rights, names, bytes, what, |_| Ok(())).map(drop)
}

fn forget(dir: &Dir) -> Result<()> {
    let target = dir.join(COMMIT_PATH_NAME);
    match dir.unlink(&target) {
        Err(Errno::NOENT) => Ok(()),
        answer => answer.or_os("forget the commit path in", &target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(safe_block: u64) -> Surroundings {
        let device = Device { physical_block_bytes: Some(safe_block), ..Device::default() };
        Surroundings { device, direct_block: 512, safe_block, why_safe: String::new() }
    }

    fn path(text: &str) -> CommitPath {
        text.parse().unwrap()
    }

    fn stored_for(here: &Surroundings, text: &str, origin: PathOrigin) -> StoredPath {
        StoredPath { path: path(text), origin, at: 1, device: here.device.identity() }
    }

    #[test]
    fn the_program_has_priority_over_what_is_stored_and_that_over_the_default() {
        let here = here(512);
        let stored = stored_for(&here, "fdatasync/4096/1", PathOrigin::Measured);
        let wanted = Some(path("dsync/1024/1"));
        assert_eq!(decide(&here, wanted, Some(&stored)).1, PathOrigin::Options);
        let measured = (path("fdatasync/4096/1"), PathOrigin::Measured);
        assert_eq!(decide(&here, None, Some(&stored)), measured);
        assert_eq!(decide(&here, None, None), (path("dsync/512/2"), PathOrigin::Default));
    }

    #[test]
    fn only_an_end_where_a_shorter_block_may_begin_is_shared() {
        let shared = |end| [512, 1024, 4096].map(|block| shares_sector(end, block));
        assert_eq!(shared(512), [false, true, true]);
        assert_eq!(shared(3072), [false, false, true]);
        assert_eq!(shared(4096), [false; 3]);
        assert_eq!(shared(1000), [false; 3]);
    }

    #[test]
    fn what_was_found_out_on_another_device_is_ignored() {
        let (there, here) = (here(512), here(4096));
        for origin in [PathOrigin::Measured, PathOrigin::Chosen] {
            let stored = stored_for(&there, "fdatasync/512/1", origin);
            let default = (path("dsync/4096/2"), PathOrigin::Default);
            assert_eq!(decide(&here, None, Some(&stored)), default);
        }
    }

    #[test]
    fn only_who_says_so_by_name_writes_less_than_a_physical_sector() {
        let here = here(4096);
        let block =
            |wanted, stored: Option<&StoredPath>| decide(&here, wanted, stored).0.block_bytes;
        let stored = |origin| stored_for(&here, "fdatasync/512/1", origin);
        assert_eq!(block(None, Some(&stored(PathOrigin::Measured))), 4096);
        assert_eq!(block(None, Some(&stored(PathOrigin::Chosen))), 512);
        assert_eq!(block(Some(path("dsync/512/2")), None), 512);
        let coarse = Surroundings { direct_block: 4096, ..here };
        assert_eq!(decide(&coarse, Some(path("dsync/512/2")), None).0.block_bytes, 4096);
    }
}
