//! Small filesystems that can be filled up.

use std::io::Write;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{is_root, scratch, scratch_root, skip};

/// A mounted filesystem, unmounted when dropped.
#[derive(Debug)]
pub struct Mount {
    at: PathBuf,
    dir: tempfile::TempDir,
}

impl Mount {
    /// A tmpfs of `mib` MiB, or `None` where it cannot be had, which is said.
    pub fn tmpfs(test: &str, mib: u32) -> Option<Mount> {
        Mount::new(test, |_, at| {
            let size = format!("size={mib}m");
            run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", text(at)])
        })
    }

    /// An ext4 of `mib` MiB on a loop device.
    pub fn ext4(test: &str, mib: u64) -> Option<Mount> {
        Mount::image(test, mib, |image| run("mkfs.ext4", &["-q", "-F", "-m", "0", text(image)]))
    }

    /// The same with options of the mount.
    pub fn ext4_with(test: &str, mib: u64, options: &str) -> Option<Mount> {
        Mount::new(test, |dir, at| {
            let image = dir.join("image");
            std::fs::File::create(&image).unwrap().set_len(mib << 20).unwrap();
            run("mkfs.ext4", &["-q", "-F", "-m", "0", text(&image)])?;
            run("mount", &["-o", &format!("loop,{options}"), text(&image), text(at)])
        })
    }

    /// An ext4 that believes to have `mib` MiB, on a loop device over a sparse file at `image`.
    pub fn ext4_on(test: &str, image: &Path, mib: u64) -> Option<Mount> {
        Mount::new(test, |_, at| {
            std::fs::File::create(image).unwrap().set_len(mib << 20).unwrap();
            run("mkfs.ext4", &["-qF", "-m", "0", "-b", "4096", "-O", "^has_journal", text(image)])?;
            run("mount", &["-o", "loop", text(image), text(at)])
        })
    }

    /// An XFS on a loop device, of 300 MiB, which is the least it takes.
    pub fn xfs(test: &str) -> Option<Mount> {
        Mount::image(test, 300, |image| run("mkfs.xfs", &["-q", "-f", text(image)]))
    }

    /// A btrfs of `mib` MiB, at least 128, on a loop device.
    pub fn btrfs(test: &str, mib: u64) -> Option<Mount> {
        Mount::image(test, mib, |image| run("mkfs.btrfs", &["-q", "-f", text(image)]))
    }

    fn image(
        test: &str,
        mib: u64,
        make: impl FnOnce(&Path) -> Result<(), String>,
    ) -> Option<Mount> {
        Mount::new(test, |dir, at| {
            let image = dir.join("image");
            std::fs::File::create(&image).unwrap().set_len(mib << 20).unwrap();
            make(&image)?;
            run("mount", &["-o", "loop", text(&image), text(at)])
        })
    }

    /// An overlay over a directory of the build's filesystem.
    pub fn overlay(test: &str) -> Option<Mount> {
        Mount::overlay_over(test, |_| ())
    }

    /// The same with more options.
    pub fn overlay_with(test: &str, options: &str) -> Option<Mount> {
        Mount::overlay_at(test, None, options, |_| ())
    }

    /// An overlay over this filesystem.
    pub fn overlaid(&self, test: &str) -> Option<Mount> {
        Mount::overlay_at(test, Some(&self.at), "", |_| ())
    }

    /// An overlay whose lower layer `fill` has put files into.
    pub fn overlay_over(test: &str, fill: impl FnOnce(&Path)) -> Option<Mount> {
        Mount::overlay_at(test, None, "", fill)
    }

    fn overlay_at(
        test: &str,
        place: Option<&Path>,
        more: &str,
        fill: impl FnOnce(&Path),
    ) -> Option<Mount> {
        Mount::new(test, |dir, at| {
            let dir = place.unwrap_or(dir);
            let [lower, upper, work] = ["lower", "upper", "work"].map(|name| {
                let path = dir.join(name);
                std::fs::create_dir(&path).unwrap();
                text(&path).to_string()
            });
            fill(Path::new(&lower));
            let options = format!("lowerdir={lower},upperdir={upper},workdir={work}{more}");
            run("mount", &["-t", "overlay", "-o", &options, "overlay", text(at)])
        })
    }

