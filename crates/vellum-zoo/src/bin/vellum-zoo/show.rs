//! The process that serves the disk.

use std::fs::{self, File};
use std::io::{BufRead, Write, stdin, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use rustix::mount::{UnmountFlags, unmount};
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
    let mut shown = Shown { device, at: None, is_mounted: false };
    say(&format!("device /dev/loop{}", shown.device.number()));
    if let Some(at) = &arguments.mount {
        let Some(filesystem) = arguments.filesystem() else {
            bail!("--mount needs the filesystem: --mkfs ext4 makes one, --fs ext4 says it");
        };
        shown.at = Some((filesystem, at.clone()));
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

/// The medium, with a new filesystem if there is to be one.
fn medium(arguments: &RunArguments) -> anyhow::Result<File> {
    let path = &arguments.file;
    let length = fs::metadata(path).map(|metadata| metadata.len()).ok();
    let length = match (length, arguments.size) {
        (Some(length), None) => length,
        (None, Some(size)) => size,
        (Some(length), Some(size)) if length == size => length,
        (Some(length), Some(size)) => {
            bail!("{} has {length} bytes, and --size says {size}", path.display())
        }
        (None, None) => bail!("{} is not there; --size says how large to make it", path.display()),
    };
    let open = || File::options().read(true).write(true).create(true).truncate(false).open(path);
    open().with_context(|| format!("cannot open {}", path.display()))?.set_len(length)?;
    if let Some(filesystem) = arguments.mkfs {
        filesystem.look_for_maker()?;
        filesystem.make(path, length, false)?;
    }
    let file = open()?;
    let rest = file.metadata()?.len() % 4096;
    ensure!(rest == 0, "the medium must have a multiple of 4096 bytes");
    Ok(file)
}

/// A line for standard output.
fn say(line: &str) {
    let mut stdout = stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// What is to be taken down again.
struct Shown {
    device: BlockDevice<Disk>,
    at: Option<(Filesystem, PathBuf)>,
    is_mounted: bool,
}

impl Shown {
    fn mount(&mut self) -> anyhow::Result<()> {
        if let Some((filesystem, at)) = &self.at {
            filesystem.mount(self.device.path(), at)?;
            self.is_mounted = true;
        }
        Ok(())
    }

    fn unmount(&mut self) -> anyhow::Result<()> {
        if let Some((_, at)) = self.at.as_ref().filter(|_| self.is_mounted) {
            unmount_patiently(at).with_context(|| format!("cannot unmount {}", at.display()))?;
            self.is_mounted = false;
        }
        Ok(())
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
        if let (Err(_), Some((_, at))) = (&result, &self.at) {
            unmount(at, UnmountFlags::DETACH)?;
        }
        result
    }
}

/// Whether what is mounted there lies on the device that the process `server` has made.
pub(super) fn is_mounted_from(at: &Path, server: u32) -> bool {
    let Ok(table) = fs::read_to_string("/proc/self/mountinfo") else { return false };
    let at = at.canonicalize().unwrap_or_else(|_| at.to_path_buf());
    let dir = format!("/proc/{server}/fd/");
    table.lines().any(|line| {
        let mut words = line.split(' ');
        words.nth(4).is_some_and(|point| Path::new(point) == at)
            && words.any(|word| word.starts_with(&dir) && word.ends_with("/device"))
    })
}
