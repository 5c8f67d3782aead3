//! Disks without a fault: does the doctor find one all the same?

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use vellum_command::private_dir::PrivateDir;
use vellum_sys::loop_device::{LoopShape, attach_loop};
use vellum_zoo::filesystem::Filesystem;
use vellum_zoo::unmount_patiently;

use super::cage::DISK_MIB;
use super::claim::p99;
use super::doctor::{Answer, Doctor};

/// A loop device of the kernel, and its filesystem.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sound {
    filesystem: Filesystem,
    is_in_memory: bool,
    has_neighbour: bool,
}

/// etcd's limit for p99. A disk that was half as slow by our own measurement is good.
const LIMIT_MS: f64 = 10.0;
/// The neighbour writes and flushes so much, and rests.
const NEIGHBOUR_BYTES: usize = 64 << 10;
/// Then it begins anew.
const NEIGHBOUR_MAX: u64 = 64 << 20;
/// So long is a disk looked at without the doctor.
const OWN_TIME: Duration = Duration::from_secs(1);
const NEIGHBOUR_PAUSE: Duration = Duration::from_millis(20);

/// The result of one.
pub(super) struct Heard {
    pub(super) answer: Answer,
    pub(super) own_p99_ms: f64,
    /// A statement of the doctor that is not so; none if all is well.
    pub(super) alarm: Option<String>,
}

impl Sound {
    /// The sorts take turns.
    pub(super) fn nth(number: usize) -> Sound {
        let filesystems = [Filesystem::Ext4, Filesystem::Xfs, Filesystem::Btrfs];
        Sound {
            filesystem: filesystems[number % 3],
            is_in_memory: (number / 3).is_multiple_of(2),
            has_neighbour: number / 6 % 2 == 1,
        }
    }

    pub(super) fn name(&self) -> String {
        let place = if self.is_in_memory { "memory" } else { "file" };
        let load = if self.has_neighbour { ", neighbour" } else { "" };
        format!("{} in {place}{load}", self.filesystem)
    }

    /// Makes the disk below `dir` or in memory, and asks for it.
    pub(super) fn ask(&self, doctor: &Doctor, dir: &Path, seconds: u32) -> anyhow::Result<Heard> {
        let place = if self.is_in_memory { Path::new("/dev/shm") } else { dir };
        let place = PrivateDir::new(place, "vellum-zoo-")?;
        let disk = Mounted::new(self.filesystem, place.path())?;
        let own_p99_ms;
        let answer = {
            let _neighbour = self.has_neighbour.then(|| Neighbour::new(&disk.at));
            own_p99_ms = p99(&disk.at, OWN_TIME).context("cannot write on a sound disk")?;
            let accepted: &[&str] = if self.is_in_memory { &["memory"] } else { &[] };
            doctor.measure_etcd(&disk.at, seconds, accepted)?
        };
        let alarm = self.alarm(&answer, own_p99_ms);
        Ok(Heard { answer, own_p99_ms, alarm })
    }

    /// A statement of the doctor that is not so.
    fn alarm(&self, answer: &Answer, own_p99_ms: f64) -> Option<String> {
        let is_so = |cause: &str| match cause {
            "memory" => self.is_in_memory,
            "neighbour" => self.has_neighbour,
            "copy-on-write" => self.filesystem == Filesystem::Btrfs,
            _ => false,
        };
        let faults: Vec<&str> = answer.faults().into_iter().filter(|cause| !is_so(cause)).collect();
        if !faults.is_empty() {
            return Some(faults.join(", "));
        }
        // A machine that is too busy to tell says nothing of the disk.
        let is_told = !matches!(answer.verdict.as_str(), "good" | "cannot-tell");
        (is_told && own_p99_ms < LIMIT_MS / 2.0).then(|| answer.verdict.clone())
    }
}

/// A filesystem on a loop device, until this is dropped.
struct Mounted {
    at: PathBuf,
}

impl Mounted {
    fn new(filesystem: Filesystem, dir: &Path) -> anyhow::Result<Mounted> {
        let (image, at) = (dir.join("image"), dir.join("at"));
        fs::create_dir(&at)?;
        filesystem.look_for_maker()?;
        filesystem.make(&image, DISK_MIB << 20, false)?;
        let image = File::options().read(true).write(true).open(&image)?;
        let path = |number: u32| PathBuf::from(format!("/dev/loop{number}"));
        let open = |number| File::options().read(true).write(true).open(path(number));
        // Open until it is mounted: the kernel takes back a device that has no user.
        let (_device, number) = attach_loop(&image, LoopShape::default(), open)?;
        filesystem.mount(&path(number), &at)?;
        Ok(Mounted { at })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(error) = unmount_patiently(&self.at) {
            eprintln!("cannot unmount {}: {error}", self.at.display());
        }
    }
}

/// Writes beside the doctor until this is dropped.
struct Neighbour {
    end: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Neighbour {
    fn new(dir: &Path) -> Neighbour {
        let (end, ended) = mpsc::channel();
        let path = dir.join("neighbour");
        let thread = thread::spawn(move || {
            let Ok(mut file) = File::create(path) else { return };
            let content = vec![3; NEIGHBOUR_BYTES];
            while ended.recv_timeout(NEIGHBOUR_PAUSE) == Err(RecvTimeoutError::Timeout) {
                if file.write_all(&content).and_then(|()| file.sync_data()).is_err() {
                    return;
                }
                if file.stream_position().is_ok_and(|position| position >= NEIGHBOUR_MAX) {
                    let _ = file.rewind();
                }
            }
        });
        Neighbour { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
