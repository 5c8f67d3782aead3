//! Noticing that a log was removed or moved under its writers, and going on in a new one.
//!
//! A process reaches the files below the directory that it opened, so it would go on writing to a log
//! that nobody finds any more. Once a second, by a clock that costs no system call, an append (of
//! those that follow one another quickly, every sixteenth) looks whether the path still leads to that directory, and whether `lock` and `control` in it are the files
//! that it has open. If not, it reserves nothing.
//!
//! A control file that is missing alone changes nothing: all who have it mapped go on together, and `lock`
//! keeps others from making another. Without `lock` the next opener would not see that anybody is there.
//!
//! A directory above may be renamed: as long as the log is where it was in its own parent and nothing
//! else has its path, it is in its place.
//!
//! **Opening again** joins what is at the path, or makes a log like the old one. A directory that is
//! still at the path but has lost `lock`, as in the middle of `rm -rf`, is renamed first: so
//! those who have not noticed yet write to files that the new log does not have. Whoever renames it holds
//! a lock on that very directory, so nobody renames what another process has made in its place.
//!
//! **If the process dies here**: what was renamed stays so, and the next one finds no log at the path and
//! makes it.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{self, FileType};
use rustix::io::{self, Errno};

use crate::log::attachment::Glance;
use crate::log::batch::CoreRef;
use crate::log::core::Core;
use crate::log::{CONTROL_NAME, LOCK_NAME, open};
use crate::policy::PolicyWish;
use crate::sys::clock;
use crate::sys::filesystem::Filesystem;
use crate::{Error, ErrorKind, Layout, Options, Result};

/// How often to open again what others remove or make meanwhile, and how long to wait in between once
/// that has failed a few times.
const TRIES: usize = 200;
const QUICK_TRIES: usize = 10;
/// How often to look whether a file is missing because all of the log is being removed.
const LOOKS: usize = 200;
const PAUSE: Duration = Duration::from_millis(5);
/// Appends that may go by without a look at the clock.
const LEFT_OUT_MAX: u8 = 15;
/// A moment at which nobody looks: the next append does.
const NEVER: u64 = u64::MAX;

/// What one process remembers to know its log again.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// `None` where nobody looks.
    files: Option<Files>,
    /// The second in which somebody looked last.
    looked_at: AtomicU64,
}

/// Device and inode of the files that a process has open as long as it is in the log.
#[derive(Clone, Copy, Debug)]
struct Files {
    control: (u64, u64),
    lock: (u64, u64),
}

impl Watch {
    pub(crate) fn new(control: &OwnedFd, lock: &OwnedFd) -> io::Result<Watch> {
        let identity = |fd| fs::fstat(fd).map(|status| (status.st_dev, status.st_ino));
        let files = Some(Files { control: identity(control)?, lock: identity(lock)? });
        Ok(Watch { files, looked_at: AtomicU64::new(clock::uptime()) })
    }
}

/// What has the name of a file that was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Same,
    Other,
    Nothing,
}

impl Core {
    /// Refuses to append to a log that is not at its path any more; looks once a second.
    #[inline]
    pub(crate) fn check_place(&self) -> Result<()> {
        let now = clock::uptime();
        match self.watch.looked_at.load(Ordering::Relaxed) == now {
            true => Ok(()),
            false => self.look_for_place(now),
        }
    }

    /// As [`check_place`](Core::check_place) for who appends often: after several looks in the same
    /// second up to [`LEFT_OUT_MAX`] appends go by without one.
    #[inline]
    pub(crate) fn glance(&self, glance: &mut Glance) -> Result<()> {
        if glance.left > 0 {
            glance.left -= 1;
            return Ok(());
        }
        let is_same_second = self.watch.looked_at.load(Ordering::Relaxed) == clock::uptime();
        glance.step = if is_same_second { (2 * glance.step + 1).min(LEFT_OUT_MAX) } else { 0 };
        glance.left = glance.step;
        self.check_place()
    }

    #[cold]
    fn look_for_place(&self, now: u64) -> Result<()> {
        // Other threads go on meanwhile.
        self.watch.looked_at.store(now, Ordering::Relaxed);
        self.require_place()
    }

    /// Refuses to go on where the log is not at its path any more.
    #[cold]
    pub(crate) fn require_place(&self) -> Result<()> {
        if self.watch.files.is_none() {
            return Ok(());
        }
        let message = if !self.dir.is_in_place(self.has_steady_inodes()) {
            "the log's directory was removed or moved while the log was open; open it again, which \
             makes a new one where there is none"
        } else if !self.has_own_files() {
            "files of the log were removed or replaced while it was open; open it again, which \
             makes a new one where there is none"
        } else {
            return Ok(());
        };
        // It may be put back.
        self.watch.looked_at.store(NEVER, Ordering::Relaxed);
        Err(Error::new(ErrorKind::Removed, message).at_path(&self.dir))
    }

