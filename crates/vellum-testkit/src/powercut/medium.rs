//! A block device whose disk is a [`Disk`] of this process.
//!
//! ```text
//!   filesystem → loop device → file on FUSE → server thread → Disk
//!               (direct I/O, so every write and flush comes through, in order)
//! ```
//!
//! **If the process dies here**: its mounts go with its namespace, its connection with the server's
//! table of descriptors; the loop device clears itself when it is no longer open.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, makedev, mknodat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::pipe::{PipeFlags, pipe_with};

use super::disk::Disk;
use super::fuse::{self, Request};
use super::image::{Image, SECTOR_LEN};
use super::sandbox::missing_if_forbidden;
use super::sys;

/// The major number of loop devices.
const LOOP_MAJOR: u32 = 7;

/// How long something that is still in use may stay so.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// The block device, the disk behind it, and the way for a workload to speak to the disk.
#[derive(Debug)]
pub struct Medium {
    disk: Arc<Mutex<Disk>>,
    speech: OwnedFd,
    device: Option<File>,
    device_path: PathBuf,
    file_path: PathBuf,
    server: Option<JoinHandle<()>>,
    /// Where the kernel keeps how much the device asks for at once, and what it was before.
    limit: Option<(PathBuf, String)>,
}

impl Medium {
    /// A device with this content; needs a directory of its own in the caller's namespace.
    pub fn new(dir: &Path, image: Image) -> anyhow::Result<Medium> {
        let (announcements, speech) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Only our end must not wait; a workload may.
        rustix::fs::fcntl_setfl(&speech, OFlags::empty())?;
        let disk = Arc::new(Mutex::new(Disk::new(image, announcements)));
        let file_path = dir.join("disk");
        File::create(&file_path)?;
        let server = Some(mount_file(&file_path, Arc::clone(&disk))?);
        let device_path = dir.join("device");
        let mut medium =
            Medium { disk, speech, device: None, device_path, file_path, server, limit: None };
        medium
            .attach()
            .map_err(|error| missing_if_forbidden("a loop device cannot be set up", error))?;
        Ok(medium)
    }

