//! A small number for each thread of this process.
//!
//! Numbers below [`OWN_COUNT`] belong to one live thread each: a thread gives its number back when
//! it ends. A thread that found none left keeps a larger number, which no thread had before.
//!
//! After a fork the only thread of the child keeps its number. Those of the parent's other threads
//! stay taken in the child.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How many threads have a number of their own at the same time.
pub const OWN_COUNT: usize = 64;
const UNKNOWN: usize = usize::MAX;

/// The own numbers that threads have: a bit each.
static TAKEN: AtomicU64 = AtomicU64::new(0);
static NEXT: AtomicUsize = AtomicUsize::new(OWN_COUNT);

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
    static GIVES_BACK: GivesBack = const { GivesBack };
}

/// Gives the number of its thread back when the thread ends.
struct GivesBack;

impl Drop for GivesBack {
    fn drop(&mut self) {
        // Later destructors of the thread use a number that no thread has had.
        let number = NUMBER.replace(NEXT.fetch_add(1, Ordering::Relaxed));
        // Release: the next thread with this number sees the stores of this one.
        TAKEN.fetch_and(!(1 << number), Ordering::Release);
    }
}

/// The number of the calling thread if it has asked before, else one that no thread has.
#[inline]
pub fn known() -> usize {
    NUMBER.get()
}

/// The number of the calling thread.
#[inline]
pub fn get() -> usize {
    match NUMBER.get() {
        UNKNOWN => choose(),
        number => number,
    }
}

#[cold]
fn choose() -> usize {
    let number = take_own().unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.set(number);
    number
}

fn take_own() -> Option<usize> {
    let with_free = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
    // Acquire: see `GivesBack`.
    let taken = TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, with_free).ok()?;
    let number = taken.trailing_ones() as usize;
    if GIVES_BACK.try_with(|_| ()).is_err() {
        // The thread ends, and no destructor would give it back.
        TAKEN.fetch_and(!(1 << number), Ordering::Release);
        return None;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn live_threads_have_different_numbers_and_give_them_back() {
        for _ in 0..3 {
            // More at once than there are numbers of their own.
            let (all, barrier) = (OWN_COUNT + 8, Barrier::new(OWN_COUNT + 8));
            let number = || {
                let number = get();
                barrier.wait();
                assert_eq!(get(), number);
                number
            };
            let mut numbers: Vec<usize> = thread::scope(|scope| {
                let threads: Vec<_> = (0..all).map(|_| scope.spawn(number)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), all);
        }
        // They were given back.
        let is_own = (0..100).any(|_| thread::spawn(get).join().unwrap() < OWN_COUNT);
        assert!(is_own);
    }

    #[test]
    fn a_thread_that_ends_has_no_number_of_its_own_any_more() {
        struct Late(std::sync::mpsc::Sender<usize>);
        impl Drop for Late {
            fn drop(&mut self) {
                self.0.send(get()).unwrap();
            }
        }
        thread_local!(static LATE: Cell<Option<Late>> = const { Cell::new(None) });
        let (sender, receiver) = std::sync::mpsc::channel();
        thread::spawn(move || {
            // The value that was used first is destroyed last: this one after that of the number.
            LATE.with(|late| late.set(Some(Late(sender.clone()))));
            sender.send(get()).unwrap();
        })
        .join()
        .unwrap();
        let numbers: Vec<usize> = receiver.iter().collect();
        assert!(numbers[1] >= OWN_COUNT, "{numbers:?}");
    }
}
