//! A new directory for files of no further use, in a directory that may belong to another user.
//!
//! That user may rename it at any moment and put something else in its place. So it is opened once,
//! only its owner may make files in it, and its files are reached through the descriptor: by
//! [`Dir`], or by a path of the kernel's that leads there even if the name changes.

use std::fmt;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use vellum_sys::dir::Dir;

/// Only the owner.
const MODE: u32 = 0o700;
/// The rights of all others.
const OTHERS: u32 = 0o077;
/// So many names are tried.
const ATTEMPTS: u32 = 100;
/// A file that shows which user gets new files of the filesystem.
const TRIAL: &str = "trial";

/// A new directory. It goes with all that is in it when this is dropped.
pub struct PrivateDir {
    dir: Dir,
    descriptor: OwnedFd,
    /// Through the descriptor.
    path: PathBuf,
}

impl PrivateDir {
    /// Makes one in `parent`, whose name begins with `prefix`.
    ///
    /// # Errors
    ///
    /// None can be made, something else is in its place at once, or `/proc` is not mounted.
    pub fn new(parent: &Path, prefix: &str) -> io::Result<PrivateDir> {
        let parent = Dir::open(parent)?;
        let mut attempt = 0;
        let name = loop {
            let name = format!("{prefix}{}", letters());
            attempt += 1;
            match parent.make_subdirectory(Path::new(&name), MODE).map_err(io::Error::from) {
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => {}
                made => break made.map(|()| name)?,
            }
        };
        let dir = parent.subdirectory(Path::new(&name))?;
        check(&dir)?;
        PrivateDir::of(dir)
    }

    /// Takes over one that another process has made, by the path that it gave.
    ///
    /// # Errors
    ///
    /// That process is gone.
    pub fn adopt(path: &Path) -> io::Result<PrivateDir> {
        PrivateDir::of(Dir::open(path)?)
    }

    fn of(dir: Dir) -> io::Result<PrivateDir> {
        let descriptor = dir.descriptor()?;
        // With our number: a process that is started for it has another table of descriptors.
        let (process, number) = (std::process::id(), descriptor.as_raw_fd());
        let path = PathBuf::from(format!("/proc/{process}/fd/{number}"));
        match fs::metadata(&path) {
            Ok(_) => Ok(PrivateDir { dir, descriptor, path }),
            Err(_) => Err(io::Error::other("/proc is not mounted, or of other processes")),
        }
    }

    /// Its files, by their names.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// A path that leads there while this process lives, also where another process uses it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One more descriptor of it, for a process that outlives this one.
    ///
    /// # Errors
    ///
    /// There are too many.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.descriptor.as_fd().try_clone_to_owned()
    }

    /// Removes it with all that is in it.
    ///
    /// # Errors
    ///
    /// Something in it cannot be removed.
    pub fn close(self) -> io::Result<()> {
        remove(&self.dir, &self.path)
    }
}

impl fmt::Debug for PrivateDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PrivateDir").field(&self.path).finish()
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // `close` reports files that could not be removed.
        let _ = remove(&self.dir, &self.path);
    }
}

fn letters() -> String {
    format!("{:08x}", RandomState::new().hash_one(std::process::id()) as u32)
}

/// Whether this is the directory that was made: new, empty, and of this user alone.
fn check(dir: &Dir) -> io::Result<()> {
    let other = || io::Error::other("something else was put in the place of the new directory");
    let made = dir.status()?;
    if made.st_uid != rustix::process::geteuid().as_raw() {
        // A filesystem may give all files to one user; then a file in it belongs to that one too.
        let trial = dir.create(Path::new(TRIAL), 0o600)?;
        let owner = rustix::fs::fstat(&trial)?.st_uid;
        dir.unlink(Path::new(TRIAL))?;
        if owner != made.st_uid {
            return Err(other());
        }
    }
    if made.st_mode & OTHERS != 0 {
        // Where it stays so, the filesystem has no rights to give.
        let _ = rustix::fs::fchmod(dir.descriptor()?, rustix::fs::Mode::from_raw_mode(MODE));
    }
    if dir.names()?.is_empty() { Ok(()) } else { Err(other()) }
}

/// Removes a directory and all that is in it; `path` leads to it. Its name may have changed.
///
/// # Errors
///
/// Something in it cannot be removed.
pub fn remove(dir: &Dir, path: &Path) -> io::Result<()> {
    empty(dir)?;
    let parent = Dir::open(&path.join(".."))?;
    let own = dir.status()?;
    let is_own = |name: &String| {
        parent
            .stat(Path::new(name))
            .is_ok_and(|found| (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino))
    };
    match parent.names()?.into_iter().find(is_own) {
        Some(name) => Ok(parent.remove_subdirectory(Path::new(&name))?),
        // It has been removed.
        None => Ok(()),
    }
}

fn empty(dir: &Dir) -> io::Result<()> {
    for name in dir.names()? {
        let name = Path::new(&name);
        match dir.subdirectory(name) {
            Ok(inner) => {
                empty(&inner)?;
                ignore_missing(dir.remove_subdirectory(name))?;
            }
            Err(_) => ignore_missing(dir.unlink(name))?,
        }
    }
    Ok(())
}

/// Another process may remove the same.
fn ignore_missing(removed: rustix::io::Result<()>) -> io::Result<()> {
    match removed {
        Err(rustix::io::Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent() -> PrivateDir {
        PrivateDir::new(&std::env::temp_dir(), "vellum-test-").unwrap()
    }

    #[test]
    fn its_files_are_reached_and_removed_whatever_its_name_is() {
        let parent = parent();
        let dir = PrivateDir::new(parent.path(), "a-").unwrap();
        let name = parent.dir().names().unwrap().remove(0);
        assert!(name.starts_with("a-"), "{name}");
        parent.dir().rename(Path::new(&name), Path::new("b")).unwrap();
        parent.dir().make_subdirectory(Path::new(&name), 0o755).unwrap();
        fs::create_dir_all(dir.path().join("inner/inner")).unwrap();
        fs::write(dir.path().join("inner/file"), b"x").unwrap();
        assert_eq!(dir.dir().names().unwrap(), ["inner"]);
        dir.close().unwrap();
        assert_eq!(parent.dir().names().unwrap(), [name]);
    }

    #[test]
    fn a_directory_that_is_not_empty_is_none_that_was_made() {
        let parent = parent();
        let path = Path::new("made");
        parent.dir().make_subdirectory(path, 0o777).unwrap();
        let made = parent.dir().subdirectory(path).unwrap();
        check(&made).unwrap();
        assert_eq!(made.status().unwrap().st_mode & OTHERS, 0);
        made.create(path, 0o600).unwrap();
        assert!(check(&made).is_err());
    }
}
