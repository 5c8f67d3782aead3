//! The planted things, and the files behind their links.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dev, FileType, Mode, makedev, mknodat};
use vellum_testing::is_root;

const SECRET: &[u8] = b"{ \"a file\": \"of somebody else\" }\n";
/// Longer than anything that may be read at once.
const GIANT: u64 = 8 << 30;
const NOBODY: u32 = 65534;
/// A number, and bytes that a terminal obeys.
const JUNK: &[u8] = b"7\n\x1b]0;owned\x07\x1b[31m\xff\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    Link,
    LinkToNothing,
    HardLink,
    Pipe,
    Device,
    Socket,
    Directory,
    /// A file of eight gibibytes without a block.
    Giant,
    Junk,
    /// A file of another user, with the right content.
    Strangers,
}

impl Thing {
    /// Those that this user can make.
    pub(crate) fn all() -> Vec<Thing> {
        let mut all = vec![
            Thing::Link,
            Thing::LinkToNothing,
            Thing::HardLink,
            Thing::Pipe,
            Thing::Socket,
            Thing::Directory,
            Thing::Giant,
            Thing::Junk,
        ];
        if is_root("devices and files of others") {
            all.extend([Thing::Device, Thing::Strangers]);
        }
        all
    }

    /// Puts the thing where `path` is, in place of the entry that is there.
    pub(crate) fn plant(self, path: &Path, outside: &Outside) {
        let there = fs::symlink_metadata(path).ok();
        let is_directory = there.as_ref().is_some_and(fs::Metadata::is_dir);
        if self == Thing::Strangers {
            if there.is_none() {
                fs::write(path, SECRET).unwrap();
            }
            return chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        if is_directory {
            fs::remove_dir_all(path).unwrap();
        } else if there.is_some() {
            fs::remove_file(path).unwrap();
        }
        match self {
            Thing::Link if is_directory => symlink(outside.directory(), path).unwrap(),
            Thing::Link => symlink(outside.file(), path).unwrap(),
            Thing::LinkToNothing => symlink(outside.nothing(), path).unwrap(),
            Thing::HardLink => fs::hard_link(outside.file(), path).unwrap(),
            Thing::Pipe => node(path, FileType::Fifo, 0),
            Thing::Device => node(path, FileType::CharacterDevice, makedev(1, 5)),
            Thing::Socket => node(path, FileType::Socket, 0),
            Thing::Directory => fs::create_dir(path).unwrap(),
            Thing::Giant => fs::File::create(path).unwrap().set_len(GIANT).unwrap(),
            Thing::Junk => fs::write(path, JUNK).unwrap(),
            Thing::Strangers => unreachable!("it is there"),
        }
    }
}

fn node(path: &Path, kind: FileType, device: Dev) {
    mknodat(CWD, path, kind, Mode::from_raw_mode(0o666), device).unwrap();
}

/// A directory that nothing may touch.
pub(crate) struct Outside(PathBuf);

impl Outside {
    pub(crate) fn new(dir: &Path) -> Outside {
        let outside = Outside(dir.join("outside"));
        fs::create_dir_all(outside.directory()).unwrap();
        fs::write(outside.file(), SECRET).unwrap();
        outside
    }

    fn file(&self) -> PathBuf {
        self.0.join("file")
    }

    fn directory(&self) -> PathBuf {
        self.0.join("directory")
    }

    fn nothing(&self) -> PathBuf {
        self.0.join("nothing")
    }

    /// The change, if there is one.
    pub(crate) fn change(&self) -> Option<String> {
        let names = |dir: &Path| -> BTreeSet<String> {
            let names = fs::read_dir(dir).unwrap();
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        if names(&self.0) != ["directory", "file"].map(String::from).into() {
            return Some("something was made where a link leads".into());
        }
        if !names(&self.directory()).is_empty() {
            return Some("something was made in the directory that a link leads to".into());
        }
        let found = fs::metadata(self.file()).unwrap();
        let is_as_it_was = found.uid() != NOBODY && fs::read(self.file()).unwrap() == SECRET;
        (!is_as_it_was).then(|| "the file that a link leads to was changed".into())
    }
}
