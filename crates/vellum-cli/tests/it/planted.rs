//! Things of every kind at each name of a log, put there by the owner of the log or by its group,
//! and every command line of root on it. Root's commands end soon, by no signal, in little memory;
//! nothing outside of the log is changed or made, and nothing of root's is passed on.
//!
//! There are twenty thousand cases, of which a run takes some: `VELLUM_PLANTED=100000` takes all.

use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::process::{Resource, Rlimit, setrlimit};
use tempfile::TempDir;
use vellum::{Fill, Layout, Log, Lsn, Tuning};
use vellum_testing::{Numbers, is_root, scratch, until};

use crate::support::vellum;

/// The user that owns a log, or is in its group, and has put things there.
const OTHER: u32 = 12345;
const SECRET: &[u8] = b"a secret of root\n";
/// Memory that a command may have, the mapped files among it.
const MEMORY_MAX: u64 = 1 << 30;
/// No answer of a command is longer.
const OUTPUT_MAX: u64 = 1 << 20;
/// Cases that a run takes, unless it is told how many.
const TAKEN: usize = 200;

/// A log: how it is made, and whether it is root's and shared with the group or the other's own.
#[derive(Clone, Copy, Debug)]
struct Shape {
    layout: Layout,
    fill: Fill,
    is_shared: bool,
}

const SHAPES: [Shape; 5] = [
    Shape { layout: Layout::Text, fill: Fill::Pwrite, is_shared: true },
    Shape { layout: Layout::Framed, fill: Fill::Mapped, is_shared: true },
    Shape { layout: Layout::Text, fill: Fill::Mapped, is_shared: false },
    Shape { layout: Layout::Framed, fill: Fill::Mapped, is_shared: false },
    Shape { layout: Layout::Framed, fill: Fill::Staged, is_shared: false },
];

/// Names of files; the first two are those of the oldest and the newest segment.
const NAMES: [&str; 18] = [
    "oldest",
    "newest",
    "lock",
    "control",
    "geometry",
    "cursors",
    "current",
    "commit-path",
    "restoring",
    "segment.new",
    "control.new",
    "cursors.new",
    "commit-path.new",
    "current.new",
    "compressed.new",
    "0000000000001000.spare",
    "new.stage",
    "0000000000001000.stage",
];

/// The things that are put there.
#[derive(Clone, Copy, Debug)]
enum Thing {
    Link,
    DanglingLink,
    LinkToDevice,
    HardLink,
    Pipe,
    Device,
    Socket,
    Directory,
    Giant,
    Junk,
    Empty,
    FileOfRoot,
}

const THINGS: [Thing; 12] = [
    Thing::Link,
    Thing::DanglingLink,
    Thing::LinkToDevice,
    Thing::HardLink,
    Thing::Pipe,
    Thing::Device,
    Thing::Socket,
    Thing::Directory,
    Thing::Giant,
    Thing::Junk,
    Thing::Empty,
    Thing::FileOfRoot,
];

/// Command lines; LOG is the log, and NEW a path where nothing is.
const COMMANDS: [&str; 19] = [
    "append LOG",
    "append --commit every LOG",
    "append --compress LOG",
    "append --retain-files 1 LOG",
    "cat LOG",
    "tail LOG",
    "tail --cursor one LOG",
    "stat LOG",
    "stat --json LOG",
    "verify LOG",
    "prepare --measure never --segments 2 LOG",
    "prepare --release LOG",
    "checkpoint LOG 4096",
    "cursor LOG",
    "cursor LOG one --set end",
    "rotate LOG",
    "trim --before 8192 LOG",
    "truncate LOG 8192",
    "repair LOG NEW",
];

struct Case {
    shape: Shape,
    name: &'static str,
    thing: Thing,
    command: &'static str,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for shape in SHAPES {
        for name in NAMES {
            for thing in THINGS {
                let case = |command| Case { shape, name, thing, command };
                cases.extend(COMMANDS.into_iter().map(case));
            }
        }
    }
    cases
}

/// The place of a case: a log, and files outside of it that no command may touch.
struct Place {
    dir: TempDir,
}

