//! A value that one thread of a process uses at a time, without waiting.
//!
//! # Safety
//!
//! The flag is taken by an atomic swap before the value is reached and given back after the last
//! use, so there is never more than one reference to the value.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

use super::primitive::{AtomicBool, Ordering};

/// A value behind a flag.
#[repr(align(128))]
pub(crate) struct Exclusive<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the flag lets one thread at a time reach the value, as a mutex does.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    pub(crate) fn new(value: T) -> Exclusive<T> {
        Exclusive { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// The value, unless another thread has it.
    #[inline]
    pub(crate) fn try_take(&self) -> Option<Taken<'_, T>> {
        let was_taken = self.taken.swap(true, Ordering::Acquire);
        // Made only if it is ours: dropping one gives the flag back.
        (!was_taken).then(|| Taken { cell: self })
    }
}

/// The value, until it is dropped.
pub(crate) struct Taken<'a, T> {
    cell: &'a Exclusive<T>,
}

impl<T> Deref for Taken<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the flag is ours until `drop`.
        unsafe { &*self.cell.value.get() }
    }
}

impl<T> DerefMut for Taken<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the flag is ours until `drop`, and `self` is borrowed mutably.
        unsafe { &mut *self.cell.value.get() }
    }
}

impl<T> Drop for Taken<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.cell.taken.store(false, Ordering::Release);
    }
}

impl<T: Default> Default for Exclusive<T> {
    fn default() -> Exclusive<T> {
        Exclusive::new(T::default())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_one_has_it_at_a_time() {
        let cell = Exclusive::new(1);
        let mut taken = cell.try_take().unwrap();
        *taken += 1;
        assert!(cell.try_take().is_none());
        assert!(cell.try_take().is_none(), "a refusal gives nothing back");
        drop(taken);
        assert_eq!(*cell.try_take().unwrap(), 2);
    }
}