    /// The error of something that failed, or what explains it. A file that is missing may be the first
    /// of all to go: then it takes up to a second until the rest has followed.
    #[cold]
    pub(crate) fn explain(&self, error: Error) -> Error {
        let may_be_first = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound)
            && self.is_told_missing(&error);
        for _ in 0..if may_be_first { LOOKS } else { 1 } {
            if let Err(removed) = self.require_place() {
                return removed;
            }
            if may_be_first {
                std::thread::sleep(PAUSE);
            }
        }
        error
    }

    /// Whether the files in the directory are those of the log that is mapped, wherever it was moved.
    pub(crate) fn has_own_files(&self) -> bool {
        let Some(files) = self.watch.files else { return true };
        self.found(LOCK_NAME, files.lock) == Found::Same
            && self.found(CONTROL_NAME, files.control) != Found::Other
    }

    /// What has the name of the file that was `known`; what cannot be looked at is taken to be it.
    fn found(&self, name: &str, known: (u64, u64)) -> Found {
        match self.dir.stat(&self.dir.join(name)) {
            Ok(found) if (found.st_dev, found.st_ino) == known => Found::Same,
            Ok(_) if self.has_steady_inodes() => Found::Other,
            Err(Errno::NOENT) => Found::Nothing,
            Ok(_) | Err(_) => Found::Same,
        }
    }

    /// Whether a file keeps its inode as long as it is there.
    fn has_steady_inodes(&self) -> bool {
        self.filesystem != Filesystem::Fuse
    }

    /// Whether the directory is at its path, and `lock` is gone.
    fn is_half_removed(&self) -> bool {
        let is_gone = |files: Files| self.found(LOCK_NAME, files.lock) == Found::Nothing;
        self.watch.files.is_some_and(is_gone) && self.dir.is_at_path()
    }

    /// Gives what is left of this log at its path another name. What cannot be renamed stays: then
    /// opening tells what is wrong.
    fn make_way(&self) {
        if !self.is_half_removed() {
            return;
        }
        let Ok(_lock) = self.dir.lock() else { return };
        if !self.is_half_removed() {
            return;
        }
        let path = self.dir.absolute_path();
        let is_directory = fs::lstat(path)
            .is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory);
        let Some(name) = path.file_name().filter(|_| is_directory) else { return };
        let mut aside = name.to_os_string();
        aside.push(format!(".removed-{}-{}", clock::seconds(), std::process::id()));
        let aside = path.with_file_name(aside);
        if fs::rename(path, &aside).is_ok() {
            // Goes if there is nothing in it.
            let _ = fs::rmdir(&aside);
        }
    }
}

/// Opens the log at the path of `core` again; where there is none and it `makes` one, that is like it.
pub(crate) fn reopen(core: &Core, makes: bool) -> Result<CoreRef> {
    let makes = makes && !core.options.read_only;
    let mut failure = None;
    for turn in 0..TRIES {
        if turn >= QUICK_TRIES {
            std::thread::sleep(PAUSE);
        }
        match open_once(core, makes, turn + 1 == TRIES) {
            // Others may have removed or renamed what was being opened.
            Ok(mut shared) => match shared.0.require_place() {
                Ok(()) => {
                    shared.0.options.clone_from(&core.options);
                    return Ok(shared);
                }
                Err(error) => failure = Some(error),
            },
            Err(error) if makes && is_passing(&error) => failure = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(failure.unwrap_or_else(|| Error::new(ErrorKind::NotFound, "there is no log")))
}

fn open_once(core: &Core, makes: bool, is_last: bool) -> Result<CoreRef> {
    if makes {
        core.make_way();
    }
    let path = core.dir.absolute_path();
    match open::open(path, &joining(core)) {
        // No log is made in a directory that somebody may be emptying, unless it stays as it is.
        Err(error)
            if makes
                && error.kind() == ErrorKind::NotFound
                && (is_last || !core.dir.is_at_path()) =>
        {
            open::open(path, &making(core))
        }
        answer => answer,
    }
}

/// Whether it may go better when it is tried again: somebody else removes or makes the log.
fn is_passing(error: &Error) -> bool {
    use ErrorKind::{AlreadyExists, Busy, Corrupt, NotFound, Removed};
    matches!(error.kind(), AlreadyExists | Busy | Corrupt | NotFound | Removed)
}

impl Options {
    /// Whether a log is made where there is none.
    pub(crate) fn may_create(&self) -> bool {
        !self.never_create || self.create_new
    }
}

/// Takes a log as it is.
fn joining(core: &Core) -> Options {
    Options {
        layout: Some(core.geometry.layout),
        segment_capacity_bytes: None,
        preallocate: None,
        fill: None,
        is_wal: false,
        never_create: true,
        create_new: false,
        needs_lock: true,
        policy: PolicyWish::default(),
        ..(*core.options).clone()
    }
}

/// Makes a log like the one that is gone.
fn making(core: &Core) -> Options {
    let geometry = &core.geometry;
    let is_text = geometry.layout == Layout::Text;
    Options {
        segment_capacity_bytes: Some(geometry.segment_capacity),
        preallocate: Some(geometry.preallocate),
        fill: Some(geometry.fill),
        mode: core.options.mode.or(Some(core.rights.mode)),
        never_create: false,
        create_new: true,
        needs_lock: false,
        policy: if is_text { PolicyWish::of(core.policy()) } else { PolicyWish::default() },
        ..joining(core)
    }
}