impl Place {
    fn log(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    fn victim(&self) -> PathBuf {
        self.dir.path().join("victim")
    }

    fn make(shape: Shape) -> Place {
        let place = Place { dir: scratch() };
        private_file(&place.victim());
        let log = place.log();
        fs::create_dir(&log).unwrap();
        let (owner, mode) = if shape.is_shared { (0, 0o2770) } else { (OTHER, 0o755) };
        chown(&log, Some(owner), Some(OTHER)).unwrap();
        fs::set_permissions(&log, Permissions::from_mode(mode)).unwrap();
        let Shape { layout, fill, .. } = shape;
        let options = vellum::internal::options(layout)
            .tuning(Tuning::new().fill(fill).segment_capacity_bytes(4096));
        fill_log(&options.open(&log).unwrap());
        if shape.is_shared {
            let files = fs::read_dir(&log).unwrap().map(Result::unwrap);
            let files = files.filter(|entry| entry.file_type().unwrap().is_file());
            for file in files {
                fs::set_permissions(file.path(), Permissions::from_mode(0o660)).unwrap();
            }
        }
        place
    }

    /// The path of a name.
    fn path(&self, name: &str) -> PathBuf {
        let files = fs::read_dir(self.log()).unwrap().map(|entry| entry.unwrap().path());
        let is_segment =
            |path: &PathBuf| path.extension().is_some_and(|e| e == "seg" || e == "log");
        let segments = files.filter(is_segment);
        match name {
            "oldest" => segments.min().unwrap(),
            "newest" => segments.max().unwrap(),
            name => self.log().join(name),
        }
    }
}

fn fill_log(log: &Log) {
    for _ in 0..3 {
        log.append(&[&[b'x'; 3000][..], b"\n"].concat()).unwrap();
    }
    log.cursor("one", Lsn::ZERO).unwrap();
    log.sync().unwrap();
}

fn private_file(path: &Path) {
    fs::write(path, SECRET.repeat(500)).unwrap();
    // The directory may have given it another group.
    chown(path, Some(0), Some(0)).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

/// Puts a thing at a path, instead of the file that is there.
fn plant(place: &Place, thing: Thing, path: &Path) {
    let _ = fs::remove_file(path);
    let node = |kind, device| mknodat(CWD, path, kind, Mode::from_raw_mode(0o666), device).unwrap();
    match thing {
        Thing::Link => symlink(place.victim(), path).unwrap(),
        Thing::DanglingLink => symlink(place.dir.path().join("nothing"), path).unwrap(),
        Thing::LinkToDevice => symlink("/dev/zero", path).unwrap(),
        Thing::HardLink => fs::hard_link(place.victim(), path).unwrap(),
        Thing::Pipe => node(FileType::Fifo, 0),
        Thing::Device => node(FileType::CharacterDevice, makedev(1, 5)),
        Thing::Socket => node(FileType::Socket, 0),
        Thing::Directory => fs::create_dir(path).unwrap(),
        Thing::Giant => File::create(path).unwrap().set_len(4 << 40).unwrap(),
        Thing::Junk => fs::write(path, b"junk\n\0\xff".repeat(3000)).unwrap(),
        Thing::Empty => fs::write(path, "").unwrap(),
        Thing::FileOfRoot => return private_file(path),
    }
    if matches!(thing, Thing::Giant | Thing::Junk | Thing::Empty | Thing::Directory) {
        chown(path, Some(OTHER), Some(OTHER)).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o770)).unwrap();
    }
}

/// Ends a command that does not end by itself.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command line; returns its output, and how it ended.
fn run(place: &Place, line: &str) -> (Vec<u8>, ExitStatus) {
    let mut command = vellum();
    for word in line.split(' ') {
        match word {
            "LOG" => command.arg(place.log()),
            "NEW" => command.arg(place.dir.path().join("new")),
            word => command.arg(word),
        };
    }
    let input = place.dir.path().join("input");
    fs::write(&input, "a line\n").unwrap();
    command.stdin(File::open(input).unwrap()).stdout(Stdio::piped()).stderr(Stdio::null());
    // SAFETY: between fork and exec it makes a system call alone.
    unsafe {
        command.pre_exec(|| {
            let most = Some(MEMORY_MAX);
            setrlimit(Resource::As, Rlimit { current: most, maximum: most })?;
            Ok(())
        });
    }
    let mut child = Ended(command.spawn().unwrap());
    let output = child.0.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        output.take(OUTPUT_MAX).read_to_end(&mut bytes).map(|_| bytes)
    });
    let status = until(&format!("`vellum {line}` ends"), || child.0.try_wait().unwrap());
    (reader.join().unwrap().unwrap(), status)
}

/// Asserts that a private file of root's is as it was.
fn assert_untouched(file: &File, what: &str) {
    let mut bytes = vec![0; SECRET.len() * 501];
    let len = file.read_at(&mut bytes, 0).unwrap();
    assert!(bytes[..len] == SECRET.repeat(500), "{what}: the private file was written");
    let found = file.metadata().unwrap();
    let rights = (found.mode() & 0o777, found.uid(), found.gid());
    assert_eq!(rights, (0o600, 0, 0), "{what}: the private file was given away");
}

/// Asserts that no file that others can read holds the secret.
fn assert_kept(place: &Place, what: &str) {
    for folder in [place.log(), place.dir.path().join("new")] {
        for entry in fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
            let found = entry.metadata().unwrap();
            let is_private = found.uid() == 0 && found.mode() & 0o077 == 0;
            if !found.is_file() || is_private || found.len() > OUTPUT_MAX {
                continue;
            }
            let bytes = fs::read(entry.path()).unwrap();
            let text = zstd::decode_all(&*bytes).unwrap_or(bytes);
            let holds = text.windows(SECRET.len()).any(|window| window == SECRET);
            assert!(!holds, "{what}: {} holds the secret", entry.path().display());
        }
    }
}

fn try_case(case: &Case) {
    let Case { shape, name, thing, command } = case;
    let what = format!("{shape:?}, {thing:?} as {name}, `{command}`");
    let place = Place::make(*shape);
    let path = place.path(name);
    plant(&place, *thing, &path);
    let victim = File::open(place.victim()).unwrap();
    let planted = matches!(thing, Thing::FileOfRoot).then(|| File::open(&path).unwrap());
    let (output, status) = run(&place, command);
    assert_eq!(status.signal(), None, "{what}");
    assert!(output.len() < OUTPUT_MAX as usize, "{what}: it prints without end");
    assert_untouched(&victim, &what);
    planted.iter().for_each(|planted| assert_untouched(planted, &what));
    assert!(fs::symlink_metadata(place.dir.path().join("nothing")).is_err(), "{what}");
    assert_kept(&place, &what);
}

#[test]
fn nothing_that_somebody_puts_into_a_log_leads_root_astray() {
    if !is_root("nothing_that_somebody_puts_into_a_log") {
        return;
    }
    let taken = std::env::var("VELLUM_PLANTED").map_or(TAKEN, |count| count.parse().unwrap());
    let (mut all, mut numbers) = (cases(), Numbers::new(33));
    let taken = taken.min(all.len());
    let take = |_| all.swap_remove(numbers.below(all.len() as u64) as usize);
    let cases: Vec<Case> = (0..taken).map(take).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let take = || next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                while let Some(case) = cases.get(take()) {
                    try_case(case);
                }
            });
        }
    });
}
