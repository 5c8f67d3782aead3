//! A directory as a store: an object is a file below it.
//!
//! The directory of the URL is opened by its path for each request, because a mount may come back.
//! Below it every file is reached by name from the directory it is in. So a link is not followed, a
//! pipe is not waited for, and an error names a file that is no object.
//!
//! An object is written under another name, synced, and linked to its own, which fails if that is
//! taken. **If the process dies here**: the other name stays, and is not listed. One that finds the
//! name of an object syncs the directories before it relies on it, because a power cut could take
//! back a name that the dead process did not sync.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use vellum_sys::Dir;
use vellum_sys::dir::NOT_REGULAR;
use vellum_sys::file::{len, read_up_to_at, write_all_at};
use vellum_sys::sync::sync;

use super::patience::in_time;
use super::{MAX_OBJECT, Meta, PutOutcome, Store, StoreError, StoreErrorKind, too_large};
use crate::pool;

/// Directories below one another that are looked at. No key has more parts.
const DEPTH_MAX: usize = 8;
/// Between the name of an object and a number, while it is written. No key has it.
const UNFINISHED: char = '#';

/// The objects below a directory.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    root: PathBuf,
}

/// An error of the operating system, and its path.
struct Fault(PathBuf, Errno);

type Found<T> = Result<T, Fault>;

trait At<T> {
    fn at(self, path: impl Into<PathBuf>) -> Found<T>;
}

impl<T> At<T> for rustix::io::Result<T> {
    fn at(self, path: impl Into<PathBuf>) -> Found<T> {
        self.map_err(|errno| Fault(path.into(), errno))
    }
}

impl From<Fault> for StoreError {
    fn from(Fault(path, errno): Fault) -> StoreError {
        let path = path.display();
        let not = |what| {
            let text = format!("{path} is {what}, so it does not belong there: remove it");
            StoreError::new(StoreErrorKind::NotAnObject, text)
        };
        match errno {
            NOT_REGULAR => not("no regular file but a link, a pipe, a device or a directory"),
            Errno::NOTDIR => not("no directory"),
            Errno::ACCESS | Errno::PERM => {
                StoreError::new(StoreErrorKind::Denied, format!("{path}: {errno}"))
            }
            // It may come back, as a mount does; a full disk may be emptied.
            _ => StoreError::new(StoreErrorKind::Transient, format!("{path}: {errno}")),
        }
    }
}

impl Directory {
    /// The store in a directory that is there.
    pub(super) fn open(root: &Path) -> Result<Directory, StoreError> {
        let kind = match Dir::open(root) {
            Ok(_) => return Ok(Directory { root: root.to_path_buf() }),
            Err(Errno::NOTDIR) => {
                let text = format!("{} is not a directory", root.display());
                return Err(StoreError::new(StoreErrorKind::Other, text));
            }
            Err(errno) => errno,
        };
        Err(not_opened(root, kind))
    }

    /// Makes the directory if its parent is there. Its name then survives a power cut, as all that
    /// is in it.
    pub(super) fn make(root: &Path) -> Result<(), StoreError> {
        let made = std::fs::create_dir(root).map_err(|e| Errno::from_io_error(&e));
        match made {
            Err(Some(Errno::EXIST)) => Ok(()),
            Err(errno) => Err(not_opened(root, errno.unwrap_or(Errno::IO))),
            Ok(()) => Dir::open(root)
                .and_then(|dir| dir.sync_own_name(dir.open_parent()?.as_ref()))
                .map_err(|errno| not_opened(root, errno)),
        }
    }

