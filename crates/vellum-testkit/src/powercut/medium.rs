//! A block device whose disk is a [`Disk`], and the way for a workload to speak to that.
//!
//! **If the process dies here**: its mounts go with its namespace, the rest as
//! [`vellum_zoo::device`] says.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::MutexGuard;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use vellum_zoo::{BlockDevice, Request, Served, Shape};

use super::disk::Disk;
use super::image::{Image, SECTOR_LEN};

/// The block device, the disk behind it, and the way for a workload to speak to the disk.
#[derive(Debug)]
pub struct Medium {
    device: BlockDevice<Disk>,
    speech: OwnedFd,
}

impl Medium {
    /// A device with this content; needs a directory of its own in the caller's namespace.
    pub fn new(dir: &Path, image: Image) -> anyhow::Result<Medium> {
        let (announcements, speech) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Only our end must not wait; a workload may.
        rustix::fs::fcntl_setfl(&speech, OFlags::empty())?;
        // One request after the other: a recording has one order.
        let shape = Shape { block_len: SECTOR_LEN as u32, is_overlapping: false };
        Ok(Medium {
            device: BlockDevice::new(dir, Disk::new(image, announcements), shape)?,
            speech,
        })
    }

    /// The disk. Nothing may be asked of the filesystem while this is held.
    pub fn disk(&self) -> MutexGuard<'_, Disk> {
        self.device.disk()
    }

    /// The path of the block device.
    pub fn device_path(&self) -> &Path {
        self.device.path()
    }

    /// A workload's standard output.
    pub fn speech(&self) -> io::Result<OwnedFd> {
        self.speech.try_clone()
    }

    /// Exchanges the content; the device must not be mounted.
    pub fn insert(&self, image: Image) -> anyhow::Result<()> {
        self.disk().insert(image);
        self.device.forget_cached()
    }

    /// As [`BlockDevice::ask_in_whole`] says.
    pub fn ask_in_whole(&mut self) -> anyhow::Result<()> {
        self.device.ask_in_whole()
    }
}

impl Served for Disk {
    fn len_bytes(&self) -> u64 {
        self.len_bytes()
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.hears_by()]
    }

    fn answer(&mut self, request: Request<'_>) -> Result<Vec<u8>, Errno> {
        match request {
            Request::Read(offset, len) => self.read(offset, len),
            Request::Write(offset, bytes) => self.write(offset, bytes).map(|()| Vec::new()),
            Request::Flush => self.flush().map(|()| Vec::new()),
        }
    }

    fn ear(&self) -> io::Result<Option<OwnedFd>> {
        self.announcements().map(Some)
    }

    fn hear(&mut self) {
        self.listen();
    }
}
