//! The thread that answers the kernel for a disk.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};

use super::fuse::{self, Answer, Asked};
use super::later::Later;
use super::missing::missing_if_forbidden;
use super::served::{Request, Served, lock};
use super::sys;

/// Mounts the disk as one file over `path` and starts the thread that serves it.
pub(crate) fn mount_file<D: Served + 'static>(
    path: &Path,
    disk: Arc<Mutex<D>>,
    is_overlapping: bool,
) -> anyhow::Result<JoinHandle<()>> {
    let connection = Arc::new(OpenOptions::new().read(true).write(true).open("/dev/fuse")?);
    let (ready, is_ready) = channel();
    let (mounted, is_mounted) = channel();
    let ours = Arc::clone(&connection);
    let dir = path.parent().unwrap_or(path).to_owned();
    let server = thread::Builder::new().name("disk".to_owned());
    let server = server.spawn(move || {
        serve(ours, &dir, &ready, &is_mounted, &disk, is_overlapping);
    })?;
    is_ready.recv().context("the thread of the disk is gone")?.context("cannot serve a disk")?;
    let options = format!("fd={},rootmode=100000,user_id=0,group_id=0", connection.as_raw_fd());
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("vellum-zoo", path, "fuse", flags, Some(CString::new(options)?.as_c_str())).map_err(
        |error| missing_if_forbidden("a FUSE filesystem cannot be mounted", error.into()),
    )?;
    mounted.send(()).context("the thread of the disk is gone")?;
    // From here on only the server has the connection, so it ends with the server.
    drop(connection);
    Ok(server)
}

/// The life of the thread behind the disk.
fn serve<D: Served>(
    connection: Arc<File>,
    dir: &Path,
    ready: &Sender<io::Result<()>>,
    is_mounted: &Receiver<()>,
    disk: &Mutex<D>,
    is_overlapping: bool,
) {
    let own = take_along(connection, dir, disk);
    let (own, result) = match own {
        Ok(own) => (Some(own), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let _ = ready.send(result);
    // Before it is mounted there is nothing to wait for.
    if let Some((connection, ear)) = own
        && is_mounted.recv().is_ok()
    {
        Server {
            later: Later::new(Arc::clone(&connection)),
            connection,
            ear,
            disk,
            is_overlapping,
        }
        .serve_all();
    }
}

/// The descriptors that the thread takes along: the connection, and the one that the disk listens
/// to.
type Own = (Arc<OwnedFd>, Option<OwnedFd>);

/// Leaves for mounts and descriptors of our own. The shared connection is let go of here, so that
/// it is the other thread that closes it, in its own table.
fn take_along<D: Served>(connection: Arc<File>, dir: &Path, disk: &Mutex<D>) -> io::Result<Own> {
    sys::leave_descriptors()?;
    leave_mounts(dir)?;
    let own = Arc::new(connection.as_fd().try_clone_to_owned()?);
    let disk = lock(disk);
    let ear = disk.ear()?;
    // The devices of other disks among them: those could not be taken down meanwhile.
    let mut kept = disk.descriptors();
    kept.extend([own.as_fd(), connection.as_fd()]);
    kept.extend(ear.as_ref().map(AsFd::as_fd));
    sys::close_others(&kept)?;
    drop(disk);
    Ok((own, ear))
}

/// Has no mount at all but an empty one, which takes the place of the directory in this thread's
/// own namespace. Whatever else is mounted here could not be unmounted by others meanwhile; and
/// the disk of another thread would wait for that.
fn leave_mounts(dir: &Path) -> io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // By its name: a descriptor of it leads to the mounts that this thread has left.
    let dir = &dir.canonicalize()?;
    mount("vellum-zoo", dir, "tmpfs", MountFlags::NOSUID, Some(c"size=4k"))?;
    rustix::process::chdir(dir)?;
    rustix::process::pivot_root(".", ".")?;
    Ok(unmount(PathBuf::from("."), UnmountFlags::DETACH)?)
}

/// The thread's own things.
struct Server<'a, D> {
    connection: Arc<OwnedFd>,
    ear: Option<OwnedFd>,
    disk: &'a Mutex<D>,
    later: Later,
    is_overlapping: bool,
}

impl<D: Served> Server<'_, D> {
    /// Answers until the filesystem is unmounted.
    fn serve_all(&mut self) {
        let mut message = vec![0; fuse::REQUEST_LEN_MAX];
        while self.wait_for_request().is_ok() {
            match rustix::io::read(&self.connection, &mut message) {
                Ok(len) => {
                    if self.serve_one(&message[..len]).is_err() {
                        return;
                    }
                }
                // Nothing there after all, or given up meanwhile.
                Err(Errno::AGAIN | Errno::INTR | Errno::NOENT) => {}
                Err(_) => return,
            }
        }
    }

    /// Waits for a request; meanwhile has the disk listen, as the speaker would wait otherwise.
    fn wait_for_request(&self) -> io::Result<()> {
        let Some(ear) = &self.ear else { return Ok(()) };
        loop {
            let mut descriptors =
                [PollFd::new(&self.connection, PollFlags::IN), PollFd::new(ear, PollFlags::IN)];
            match poll(&mut descriptors, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if !descriptors[0].revents().is_empty() {
                return Ok(());
            }
            lock(self.disk).hear();
        }
    }

    fn serve_one(&mut self, message: &[u8]) -> io::Result<()> {
        let (unique, asked) = fuse::parse(message);
        let answer = match asked {
            Asked::Init { minor, readahead_max } => {
                Ok(fuse::init(minor, readahead_max, self.is_overlapping))
            }
            Asked::Attributes => Ok(fuse::attributes(lock(self.disk).len_bytes())),
            Asked::Open => Ok(fuse::open()),
            Asked::Disk(request) => return self.ask(unique, request),
            Asked::Nothing => Ok(Vec::new()),
            Asked::Silence => return Ok(()),
            Asked::Unknown => Err(Errno::NOSYS),
        };
        fuse::reply(&self.connection, unique, answer)
    }

    /// Asks the disk, and replies now or later.
    fn ask(&mut self, unique: u64, request: Request<'_>) -> io::Result<()> {
        let mut disk = lock(self.disk);
        let due = disk.due(request);
        let answer = answer(&mut *disk, request);
        drop(disk);
        match due {
            Some(due) => self.later.reply(due, unique, answer),
            None => fuse::reply(&self.connection, unique, answer)?,
        }
        Ok(())
    }
}

fn answer(disk: &mut impl Served, request: Request<'_>) -> Answer {
    let body = disk.answer(request)?;
    Ok(match request {
        Request::Write(_, bytes) => fuse::written(bytes.len()),
        Request::Read(..) | Request::Flush => body,
    })
}