    /// The disk. Nothing may be asked of the filesystem while this is held.
    pub fn disk(&self) -> MutexGuard<'_, Disk> {
        lock(&self.disk)
    }

    /// The path of the block device.
    pub fn device_path(&self) -> &Path {
        &self.device_path
    }

    /// A workload's standard output.
    pub fn speech(&self) -> io::Result<OwnedFd> {
        self.speech.try_clone()
    }

    /// Exchanges the content; the device must not be mounted.
    pub fn insert(&self, image: Image) -> anyhow::Result<()> {
        self.disk().insert(image);
        if let Some(device) = &self.device {
            sys::forget_cached(device.as_fd()).context("cannot exchange the disk")?;
        }
        Ok(())
    }

    /// Has the loop device ask for no more at once than this file takes in one request. A loop
    /// device takes a write for whole whose first part has worked, so a disk that fails would lie.
    pub fn ask_in_whole(&mut self) -> anyhow::Result<()> {
        let Some(device) = self.device.as_ref().filter(|_| self.limit.is_none()) else {
            return Ok(());
        };
        let number = rustix::fs::minor(rustix::fs::fstat(device)?.st_rdev);
        let path = format!("/sys/dev/block/{LOOP_MAJOR}:{number}/queue/max_sectors_kb");
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
        let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
        let deadline = Instant::now() + BUSY_MAX;
        loop {
            let number = sys::free_loop_device(&control)?;
            let node = makedev(LOOP_MAJOR, number);
            let _ = std::fs::remove_file(&self.device_path);
            mknodat(CWD, &self.device_path, FileType::BlockDevice, Mode::RUSR | Mode::WUSR, node)?;
            let device = OpenOptions::new().read(true).write(true).open(&self.device_path)?;
            match sys::configure_loop_device(&device, &file, SECTOR_LEN as u32) {
                Ok(()) => {
                    self.device = Some(device);
                    return Ok(());
                }
                // Somebody else has taken it.
                Err(error)
                    if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Medium {
    fn drop(&mut self) {
        if let Some((path, before)) = &self.limit {
            // The next file behind the device would have it otherwise.
            let _ = std::fs::write(path, before);
        }
        self.device = None;
        if let Err(error) = unmount_patiently(&self.file_path) {
            eprintln!("vellum-powercut: cannot unmount {}: {error}", self.file_path.display());
            return;
        }
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

/// Unmounts what may be in use for a moment yet.
pub fn unmount_patiently(path: &Path) -> io::Result<()> {
    let deadline = Instant::now() + BUSY_MAX;
    loop {
        match unmount(path, UnmountFlags::empty()) {
            Err(Errno::BUSY) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(1));
            }
            result => return Ok(result?),
        }
    }
}

/// Mounts the disk as one file over `path` and starts the thread that serves it.
fn mount_file(path: &Path, disk: Arc<Mutex<Disk>>) -> anyhow::Result<JoinHandle<()>> {
    let connection = Arc::new(OpenOptions::new().read(true).write(true).open("/dev/fuse")?);
    let (ready, is_ready) = channel();
    let (mounted, is_mounted) = channel();
    let ours = Arc::clone(&connection);
    let server = thread::Builder::new().name("disk".to_owned());
    let server = server.spawn(move || serve(ours, &ready, &is_mounted, &disk))?;
    is_ready.recv().context("the thread of the disk is gone")?.context("cannot serve a disk")?;
    let options = format!("fd={},rootmode=100000,user_id=0,group_id=0", connection.as_raw_fd());
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("vellum-powercut", path, "fuse", flags, Some(CString::new(options)?.as_c_str()))
        .map_err(|error| {
            missing_if_forbidden("a FUSE filesystem cannot be mounted", error.into())
        })?;
    mounted.send(()).context("the thread of the disk is gone")?;
    // From here on only the server has the connection, so it ends with the server.
    drop(connection);
    Ok(server)
}

/// The life of the thread behind the disk.
fn serve(
    connection: Arc<File>,
    ready: &Sender<io::Result<()>>,
    is_mounted: &Receiver<()>,
    disk: &Mutex<Disk>,
) {
    let own = take_along(connection, disk);
    let (own, result) = match own {
        Ok(own) => (Some(own), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let _ = ready.send(result);
    // Before it is mounted there is nothing to wait for.
    if let Some((connection, announcements)) = own
        && is_mounted.recv().is_ok()
    {
        serve_all(&connection, &announcements, disk);
    }
}

/// Leaves for descriptors of our own; returns the connection, and what to hear the workload by.
/// The shared connection is let go of here, so that it is the other thread that closes it, in its
/// own table.
fn take_along(connection: Arc<File>, disk: &Mutex<Disk>) -> io::Result<(OwnedFd, OwnedFd)> {
    sys::leave_descriptors()?;
    Ok((connection.as_fd().try_clone_to_owned()?, lock(disk).announcements()?))
}

/// Answers until the filesystem is unmounted.
fn serve_all(connection: &OwnedFd, announcements: &OwnedFd, disk: &Mutex<Disk>) {
    let mut message = vec![0; fuse::REQUEST_LEN_MAX];
    while wait_for_any(connection, announcements, disk).is_ok() {
        match rustix::io::read(connection, &mut message) {
            Ok(len) => {
                if serve_one(connection, &message[..len], disk).is_err() {
                    return;
                }
            }
            // Nothing there after all, or given up meanwhile.
            Err(Errno::AGAIN | Errno::INTR | Errno::NOENT) => {}
            Err(_) => return,
        }
    }
}

/// Waits for a request; meanwhile listens to the workload, which would have to wait otherwise.
fn wait_for_any(
    connection: &OwnedFd,
    announcements: &OwnedFd,
    disk: &Mutex<Disk>,
) -> io::Result<()> {
    loop {
        let mut descriptors =
            [PollFd::new(connection, PollFlags::IN), PollFd::new(announcements, PollFlags::IN)];
        match poll(&mut descriptors, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !descriptors[0].revents().is_empty() {
            return Ok(());
        }
        lock(disk).listen();
    }
}

fn serve_one(connection: &OwnedFd, message: &[u8], disk: &Mutex<Disk>) -> io::Result<()> {
    let (unique, request) = fuse::parse(message);
    let answer = match request {
        Request::Init { minor, readahead_max } => Ok(fuse::init(minor, readahead_max)),
        Request::Attributes => Ok(fuse::attributes(lock(disk).len_bytes())),
        Request::Open => Ok(fuse::open()),
        Request::Read(offset, len) => lock(disk).read(offset, len),
        Request::Write(offset, bytes) => {
            lock(disk).write(offset, bytes).map(|()| fuse::written(bytes.len()))
        }
        Request::Sync => lock(disk).flush().map(|()| Vec::new()),
        Request::Nothing => Ok(Vec::new()),
        Request::Silence => return Ok(()),
        Request::Unknown => Err(Errno::NOSYS),
    };
    fuse::reply(connection, unique, answer)
}

fn lock(disk: &Mutex<Disk>) -> MutexGuard<'_, Disk> {
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}
