//! Values that one thread of a process uses at a time, without waiting.
//!
//! A locked instruction costs as much as half of an append. So a thread has a value of its own,
//! which it takes by plain loads and stores; another thread that wants that value makes all threads
//! pass a barrier (`sys::barrier`), which is dear and rare. This is the asymmetric form of Dekker's
//! algorithm: each of two sets its flag, and then reads the flag of the other one.
//!
//! # Safety
//!
//! There is never more than one reference to a value. One that threads share is reached by the
//! thread that has set `taken` by an atomic swap. One that has an owner is reached by its owner
//! while `taken` is set and `wanted` was not after that, and by another thread while that one has
//! set `wanted` by an atomic swap and `taken` was not set after that. There is a full barrier
//! between the two steps of either, so at least one of them sees the other's flag, and steps back.
//! A flag is given back after the last use.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic;

use super::primitive::{self, AtomicBool, Ordering, compiler_fence, fence};
use crate::sys::thread_number;

/// A value behind two flags.
#[repr(align(128))]
pub(crate) struct Exclusive<T> {
    /// Whether a thread has it; of a value with an owner, whether the owner has it.
    taken: AtomicBool,
    /// Whether another thread than its owner has it or checks whether it is idle.
    wanted: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the flags let one thread at a time reach the value, as a mutex does.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    pub(crate) fn new(value: T) -> Exclusive<T> {
        let (taken, wanted) = (AtomicBool::new(false), AtomicBool::new(false));
        Exclusive { taken, wanted, value: UnsafeCell::new(value) }
    }

    /// The value, unless another thread has it. For a value without an owner.
    #[inline]
    pub(crate) fn try_take(&self) -> Option<Taken<'_, T>> {
        let was_taken = self.taken.swap(true, Ordering::Acquire);
        // Made only if it is ours: dropping one gives the flag back.
        (!was_taken).then(|| Taken { cell: self, flag: &self.taken })
    }

    /// The value for its owner, unless it is in use.
    ///
    /// # Safety
    ///
    /// No other thread calls this for the same value until this one has returned, and everything
    /// that this thread did before happens before that. `is_registered` is true only if this
    /// process passes the barriers of `sys::barrier`.
    #[inline]
    pub(crate) unsafe fn take_own(&self, is_registered: bool) -> Option<Taken<'_, T>> {
        // Acquire: it may have been given back in another thread.
        if self.taken.load(Ordering::Acquire) {
            return None;
        }
        self.taken.store(true, Ordering::Relaxed);
        if is_registered {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
        // Made before the look, so that a refusal gives the flag back.
        let taken = Taken { cell: self, flag: &self.taken };
        // Acquire: pairs with the flag that another thread has given back.
        (!self.wanted.load(Ordering::Acquire)).then_some(taken)
    }

    /// The same for a model, in which one thread alone calls this.
    #[cfg(all(loom, test))]
    pub(crate) fn take_own_in_model(&self, is_registered: bool) -> Option<Taken<'_, T>> {
        // SAFETY: no other thread calls it; a fence of the model takes the place of the barrier.
        unsafe { self.take_own(is_registered) }
    }

    /// Says that another thread than its owner wants the value; false if one has it already.
    fn want(&self) -> bool {
        // The fence in `take_idle` orders it.
        !self.wanted.swap(true, Ordering::Relaxed)
    }

    /// The value for a thread that has set `wanted` and made all threads pass a barrier since,
    /// unless its owner has it.
    fn take_wanted(&self) -> Option<Taken<'_, T>> {
        let taken = Taken { cell: self, flag: &self.wanted };
        // Acquire: pairs with the flag that its owner has given back.
        (!self.taken.load(Ordering::Acquire)).then_some(taken)
    }
}

/// Values with an owner that no thread uses: for a thread that is not their owner.
///
/// Costs one barrier of all processes for all of them. None where the kernel does not offer that
/// any more.
pub(crate) fn take_idle<'a, T>(cells: &'a [Exclusive<T>]) -> Vec<Option<Taken<'a, T>>> {
    let wanted: Vec<_> = cells.iter().map(|cell| cell.want().then_some(cell)).collect();
    fence(Ordering::SeqCst);
    let is_passed = primitive::make_others_fence();
    let take = |cell: &'a Exclusive<T>| cell.take_wanted().filter(|_| is_passed);
    wanted.into_iter().map(|cell| cell.and_then(take)).collect()
}

/// A value for each of the first threads of a process, and some that all threads share.
pub(crate) struct Seats<T> {
    own: Box<[Exclusive<T>; thread_number::OWN_COUNT]>,
    shared: Box<[Exclusive<T>]>,
    /// Whether this process passes the barriers of `sys::barrier`. No word of the protocol: both
    /// values do, and once it is true it stays so.
    is_registered: atomic::AtomicBool,
}

