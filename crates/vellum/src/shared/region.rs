//! The control file as shared words.
//!
//! # Safety
//!
//! [`Words`] is made of atomics only and any bits are a valid value of it, so laying it over
//! memory that other processes write is sound as long as the memory is there and aligned. In a
//! region mapped for reading, only loads are allowed; a process that stores holds a participant's
//! place, which only a writable region gives. The model with weak memory (`weak`) maps nothing:
//! there a word is more than its bits.

use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::io::{self, Errno};

use super::lost;
use super::primitive::AtomicU64;
use super::words::Words;
use crate::format::control::{HEADER_LEN, ORIGIN_OFFSET};
use crate::format::identity::{IDENTITY_LEN, IDENTITY_OFFSET};
use crate::sys::{Map, guard};

/// Length of a control file.
pub(crate) const CONTROL_LEN: usize = HEADER_LEN + size_of::<Words>().next_multiple_of(4096);

/// Proof that the words are those of this file and these segments (`log::open::words_check`). In
/// the header's page, because it is no participant's.
#[repr(C)]
pub(crate) struct Origin {
    /// The file that the words were stored in, as `stat(2)` tells.
    pub(crate) device: AtomicU64,
    pub(crate) inode: AtomicU64,
    /// The tail when the last participant had left, or 0 while there are any. Stored last.
    pub(crate) closed_at: AtomicU64,
    /// CRC32C of the words before it.
    pub(crate) closed_check: AtomicU64,
}

/// Shared words and the memory they are in.
pub(crate) struct Region {
    /// Found once, because each append asks for them several times.
    words: NonNull<Words>,
    memory: Memory,
}

enum Memory {
    Mapped(Map),
    /// Of a box that the words lie in.
    Heap(NonNull<Heap>),
}

#[cfg(not(all(loom, test)))]
type Heap = [u64];
#[cfg(all(loom, test))]
type Heap = Words;

// SAFETY: the pointer leads to atomics that live as long as the region, wherever it is sent.
unsafe impl Send for Region {}
// SAFETY: the same; nothing but shared references is made of it.
unsafe impl Sync for Region {}

impl Region {
    /// Maps the words of a control file, to store into them if `writable`. Storage that would fail
    /// under a store is an error, as far as the kernel can tell.
    pub(crate) fn map(control: impl AsFd, writable: bool) -> io::Result<Region> {
        let map = Map::of_words(control, CONTROL_LEN, writable, abandon)?;
        if writable && map.try_populate(0, CONTROL_LEN) == Err(Errno::FAULT) {
            return Err(Errno::NOSPC);
        }
        // SAFETY: the mapping is a control file, and stays with the region.
        let words = NonNull::from(unsafe { words_in(map.as_ptr()) });
        Ok(Region { words, memory: Memory::Mapped(map) })
    }

    /// Whether storage has failed under the words: they are a copy that no other process sees.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        guard::has_losses() && self.was_lost()
    }

    #[cold]
    fn was_lost(&self) -> bool {
        match &self.memory {
            Memory::Mapped(map) => map.is_lost(),
            Memory::Heap(_) => false,
        }
    }

    /// Zeroed words without a file.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn on_heap() -> Region {
        let layout = std::alloc::Layout::new::<Words>();
        // The allocator has so many zeros at hand, and stores zeros itself where it is to align
        // them: most of the words are never looked at.
        let memory = vec![0_u64; (layout.size() + layout.align()) / size_of::<u64>()];
        let memory = NonNull::from(Box::leak(memory.into_boxed_slice()));
        let start = memory.cast::<u8>();
        // SAFETY: the box is longer than the words by more than it takes to align them. All zeros
        // is a valid value of every atomic.
        let words = unsafe { start.add(start.align_offset(layout.align())) };
        Region { words: words.cast(), memory: Memory::Heap(memory) }
    }

    /// The same, of the model with weak memory.
    #[cfg(all(loom, test))]
    pub(crate) fn on_heap() -> Region {
        let words = NonNull::from(Box::leak(Box::default()));
        Region { words, memory: Memory::Heap(words) }
    }

    /// Where the words are from; `None` for words without a file.
    pub(crate) fn origin(&self) -> Option<&Origin> {
        const { assert!(ORIGIN_OFFSET + size_of::<Origin>() <= HEADER_LEN) };
        // SAFETY: as in `words`: it is in the page before them, at a multiple of 8.
        self.header().map(|header| unsafe { header.add(ORIGIN_OFFSET).cast().as_ref() })
    }

    /// The copy of the log's identity in the control file (`log::state::identity`); `None` for
    /// words without a file.
    pub(crate) fn identity_words(&self) -> Option<&[AtomicU64; IDENTITY_LEN / 8]> {
        const { assert!(IDENTITY_OFFSET >= ORIGIN_OFFSET + size_of::<Origin>()) };
        const { assert!(IDENTITY_OFFSET + IDENTITY_LEN <= HEADER_LEN) };
        // SAFETY: as in `origin`: it is in the page before the words, at a multiple of 8.
        self.header().map(|header| unsafe { header.add(IDENTITY_OFFSET).cast().as_ref() })
    }

    /// Where the page before the words begins.
    fn header(&self) -> Option<NonNull<u8>> {
        match &self.memory {
            Memory::Mapped(map) => Some(map.as_ptr()),
            Memory::Heap(_) => None,
        }
    }

    #[inline]
    pub(crate) fn words(&self) -> &Words {
        // SAFETY: they are in memory of the region, which is there until it is dropped.
        unsafe { self.words.as_ref() }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Memory::Heap(memory) = self.memory {
            // SAFETY: it was made of a box, and no reference to the words in it is left.
            drop(unsafe { Box::from_raw(memory.as_ptr()) });
        }
    }
}

/// The words in the memory of a control file.
///
/// # Safety
///
/// The memory is page aligned, has [`CONTROL_LEN`] bytes, and is there for as long as the words are
/// used. Any bits are valid words.
unsafe fn words_in<'a>(memory: NonNull<u8>) -> &'a Words {
    // SAFETY: the caller's.
    unsafe { memory.add(HEADER_LEN).cast().as_ref() }
}

/// Prepares the copy that takes the place of a control file that was lost.
fn abandon(copy: NonNull<u8>) {
    // SAFETY: a copy is as long as the mapping, and no other thread has it yet.
    lost::abandon(unsafe { words_in(copy) });
}
