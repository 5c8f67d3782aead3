//! Where filesystems are made, and one of them.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use vellum_sys::Dir;
use vellum_sys::loop_device::{LoopShape, attach_loop};

use super::array::Array;
use super::{Maker, Making, ScratchKind, ballast, run};
use crate::conditions::memory_bytes;
use crate::error::{Context, Error, Result};
use crate::sys;

/// Metadata, and room that a filesystem keeps for itself: a quarter, but so much at least, for
/// less than 300 MiB xfs refuses.
const OVERHEAD_SHARE: u64 = 4;
const OVERHEAD_BYTES_MIN: u64 = 384 << 20;
/// The space beside the images of a room: for the directories and the tmpfs itself.
const ROOM_BYTES: u64 = 16 << 20;

/// The kernel does not tell when it takes a device back, so that is asked every now and then.
const RELEASE_PAUSE: Duration = Duration::from_millis(5);
const RELEASE_TIME_MAX: Duration = Duration::from_secs(5);

/// A tmpfs that only this thread and its children see. Goes when dropped, or with them.
pub(crate) struct Room {
    dir: PathBuf,
    /// The directory of the run, in the mounts of this thread.
    _home: OwnedFd,
}

impl Room {
    /// Mounts one of `bytes` in the directory `home` of the run.
    pub(crate) fn new(home: &Path, bytes: u64) -> Result<Room> {
        let available = memory_bytes("MemAvailable").unwrap_or(u64::MAX);
        if bytes > available / 2 {
            return Err(Error::no_space(format!(
                "filesystems made for a run take {} MiB of memory here, and half of the {} MiB \
                 available can be used",
                bytes >> 20,
                available >> 20
            )));
        }
        sys::unshare_mounts().context(|| "leave the mounts of the other processes")?;
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).context(|| "make the mounts private")?;
        let (own, home) = among_own_mounts(home)?;
        let dir = home.join("room");
        fs::create_dir_all(&dir).context(|| format!("make {}", dir.display()))?;
        let options = CString::new(format!("size={bytes},mode=0700")).unwrap_or_default();
        mount("tmpfs", &dir, "tmpfs", MountFlags::empty(), options.as_c_str())
            .context(|| format!("mount a tmpfs on {}", dir.display()))?;
        Ok(Room { dir, _home: own })
    }

    /// The bytes that a room needs for a filesystem that holds `bytes`.
    pub(crate) fn bytes_for(bytes: u64, making: &Making) -> u64 {
        let bytes = bytes + (bytes / OVERHEAD_SHARE).max(OVERHEAD_BYTES_MIN);
        bytes + making.tables_bytes(bytes)
    }

    /// Makes a filesystem in which `bytes` have room. There is memory for one at a time.
    pub(crate) fn furnish(
        &self,
        kind: ScratchKind,
        bytes: u64,
        making: &Making,
    ) -> Result<Scratch> {
        // A filesystem is mounted beside the room and not in it. A process that removes the
        // directory from outside, while another still dies, detaches its mounts: one in the room
        // would then hang on the room, whose images its device holds, and none of the three would
        // ever go.
        let dir = match kind.maker() {
            Some(_) => self.dir.with_file_name(kind.as_str()),
            None => self.dir.join(kind.as_str()),
        };
        fs::create_dir(&dir).context(|| format!("make {}", dir.display()))?;
        let (images, devices) = (Vec::new(), Vec::new());
        let mut scratch = Scratch { dir, is_mounted: false, array: None, images, devices };
        if let Some(maker) = kind.maker() {
            // The number tells, in a list of loop devices, whose this is.
            let name = |part: u64| match maker.devices {
                1 => format!("{kind}-{}.image", std::process::id()),
                _ => format!("{kind}-{part}-{}.image", std::process::id()),
            };
            let parts = 0..maker.devices;
            scratch.images = parts.map(|part| self.dir.join(name(part))).collect();
            // A failure removes the finished parts.
            let outside = self.dir.parent().unwrap_or(&self.dir);
            let bytes = Room::bytes_for(bytes, &Making::default()) - ROOM_BYTES;
            let wanted = Wanted { kind, bytes, making };
            scratch.build(&maker, &wanted, outside)?;
        }
        Ok(scratch)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // A mount that is left ends with the process.
        let _ = unmount(&self.dir, UnmountFlags::DETACH);
    }
}

/// A filesystem made for a run. Goes when dropped.
pub(crate) struct Scratch {
    dir: PathBuf,
    is_mounted: bool,
    array: Option<Array>,
    /// None for a directory of the room itself.
    images: Vec<PathBuf>,
    /// The devices that they were attached to.
    devices: Vec<PathBuf>,
}