    /// A FUSE filesystem that passes everything on to a directory of the build's filesystem.
    pub fn fuse(test: &str) -> Option<Mount> {
        Mount::new(test, |dir, at| {
            let below = dir.join("below");
            std::fs::create_dir(&below).unwrap();
            run("bindfs", &[text(&below), text(at)])
        })
    }

    /// The same by a server that refuses direct writes when they are made, and not before.
    pub fn mergerfs(test: &str, options: &str) -> Option<Mount> {
        Mount::new(test, |dir, at| {
            let below = dir.join("below");
            std::fs::create_dir(&below).unwrap();
            run("mergerfs", &["-o", options, text(&below), text(at)])
        })
    }

    /// Has the filesystem of a loop device stop at once, as after an error of its journal: data
    /// that is not on the device is lost, and everything fails until it is mounted again.
    pub fn shut_down(&self) {
        const GOING_DOWN: libc::c_ulong = 0x8004_587d;
        const WITHOUT_LOG_FLUSH: u32 = 2;
        let root = std::fs::File::open(&self.at).unwrap();
        let flags = WITHOUT_LOG_FLUSH;
        // SAFETY: the call reads a `u32`, which is `flags`.
        let done = unsafe { libc::ioctl(root.as_raw_fd(), GOING_DOWN as _, &raw const flags) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }

    /// Has an ext4 abort its journal, as after an error of the device.
    pub fn abort_journal(&self) {
        run("mount", &["-o", "remount,abort", text(&self.at)]).unwrap();
    }

    /// Has the filesystem of a loop device stop at once, as in a power cut, and mounts it again.
    pub fn cut_power(&self) {
        self.shut_down();
        self.mount_again();
    }

    /// Unmounts the filesystem of a loop device, which no test uses any more, and mounts it again.
    pub fn mount_again(&self) {
        // A program that another test starts has copies of all descriptors until it is executed.
        crate::until("nobody uses the filesystem", || run("umount", &[text(&self.at)]).ok());
        let image = self.dir.path().join("image");
        wait_until_let_go(&image);
        run("mount", &["-o", "loop", text(&image), text(&self.at)]).unwrap();
    }

    /// Puts this process into a mount namespace of its own, without what tests have mounted: that
    /// could not be unmounted elsewhere otherwise. False where the kernel does not let it.
    pub fn alone() -> bool {
        let (flags, null) = (libc::MS_REC | libc::MS_PRIVATE, std::ptr::null());
        // SAFETY: the calls change this process alone, and the strings end with NUL.
        let is_alone = unsafe {
            libc::unshare(libc::CLONE_NEWNS) == 0
                && libc::mount(c"none".as_ptr(), c"/".as_ptr(), null, flags, null.cast()) == 0
        };
        if is_alone {
            Mount::forget_all();
        }
        is_alone
    }

    fn forget_all() {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        let root = scratch_root();
        for place in places.filter(|place| Path::new(place).starts_with(&root)) {
            let _ = run("umount", &["-l", place]);
        }
    }

    fn new(test: &str, make: impl FnOnce(&Path, &Path) -> Result<(), String>) -> Option<Mount> {
        if !is_root(test) {
            return None;
        }
        let dir = scratch();
        let at = dir.path().join("mount");
        std::fs::create_dir(&at).unwrap();
        match make(dir.path(), &at) {
            Ok(()) => Some(Mount { at, dir }),
            Err(why) => {
                skip(test, &format!("no filesystem can be mounted here: {why}"));
                None
            }
        }
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = run("umount", &["-l", text(&self.at)]);
    }
}

/// An ext4 that believes in more blocks than its disk has: writes fail once that is full.
#[derive(Debug)]
pub struct Thin {
    // Unmounted before its disk.
    mount: Option<Mount>,
    disk: Mount,
}

impl Thin {
    /// One of 64 MiB on a disk of 24, or `None` where it cannot be had, which is said.
    pub fn new(test: &str) -> Option<Thin> {
        let disk = Mount::tmpfs(test, 24)?;
        let mount = Mount::ext4_on(test, &disk.path().join("image"), 64)?;
        Some(Thin { mount: Some(mount), disk })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.mount.as_ref().unwrap().path()
    }

    fn image(&self) -> PathBuf {
        self.disk.path().join("image")
    }

