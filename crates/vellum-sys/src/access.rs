//! The users that a file lets in.
//!
//! A process with more rights than others must not help them to more than they may do themselves. A
//! user that may write in a directory can give any name in it to any file that he can move, also to
//! a private file of root. So before such a file is written or given away, this module checks
//! whether the users that may have put it there could have done the same without help.

use std::os::fd::AsFd;

use rustix::fs;

use crate::file::Status;

/// The access to a file that users must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// To read it.
    Read,
    /// To read and write it.
    Write,
}

impl Need {
    /// Permission bits of one class of users.
    const fn bits(self) -> u32 {
        match self {
            Need::Read => 0o4,
            Need::Write => 0o6,
        }
    }

    const fn is_met(self, bits: u32) -> bool {
        bits & self.bits() == self.bits()
    }
}

/// Owner, group and permission bits of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    uid: u32,
    gid: u32,
    mode: u32,
}

impl Access {
    /// Those of a file.
    pub fn of(file: &Status) -> Access {
        Access { uid: file.uid, gid: file.gid, mode: file.mode & 0o777 }
    }

    /// Whether all users that may write to this file have the access `need` to `other`. Its owner
    /// is taken to be in its group where the group may write to it.
    pub fn is_kept_by(&self, other: &Access, need: Need) -> bool {
        let others_can = need.is_met(other.mode);
        let group_can =
            if other.gid == self.gid { need.is_met(other.mode >> 3) } else { others_can };
        let owner_can = self.uid == 0 || self.uid == other.uid || group_can || others_can;
        let group_writes = Need::Write.is_met(self.mode >> 3);
        let others_write = Need::Write.is_met(self.mode);
        owner_can && (group_can || !group_writes) && (others_can || !others_write)
    }
}

/// Whether two files have the same access control list, and so let in the same users, even if their
/// owners differ.
pub fn has_same_list(one: impl AsFd, other: impl AsFd) -> bool {
    list(one).is_some_and(|one| list(other) == Some(one))
}

/// The access control list of a file, if it has one, as the kernel stores it.
fn list(file: impl AsFd) -> Option<Vec<u8>> {
    /// More than any filesystem stores.
    const LEN_MAX: usize = 64 << 10;
    let mut bytes = vec![0; LEN_MAX];
    let len = fs::fgetxattr(file, "system.posix_acl_access", &mut bytes).ok()?;
    bytes.truncate(len);
    (len > 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn access(uid: u32, gid: u32, mode: u32) -> Access {
        Access { uid, gid, mode }
    }

    #[test]
    fn all_who_may_write_to_the_one_can_use_the_other() {
        use Need::{Read, Write};
        let cases = [
            // The log of a group, and a private file of its owner.
            ((0, 5, 0o660), (0, 0, 0o600), Write, false),
            ((0, 5, 0o660), (0, 5, 0o600), Write, false),
            ((0, 5, 0o660), (0, 5, 0o640), Write, false),
            ((0, 5, 0o660), (0, 5, 0o640), Read, true),
            ((0, 5, 0o660), (0, 0, 0o600), Read, false),
            // Files that members of the group made.
            ((7, 5, 0o660), (8, 5, 0o660), Write, true),
            ((7, 5, 0o664), (8, 5, 0o660), Write, true),
            ((7, 5, 0o660), (8, 8, 0o660), Write, false),
            ((7, 5, 0o660), (8, 8, 0o666), Write, true),
            // The log of one user, and a file of another.
            ((7, 7, 0o644), (0, 0, 0o600), Write, false),
            ((7, 7, 0o644), (0, 0, 0o644), Write, false),
            ((7, 7, 0o644), (0, 0, 0o644), Read, true),
            ((7, 7, 0o644), (7, 9, 0o600), Write, true),
            ((0, 0, 0o644), (7, 7, 0o600), Write, true),
            // All users may write.
            ((7, 7, 0o666), (7, 7, 0o664), Write, false),
            ((7, 7, 0o666), (8, 8, 0o666), Write, true),
        ];
        for (log, file, need, is_kept) in cases {
            let (log, file) = (access(log.0, log.1, log.2), access(file.0, file.1, file.2));
            assert_eq!(log.is_kept_by(&file, need), is_kept, "{log:?} {file:?} {need:?}");
        }
    }
}
