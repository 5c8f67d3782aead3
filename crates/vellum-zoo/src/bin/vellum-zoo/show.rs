//! The process that serves the disk.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, ErrorKind, Write, stdin, stdout};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::mount::{UnmountFlags, unmount};
use vellum_command::files;
use vellum_command::private_dir::PrivateDir;
use vellum_zoo::filesystem::Filesystem;
use vellum_zoo::{BlockDevice, Cut, Disk, unmount_patiently};

use super::RunArguments;

/// The variable with a directory for the disk's own files.
pub(super) const DIR: &str = "VELLUM_ZOO_DIR";

/// Shows the disk until the end of standard input; a line of it cuts the power.
pub(super) fn serve(arguments: &RunArguments) -> anyhow::Result<()> {
    let dir = std::env::var_os(DIR).context("this is for `vellum-zoo run`")?;
    // It goes in the end, also if the process that waits for this one is gone.
    let dir = PrivateDir::adopt(Path::new(&dir))?;
    let device = arguments.animal()?.device(dir.path(), medium(arguments)?)?;
    let mut shown = Shown { device, at: None };
    say(&format!("device /dev/loop{}", shown.device.number()));
    if let Some(at) = &arguments.mount {
        let Some(filesystem) = arguments.filesystem() else {
            bail!("--mount needs the filesystem: --mkfs ext4 makes one, --fs ext4 says it");
        };
        shown.at = Some(Place::new(filesystem, at)?);
        shown.mount()?;
        say(&format!("mounted {}", at.display()));
    }
    say(&format!("ready {}", std::os::unix::process::parent_id()));
    for line in stdin().lock().lines() {
        line?;
        shown.cut();
    }
    shown.end()
}

/// The medium, with a new filesystem if there is to be one. Its directory may belong to another
/// user, who may put something else at its name at any moment: it is opened once, and no link is
/// followed.
fn medium(arguments: &RunArguments) -> anyhow::Result<File> {
    let path = &arguments.file;
    let flags = OFlags::RDWR | OFlags::NOFOLLOW;
    let cannot = || format!("cannot open {}", path.display());
    let file = match (files::opened(path, flags), arguments.size) {
        (Err(error), Some(size)) if error.kind() == ErrorKind::NotFound => {
            let new = flags | OFlags::CREATE | OFlags::EXCL;
            let file = files::opened(path, new).with_context(cannot)?;
            file.set_len(size)?;
            file
        }
        (Err(error), None) if error.kind() == ErrorKind::NotFound => {
            bail!("{} is not there; --size says how large to make it", path.display())
        }
        (file, _) => file.with_context(cannot)?,
    };
    let length = file.metadata()?.len();
    if let Some(size) = arguments.size.filter(|size| *size != length) {
        bail!("{} has {length} bytes, and --size says {size}", path.display());
    }
    ensure!(length.is_multiple_of(4096), "the medium must have a multiple of 4096 bytes");
    if let Some(filesystem) = arguments.mkfs {
        filesystem.look_for_maker()?;
        filesystem.make(&by_descriptor(&file), length, false)?;
    }
    Ok(file)
}

/// A path that leads to an open file, also in a process that is started.
fn by_descriptor(open: impl AsFd) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), open.as_fd().as_raw_fd()).into()
}

/// A line for standard output.
fn say(line: &str) {
    let mut stdout = stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Where the filesystem is mounted. The directory is opened once: another user may rename it, and
/// put a link to any place at its name.
struct Place {
    filesystem: Filesystem,
    dir: OwnedFd,
    /// Its parent and its name in it, while it is mounted: the kernel renames it no more.
    mounted: Option<(OwnedFd, PathBuf)>,
}

impl Place {
    fn new(filesystem: Filesystem, path: &Path) -> anyhow::Result<Place> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = open(path, flags, Mode::empty());
        let dir = dir.with_context(|| format!("cannot mount at {}", path.display()))?;
        Ok(Place { filesystem, dir, mounted: None })
    }

    fn mount(&mut self, device: &Path) -> anyhow::Result<()> {
        let path = by_descriptor(&self.dir);
        self.filesystem.mount(device, &path)?;
        let name = fs::read_link(path)?;
        let name = name.file_name().context("mounted at no name")?.into();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.mounted = Some((openat(&self.dir, "..", flags, Mode::empty())?, name));
        Ok(())
    }

    /// The path of the mounted filesystem.
    fn path(&self) -> Option<PathBuf> {
        let (parent, name) = self.mounted.as_ref()?;
        Some(by_descriptor(parent).join(name))
    }

    fn unmount(&mut self) -> io::Result<()> {
        if let Some(path) = self.path() {
            unmount_patiently(&path)?;
            self.mounted = None;
        }
        Ok(())
    }
}

/// The things that are to be taken down again.
struct Shown {
    device: BlockDevice<Disk>,
    at: Option<Place>,
}

impl Shown {
    fn mount(&mut self) -> anyhow::Result<()> {
        self.at.as_mut().map_or(Ok(()), |at| at.mount(self.device.path()))
    }

    fn unmount(&mut self) -> anyhow::Result<()> {
        let unmounted = self.at.as_mut().map_or(Ok(()), Place::unmount);
        unmounted.context("cannot unmount")
    }

    /// Cuts the power and lets it come back.
    fn cut(&mut self) {
        let cut = self.device.disk().cut();
        match cut {
            Ok(Cut { forgotten, kept, torn, flushed_lost }) => say(&format!(
                "cut forgotten={forgotten} kept={kept} torn={torn} flushed-lost={flushed_lost}"
            )),
            Err(error) => return say(&format!("cut failed: {error}")),
        }
        match self.come_back() {
            Ok(()) => say("power on"),
            Err(error) => say(&format!("power off: {error:#}; SIGUSR1 tries again")),
        }
    }

    fn come_back(&mut self) -> anyhow::Result<()> {
        self.unmount()?;
        self.device.disk().power_on();
        self.device.forget_cached()?;
        self.mount()
    }

    fn end(mut self) -> anyhow::Result<()> {
        let result = self.unmount();
        if let (Err(_), Some(path)) = (&result, self.at.as_ref().and_then(Place::path)) {
            unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
        }
        result
    }
}

/// Where the filesystem is mounted whose device the process `server` has made.
pub(super) fn mounted_from(server: u32) -> Option<PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let dir = format!("/proc/{server}/fd/");
    let is_ours = |word: &str| word.starts_with(&dir) && word.ends_with("/device");
    let line = table.lines().find(|line| line.split(' ').any(is_ours))?;
    line.split(' ').nth(4).map(as_named)
}

/// A name as it is, from how the kernel writes it: `\040` is a blank.
fn as_named(written: &str) -> PathBuf {
    let mut parts = written.split('\\');
    let mut name = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..3).map(|digits| u8::from_str_radix(digits, 8)) {
            Some(Ok(byte)) => {
                name.push(byte);
                name.extend(&part.as_bytes()[3..]);
            }
            _ => name.extend(part.as_bytes()),
        }
    }
    OsString::from_vec(name).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_table_of_mounts_are_read() {
        assert_eq!(as_named("/mnt/a"), Path::new("/mnt/a"));
        assert_eq!(as_named("/mnt/a\\040b\\134c"), Path::new("/mnt/a b\\c"));
    }
}
