//! A log's files as another boot would find them.
//!
//! The places in the files are those of `docs/format.md`, written down here once more, so that the
//! tested code does not choose the places itself.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes of the header of the control file and the geometry file.
const HEADER_LEN: usize = 72;
const CHECK: std::ops::Range<usize> = 12..16;
const BOOT: std::ops::Range<usize> = 48..64;
/// A boot that never was.
const ANOTHER_BOOT: [u8; 16] = [0x77; 16];
/// Where the control file says which file it is: device and inode.
const ORIGIN: u64 = 128;
/// Bytes before the first position in a segment of a framed log.
const SEGMENT_HEADER_LEN: u64 = 4096;
/// Bytes of a torn record that did arrive.
const ARRIVED_LEN: u64 = 256;

/// Copies the files of a log as they are now. The control file takes the copy for itself, so that
/// its words count: the test is about the records that they count.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_symlink() {
            continue;
        }
        fs::copy(entry.path(), to.join(entry.file_name()))?;
        if entry.file_name() == "control" {
            let control = File::options().write(true).open(to.join("control"))?;
            let place = control.metadata()?;
            control.write_all_at(&place.dev().to_le_bytes(), ORIGIN)?;
            control.write_all_at(&place.ino().to_le_bytes(), ORIGIN + 8)?;
        }
    }
    Ok(())
}

/// Makes an unused log one of another boot, without a stage: the kernel keeps that from the device.
pub fn enter_another_boot(dir: &Path) -> io::Result<()> {
    remove_stages(dir)?;
    for name in ["control", "geometry"] {
        let path = dir.join(name);
        let mut bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            answer => answer?,
        };
        if bytes.len() >= HEADER_LEN {
            bytes[BOOT].copy_from_slice(&ANOTHER_BOOT);
            bytes[CHECK].fill(0);
            let check = crc32c::crc32c(&bytes[..HEADER_LEN]);
            bytes[CHECK].copy_from_slice(&check.to_le_bytes());
            fs::write(&path, bytes)?;
        }
    }
    Ok(())
}

/// Takes back what was written of the record of `len` bytes at `lsn`, but for its beginning.
pub fn tear(dir: &Path, lsn: u64, capacity: u64, len: usize) -> io::Result<()> {
    let first = lsn / capacity * capacity;
    let file = File::options().write(true).open(dir.join(format!("{first:016x}.seg")))?;
    let offset = SEGMENT_HEADER_LEN + (lsn - first) + ARRIVED_LEN;
    file.write_all_at(&vec![0; len - ARRIVED_LEN as usize], offset)
}

/// The files in which a staged log has records that are not in its segments yet.
pub fn stages(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(dir)?.map(|entry| Ok(entry?.path()));
    let is_stage = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "stage");
    Ok(paths.collect::<io::Result<Vec<_>>>()?.into_iter().filter(is_stage).collect())
}

/// Removes them.
pub fn remove_stages(dir: &Path) -> io::Result<()> {
    stages(dir)?.into_iter().try_for_each(fs::remove_file)
}

/// Moves a log in which something is wrong out of the way.
pub fn keep(dir: &Path, kept: &Path) -> io::Result<()> {
    match fs::rename(dir, kept) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy(dir, kept),
        answer => answer,
    }
}
