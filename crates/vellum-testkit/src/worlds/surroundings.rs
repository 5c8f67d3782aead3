//! The surroundings of a campaign's log: directories, owners, filesystems, and the changes to them
//! while workers work.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::shape::Shape;
use super::sys::{self, run};
use super::table::{self, Area, Kind, World};

pub(crate) const SHM: &str = "/dev/shm";
/// Users and a group that need no entry anywhere.
pub(crate) const SERVICE_USER: u32 = 54_101;
pub(crate) const SECOND_USER: u32 = 54_102;
pub(crate) const GROUP: u32 = 54_100;

/// Whose content no link in the log's directory may change.
const TREASURE: &[u8] = b"what somebody else would be sorry for";
/// Names that the log gives to files on their way.
const PLANTED: [&str; 5] =
    ["segment.new", "control.new", "compressed.new", "current.new", "geometry.new"];
const COPIES_MAX: u32 = 20;
/// How often links are planted again: a process that meets one every time cannot get on.
const PLANTINGS_MAX: u32 = 12;

/// The place of a campaign.
pub(crate) struct Surroundings {
    base: PathBuf,
    worlds: Vec<&'static World>,
    /// The directory that holds the log.
    parent: PathBuf,
    mounts: Vec<PathBuf>,
    plantings: u32,
}

impl Surroundings {
    /// Makes them below `base`, which is not there yet.
    pub(crate) fn make(base: &Path, worlds: &[&'static World]) -> anyhow::Result<Surroundings> {
        fs::DirBuilder::new().mode(0o755).create(base)?;
        let mut place = Surroundings {
            base: base.to_path_buf(),
            worlds: worlds.to_vec(),
            parent: base.join("parent"),
            mounts: Vec::new(),
            plantings: 0,
        };
        fs::write(base.join("empty"), "")?;
        place.make_filesystem()?;
        for world in worlds {
            place.prepare(world.kind).with_context(|| format!("cannot make {}", world.name))?;
        }
        if !place.parent.exists() {
            fs::create_dir(&place.parent)?;
        }
        Ok(place)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.parent.join("log")
    }

    fn has(&self, kind: Kind) -> bool {
        table::has(&self.worlds, kind)
    }

    /// A btrfs, where there are to be snapshots.
    fn make_filesystem(&mut self) -> anyhow::Result<()> {
        if !self.has(Kind::Snapshot) {
            return Ok(());
        }
        let (image, at) = (self.base.join("image"), self.base.join("disk"));
        fs::File::create(&image)?.set_len(256 << 20)?;
        run(Command::new("mkfs.btrfs").arg("-q").arg(&image))?;
        fs::create_dir(&at)?;
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&at))?;
        self.mounts.push(at.clone());
        fs::set_permissions(&at, fs::Permissions::from_mode(0o755))?;
        self.parent = at.join("parent");
        run(Command::new("btrfs").args(["-q", "subvolume", "create"]).arg(&self.parent))
    }

    fn prepare(&mut self, kind: Kind) -> anyhow::Result<()> {
        match kind {
            Kind::ShmSmall | Kind::ShmFull | Kind::ShmCleared => {
                let at = self.base.join("shm");
                fs::create_dir(&at)?;
                let size = if kind == Kind::ShmSmall { "size=64m" } else { "size=32m" };
                sys::mount(Path::new("shm"), &at, "tmpfs", 0, &format!("{size},mode=1777"))?;
                self.mounts.push(at.clone());
                if kind == Kind::ShmFull {
                    // Until nothing more goes in.
                    if let Err(error) = fs::write(at.join("ballast"), vec![1; 33 << 20]) {
                        ensure!(error.kind() == io::ErrorKind::StorageFull, error);
                    }
                }
            }
            Kind::Root | Kind::Umask => self.make_parent(0o755, SERVICE_USER, SERVICE_USER)?,
            Kind::Closed => self.make_parent(0o700, SERVICE_USER, SERVICE_USER)?,
            Kind::Group => self.make_parent(0o2770, SERVICE_USER, GROUP)?,
            Kind::Traversed => {
                self.make_parent(0o711, 0, 0)?;
                fs::create_dir(self.log())?;
                chown(self.log(), Some(SERVICE_USER), Some(SERVICE_USER))?;
            }
            Kind::Links => fs::write(self.base.join("treasure"), TREASURE)?,
            _ => {}
        }
        Ok(())
    }

    fn make_parent(&self, mode: u32, user: u32, group: u32) -> io::Result<()> {
        if !self.parent.exists() {
            fs::create_dir(&self.parent)?;
        }
        chown(&self.parent, Some(user), Some(group))?;
        fs::set_permissions(&self.parent, fs::Permissions::from_mode(mode))
    }

    /// Disturbances again and again while workers work, and the log is there.
    pub(crate) fn disturb(&mut self) {
        if self.has(Kind::ShmCleared) {
            for entry in fs::read_dir(self.base.join("shm")).into_iter().flatten().flatten() {
                let _ = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
            }
        }
        if self.has(Kind::Links) && self.plantings < PLANTINGS_MAX {
            self.plantings += 1;
            for name in PLANTED {
                let _ = symlink(self.base.join("treasure"), self.log().join(name));
            }
        }
    }

    /// The event that happens once, in the middle.
    pub(crate) fn turn(&mut self) -> anyhow::Result<()> {
        if self.has(Kind::Renamed) && !self.has(Kind::Snapshot) {
            let to = self.base.join("renamed");
            fs::rename(&self.parent, &to)?;
            self.parent = to;
        }
        if self.has(Kind::CopyLiving) {
            self.copy_living();
        }
        if self.has(Kind::Older) {
            copy(&self.log(), &self.base.join("copy"))?;
        }
        if self.has(Kind::Snapshot) {
            let to = self.base.join("disk/snapshot");
            let mut command = Command::new("btrfs");
            run(command.args(["-q", "subvolume", "snapshot"]).arg(&self.parent).arg(to))?;
        }
        Ok(())
    }

    /// Copies the log until `cp` does not complain of files that were removed meanwhile: with that
    /// error the copy is incomplete.
    fn copy_living(&self) {
        let to = self.base.join("copy");
        for _ in 0..COPIES_MAX {
            match copy(&self.log(), &to) {
                Ok(()) => return,
                Err(_) => drop(fs::remove_dir_all(&to)),
            }
        }
    }

    /// The event while no process has the log open, before it is truncated.
    pub(crate) fn pause(&mut self, shape: Shape) -> anyhow::Result<()> {
        if self.has(Kind::Ahead) {
            name_ahead(&self.log(), shape)?;
        }
        if self.has(Kind::CopyClosed) {
            copy(&self.log(), &self.base.join("copy"))?;
        }
        Ok(())
    }

    /// An image of the log that has to open as well, if there is one. An older one is put in the
    /// log's place.
    pub(crate) fn image(&self) -> anyhow::Result<Option<PathBuf>> {
        let copy_at = self.base.join("copy");
        if self.has(Kind::Older) && copy_at.exists() {
            fs::remove_dir_all(self.log())?;
            copy(&copy_at, &self.log())?;
            return Ok(Some(self.log()));
        }
        let candidates = [copy_at, self.base.join("disk/snapshot/log")];
        Ok(candidates.into_iter().find(|path| path.exists()))
    }

    /// The check that the world is as it was.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.has(Kind::Links) {
            let at = self.base.join("treasure");
            let bytes = fs::read(&at).map_err(|error| error.to_string())?;
            let mode = fs::metadata(&at).map_err(|error| error.to_string())?.permissions().mode();
            if bytes != TREASURE || mode & 0o777 != 0o644 {
                return Err(format!(
                    "a file that a planted link names has mode {:o} and {} bytes now",
                    mode & 0o777,
                    bytes.len()
                ));
            }
        }
        Ok(())
    }

    /// Whether all processes have to be stopped at the turn.
    pub(crate) fn wants_stillness(&self) -> bool {
        self.has(Kind::Older)
    }
}

