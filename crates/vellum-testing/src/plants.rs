//! A user of a directory in which a program of another user works: the user renames what the
//! program makes there, at random moments, and puts links and pipes in its place.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use crate::{Numbers, Over, scratch};

/// The bytes of a file that no program may write to.
const UNTOUCHED: &[u8] = b"not for a program to write\n";
/// So many files there are, and as many names that nothing may be made at.
const FILES: u64 = 8;
/// A planted directory is kept for so many turns of the processor at most.
const TURNS_MAX: u64 = 200_000;

/// Files outside of the directory, to which plants lead.
#[derive(Debug)]
pub struct Outside(TempDir);

impl Outside {
    /// All of them, untouched.
    ///
    /// # Panics
    ///
    /// If they cannot be made.
    pub fn new() -> Outside {
        let dir = scratch();
        (0..FILES).for_each(|number| fs::write(file(dir.path(), number), UNTOUCHED).unwrap());
        Outside(dir)
    }

    /// Nothing was written or made there.
    ///
    /// # Panics
    ///
    /// If something was.
    #[track_caller]
    pub fn assert_untouched(&self) {
        let names = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let names: Vec<_> = names.collect();
        assert_eq!(names.len() as u64, FILES, "a plant was followed, and made one of {names:?}");
        for number in 0..FILES {
            let found = fs::read(file(self.0.path(), number)).unwrap();
            let len = found.len();
            assert!(found == UNTOUCHED, "a plant was followed: file {number} has {len} bytes");
        }
    }

    /// Puts something at `path`: a link to a file, a link to nothing, a pipe.
    pub fn plant(&self, path: &Path, numbers: &mut Numbers) {
        let number = numbers.below(FILES);
        // Where something is already, that stays.
        let _ = match numbers.below(5) {
            0 => mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o666), 0)
                .map_err(Into::into),
            1 => symlink(self.0.path().join(format!("made-{number}")), path),
            _ => symlink(file(self.0.path(), number), path),
        };
    }

    /// Runs `run` while directories that it makes in `dir`, and that begin with `vellum-`, are
    /// swapped for planted ones. Returns how often, with the answer.
    pub fn swapped<T>(
        &self,
        dir: &Path,
        names: &[&str],
        seed: u64,
        run: impl FnOnce() -> T,
    ) -> (T, u64) {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let swapper = Swapper { outside: self, dir, names, numbers: Numbers::new(seed) };
            let swapper = scope.spawn(|| swapper.swap_until(&is_over));
            let over = Over(&is_over);
            let answer = run();
            drop(over);
            (answer, swapper.join().unwrap())
        })
    }
}

impl Default for Outside {
    fn default() -> Outside {
        Outside::new()
    }
}

fn file(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("file-{number}"))
}

struct Swapper<'a> {
    outside: &'a Outside,
    dir: &'a Path,
    /// Names that the program may open, whether they are there already or not.
    names: &'a [&'a str],
    numbers: Numbers,
}

impl Swapper<'_> {
    fn swap_until(mut self, is_over: &AtomicBool) -> u64 {
        let mut swaps = 0;
        while !is_over.load(Ordering::SeqCst) {
            let made: Vec<PathBuf> = self.made();
            for path in made {
                swaps += u64::from(self.swap(&path).is_some());
            }
            self.spin();
        }
        // The directories that were swapped last are of no more use.
        for path in self.made() {
            let _ = fs::remove_dir_all(path);
        }
        swaps
    }

    fn made(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dir).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("vellum-") && !name.ends_with(".away")
        });
        ours.map(|entry| entry.path()).collect()
    }

    /// Renames a directory, has a planted one in its place for a while, and puts it back.
    fn swap(&mut self, path: &Path) -> Option<()> {
        self.spin();
        let away = path.with_extension("away");
        let planted = path.with_extension("planted-away");
        fs::create_dir(&planted).ok()?;
        self.mirror(path, &planted);
        let swapped = fs::rename(path, &away).and_then(|()| fs::rename(&planted, path));
        self.spin();
        let _ = fs::rename(path, &planted);
        // The program may have removed it, or made another one.
        let _ = fs::rename(&away, path);
        let _ = fs::remove_dir_all(&planted);
        swapped.ok()
    }

    /// The same names as in `from`, and those that the program may open next.
    fn mirror(&mut self, from: &Path, to: &Path) {
        for entry in fs::read_dir(from).into_iter().flatten().flatten() {
            let path = to.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => {
                    let _ = fs::create_dir(&path);
                    self.mirror(&entry.path(), &path);
                }
                _ => self.outside.plant(&path, &mut self.numbers),
            }
        }
        for name in self.names {
            self.outside.plant(&to.join(name), &mut self.numbers);
        }
    }

    /// Lets a random moment pass.
    fn spin(&mut self) {
        for _ in 0..self.numbers.below(TURNS_MAX) {
            std::hint::spin_loop();
        }
    }
}
