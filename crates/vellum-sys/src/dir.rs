//! A log's directory, opened once: its files are reached by name below it, whatever becomes of its
//! path.
//!
//! So a process that changes its working directory, or a parent that is renamed, makes no
//! difference; and no planted file under the name of a file of the log leads out of it: a link is
//! never followed, a pipe is never waited for, and a file that is made is new. A small file is read
//! only if it is small. Once a [model](Dir::set_model) is known, a file is written only if all
//! users may write to it that may write to the model.
//!
//! A forked child that becomes a daemon may close all descriptors, and others get their numbers. So
//! before each use the directory is known again by device and inode; a child that has lost it opens
//! it by its path, each time, and takes no other for it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::{self, Errno};

use crate::access::{self, Access, Need};
use crate::descriptor::above_standard;
use crate::device::Device;
use crate::file::{self, Status, identity, read_up_to_at, retry, status, without_access_time};
use crate::filesystem::Filesystem;
use crate::kept::KeptFile;
use crate::sync::{check_in_service, sync_names};

/// The error of opening anything but a regular file where a regular file is expected.
pub const NOT_REGULAR: Errno = Errno::LOOP;
/// The error of opening a file for writing that does not let in all users that may write to the
/// [model](Dir::set_model). No file system has this error of its own.
pub const NOT_SHARED: Errno = Errno::UNATCH;
/// The error of reading a file that is longer than it can be.
pub const TOO_LONG: Errno = Errno::OVERFLOW;

/// An open directory. Clones share it.
///
/// Its methods take paths made by [`join`](Dir::join), of which they use the last component.
#[derive(Clone, Debug)]
pub struct Dir(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    fd: KeptFile,
    /// Device and inode.
    identity: (u64, u64),
    /// The same of the directory that its name was in, where that may be looked at.
    parent: Option<(u64, u64)>,
    /// As the opener named it: for messages.
    path: PathBuf,
    /// Looked up only if `fd` was lost.
    absolute_path: PathBuf,
    model: OnceLock<Model>,
}

/// A file whose permissions are those of all files of the directory.
#[derive(Debug)]
struct Model {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
    /// When it was set.
    access: Access,
}

/// The descriptor to reach files by.
enum Handle<'a> {
    Kept(BorrowedFd<'a>),
    Fresh(OwnedFd),
}

impl AsFd for Handle<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Handle::Kept(fd) => *fd,
            Handle::Fresh(fd) => fd.as_fd(),
        }
    }
}

impl Inner {
    /// The descriptor, if its number is still that of the directory.
    fn kept(&self) -> Option<BorrowedFd<'_>> {
        self.fd.check().is_ok().then(|| self.fd.as_fd())
    }
}

impl Dir {
    /// Opens the directory at `path`.
    pub fn open(path: &Path) -> io::Result<Dir> {
        let fd = open_directory(path)?;
        let parent = fs::statat(&fd, "..", AtFlags::empty()).ok().map(|s| (s.st_dev, s.st_ino));
        let identity = identity(&fd)?;
        let path = path.to_path_buf();
        // In a working directory that is gone, it is as good as it can be.
        let absolute_path = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
        let (fd, model) = (KeptFile::known(fd, identity), OnceLock::new());
        Ok(Dir(Arc::new(Inner { fd, identity, parent, path, absolute_path, model })))
    }

