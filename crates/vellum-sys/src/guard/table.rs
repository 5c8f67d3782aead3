//! The mappings that the handler watches over: a list that it can read at any moment.
//!
//! The list only grows, and its entries are used again. A fault is at an address of a mapping that
//! is in use, so the entry for it does not change meanwhile; of any other entry the handler may
//! read a start and an end that do not belong together, which it notices by reading the start
//! again.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use super::OnLoss;

/// The entry is unused.
const FREE: usize = 0;
/// A thread is about to use it.
const TAKEN: usize = 1;
/// Entries that are made at a time.
const ENTRIES: usize = 64;

/// A mapping that is in place, or an entry for one.
#[derive(Debug)]
pub(super) struct Entry {
    start: AtomicUsize,
    end: AtomicUsize,
    is_lost: AtomicBool,
    /// An [`OnLoss`], or null.
    on_loss: AtomicPtr<()>,
}

/// Whether any mapping of this process was ever lost: a writer checks this first, with one load
/// that leads nowhere else.
static HAS_LOSSES: AtomicBool = AtomicBool::new(false);

#[inline]
pub(super) fn has_losses() -> bool {
    HAS_LOSSES.load(Ordering::Relaxed)
}

struct Chunk {
    entries: [Entry; ENTRIES],
    next: AtomicPtr<Chunk>,
}

static FIRST: Chunk = Chunk::new();

impl Chunk {
    const fn new() -> Chunk {
        Chunk { entries: [const { Entry::new() }; ENTRIES], next: AtomicPtr::new(ptr::null_mut()) }
    }

    fn next(&self) -> Option<&'static Chunk> {
        // SAFETY: a chunk that is in the list is never freed.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    /// The next chunk, made if there is none.
    fn next_or_new(&self) -> &'static Chunk {
        if let Some(next) = self.next() {
            return next;
        }
        let made = Box::into_raw(Box::new(Chunk::new()));
        let (order, failed) = (Ordering::AcqRel, Ordering::Acquire);
        match self.next.compare_exchange(ptr::null_mut(), made, order, failed) {
            // SAFETY: made above, and in the list for good.
            Ok(_) => unsafe { &*made },
            Err(others) => {
                // SAFETY: made above, and not yet visible to other threads; `others` is in the list
                // for good.
                unsafe {
                    drop(Box::from_raw(made));
                    &*others
                }
            }
        }
    }
}

impl Entry {
    const fn new() -> Entry {
        Entry {
            start: AtomicUsize::new(FREE),
            end: AtomicUsize::new(0),
            is_lost: AtomicBool::new(false),
            on_loss: AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[cold]
    pub(super) fn was_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }

    /// Notes the loss; returns whether it was noted before.
    pub(super) fn lose(&self) -> bool {
        let was_lost = self.is_lost.swap(true, Ordering::SeqCst);
        HAS_LOSSES.store(true, Ordering::SeqCst);
        was_lost
    }

    pub(super) fn start(&self) -> usize {
        self.start.load(Ordering::Acquire)
    }

    pub(super) fn len(&self) -> usize {
        self.end.load(Ordering::Acquire) - self.start()
    }

    pub(super) fn on_loss(&self) -> Option<OnLoss> {
        let stored = self.on_loss.load(Ordering::Acquire);
        // SAFETY: `add` stores nothing else here than null or an `OnLoss`, and `Option` of a
        // function has null for `None`.
        unsafe { std::mem::transmute::<*mut (), Option<OnLoss>>(stored) }
    }

    fn take(&self) -> bool {
        let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        self.start.compare_exchange(FREE, TAKEN, order, failed).is_ok()
    }

    pub(super) fn free(&self) {
        self.start.store(FREE, Ordering::Release);
    }

    fn holds(&self, address: usize) -> bool {
        let start = self.start();
        let end = self.end.load(Ordering::Acquire);
        start > TAKEN && start <= address && address < end && self.start() == start
    }
}

fn chunks() -> impl Iterator<Item = &'static Chunk> {
    std::iter::successors(Some(&FIRST), |chunk| chunk.next())
}

/// Enters `len` bytes at `start`.
pub(super) fn add(start: usize, len: usize, on_loss: Option<OnLoss>) -> &'static Entry {
    let entry = take();
    entry.is_lost.store(false, Ordering::Relaxed);
    let stored = on_loss.map_or(ptr::null_mut(), |on_loss| on_loss as *mut ());
    entry.on_loss.store(stored, Ordering::Relaxed);
    entry.end.store(start + len, Ordering::Relaxed);
    entry.start.store(start, Ordering::Release);
    entry
}

fn take() -> &'static Entry {
    let mut chunk = &FIRST;
    loop {
        if let Some(entry) = chunk.entries.iter().find(|entry| entry.take()) {
            return entry;
        }
        chunk = chunk.next_or_new();
    }
}

/// The entry of the mapping of `address`. Safe in a signal handler.
pub(super) fn find(address: NonNull<u8>) -> Option<&'static Entry> {
    let address = address.as_ptr() as usize;
    chunks().flat_map(|chunk| &chunk.entries).find(|entry| entry.holds(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: usize) -> Option<&'static Entry> {
        find(NonNull::new(address as *mut u8).unwrap())
    }

    #[test]
    fn an_address_is_found_while_its_mapping_is_there_and_no_longer() {
        // Addresses that the kernel gives to no process.
        let base = 1 << 62;
        let many: Vec<_> = (0..3 * ENTRIES).map(|n| add(base + n * 8192, 4096, None)).collect();
        for (n, entry) in many.iter().enumerate() {
            assert!(ptr::eq(at(base + n * 8192).unwrap(), *entry));
            assert!(ptr::eq(at(base + n * 8192 + 4095).unwrap(), *entry));
            assert!(at(base + n * 8192 + 4096).is_none());
        }
        many.iter().for_each(|entry| entry.free());
        assert!(at(base).is_none());
    }
}