    /// Does something that blocks, beside what does not.
    async fn ask<T: Send + 'static>(
        &self,
        bytes: u64,
        request: impl FnOnce(&Directory) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let directory = self.clone();
        let asked = tokio::task::spawn_blocking(move || request(&directory));
        let lost = |error: tokio::task::JoinError| {
            StoreError::new(StoreErrorKind::Transient, error.to_string())
        };
        in_time(bytes, asked).await?.unwrap_or_else(|error| Err(lost(error)))
    }

    fn root(&self) -> Found<Dir> {
        Dir::open(&self.root).at(&self.root)
    }

    /// The directory of these names; `None` if there is none.
    fn folder(&self, folder: &str) -> Found<Option<Dir>> {
        let mut dir = self.root()?;
        for name in parts(folder) {
            dir = match dir.subdirectory(Path::new(name)) {
                Err(Errno::NOENT) => return Ok(None),
                answer => answer.at(dir.join(name))?,
            };
        }
        Ok(Some(dir))
    }

    /// The directory of these names and those it is in, the innermost first. Those that are missing
    /// are made, durably.
    fn made_folders(&self, folder: &str) -> Found<Vec<Dir>> {
        let mut dirs = vec![self.root()?];
        for name in parts(folder) {
            let dir = &dirs[0];
            let inner = match dir.subdirectory(Path::new(name)) {
                Err(Errno::NOENT) => make_folder(dir, name),
                answer => answer,
            };
            dirs.insert(0, inner.at(dir.join(name))?);
        }
        Ok(dirs)
    }

    fn open_object(&self, key: &str) -> Found<Option<OwnedFd>> {
        let (folder, name) = split(key);
        let Some(dir) = self.folder(folder)? else { return Ok(None) };
        match dir.open_file(Path::new(name), OFlags::RDONLY) {
            Err(Errno::NOENT) => Ok(None),
            answer => answer.map(Some).at(dir.join(name)),
        }
    }

    fn read(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<Bytes>, StoreError> {
        let Some(file) = self.open_object(key)? else { return Ok(None) };
        let path = || self.root.join(key);
        let size = len(&file).at(path())?;
        let Range { start, end } = range.unwrap_or(0..size);
        let count = end.min(size).saturating_sub(start);
        if count > MAX_OBJECT {
            return Err(too_large(key, count));
        }
        let mut buffer = pool::reading(count as usize);
        let room = &mut buffer.space()[..count as usize];
        let filled = read_up_to_at(&file, room, start).at(path())?;
        buffer.set_filled(filled);
        Ok(Some(Bytes::from_owner(buffer)))
    }

    fn put(&self, key: &str, body: &[u8]) -> Found<PutOutcome> {
        let (folder, name) = split(key);
        let dirs = self.made_folders(folder)?;
        let (dir, path) = (&dirs[0], self.root.join(key));
        let unfinished = unfinished(name).at(&path)?;
        let unfinished = Path::new(&unfinished);
        let file = dir.create(unfinished, 0o666).at(&path)?;
        let linked = write_all_at(&file, body, 0)
            .and_then(|()| sync(&file))
            .and_then(|()| dir.link(unfinished, Path::new(name)));
        // A file that cannot be removed is not listed.
        let _ = dir.unlink(unfinished);
        match linked {
            Err(Errno::EXIST) => {
                dirs.iter().try_for_each(|dir| dir.sync().at(dir.path()))?;
                let root = &dirs[dirs.len() - 1];
                let parent = root.open_parent().at(root.path())?;
                root.sync_own_name(parent.as_ref()).at(root.path())?;
                Ok(PutOutcome::Exists)
            }
            answer => {
                answer.at(&path)?;
                dir.sync().at(&path)?;
                Ok(PutOutcome::Created)
            }
        }
    }

    fn look(&self, key: &str) -> Found<Option<Meta>> {
        let (folder, name) = split(key);
        let Some(dir) = self.folder(folder)? else { return Ok(None) };
        let found = match dir.stat(Path::new(name)) {
            Err(Errno::NOENT) => return Ok(None),
            answer => answer.at(dir.join(name))?,
        };
        match kind(&found) {
            FileType::RegularFile => Ok(Some(meta(key.to_string(), &found))),
            // A log may be below a directory of this name.
            FileType::Directory => Ok(None),
            _ => Err(Fault(dir.join(name), NOT_REGULAR)),
        }
    }

    /// Everything below a directory but directories: a file that is no object is refused when it is
    /// read.
    fn listed(&self, folder: &str) -> Found<Vec<Meta>> {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_string()];
        while let Some(folder) = folders.pop() {
            for (name, status) in self.entries(&folder)? {
                let key = join(&folder, &name);
                let is_folder = kind(&status) == FileType::Directory;
                match is_folder {
                    true if parts(&key).count() < DEPTH_MAX => folders.push(key),
                    true => {}
                    false => found.push(meta(key, &status)),
                }
            }
        }
        Ok(found)
    }

    /// The entries of a directory; nothing if it is not there.
    fn entries(&self, folder: &str) -> Found<Vec<(String, Stat)>> {
        let Some(dir) = self.folder(folder)? else { return Ok(Vec::new()) };
        let mut entries = Vec::new();
        for name in dir.names().at(dir.path())? {
            match dir.stat(Path::new(&name)) {
                // Removed meanwhile.
                Err(Errno::NOENT) => {}
                _ if name.contains(UNFINISHED) => {}
                status => entries.push((name.clone(), status.at(dir.join(name))?)),
            }
        }
        Ok(entries)
    }

    fn remove(&self, key: &str) -> Found<()> {
        let (folder, name) = split(key);
        let Some(dir) = self.folder(folder)? else { return Ok(()) };
        match dir.unlink(Path::new(name)) {
            Err(Errno::NOENT) => Ok(()),
            Err(Errno::ISDIR) => Err(Fault(dir.join(name), NOT_REGULAR)),
            answer => answer.at(dir.join(name)),
        }
    }
}

