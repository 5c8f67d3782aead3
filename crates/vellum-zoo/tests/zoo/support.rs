//! A disk, its block device, and a probe that asks it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use rustix::fs::OFlags;
use tempfile::TempDir;
use vellum_zoo::{Animal, BlockDevice, Disk, Figures, look_for_needs};

pub(crate) const DISK_LEN: u64 = 64 << 20;
const BLOCK_LEN: usize = 4096;

/// Says why the calling test is skipped, if something is missing here.
#[track_caller]
pub(crate) fn is_possible() -> bool {
    match look_for_needs() {
        Ok(()) => true,
        Err(missing) => {
            vellum_testing::missing::skip(missing);
            false
        }
    }
}

/// A disk of an animal.
pub(crate) struct Cage {
    pub(crate) device: BlockDevice<Disk>,
    pub(crate) dir: TempDir,
}

impl Cage {
    pub(crate) fn new(names: &str, parameters: &[&str]) -> Cage {
        let dir = tempfile::tempdir().unwrap();
        let medium = tempfile::tempfile().unwrap();
        medium.set_len(DISK_LEN).unwrap();
        let animal = Animal::new(names, parameters, 1).unwrap();
        Cage { device: animal.device(dir.path(), medium).unwrap(), dir }
    }

    pub(crate) fn figures(&self) -> Figures {
        self.device.disk().figures()
    }

    /// The device, past the page cache.
    pub(crate) fn probe(&self) -> Probe {
        Probe::new(File::options(), self.device.path().to_str().unwrap())
    }

    /// The file behind the device.
    pub(crate) fn probe_of_file(&self) -> Probe {
        Probe::new(File::options(), self.device.file_path().to_str().unwrap())
    }
}

/// Asks for blocks.
pub(crate) struct Probe {
    file: File,
    room: Vec<u8>,
}

impl Probe {
    fn new(mut options: OpenOptions, path: &str) -> Probe {
        let flags = OFlags::DIRECT.bits() as i32;
        let file = options.read(true).write(true).custom_flags(flags).open(path).unwrap();
        Probe { file, room: vec![0; (64 << 10) + BLOCK_LEN] }
    }

    /// Memory that direct I/O takes.
    fn bytes(&mut self, len: usize) -> &mut [u8] {
        let start = self.room.as_ptr().align_offset(BLOCK_LEN);
        &mut self.room[start..start + len]
    }

    pub(crate) fn write(&mut self, offset: u64, value: u8, len: usize) -> io::Result<()> {
        self.bytes(len).fill(value);
        let start = self.room.as_ptr().align_offset(BLOCK_LEN);
        self.file.write_all_at(&self.room[start..start + len], offset)
    }

    /// Writes a block that begins with `bytes`.
    pub(crate) fn write_bytes(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let block = self.bytes(BLOCK_LEN);
        block.fill(0);
        block[..bytes.len()].copy_from_slice(bytes);
        let start = self.room.as_ptr().align_offset(BLOCK_LEN);
        self.file.write_all_at(&self.room[start..start + BLOCK_LEN], offset)
    }

    pub(crate) fn read(&mut self, offset: u64) -> io::Result<u8> {
        let start = self.room.as_ptr().align_offset(BLOCK_LEN);
        self.file.read_exact_at(&mut self.room[start..start + BLOCK_LEN], offset)?;
        Ok(self.room[start])
    }

    pub(crate) fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Writes `count` blocks, with a flush after each.
    pub(crate) fn commit(&mut self, count: u64) {
        for block in 0..count {
            self.write(block * BLOCK_LEN as u64, 7, BLOCK_LEN).unwrap();
            self.flush().unwrap();
        }
    }
}