    /// From now on, writes fail where nothing was written before.
    pub fn fill(&self) {
        // Not `sync`: it would write back what other tests want to fail later.
        let mount = std::fs::File::open(self.path()).unwrap();
        // SAFETY: the call takes no memory.
        assert_eq!(unsafe { libc::syncfs(mount.as_raw_fd()) }, 0);
        self.hog("hog");
    }

    /// Ends that.
    pub fn make_room(&self) {
        std::fs::remove_file(self.disk.path().join("hog")).unwrap();
    }

    /// Takes all the space there is.
    fn hog(&self, name: &str) {
        let mut hog = std::fs::File::create(self.disk.path().join(name)).unwrap();
        while hog.write(&[1; 4096]).is_ok() {}
    }

    /// From now on, writes to what `file` has stored in `range` fail and change nothing. It starts
    /// at a multiple of 4096: a loop device takes a write for whole that has found room for its
    /// first bytes.
    pub fn fail_writes(&self, file: &Path, range: Range<u64>) -> Failing<'_> {
        assert_eq!(range.start % 4096, 0);
        // Until it is mended the device has zeros there: no program shall see that.
        std::fs::read(file).unwrap();
        self.hog("hog");
        // A range without a block on the disk needs one that is not there.
        let image = std::fs::File::options().read(true).write(true).open(self.image()).unwrap();
        let flags = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let mut stored = Vec::new();
        for (start, len) in extents(file, range) {
            let mut bytes = vec![0; len as usize];
            image.read_exact_at(&mut bytes, start).unwrap();
            stored.push((start, bytes));
            let (start, len) = (start as i64, len as i64);
            // SAFETY: the call takes no memory.
            let done = unsafe { libc::fallocate(image.as_raw_fd(), flags, start, len) };
            assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        }
        self.hog("rest");
        Failing { thin: self, stored }
    }

    /// Unmounts it and mounts it again: the page cache is empty.
    pub fn mount_again(&mut self) {
        self.mount = None;
        let image = self.image();
        wait_until_let_go(&image);
        self.mount = Mount::new("mount it again", |_, at| {
            run("mount", &["-o", "loop", text(&image), text(at)])
        });
    }
}

/// A [`Thin`] filesystem whose writes fail.
#[derive(Debug)]
pub struct Failing<'a> {
    thin: &'a Thin,
    /// The stored bytes where writes fail.
    stored: Vec<(u64, Vec<u8>)>,
}

impl Failing<'_> {
    /// Ends that.
    pub fn mend(self) {
        for name in ["hog", "rest"] {
            std::fs::remove_file(self.thin.disk.path().join(name)).unwrap();
        }
        let image = std::fs::File::options().write(true).open(self.thin.image()).unwrap();
        for (start, bytes) in self.stored {
            image.write_all_at(&bytes, start).unwrap();
        }
    }
}

/// Starts and lengths of a file's extents on its device in `range`.
fn extents(file: &Path, range: Range<u64>) -> Vec<(u64, u64)> {
    const FIEMAP: libc::c_ulong = 0xc020_660b;
    const EXTENTS_MAX: usize = 64;
    // The request: start, length, flags, extents found, extents that there is room for, 0; then 56
    // bytes for each: offset, place on the device, length.
    let mut request = vec![0u64; 4 + 7 * EXTENTS_MAX];
    (request[0], request[1]) = (range.start, range.end - range.start);
    request[3] = EXTENTS_MAX as u64;
    let file = std::fs::File::open(file).unwrap();
    // SAFETY: the kernel writes no more extents than the request says there is room for.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP as _, request.as_mut_ptr()) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    let found = (request[2] >> 32) as usize;
    let extents = request[4..].chunks(7).take(found).map(|extent| {
        let (start, end) = (extent[0].max(range.start), (extent[0] + extent[2]).min(range.end));
        (extent[1] + start - extent[0], end - start)
    });
    extents.collect()
}

/// Waits until no loop device uses `image`. Mounted before the last one releases the device, it
/// would be the one that has stopped.
fn wait_until_let_go(image: &Path) {
    crate::until("other mount namespaces let go of the filesystem", || {
        let devices = Command::new("losetup").arg("-j").arg(image).output().unwrap();
        devices.stdout.is_empty().then_some(())
    });
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs a program that is to succeed, or returns its output.
fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
