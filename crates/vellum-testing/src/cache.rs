//! The part of files that the page cache holds.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr;

/// The files of at least this length in a directory, oldest name first, and how many of their
/// pages are in the page cache.
///
/// # Panics
///
/// If they cannot be looked at.
pub fn cached_pages(dir: &Path, len_min: u64) -> Vec<(PathBuf, usize)> {
    let files = files(dir, len_min);
    files.into_iter().map(|path| (path.clone(), pages(&File::open(path).unwrap()))).collect()
}

/// Brings those files to the device, and has the page cache forget them.
///
/// # Panics
///
/// If they cannot be opened.
pub fn forget(dir: &Path, len_min: u64) {
    for path in files(dir, len_min) {
        let file = File::open(path).unwrap();
        file.sync_all().unwrap();
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    }
}

fn files(dir: &Path, len_min: u64) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let is_one = |path: &PathBuf| path.metadata().is_ok_and(|file| file.len() >= len_min);
    let mut files: Vec<PathBuf> = entries.filter(is_one).collect();
    files.sort();
    files
}

fn pages(file: &File) -> usize {
    const PAGE: usize = 4096;
    let len = file.metadata().unwrap().len() as usize;
    let mut found = vec![0_u8; len.div_ceil(PAGE)];
    // SAFETY: the kernel chooses an address where nothing is.
    let at = unsafe {
        let descriptor = file.as_raw_fd();
        libc::mmap(ptr::null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, descriptor, 0)
    };
    assert_ne!(at, libc::MAP_FAILED);
    // SAFETY: that is the mapping just made, and there is a byte for each page of it.
    let is_told = unsafe { libc::mincore(at, len, found.as_mut_ptr()) } == 0;
    // SAFETY: nothing refers to the mapping.
    unsafe { libc::munmap(at, len) };
    assert!(is_told);
    found.iter().filter(|page| **page & 1 == 1).count()
}
