//! Helpers of the tests of several crates: mounted filesystems, second processes, random numbers,
//! and patience.

pub mod cache;
pub mod child;
pub mod counts;
pub mod fork;
pub mod kernel;
pub mod missing;
pub mod mount;
pub mod plants;
pub mod syncs;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Beyond this a test that waits is taken to hang.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Sets the flag that ends other threads, however the one that has this ends. A scope waits for its
/// threads, so one that panics without it would hang there, and its message would not be seen.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The directory for scratch files, on the filesystem of the build: cargo's own for tests.
///
/// # Panics
///
/// If it cannot be made.
pub fn scratch_root() -> PathBuf {
    // The test is `target/debug/deps/NAME`.
    let test = std::env::current_exe().unwrap();
    let root = test.ancestors().nth(3).expect("the test is in a target directory").join("tmp");
    std::fs::create_dir_all(&root).unwrap();
    root
}

/// A directory on the filesystem of the build.
///
/// # Panics
///
/// If it cannot be made.
pub fn scratch() -> TempDir {
    scratch_in(&scratch_root()).unwrap()
}

/// A directory for one test. `VELLUM_KEEP=1` keeps it, and prints its path.
fn scratch_in(root: &Path) -> io::Result<TempDir> {
    let is_kept = std::env::var_os("VELLUM_KEEP").is_some_and(|value| value == "1");
    let dir = tempfile::Builder::new().disable_cleanup(is_kept).tempdir_in(root)?;
    if is_kept {
        println!("kept: {}", dir.path().display());
    }
    Ok(dir)
}

/// A directory in memory, where there is one.
///
/// # Panics
///
/// If none can be made.
pub fn memory_scratch() -> TempDir {
    scratch_in(Path::new("/dev/shm")).unwrap_or_else(|_| scratch())
}

/// A generator of numbers that a seed repeats.
#[derive(Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// The next number, brought below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Repeats `attempt` until it answers or patience ends: for effects of another process, which come
/// in its own time.
///
/// # Panics
///
/// When patience ends.
#[track_caller]
pub fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = attempt() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether the test runs as root; says so where it does not.
#[track_caller]
pub fn is_root(test: &str) -> bool {
    let is_root = rustix::process::getuid().is_root();
    if !is_root {
        skip(test, "it needs root");
    }
    is_root
}

/// Says why a test did nothing, or fails where nothing may be skipped.
#[track_caller]
pub fn skip(test: &str, why: &str) {
    missing::skip(format_args!("{test}: {why}"));
}
