//! How filesystems are made for a run, beyond their kind: options of the program that makes them,
//! and how full they are before the run.

use std::fmt;
use std::str::FromStr;

use super::ScratchKind;
use crate::error::{Error, Result};

/// A filesystem that is filled is larger than its content. Its image is sparse, but the tables of
/// the filesystem are written: so large a share of it has room beside.
const TABLES_SHARE: u64 = 32;
const PERCENT_MAX: u8 = 99;

/// How filesystems are made for a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Making {
    /// Options of the program that makes a filesystem, for each kind once at most.
    pub options: Vec<MkfsOptions>,
    /// How full a filesystem is before the run, in percent; the default is empty.
    pub fill_percent: Option<u8>,
}

/// Options for the program that makes one kind of filesystem, written `xfs=-l size=64m`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MkfsOptions {
    kind: ScratchKind,
    words: Vec<String>,
}

impl Making {
    /// With these options, and so full.
    pub fn new(options: Vec<MkfsOptions>, fill_percent: Option<u8>) -> Making {
        Making { options, fill_percent }
    }

    /// Does this make sense for `kinds`?
    ///
    /// # Errors
    ///
    /// It does not; a line that says why.
    pub fn check(&self, kinds: &[ScratchKind]) -> Result<()> {
        for (index, MkfsOptions { kind, .. }) in self.options.iter().enumerate() {
            if !kinds.contains(kind) {
                return Err(Error::invalid(format!(
                    "there are options for {kind}, but no {kind} is made for the run"
                )));
            }
            if self.options[..index].iter().any(|other| other.kind == *kind) {
                return Err(Error::invalid(format!("there are options for {kind} twice")));
            }
        }
        self.check_fill(kinds)
    }

    fn check_fill(&self, kinds: &[ScratchKind]) -> Result<()> {
        let Some(percent) = self.fill_percent else { return Ok(()) };
        if !(1..=PERCENT_MAX).contains(&percent) {
            return Err(Error::invalid(format!(
                "a filesystem can be filled to 1 % at least and {PERCENT_MAX} % at most"
            )));
        }
        if kinds.is_empty() || kinds.contains(&ScratchKind::Tmpfs) {
            return Err(Error::invalid(
                "only a filesystem that is made for the run on a loop device can be filled before",
            ));
        }
        Ok(())
    }

    /// For `kind`, beyond the options that it always has.
    pub(super) fn options_of(&self, kind: ScratchKind) -> &[String] {
        let own = self.options.iter().find(|options| options.kind == kind);
        own.map_or(&[], |options| &options.words)
    }

    /// How large a filesystem is, of which `bytes` are free when the run begins.
    pub(super) fn bytes_in_all(&self, bytes: u64) -> u64 {
        let percent = self.fill_percent.unwrap_or(0).min(PERCENT_MAX);
        bytes / (100 - u64::from(percent)) * 100
    }

    /// The bytes that a room needs beside the `bytes` of such a filesystem.
    pub(super) fn tables_bytes(&self, bytes: u64) -> u64 {
        match self.fill_percent {
            Some(_) => self.bytes_in_all(bytes) / TABLES_SHARE,
            None => 0,
        }
    }

    /// The wanted filesystem, for the conditions of a run.
    pub(crate) fn lines(&self) -> Vec<String> {
        let fill = self.fill_percent.map(|percent| {
            format!("filesystems filled to {percent} % before the run, with free space in pieces")
        });
        self.options.iter().map(MkfsOptions::to_string).chain(fill).collect()
    }
}

impl fmt::Display for MkfsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.kind.maker().map_or("mkfs", |maker| maker.program);
        write!(f, "{} made by {program} {}", self.kind, self.words.join(" "))
    }
}

impl FromStr for MkfsOptions {
    type Err = Error;

    fn from_str(text: &str) -> Result<MkfsOptions> {
        let (kind, words) = text.split_once('=').ok_or_else(|| {
            Error::invalid(format!("\"{text}\" is not KIND=OPTIONS, as \"xfs=-l size=64m\""))
        })?;
        let kind: ScratchKind = kind.trim().parse()?;
        if kind.maker().is_none() {
            return Err(Error::invalid(format!("{kind} is not made by a program with options")));
        }
        let words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
        if words.is_empty() {
            return Err(Error::invalid(format!("no options follow \"{kind}=\"")));
        }
        Ok(MkfsOptions { kind, words })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn making(options: &[&str], fill_percent: Option<u8>) -> Making {
        let options = options.iter().map(|text| text.parse().unwrap()).collect();
        Making { options, fill_percent }
    }

    #[test]
    fn options_are_those_of_their_kind() {
        let making = making(&["xfs=-l size=64m", "ext4= -O bigalloc  -C 65536"], Some(95));
        making.check(&[ScratchKind::Ext4, ScratchKind::Xfs]).unwrap();
        assert_eq!(making.options_of(ScratchKind::Xfs), ["-l", "size=64m"]);
        assert_eq!(making.options_of(ScratchKind::Ext4), ["-O", "bigalloc", "-C", "65536"]);
        assert!(making.options_of(ScratchKind::Btrfs).is_empty());
        assert_eq!(making.lines()[0], "xfs made by mkfs.xfs -l size=64m");
        assert_eq!(making.lines().len(), 3);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_reason() {
        let parsed = |text: &str| text.parse::<MkfsOptions>().unwrap_err().to_string();
        assert!(parsed("-l size=64m").contains("can't be made for a run"), "{}", parsed("-l a=b"));
        assert!(parsed("xfs").contains("KIND=OPTIONS"));
        assert!(parsed("zfs=-o a").contains("there are ext4, xfs"));
        assert_eq!(parsed("xfs= "), "no options follow \"xfs=\"");
        assert_eq!(parsed("tmpfs=-o a"), "tmpfs is not made by a program with options");
        let refused = |making: Making, kinds: &[ScratchKind]| making.check(kinds).is_err();
        assert!(refused(making(&["xfs=-a"], None), &[ScratchKind::Ext4]));
        assert!(refused(making(&["xfs=-a", "xfs=-b"], None), &[ScratchKind::Xfs]));
        assert!(refused(making(&[], Some(100)), &[ScratchKind::Xfs]));
        assert!(refused(making(&[], Some(0)), &[ScratchKind::Xfs]));
        assert!(refused(making(&[], Some(95)), &[]));
        assert!(refused(making(&[], Some(95)), &[ScratchKind::Tmpfs]));
    }

    #[test]
    fn a_filesystem_that_is_filled_is_so_much_larger() {
        assert_eq!(making(&[], Some(95)).bytes_in_all(1000), 20_000);
        assert_eq!(making(&[], Some(50)).bytes_in_all(1000), 2000);
        assert_eq!(making(&[], None).bytes_in_all(1000), 1000);
        assert_eq!(making(&[], None).tables_bytes(1 << 30), 0);
    }
}
