//! A block device whose disk is a value of this process.
//!
//! **If the process dies here**: its connection goes with the server's table of descriptors; the
//! loop device clears itself when it is no longer open. Its mounts go with its namespace, if it has
//! one of its own.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::fs::{CWD, FileType, Mode, OFlags, makedev, mknodat};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use vellum_sys::loop_device::{LoopShape, attach_loop};

use super::fuse;
use super::missing::missing_if_forbidden;
use super::served::{Served, lock};
use super::server;
use super::sys;

/// The major number of loop devices.
const LOOP_MAJOR: u32 = 7;

/// How long something that is still in use may stay so.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// The form in which the kernel sees a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a logical block, a power of two from 512 to 4096.
    pub block_len: u32,
    /// Whether the kernel may ask for several things at once. Otherwise the requests come one by
    /// one, in the order in which the filesystem made them.
    pub is_overlapping: bool,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { block_len: 512, is_overlapping: false }
    }
}

/// The block device, and the disk behind it.
#[derive(Debug)]
pub struct BlockDevice<D> {
    disk: Arc<Mutex<D>>,
    shape: Shape,
    device: Option<File>,
    number: u32,
    device_path: PathBuf,
    file_path: PathBuf,
    server: Option<JoinHandle<()>>,
    /// The file in which the kernel keeps how much the device asks for at once, and its value
    /// before.
    limit: Option<(PathBuf, String)>,
}

impl<D: Served + 'static> BlockDevice<D> {
    /// A device with this disk; needs a directory of its own in the caller's namespace.
    pub fn new(dir: &Path, disk: D, shape: Shape) -> anyhow::Result<BlockDevice<D>> {
        let disk = Arc::new(Mutex::new(disk));
        let file_path = dir.join("disk");
        File::create(&file_path)?;
        let server = server::mount_file(&file_path, Arc::clone(&disk), shape.is_overlapping)?;
        let mut device = BlockDevice {
            disk,
            shape,
            device: None,
            number: 0,
            device_path: dir.join("device"),
            file_path,
            server: Some(server),
            limit: None,
        };
        device
            .attach()
            .map_err(|error| missing_if_forbidden("a loop device cannot be set up", error))?;
        Ok(device)
    }
}

impl<D> BlockDevice<D> {
    /// The disk. Nothing may be asked of the device while this is held.
    pub fn disk(&self) -> MutexGuard<'_, D> {
        lock(&self.disk)
    }

    /// The path of the block device, in the directory that was given.
    pub fn path(&self) -> &Path {
        &self.device_path
    }

    /// The number of the loop device, as in `/dev/loop3`.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The path of the file that the block device is on; requests to the file come to the disk.
    pub fn file_path(&self) -> &Path {
        &self.file_path
    }

    /// Has the kernel forget the cached pages, after the content was exchanged. The device must
    /// not be mounted.
    pub fn forget_cached(&self) -> anyhow::Result<()> {
        match &self.device {
            Some(device) => sys::forget_cached(device.as_fd()).context("cannot exchange the disk"),
            None => Ok(()),
        }
    }

    /// Has the loop device ask for no more at once than this file takes in one request. A loop
    /// device takes a write for whole whose first part has worked, so a disk that fails would lie.
    pub fn ask_in_whole(&mut self) -> anyhow::Result<()> {
        if self.device.is_none() || self.limit.is_some() {
            return Ok(());
        }
        let path = format!("/sys/dev/block/{LOOP_MAJOR}:{}/queue/max_sectors_kb", self.number);
        let kib = (fuse::WRITE_LEN_MAX / 2) >> 10;
        let before = std::fs::read_to_string(&path)?;
        std::fs::write(&path, kib.to_string())
            .map_err(|error| missing_if_forbidden(&format!("{path} cannot be written"), error))?;
        self.limit = Some((PathBuf::from(path), before));
        Ok(())
    }

    fn attach(&mut self) -> io::Result<()> {
        let direct = OFlags::DIRECT.bits() as i32;
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(direct).open(&self.file_path)?;
        let node = |number| {
            let _ = std::fs::remove_file(&self.device_path);
            let (mode, device) = (Mode::RUSR | Mode::WUSR, makedev(LOOP_MAJOR, number));
            mknodat(CWD, &self.device_path, FileType::BlockDevice, mode, device)?;
            OpenOptions::new().read(true).write(true).open(&self.device_path)
        };
        let shape = LoopShape { block_len: self.shape.block_len, is_direct: true };
        let (device, number) = attach_loop(&file, shape, node)?;
        (self.device, self.number) = (Some(device), number);
        Ok(())
    }
}

impl<D> Drop for BlockDevice<D> {
    fn drop(&mut self) {
        if let Some((path, before)) = &self.limit {
            // The next file behind the device would have it otherwise.
            let _ = std::fs::write(path, before);
        }
        self.device = None;
        if let Err(error) = unmount_patiently(&self.file_path) {
            eprintln!("cannot unmount {}: {error}", self.file_path.display());
            return;
        }
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

/// Unmounts a filesystem that may be in use for a moment yet.
pub fn unmount_patiently(path: &Path) -> io::Result<()> {
    let deadline = Instant::now() + BUSY_MAX;
    loop {
        match unmount(path, UnmountFlags::NOFOLLOW) {
            Err(Errno::BUSY) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(1));
            }
            result => return Ok(result?),
        }
    }
}
