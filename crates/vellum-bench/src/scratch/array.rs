//! A RAID 0 of loop devices, through md.
//!
//! The kernel takes a loop device back when its last user goes, but an array is a user that goes
//! only when it is told to. So a file in the directory of the run names the array before it is
//! made, outside of the private mounts, and the process that removes that directory reads it
//! ([`stop_all`]): an array that is still mounted somewhere refuses to stop, and is asked again.
//!
//! The array is built without superblocks, so nothing on this system recognises its devices and
//! assembles them again.
//!
//! **Not tried:** the kernel that this was written on has no md. The tests check that a kernel
//! without it is told from one with it, and that `mdadm` gets the right command lines.

use std::fs;
use std::path::{Path, PathBuf};

use super::{find, run};
use crate::error::{Context, Error, Result};

/// As in the published tables.
const CHUNK_KIB: &str = "--chunk=512";
/// Numbers without a configuration: md itself gives them out from the top.
const NUMBERS: std::ops::RangeInclusive<u32> = 64..=127;
/// How the files are called that name an array.
const NOTE_EXTENSION: &str = "array";

/// An array that runs, or may run. Stopped when dropped.
pub(super) struct Array {
    device: PathBuf,
    note: PathBuf,
}

impl Array {
    /// Makes one of `devices`; `dir` is the directory of the run.
    pub(super) fn build(devices: &[PathBuf], dir: &Path) -> Result<Array> {
        check()?;
        let is_free = |number: &u32| !Path::new(&format!("/sys/block/md{number}")).exists();
        let number = NUMBERS.rev().find(is_free);
        let number = number.ok_or_else(|| Error::failed("all numbers of md arrays are taken"))?;
        let device = PathBuf::from(format!("/dev/md{number}"));
        let note = dir.join(format!("md{number}.{NOTE_EXTENSION}"));
        fs::write(&note, device.as_os_str().as_encoded_bytes())
            .context(|| format!("write {}", note.display()))?;
        // From here on a failure stops what there is.
        let array = Array { device, note };
        let (options, paths) = building(&array.device, devices);
        run("mdadm", &options.each_ref().map(String::as_str), &paths)?;
        Ok(array)
    }

    /// Its block device.
    pub(super) fn device(&self) -> &Path {
        &self.device
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        // The note is for an array that does not stop now.
        let _ = stop(&self.device, &self.note);
    }
}

/// What `mdadm` is told that makes an array: options and paths.
fn building(device: &Path, devices: &[PathBuf]) -> ([String; 4], Vec<PathBuf>) {
    let count = format!("--raid-devices={}", devices.len());
    let options = ["--build".into(), "--level=0".into(), CHUNK_KIB.into(), count];
    (options, [&[device.to_path_buf()][..], devices].concat())
}

/// The arguments that stop one.
fn stopping(device: &Path) -> ([&'static str; 2], [PathBuf; 1]) {
    (["--quiet", "--stop"], [device.to_path_buf()])
}

/// Can this system make arrays?
fn check() -> Result<()> {
    let has_md = || Path::new("/proc/mdstat").exists();
    if !has_md() {
        // Where it is a module, it may not be loaded yet.
        let _ = run("modprobe", &["raid0"], &[]);
    }
    if !has_md() {
        return Err(Error::failed(
            "this kernel has no md (CONFIG_MD_RAID0), which stripes devices",
        ));
    }
    if find("mdadm").is_none() {
        return Err(Error::failed("mdadm is missing; it comes with mdadm"));
    }
    Ok(())
}

/// Stops the arrays that files below `dir` name. False if one of them is still in use.
pub(super) fn stop_all(dir: &Path) -> bool {
    let mut is_stopped = true;
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            is_stopped &= stop_all(&path);
        } else if path.extension().is_some_and(|extension| extension == NOTE_EXTENSION)
            && let Ok(device) = fs::read_to_string(&path)
            && is_ours(&device)
        {
            is_stopped &= stop(Path::new(&device), &path);
        }
    }
    is_stopped
}

/// A note is forgotten only when its array is stopped.
fn stop(device: &Path, note: &Path) -> bool {
    let (options, paths) = stopping(device);
    let is_stopped = run("mdadm", &options, &paths).is_ok();
    let is_gone = is_stopped || !device.exists();
    if is_gone {
        let _ = fs::remove_file(note);
    }
    is_gone
}

/// A user that may write to the directory of a run must not make this program stop another array
/// than one that we would have made.
fn is_ours(device: &str) -> bool {
    let number = device.strip_prefix("/dev/md").and_then(|number| number.parse().ok());
    number.is_some_and(|number| NUMBERS.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_md_is_told_from_one_with_it() {
        let has_md = Path::new("/proc/mdstat").exists();
        let Err(error) = check() else { return assert!(has_md) };
        assert_eq!(error.to_string().contains("CONFIG_MD_RAID0"), !has_md, "{error}");
    }

    #[test]
    fn mdadm_is_told_what_is_meant() {
        let line = |options: &[&str], paths: &[PathBuf]| {
            let paths = paths.iter().map(|path| path.to_str().unwrap());
            options.iter().copied().chain(paths).collect::<Vec<&str>>().join(" ")
        };
        let array = Path::new("/dev/md127");
        let devices = ["/dev/loop3", "/dev/loop4"].map(PathBuf::from);
        let (options, paths) = building(array, &devices);
        assert_eq!(
            line(&options.each_ref().map(String::as_str), &paths),
            "--build --level=0 --chunk=512 --raid-devices=2 /dev/md127 /dev/loop3 /dev/loop4"
        );
        let (options, paths) = stopping(array);
        assert_eq!(line(&options, &paths), "--quiet --stop /dev/md127");
    }

    #[test]
    fn only_notes_of_arrays_of_ours_count() {
        assert!(is_ours("/dev/md127") && is_ours("/dev/md64"));
        for other in ["/dev/md0", "/dev/sda", "/dev/md127/x", "", "/dev/md-1", "/dev/md"] {
            assert!(!is_ours(other), "{other}");
        }
    }

    #[test]
    fn the_note_of_an_array_that_is_gone_is_forgotten_and_no_other_file() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        fs::create_dir(&run).unwrap();
        if Path::new("/dev/md99").exists() {
            return vellum_testing::missing::skip("this system has an array of that number");
        }
        fs::write(run.join("md99.array"), "/dev/md99").unwrap();
        fs::write(run.join("log"), "/dev/md99").unwrap();
        assert!(stop_all(dir.path()));
        assert!(!run.join("md99.array").exists() && run.join("log").exists());
    }
}