impl Scratch {
    /// Where it is mounted.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    fn build(&mut self, maker: &Maker, wanted: &Wanted<'_>, outside: &Path) -> Result<()> {
        let images = self.images.iter().map(|path| wanted.image(path, maker.devices));
        let images = images.collect::<Result<Vec<File>>>()?;
        let options = wanted.options(maker);
        if !maker.is_array {
            // On the images, so that no device is looked at by others before it is mounted.
            run(maker.program, &options, &self.images)?;
        }
        let attach = |image| attached(image).context(|| "make a loop device of the image");
        // Held open until they are mounted: the kernel takes back unused ones.
        let devices = images.iter().map(attach).collect::<Result<Vec<(File, PathBuf)>>>()?;
        self.devices = devices.iter().map(|(_, path)| path.clone()).collect();
        let mut paths = self.devices.clone();
        if maker.is_array {
            let array = self.array.insert(Array::build(&paths, outside)?);
            paths = vec![array.device().to_path_buf()];
            run(maker.program, &options, &paths)?;
        }
        mount_on(&paths, &self.dir, maker)?;
        self.is_mounted = true;
        wanted.making.fill_percent.map_or(Ok(()), |percent| ballast::fill(&self.dir, percent))
    }
}

/// The filesystem to make.
struct Wanted<'a> {
    kind: ScratchKind,
    /// How much of it is free, and written.
    bytes: u64,
    making: &'a Making,
}

impl<'a> Wanted<'a> {
    /// The image of one of so many devices. Blocks that are never written take no memory.
    fn image(&self, path: &Path, devices: u64) -> Result<File> {
        let bytes = self.making.bytes_in_all(self.bytes) / devices;
        let file = File::options().read(true).write(true).create_new(true).open(path);
        let file = file.context(|| format!("make {}", path.display()))?;
        match self.making.fill_percent {
            Some(_) => file.set_len(bytes).context(|| "lengthen an image")?,
            None => fallocate(&file, FallocateFlags::empty(), 0, bytes)
                .context(|| format!("allocate {} MiB for an image", bytes >> 20))?,
        }
        Ok(file)
    }

    /// Ours first: of two options that differ the last one counts.
    fn options(&self, maker: &Maker) -> Vec<&'a str> {
        let filled = self.making.fill_percent.map_or(&[][..], |_| maker.filled_options);
        let asked = self.making.options_of(self.kind).iter().map(String::as_str);
        maker.options.iter().chain(filled).copied().chain(asked).collect()
    }
}

/// Opens the directory of the run among the mounts of this thread, which alone can be mounted on.
/// Returns a path that leads there whatever becomes of its name.
fn among_own_mounts(home: &Path) -> Result<(OwnedFd, PathBuf)> {
    let what = || format!("open {}", home.display());
    let place = home.canonicalize().context(what)?;
    let own = Dir::open(&place).and_then(|dir| dir.descriptor()).context(what)?;
    let (known, found) = (rustix::fs::stat(home), rustix::fs::fstat(&own));
    let (known, found) = (known.context(what)?, found.context(what)?);
    if (known.st_dev, known.st_ino) != (found.st_dev, found.st_ino) {
        return Err(Error::failed(format!("{} was renamed", place.display())));
    }
    let path = format!("/proc/{}/fd/{}", std::process::id(), own.as_raw_fd());
    Ok((own, PathBuf::from(path)))
}

/// Makes a block device of the image, which lasts as long as it is open or mounted somewhere.
fn attached(image: &File) -> io::Result<(File, PathBuf)> {
    let path = |number: u32| PathBuf::from(format!("/dev/loop{number}"));
    let open = |number| File::options().read(true).write(true).open(path(number));
    let (device, number) = attach_loop(image, LoopShape::default(), open)?;
    Ok((device, path(number)))
}

/// Is the image still the loop device's?
fn is_attached(image: &Path, device: &Path) -> bool {
    let name = device.file_name().unwrap_or_default();
    let attached = fs::read_to_string(Path::new("/sys/block").join(name).join("loop/backing_file"));
    // The kernel tells the path as it was, whether the image still has that name or not.
    let image = image.file_name().unwrap_or_default().to_string_lossy();
    attached.is_ok_and(|attached| attached.contains(&*image))
}

fn mount_on(devices: &[PathBuf], dir: &Path, maker: &Maker) -> Result<()> {
    let mut options = vec![maker.mount_options.to_string()];
    if devices.len() > 1 {
        // They are named here, so no user needs to search the system for them.
        options.extend(devices.iter().map(|device| format!("device={}", device.display())));
    }
    let options = CString::new(options.join(",")).unwrap_or_default();
    mount(&devices[0], dir, maker.filesystem, MountFlags::empty(), options.as_c_str()).map_err(
        |error| match error {
            rustix::io::Errno::NODEV => {
                Error::failed(format!("this kernel has no {}", maker.filesystem))
            }
            error => Error::os(
                format_args!("mount {} on a loop device", maker.filesystem),
                io::Error::from(error),
            ),
        },
    )
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.is_mounted && unmount(&self.dir, UnmountFlags::empty()).is_err() {
            let _ = unmount(&self.dir, UnmountFlags::DETACH);
        }
        self.array = None;
        for image in &self.images {
            let _ = fs::remove_file(image);
        }
        let _ = fs::remove_dir_all(&self.dir);
        // Others may be looking at a device meanwhile. Until it is taken back, its image takes the
        // memory that the next one needs.
        let begun = Instant::now();
        let is_attached = |(image, device): (&PathBuf, &PathBuf)| is_attached(image, device);
        while begun.elapsed() < RELEASE_TIME_MAX
            && self.images.iter().zip(&self.devices).any(is_attached)
        {
            thread::sleep(RELEASE_PAUSE);
        }
    }
}