impl Drop for Surroundings {
    fn drop(&mut self) {
        self.mounts.iter().rev().for_each(|mount| sys::unmount(mount));
    }
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    run(Command::new("cp").arg("-a").arg(from).arg(to))
}

/// Gives the newest file of a text log a name ten years ahead, as if it had been made while the
/// clock was wrong; its words go, as with a reboot.
fn name_ahead(log: &Path, shape: Shape) -> anyhow::Result<()> {
    if shape.layout() == vellum::Layout::Framed {
        return Ok(());
    }
    let mut names: Vec<String> = fs::read_dir(log)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".log"))
        .collect();
    names.sort();
    let Some(name) = names.last() else { return Ok(()) };
    let (year, rest) = name.split_at(4);
    let year: u32 = year.parse().with_context(|| format!("{name} has no year"))?;
    let ahead = format!("{}{rest}", year + 10);
    fs::rename(log.join(name), log.join(&ahead))?;
    fs::remove_file(log.join("current"))?;
    symlink(&ahead, log.join("current"))?;
    Ok(fs::remove_file(log.join("control"))?)
}

/// Why a world cannot be had here.
pub(crate) fn missing(world: &World) -> Option<String> {
    let is_root = fs::metadata("/proc/self")
        .is_ok_and(|place| std::os::unix::fs::MetadataExt::uid(&place) == 0);
    let needs_root =
        matches!(world.kind.area(), Area::User | Area::Memory | Area::Boot | Area::Pid)
            || world.kind == Kind::Snapshot;
    if needs_root && !is_root {
        return Some("it needs root".into());
    }
    if needs_root && !can_mount() {
        return Some("mounts are refused".into());
    }
    if world.kind == Kind::Snapshot && !Path::new("/usr/sbin/mkfs.btrfs").exists() {
        return Some("mkfs.btrfs is missing".into());
    }
    None
}

/// Whether this process may make namespaces and mount in them.
pub(crate) fn can_mount() -> bool {
    use std::sync::OnceLock;
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let child = sys::fork(|| {
            let all = libc::CLONE_NEWNS | libc::CLONE_NEWPID;
            let none = Path::new("none");
            let mounted = sys::unshare(all).and_then(|()| {
                sys::mount(none, Path::new("/"), "", libc::MS_REC | libc::MS_PRIVATE, "")?;
                sys::mount(none, Path::new("/mnt"), "tmpfs", 0, "")
            });
            i32::from(mounted.is_err())
        });
        child.and_then(sys::wait_for).is_ok_and(|end| end == sys::End::Exited(0))
    })
}