impl<T: Default> Seats<T> {
    /// `is_registered` as in [`set_registered`](Seats::set_registered).
    pub(crate) fn new(shared_count: usize, is_registered: bool) -> Seats<T> {
        let make = || Exclusive::new(T::default());
        let own = Box::new(std::array::from_fn(|_| make()));
        let shared = (0..shared_count).map(|_| make()).collect();
        Seats { own, shared, is_registered: is_registered.into() }
    }
}

impl<T> Seats<T> {
    /// This process passes the barriers of `sys::barrier` from now on.
    pub(crate) fn set_registered(&self) {
        self.is_registered.store(true, atomic::Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_registered(&self) -> bool {
        self.is_registered.load(atomic::Ordering::Relaxed)
    }

    /// The calling thread's own, unless it has none or uses it.
    #[inline]
    pub(crate) fn own(&self) -> Option<Taken<'_, T>> {
        let seat = self.own.get(thread_number::get())?;
        // SAFETY: a number below the count of `own` belongs to one live thread, and the next thread
        // with that number sees the stores of this one. The rest is the promise of `new`'s caller.
        unsafe { seat.take_own(self.is_registered()) }
    }

    /// As [`own`](Seats::own), for a thread that has used that before, where this process passes
    /// the barriers of `sys::barrier`.
    #[inline]
    pub(crate) fn own_registered(&self) -> Option<Taken<'_, T>> {
        let seat = self.own.get(thread_number::known())?;
        // SAFETY: as in `own`.
        if self.is_registered() { unsafe { seat.take_own(true) } } else { None }
    }

    /// Those that threads share, as far as they are free; each thread begins at another one.
    pub(crate) fn shared(&self) -> impl Iterator<Item = Taken<'_, T>> {
        let (first, count) = (thread_number::get(), self.shared.len());
        let seat = move |turn: usize| self.shared[(first + turn) % count].try_take();
        (0..count).filter_map(seat)
    }

    /// Those of other threads that are not in use. Costs a barrier.
    pub(crate) fn idle(&self) -> impl Iterator<Item = Taken<'_, T>> {
        take_idle(&self.own[..]).into_iter().flatten()
    }

    /// All that are not in use. Costs a barrier.
    pub(crate) fn all_idle(&self) -> impl Iterator<Item = Taken<'_, T>> {
        self.idle().chain(self.shared())
    }

    /// All of them, if none is in use. Costs a barrier.
    pub(crate) fn all(&self) -> Option<Vec<Taken<'_, T>>> {
        let shared = self.shared.iter().map(Exclusive::try_take);
        take_idle(&self.own[..]).into_iter().chain(shared).collect()
    }
}

/// The value, until it is dropped.
pub(crate) struct Taken<'a, T> {
    cell: &'a Exclusive<T>,
    flag: &'a AtomicBool,
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
        self.flag.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

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

    fn seats() -> Seats<u32> {
        Seats::new(2, crate::sys::barrier::register())
    }

    #[test]
    fn the_own_seat_is_refused_while_it_is_in_use_by_anybody() {
        let seats = seats();
        let own = seats.own().unwrap();
        assert!(seats.own().is_none(), "by its owner");
        assert_eq!(seats.idle().count(), thread_number::OWN_COUNT - 1);
        assert!(seats.all().is_none());
        drop(own);
        let all = seats.all().unwrap();
        assert_eq!(all.len(), thread_number::OWN_COUNT + 2);
        assert!(seats.own().is_none(), "by somebody else");
        assert_eq!(seats.shared().count() + seats.all_idle().count(), 0);
        drop(all);
        assert!(seats.own().is_some());
    }

    #[test]
    fn a_seat_may_be_given_back_in_another_thread() {
        let seats = seats();
        let own = seats.own().unwrap();
        thread::scope(|scope| scope.spawn(move || drop(own)).join().unwrap());
        assert!(seats.own().is_some());
    }

    #[test]
    fn each_addition_counts_whoever_takes_the_seat() {
        const TURNS: u32 = 20_000;
        let seats = seats();
        let is_done = std::sync::atomic::AtomicBool::new(false);
        let others = thread::scope(|scope| {
            let thief = scope.spawn(|| {
                let mut added = 0;
                while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                    for mut seat in seats.idle().filter(|seat| **seat > 0) {
                        *seat += 1;
                        added += 1;
                    }
                }
                added
            });
            let mut left = TURNS;
            while left > 0 {
                if let Some(mut seat) = seats.own() {
                    *seat += 1;
                    left -= 1;
                }
            }
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
            thief.join().unwrap()
        });
        assert_eq!(*seats.own().unwrap(), TURNS + others);
    }
}
