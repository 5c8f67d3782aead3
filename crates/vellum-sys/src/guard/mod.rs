//! Storage that fails under a mapping, as a note instead of a signal.
//!
//! A store into a mapped page raises `SIGBUS` where the page has no block and gets none, where the
//! filesystem was shut down, where the device is gone, and where a process has cut the file. A load
//! does where the file was cut. The handler answers such a fault at an address of a [`Map`]: it
//! notes that the mapping is lost, puts private memory under the address, and returns. The store
//! then continues, into private memory of no file. So a writer checks `Guard::is_lost` after its
//! stores, and counts none of them if the answer is yes.
//!
//! `docs/decisions/0038-storage-that-fails.md` has how this lives with other handlers.
//!
//! # Safety
//!
//! A `Guard` is in the table for as long as the mapping is in place. The handler changes the
//! memory of no address that the table does not name.
//!
//! [`Map`]: crate::Map

mod handler;
mod table;

use std::ptr::NonNull;
use std::sync::atomic::{Ordering, compiler_fence};

pub use handler::chain;
use table::Entry;

/// Changes the private copy of a mapping that is replaced as a whole, before the copy takes its
/// place. It may only store to the copy: it runs in a signal handler.
pub type OnLoss = fn(copy: NonNull<u8>);

/// The watch over the addresses of one mapping.
#[derive(Debug)]
pub(crate) struct Guard(&'static Entry);

/// Whether any mapping of this process was ever lost. Asked after what was stored, as of a guard.
#[inline]
pub fn has_losses() -> bool {
    // The stores that this is about are no atomics: they must not move behind the load.
    compiler_fence(Ordering::SeqCst);
    table::has_losses()
}

impl Guard {
    /// Watches over `len` bytes at `start`. A fault there replaces one page; with `on_loss`, all of
    /// them.
    pub(crate) fn new(start: NonNull<u8>, len: usize, on_loss: Option<OnLoss>) -> Guard {
        handler::set_where_default();
        Guard(table::add(start.as_ptr() as usize, len, on_loss))
    }

    /// Whether a store into the mapping, or a load from it, has not reached the file. It stays so.
    ///
    /// A writer checks after its stores. The note is made before the memory is replaced, and all
    /// threads of the process pass a barrier in between.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        has_losses() && self.0.was_lost()
    }

    /// Notes that the mapping is lost: the kernel has said so without a signal.
    pub(crate) fn lose(&self) {
        self.0.lose();
    }

    /// Ends the watch; the mapping is about to go. This guard is not asked afterwards.
    pub(crate) fn end(&self) {
        self.0.free();
    }
}
