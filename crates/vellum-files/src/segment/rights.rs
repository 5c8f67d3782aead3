//! The owner of the files of a log, no matter which process makes them.
//!
//! A file belongs to the user of its maker, and the umask takes rights away. So root that looks
//! after the log of a service, or another user of the log's group would leave files that the others
//! cannot open. Every file is therefore made for its maker alone, and given to the owners of the
//! log before it gets its name. Where the directory has a default access control list
//! (`setfacl -d`), that list has the rights on a file which its maker cannot give away.
//!
//! **If the process dies here**: a file under its unfinished name is replaced by the next.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{self, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::{self, Errno};

use crate::error::OsResult;
use crate::sys::Dir;
use crate::{Error, ErrorKind, Result};

const SET_GROUP_ID: u32 = 0o2000;

/// Owner, group and permission bits of a log's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    uid: u32,
    gid: u32,
    /// Permission bits.
    pub mode: u32,
    /// Whether there is no log yet: then the umask counts, and the owner of a file that cannot be
    /// given away is its maker, whose log it becomes.
    is_new: bool,
}

impl Rights {
    /// Those of files that are made like `file`. Where the directory hands its group down, it is
    /// that one.
    pub fn like(file: &Stat, dir: &Dir) -> io::Result<Rights> {
        let own = dir.status()?;
        let gid = if own.st_mode & SET_GROUP_ID != 0 { own.st_gid } else { file.st_gid };
        Ok(Rights { uid: file.st_uid, gid, mode: file.st_mode & 0o777, is_new: false })
    }

    /// Those of a new log, which belongs to the owner of its directory.
    pub fn of_new_log(dir: &Dir, mode: u32) -> io::Result<Rights> {
        let own = dir.status()?;
        Ok(Rights { uid: own.st_uid, gid: own.st_gid, mode, is_new: true })
    }

    /// Makes a new file of the log, in place of the file that has its name; `what` names its
    /// purpose.
    pub fn create(&self, dir: &Dir, path: &Path, what: &str) -> Result<OwnedFd> {
        let mode = if self.is_new { self.mode } else { 0o600 };
        let fd = dir.create(path, mode).or_os(what, path)?;
        let settled = match self.is_new {
            true => self.give_to_owner(&fd),
            false => self.settle(&fd),
        };
        settled.map(|()| fd).map_err(|errno| {
            let _ = dir.unlink(path);
            self.refusal(errno, what, path)
        })
    }

    /// Those of a file that is made from another: it grants no more than that one.
    pub fn within(&self, file: &OwnedFd) -> io::Result<Rights> {
        let found = fs::fstat(file)?;
        let group = if found.st_gid == self.gid { found.st_mode >> 3 } else { found.st_mode };
        let most = 0o600 | (group & 0o7) << 3 | found.st_mode & 0o7;
        Ok(Rights { mode: self.mode & most, ..*self })
    }

    /// Opens the file that locks are taken on, and if `may_make` makes it if it is not there: only
    /// users that may write may open it.
    pub fn open_lock(&self, dir: &Dir, path: &Path, may_make: bool) -> io::Result<OwnedFd> {
        if !may_make {
            return dir.open_file(path, OFlags::RDWR);
        }
        let fd = dir.open_or_create(path, self.mode)?;
        let found = fs::fstat(&fd)?;
        // A user may have put a file of his choice there. This one is empty, and nowhere else.
        if found.st_size == 0 && found.st_nlink == 1 {
            let writers = if self.is_new { found.st_mode } else { self.mode } & 0o222;
            // Fails for a process that does not own the file; then its creator died between the two
            // calls.
            let _ = Rights { mode: writers | writers << 1, ..*self }.settle(&fd);
        }
        Ok(fd)
    }

    /// Whether a file that is there already is as one that is made now would be.
    pub fn fit(&self, fd: &OwnedFd) -> io::Result<bool> {
        let found = fs::fstat(fd)?;
        let is_new = found.st_nlink == 1 && found.st_mode & 0o777 == self.mode;
        Ok(is_new
            && found.st_gid == self.gid
            && self.mode_of(found.st_uid, found.st_gid) == Some(self.mode))
    }

