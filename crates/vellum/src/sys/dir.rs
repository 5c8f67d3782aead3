//! A log's directory, opened once: its files are reached by name below it, whatever becomes of its
//! path.
//!
//! So a process that changes its working directory, or a parent that is renamed, makes no
//! difference; and nothing that somebody else puts there under the name of a file of the log leads
//! out of it: a link is never followed, a pipe is never waited for, and a file that is made is new.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::{self, Errno};

use super::file::{retry, sync};
use super::filesystem::Filesystem;
use crate::error::NOT_REGULAR;

/// An open directory. Clones share it.
///
/// Its methods take paths made by [`join`](Dir::join), of which they use the last component.
#[derive(Clone, Debug)]
pub(crate) struct Dir(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    fd: OwnedFd,
    /// As it was named by who opened it: for messages, and never looked up again.
    path: PathBuf,
}

impl Dir {
    /// Opens the directory at `path`.
    pub(crate) fn open(path: &Path) -> io::Result<Dir> {
        let fd = super::file::open(path, OFlags::RDONLY | OFlags::DIRECTORY, 0)?;
        Ok(Dir(Arc::new(Inner { fd, path: path.to_path_buf() })))
    }

    /// Its path, as it was when it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    /// How messages name the file `name` in it.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path.join(name)
    }

    /// Opens a file that is there and is a regular one; anything else is [`NOT_REGULAR`].
    pub(crate) fn open_file(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        // Regular files ignore NONBLOCK; a pipe would keep us waiting without it.
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = match self.open_at(path, flags, 0) {
            // A socket; or, for writing, a pipe without a reader, or a directory.
            Err(Errno::NXIO | Errno::ISDIR) => return Err(NOT_REGULAR),
            answer => answer?,
        };
        match FileType::from_raw_mode(fs::fstat(&fd)?.st_mode) {
            FileType::RegularFile => Ok(fd),
            _ => Err(NOT_REGULAR),
        }
    }

    /// Makes a new file for reading and writing, in the place of whatever has its name.
    pub(crate) fn create(&self, path: &Path, mode: u32) -> io::Result<OwnedFd> {
        match self.unlink(path) {
            Ok(()) | Err(Errno::NOENT) => self.create_first(path, mode),
            Err(errno) => Err(errno),
        }
    }

    /// Opens a file for reading and writing, and makes it if it is not there.
    pub(crate) fn open_or_create(&self, path: &Path, mode: u32) -> io::Result<OwnedFd> {
        loop {
            match self.open_file(path, OFlags::RDWR) {
                Err(Errno::NOENT) => {}
                answer => return answer,
            }
            match self.create_first(path, mode) {
                // Somebody else has just made it.
                Err(Errno::EXIST) => {}
                answer => return answer,
            }
        }
    }

    fn create_first(&self, path: &Path, mode: u32) -> io::Result<OwnedFd> {
        self.open_at(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, mode)
    }

    fn open_at(&self, path: &Path, flags: OFlags, mode: u32) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        retry(|| fs::openat(&self.0.fd, name(path), flags, mode))
    }

    /// All bytes of a regular file.
    pub(crate) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut file = File::from(self.open_file(path, OFlags::RDONLY)?);
        let read = file.read_to_end(&mut bytes);
        read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(bytes)
    }

    /// Gives the file `from` the name of `to`, in the place of what has it.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::renameat(&self.0.fd, name(from), &self.0.fd, name(to))
    }

    /// Removes a name.
    pub(crate) fn unlink(&self, path: &Path) -> io::Result<()> {
        fs::unlinkat(&self.0.fd, name(path), AtFlags::empty())
    }

    /// Looks at what has a name, and not at what that leads to.
    pub(crate) fn stat(&self, path: &Path) -> io::Result<Stat> {
        fs::statat(&self.0.fd, name(path), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Whether anything has this name.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.stat(path).is_ok()
    }

    /// Makes a symbolic link.
    pub(crate) fn symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        fs::symlinkat(target, &self.0.fd, name(path))
    }

    /// Where a symbolic link leads to.
    pub(crate) fn readlink(&self, path: &Path) -> io::Result<PathBuf> {
        use std::os::unix::ffi::OsStringExt;
        let target = fs::readlinkat(&self.0.fd, name(path), Vec::new())?;
        Ok(std::ffi::OsString::from_vec(target.into_bytes()).into())
    }

    /// The names in it.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(&self.0.fd)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// What the directory itself is.
    pub(crate) fn status(&self) -> io::Result<Stat> {
        fs::fstat(&self.0.fd)
    }

    /// The filesystem it is on.
    pub(crate) fn filesystem(&self) -> io::Result<Filesystem> {
        Filesystem::of(&self.0.fd)
    }

    /// Waits until the names in it survive a power cut.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match sync(&self.0.fd) {
            // Some filesystems keep nothing, and say so.
            Err(Errno::INVAL) => Ok(()),
            answer => answer,
        }
    }

    /// Waits until its own name survives a power cut, where this process may see to that.
    ///
    /// Who may use a log need not be able to read the directory that the log is in: that is no
    /// failure.
    pub(crate) fn sync_own_name(&self) -> io::Result<()> {
        match self.open_parent().and_then(sync) {
            Err(Errno::ACCESS | Errno::PERM | Errno::INVAL | Errno::ROFS) => Ok(()),
            answer => answer,
        }
    }

    /// Whether this process may see to that.
    pub(crate) fn can_sync_own_name(&self) -> bool {
        self.open_parent().is_ok()
    }

    fn open_parent(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        retry(|| fs::openat(&self.0.fd, "..", flags, Mode::empty()))
    }
}

impl AsRef<Path> for Dir {
    fn as_ref(&self) -> &Path {
        self.path()
    }
}

/// The last component of a path: nothing that is handed to the kernel leads elsewhere.
fn name(path: &Path) -> &Path {
    path.file_name().map_or(Path::new(""), Path::new)
}
