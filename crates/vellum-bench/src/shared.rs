//! Words that a process and its children share: an anonymous shared mapping.
//!
//! # Safety
//!
//! A room for unsafe code. It hands out `&[T]` over mapped memory. That is sound because the memory
//! is mapped for as long as the value lives, is aligned to a page, is all zero at first (a valid
//! `T`: [`FromZeros`]), and because `T` is [`Sync`]: another process writes to it only through the
//! atomics inside, as another thread would. Children get the mapping by fork and no other process
//! can.
#![allow(unsafe_code)]

use std::ops::Deref;
use std::ptr::{self, NonNull};

use zerocopy::FromZeros;

use crate::error::{Context, Error, Result};

/// `count` values of `T`, zero at first, the same memory in this process and in its children.
pub(crate) struct Shared<T> {
    start: NonNull<T>,
    count: usize,
}

// SAFETY: the mapping belongs to no thread, and holds values that may be used from any (`Sync`);
// nothing is dropped with it but the mapping itself.
unsafe impl<T: Sync> Send for Shared<T> {}
// SAFETY: shared references lead to shared references of `T`, which is `Sync`, and nowhere else.
unsafe impl<T: Sync> Sync for Shared<T> {}

impl<T: FromZeros + Sync> Shared<T> {
    /// Maps `count` zeroed values.
    pub(crate) fn new(count: usize) -> Result<Shared<T>> {
        const { assert!(!std::mem::needs_drop::<T>() && align_of::<T>() <= 4096) };
        assert!(count > 0 && size_of::<T>() > 0);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                count * size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error()).context(|| "map shared memory");
        }
        let start = NonNull::new(start.cast::<T>())
            .ok_or_else(|| Error::failed("shared memory was mapped at address 0"))?;
        Ok(Shared { start, count })
    }
}

impl<T> Deref for Shared<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `start` is `count` values of mapped, page-aligned memory that were valid when
        // mapped (`FromZeros`) and that are changed through shared references only (see above).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this length, and the borrow checker saw to it that no
        // reference into it is left. A child unmaps only its own view. The result is of no use:
        // unmapping a whole mapping fails for no reason that we could meet.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), self.count * size_of::<T>()) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn shared_memory_is_zero_at_first_and_keeps_what_is_stored() {
        let words = Shared::<AtomicU64>::new(1000).unwrap();
        assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        words[999].store(7, Ordering::Relaxed);
        assert_eq!(words[999].load(Ordering::Relaxed), 7);
    }
}