    /// Gives a file to the owners of the log; `PERM` where this process may not, and the file would
    /// keep out a user that may write to the log, or let in one that may not.
    fn settle(&self, fd: &OwnedFd) -> io::Result<()> {
        if self.is_new {
            self.give_to_owner(fd)?;
            return fs::fchmod(fd, Mode::from_raw_mode(self.mode));
        }
        if !self.is_of(&fs::fstat(fd)?) {
            self.give(fd)?;
        }
        let found = fs::fstat(fd)?;
        let mode = match self.mode_of(found.st_uid, found.st_gid) {
            Some(mode) if self.is_of(&found) => mode,
            // The directory has the rights of others: these bits are the most that it grants.
            _ if has_acl(fd) => self.mode,
            mode => mode.ok_or(Errno::PERM)?,
        };
        if found.st_mode & 0o777 == mode {
            return Ok(());
        }
        fs::fchmod(fd, Mode::from_raw_mode(mode))
    }

    /// Gives the file of a new log to the owner of the directory, if that is another user.
    fn give_to_owner(&self, fd: &OwnedFd) -> io::Result<()> {
        match fs::fstat(fd)?.st_uid == self.uid {
            true => Ok(()),
            false => self.give(fd),
        }
    }

    fn is_of(&self, found: &Stat) -> bool {
        (found.st_uid, found.st_gid) == (self.uid, self.gid)
    }

    /// Gives a file to the owner and the group of the log, or to one of them, as far as this
    /// process may.
    fn give(&self, fd: &OwnedFd) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        match fs::fchown(fd, Some(uid), Some(gid)) {
            // A member of the group may give a file to it. A filter may have the call fail.
            Err(Errno::PERM | Errno::NOSYS) => match fs::fchown(fd, None, Some(gid)) {
                Err(Errno::PERM | Errno::NOSYS | Errno::INVAL) => Ok(()),
                answer => answer,
            },
            // A user that this user namespace does not know of.
            Err(Errno::INVAL) => Ok(()),
            answer => answer,
        }
    }

    /// Permission bits for a file with this owner and group, with which all users may write that
    /// may write to the log, and none may read that may not read it.
    fn mode_of(&self, uid: u32, gid: u32) -> Option<u32> {
        let may_write = |bits: u32| bits & 0o6 == 0o6;
        let (group, others) = (self.mode >> 3, self.mode);
        let is_owners = uid == self.uid;
        if gid == self.gid {
            let is_usable = is_owners || may_write(group) || may_write(others);
            return is_usable.then_some(self.mode);
        }
        // A group that has nothing to do with the log has the rights of others.
        let keeps_nobody_out = may_write(others) || is_owners && group & 0o2 == 0;
        keeps_nobody_out.then_some(self.mode & 0o707 | (others & 0o7) << 3)
    }

    fn refusal(&self, errno: Errno, what: &str, path: &Path) -> Error {
        if errno != Errno::PERM {
            return Error::os(errno, what, path);
        }
        let Rights { uid, gid, mode, .. } = self;
        let message = format!(
            "cannot {what}: the log's files belong to user {uid} and group {gid}, with mode {mode:o}, \
             and this process cannot create files like that; run it as user {uid}, as a member of a \
             group that may write to the log, or as root"
        );
        Error::new(ErrorKind::PermissionDenied, message).at_path(path)
    }
}

/// Whether a file has an access control list, as a new one has where the directory says so.
fn has_acl(fd: &OwnedFd) -> bool {
    fs::fgetxattr_query(fd, "system.posix_acl_access").is_ok_and(|len| len > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_nobody_out_who_may_write_and_lets_nobody_in_who_may_not_read() {
        let mode =
            |mode, uid, gid| Rights { uid: 1, gid: 1, mode, is_new: false }.mode_of(uid, gid);
        for all in [0o600, 0o640, 0o660, 0o664, 0o666] {
            assert_eq!(mode(all, 1, 1), Some(all));
        }
        // Made by another user of the group.
        assert_eq!(mode(0o660, 2, 1), Some(0o660));
        assert_eq!(mode(0o640, 2, 1), None, "its owner could not write");
        assert_eq!(mode(0o606, 2, 1), Some(0o606));
        // Made by the owner, which is not in the group.
        assert_eq!(mode(0o600, 1, 2), Some(0o600));
        assert_eq!(mode(0o640, 1, 2), Some(0o600), "another group could read");
        assert_eq!(mode(0o644, 1, 2), Some(0o644));
        assert_eq!(mode(0o660, 1, 2), None, "its group could not write");
        // Made by a stranger.
        assert_eq!(mode(0o660, 2, 2), None);
        assert_eq!(mode(0o664, 2, 2), None);
        assert_eq!(mode(0o666, 2, 2), Some(0o666));
    }
}
