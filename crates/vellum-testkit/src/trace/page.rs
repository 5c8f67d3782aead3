//! Memory that processes share: a page of words and text, and a look at a file that others map.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a [`SharedPage`]; the rest of it is text.
const WORD_COUNT: usize = 64;
const PAGE_LEN: usize = 4096;

/// A page that children share with the process that made it.
///
/// The parent sees the stores of a child here even if the child dies: by them a victim reports
/// acknowledged records.
#[derive(Debug)]
pub struct SharedPage {
    start: NonNull<AtomicU64>,
}

impl SharedPage {
    /// A page of zeros.
    pub fn new() -> io::Result<SharedPage> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { libc::mmap(ptr::null_mut(), PAGE_LEN, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(SharedPage { start })
    }

    fn all(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page aligned, as long as this many words, lives as long as
        // `self`, and any bits are valid atomics.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), PAGE_LEN / 8) }
    }

    /// The word with this number.
    pub fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < WORD_COUNT, "a page has {WORD_COUNT} words");
        &self.all()[index]
    }

    /// Empties words and text.
    pub fn clear(&self) {
        self.all().iter().for_each(|word| word.store(0, Ordering::SeqCst));
    }

    /// Leaves a message, cut where there is no more room.
    pub fn set_text(&self, text: &str) {
        let room = &self.all()[WORD_COUNT..];
        let bytes = &text.as_bytes()[..text.len().min((room.len() - 1) * 8)];
        for (word, piece) in room[1..].iter().zip(bytes.chunks(8)) {
            let mut value = [0; 8];
            value[..piece.len()].copy_from_slice(piece);
            word.store(u64::from_le_bytes(value), Ordering::SeqCst);
        }
        room[0].store(bytes.len() as u64, Ordering::SeqCst);
    }

    /// The message that was left.
    pub fn text(&self) -> String {
        let room = &self.all()[WORD_COUNT..];
        let len = (room[0].load(Ordering::SeqCst) as usize).min((room.len() - 1) * 8);
        let words = room[1..].iter();
        let bytes: Vec<u8> =
            words.flat_map(|word| word.load(Ordering::SeqCst).to_le_bytes()).take(len).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and every borrow of it borrows `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), PAGE_LEN) };
    }
}

/// A look at a file that other processes have mapped.
#[derive(Debug)]
pub struct FileWatch {
    start: NonNull<AtomicU64>,
    /// The words as they were seen last.
    seen: Vec<u64>,
}

impl FileWatch {
    /// Maps a file whose length stays as it is while it is watched.
    pub fn new(path: &Path) -> io::Result<FileWatch> {
        let file = File::open(path)?;
        let count = file.metadata()?.len() as usize / 8;
        let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
        let fd = file.as_raw_fd();
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { libc::mmap(ptr::null_mut(), count * 8, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut watch = FileWatch { start, seen: vec![0; count] };
        watch.has_changed();
        Ok(watch)
    }

    /// Whether a word has changed since the last look.
    pub fn has_changed(&mut self) -> bool {
        let count = self.seen.len();
        // SAFETY: the mapping is page aligned and this long, lives as long as `self`, and any bits
        // are valid atomics, which are only loaded.
        let words = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), count) };
        let mut has_changed = false;
        for (word, seen) in words.iter().zip(&mut self.seen) {
            let now = word.load(Ordering::Relaxed);
            has_changed |= now != *seen;
            *seen = now;
        }
        has_changed
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and every borrow of it borrows `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.seen.len() * 8) };
    }
}