    fn handle(&self) -> io::Result<Handle<'_>> {
        if let Some(fd) = self.0.kept() {
            return Ok(Handle::Kept(fd));
        }
        let fd = open_directory(&self.0.absolute_path)?;
        if identity(&fd)? != self.0.identity {
            return Err(Errno::NOENT);
        }
        Ok(Handle::Fresh(fd))
    }

    /// Its path, as it was when it was opened.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Its path for a process with another working directory.
    pub fn absolute_path(&self) -> &Path {
        &self.0.absolute_path
    }

    /// Whether its path leads to it.
    pub fn is_at_path(&self) -> bool {
        fs::stat(&self.0.absolute_path)
            .is_ok_and(|found| (found.st_dev, found.st_ino) == self.0.identity)
    }

    /// Whether nothing else is at its path and it is where it was: its path leads to it, or a
    /// directory above was renamed. A path that cannot be looked at is taken to be there, and so is
    /// another inode unless inodes are `steady`.
    pub fn is_in_place(&self, steady: bool) -> bool {
        match fs::stat(&self.0.absolute_path) {
            Ok(found) => (found.st_dev, found.st_ino) == self.0.identity || !steady,
            Err(Errno::NOENT | Errno::NOTDIR) => self.has_name_in_parent().unwrap_or(false),
            Err(_) => true,
        }
    }

    /// Whether the directory that it is in is the one it was in, and has it under its name.
    fn has_name_in_parent(&self) -> io::Result<bool> {
        let name = name(&self.0.absolute_path);
        let dir = self.handle()?;
        let looked = |path: &Path| {
            fs::statat(&dir, path, AtFlags::empty()).map(|found| (found.st_dev, found.st_ino))
        };
        let parent = looked(Path::new(".."))?;
        Ok(Some(parent) == self.0.parent && looked(&Path::new("..").join(name))? == self.0.identity)
    }

    /// Takes a lock on the directory itself, held until what this returns is dropped. A child that
    /// is forked meanwhile holds it too.
    pub fn lock(&self) -> io::Result<OwnedFd> {
        let own = self.open_directory(".")?;
        retry(|| fs::flock(&own, fs::FlockOperation::LockExclusive))?;
        Ok(own)
    }

    /// One more descriptor of it.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.open_directory(".")
    }

    /// Opens the directory itself, as `.`, or its parent, as `..`.
    fn open_directory(&self, path: &str) -> io::Result<OwnedFd> {
        let dir = self.handle()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        without_access_time(flags, |flags| {
            retry(|| above_standard(|| fs::openat(&dir, path, flags, Mode::empty())))
        })
    }

    /// How messages name the file `name` in it.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path.join(name)
    }

    /// Opens a file that is there and is a regular one; anything else is [`NOT_REGULAR`]. If it is
    /// opened to be written, it is [`NOT_SHARED`] where a user may not write to it that may write
    /// to the model.
    pub fn open_file(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let is_to_write = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        self.open_regular(path, flags, is_to_write.then_some(Need::Write))
    }

    /// Opens a file for reading whose bytes may be passed on: [`NOT_SHARED`] where a user may not
    /// read it that may write to the model.
    pub fn open_shared(&self, path: &Path) -> io::Result<OwnedFd> {
        self.open_regular(path, OFlags::RDONLY, Some(Need::Read))
    }

    fn open_regular(&self, path: &Path, flags: OFlags, need: Option<Need>) -> io::Result<OwnedFd> {
        // Regular files ignore NONBLOCK; a pipe would keep us waiting without it.
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = match self.open_at(path, flags, 0) {
            // A socket; or, for writing, a pipe without a reader, or a directory.
            Err(Errno::NXIO | Errno::ISDIR) => return Err(NOT_REGULAR),
            answer => answer?,
        };
        let found = status(&fd)?;
        if FileType::from_raw_mode(found.mode) != FileType::RegularFile {
            return Err(NOT_REGULAR);
        }
        match need.is_none_or(|need| self.shares(&fd, &found, need)) {
            true => Ok(fd),
            false => Err(NOT_SHARED),
        }
    }

    /// Makes `file`, which is at `path` and has been checked, the model of the permissions of this
    /// directory's files. The first one counts.
    pub fn set_model(&self, path: &Path, file: impl AsFd) -> io::Result<()> {
        let found = fs::fstat(file)?;
        let (path, identity) = (path.to_path_buf(), (found.st_dev, found.st_ino));
        let access = Access::of(&Status::of(&found));
        let _ = self.0.model.set(Model { path, identity, access });
        Ok(())
    }

    /// Whether all users that may write to the model have the access `need` to `file`, or there is
    /// no model.
    fn shares(&self, file: &OwnedFd, found: &Status, need: Need) -> bool {
        let Some(model) = self.0.model.get() else { return true };
        let other = Access::of(found);
        model.access.is_kept_by(&other, need)
            || self.model_as_it_is(model).is_ok_and(|(now, access)| {
                access.is_kept_by(&other, need) || access::has_same_list(file, &now)
            })
    }

    /// The model, whose rights a user may have changed, with those of all other files.
    fn model_as_it_is(&self, model: &Model) -> io::Result<(OwnedFd, Access)> {
        let file = self.open_at(&model.path, OFlags::RDONLY | OFlags::NONBLOCK, 0)?;
        let found = fs::fstat(&file)?;
        match (found.st_dev, found.st_ino) == model.identity {
            true => Ok((file, Access::of(&Status::of(&found)))),
            false => Err(Errno::NOENT),
        }
    }

    /// Makes a new file for reading and writing, in the place of whatever has its name.
    pub fn create(&self, path: &Path, mode: u32) -> io::Result<OwnedFd> {
        match self.unlink(path) {
            Ok(()) | Err(Errno::NOENT) => self.create_first(path, mode),
            Err(errno) => Err(errno),
        }
    }

    /// Opens a file for reading and writing, and makes it if it is not there.
    pub fn open_or_create(&self, path: &Path, mode: u32) -> io::Result<OwnedFd> {
        loop {
            match self.open_file(path, OFlags::RDWR) {
                Err(Errno::NOENT) => {}
                answer => return answer,
            }
            match self.create_first(path, mode) {
                // Another process has just made it.
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
        let dir = self.handle()?;
        without_access_time(flags, |flags| {
            retry(|| above_standard(|| fs::openat(&dir, name(path), flags, mode)))
        })
    }

    /// All bytes of a regular file that has at most `len_max`; [`TOO_LONG`] if it has more.
    pub fn read(&self, path: &Path, len_max: usize) -> io::Result<Vec<u8>> {
        let file = self.open_file(path, OFlags::RDONLY)?;
        let len = file::len(&file)?;
        if len > len_max as u64 {
            return Err(TOO_LONG);
        }
        let mut bytes = vec![0; len as usize + 1];
        let mut count = read_up_to_at(&file, &mut bytes, 0)?;
        if count == bytes.len() {
            // It has grown meanwhile.
            bytes.resize(len_max + 1, 0);
            count += read_up_to_at(&file, &mut bytes[count..], count as u64)?;
        }
        bytes.truncate(count);
        if count > len_max { Err(TOO_LONG) } else { Ok(bytes) }
    }

    /// Gives the file `from` the name of `to`, in place of the file that has it.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let dir = self.handle()?;
        fs::renameat(&dir, name(from), &dir, name(to))
    }

    /// Gives the file `from` one more name, which must be free.
    pub fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let dir = self.handle()?;
        fs::linkat(&dir, name(from), &dir, name(to), AtFlags::empty())
    }

    /// Opens a directory in it; [`NOTDIR`](Errno::NOTDIR) for a link to one too.
    pub fn subdirectory(&self, path: &Path) -> io::Result<Dir> {
        let fd = match self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY, 0) {
            Err(Errno::LOOP) => return Err(Errno::NOTDIR),
            answer => answer?,
        };
        let (identity, own) = (identity(&fd)?, identity(self.handle()?)?);
        let (path, absolute_path) = (self.join(name(path)), self.0.absolute_path.join(name(path)));
        let (fd, parent, model) = (KeptFile::known(fd, identity), Some(own), OnceLock::new());
        Ok(Dir(Arc::new(Inner { fd, identity, parent, path, absolute_path, model })))
    }

    /// Makes a directory in it.
    pub fn make_subdirectory(&self, path: &Path, mode: u32) -> io::Result<()> {
        fs::mkdirat(self.handle()?, name(path), Mode::from_raw_mode(mode))
    }

    /// Removes a directory in it, which must be empty.
    pub fn remove_subdirectory(&self, path: &Path) -> io::Result<()> {
        fs::unlinkat(self.handle()?, name(path), AtFlags::REMOVEDIR)
    }

    /// Removes a name.
    pub fn unlink(&self, path: &Path) -> io::Result<()> {
        fs::unlinkat(self.handle()?, name(path), AtFlags::empty())
    }

    /// The status of the entry with this name, not of the target of a link.
    pub fn stat(&self, path: &Path) -> io::Result<Stat> {
        fs::statat(self.handle()?, name(path), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Whether anything has this name.
    pub fn holds(&self, path: &Path) -> bool {
        self.stat(path).is_ok()
    }

    /// Makes a symbolic link.
    pub fn symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        fs::symlinkat(target, self.handle()?, name(path))
    }

    /// Where a symbolic link leads to.
    pub fn readlink(&self, path: &Path) -> io::Result<PathBuf> {
        use std::os::unix::ffi::OsStringExt;
        let target = fs::readlinkat(self.handle()?, name(path), Vec::new())?;
        Ok(std::ffi::OsString::from_vec(target.into_bytes()).into())
    }

    /// The names in it.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::Dir::new(self.open_directory(".")?)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// The status of the directory itself.
    pub fn status(&self) -> io::Result<Stat> {
        fs::fstat(self.handle()?)
    }

    /// The filesystem it is on.
    pub fn filesystem(&self) -> io::Result<Filesystem> {
        Filesystem::of(self.handle()?)
    }

    /// Bytes that are left on its filesystem, for a process without special rights; `None` where
    /// the filesystem does not report it.
    pub fn space_left(&self) -> io::Result<Option<u64>> {
        let found = retry(|| fs::fstatfs(self.handle()?))?;
        let left = found.f_bavail.saturating_mul(found.f_bsize as u64);
        Ok((found.f_blocks > 0).then_some(left))
    }

    /// The device it is on.
    pub fn device(&self) -> Device {
        self.handle().map(Device::of).unwrap_or_default()
    }

    /// Whether a new file in it would find a block: the answer of the filesystem to one without a
    /// name.
    pub fn try_for_space(&self) -> io::Result<()> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = retry(|| fs::openat(self.handle()?, ".", flags, mode))?;
        crate::file::write_all_at(file, &[1; 4096], 0)
    }

    /// Waits until the names in it survive a power cut.
    pub fn sync(&self) -> io::Result<()> {
        self.names_to_sync()?.sync()
    }

    /// The descriptors of [`sync`](Dir::sync), for a caller that has to know whether the sync
    /// itself has failed.
    pub fn names_to_sync(&self) -> io::Result<NamesToSync<'_>> {
        Ok(NamesToSync(self.handle()?))
    }

    /// Waits until its own name survives a power cut; `parent` is from
    /// [`open_parent`](Dir::open_parent).
    pub fn sync_own_name(&self, parent: Option<&OwnedFd>) -> io::Result<()> {
        self.names_to_sync()?.sync_own(parent)
    }

    /// Whether this process may see to that.
    pub fn can_sync_own_name(&self) -> bool {
        matches!(self.open_parent(), Ok(Some(_)))
    }

    /// Opens the directory that this one's name is in; `None` where this process may not read it,
    /// which is no failure: a process that may use a log need not see the files beside it.
    pub fn open_parent(&self) -> io::Result<Option<OwnedFd>> {
        match self.open_directory("..") {
            Err(Errno::ACCESS | Errno::PERM) => Ok(None),
            answer => answer.map(Some),
        }
    }
}

/// The names in a directory that is open.
pub struct NamesToSync<'a>(Handle<'a>);

impl NamesToSync<'_> {
    /// Waits until they survive a power cut.
    pub fn sync(&self) -> io::Result<()> {
        sync_names(&self.0)
    }

    /// As [`sync_own_name`](Dir::sync_own_name). A mount may be read-only above this directory, and
    /// changes no name there. A filesystem that has stopped has stopped here too.
    pub fn sync_own(&self, parent: Option<&OwnedFd>) -> io::Result<()> {
        match parent.map_or(Ok(()), sync_names) {
            Err(Errno::ROFS) => check_in_service(&self.0),
            answer => answer,
        }
    }
}

fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    without_access_time(flags, |flags| file::open(path, flags, 0))
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