fn not_opened(root: &Path, errno: Errno) -> StoreError {
    let kind = match errno {
        Errno::NOENT => StoreErrorKind::NoBucket,
        Errno::ACCESS | Errno::PERM => StoreErrorKind::Denied,
        _ => StoreErrorKind::Other,
    };
    StoreError::new(kind, format!("{}: {errno}", root.display()))
}

fn make_folder(dir: &Dir, name: &str) -> rustix::io::Result<Dir> {
    match dir.make_subdirectory(Path::new(name), 0o777) {
        // Another process has just made it, and may die before it is durable.
        Ok(()) | Err(Errno::EXIST) => dir.sync()?,
        Err(errno) => return Err(errno),
    }
    dir.subdirectory(Path::new(name))
}

/// The name of an object while it is written, which no other process uses.
fn unfinished(name: &str) -> rustix::io::Result<String> {
    let mut number = [0; 8];
    getrandom(&mut number, GetRandomFlags::empty())?;
    Ok(format!("{name}{UNFINISHED}{:016x}", u64::from_le_bytes(number)))
}

fn kind(status: &Stat) -> FileType {
    FileType::from_raw_mode(status.st_mode)
}

fn meta(key: String, status: &Stat) -> Meta {
    let seconds = Duration::from_secs(u64::try_from(status.st_mtime).unwrap_or(0));
    let nanos = Duration::from_nanos(status.st_mtime_nsec);
    let modified = SystemTime::UNIX_EPOCH + seconds + nanos;
    Meta { key, size: status.st_size as u64, modified }
}

fn parts(folder: &str) -> impl Iterator<Item = &str> {
    folder.split('/').filter(|part| !part.is_empty())
}

fn split(key: &str) -> (&str, &str) {
    key.rsplit_once('/').unwrap_or(("", key))
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") }
}

#[async_trait]
impl Store for Directory {
    async fn create(&self, key: &str, body: Bytes) -> Result<PutOutcome, StoreError> {
        let key = key.to_string();
        self.ask(body.len() as u64, move |store| Ok(store.put(&key, &body)?)).await
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let key = key.to_string();
        self.ask(MAX_OBJECT, move |store| store.read(&key, None)).await
    }

    async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Option<Bytes>, StoreError> {
        let key = key.to_string();
        self.ask(range.end.saturating_sub(range.start), move |store| store.read(&key, Some(range)))
            .await
    }

    async fn head(&self, key: &str) -> Result<Option<Meta>, StoreError> {
        let key = key.to_string();
        self.ask(0, move |store| Ok(store.look(&key)?)).await
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        let folder = split(prefix).0.to_string();
        let mut found = self.ask(MAX_OBJECT, move |store| Ok(store.listed(&folder)?)).await?;
        let is_behind = |key: &str| after.is_none_or(|after| key > after);
        found.retain(|meta| meta.key.starts_with(prefix) && is_behind(&meta.key));
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    async fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let folder = folder.to_string();
        let entries = self.ask(MAX_OBJECT, move |store| Ok(store.entries(&folder)?)).await?;
        let is_folder = |(_, status): &(String, Stat)| kind(status) == FileType::Directory;
        let mut names: Vec<String> =
            entries.into_iter().filter(is_folder).map(|(name, _)| name).collect();
        names.sort();
        Ok(names)
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        let key = key.to_string();
        self.ask(0, move |store| Ok(store.remove(&key)?)).await
    }
}
