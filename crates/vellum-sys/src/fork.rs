//! A value that each process makes for itself, even after `fork`.
//!
//! A forked child inherits the parent's memory: its locks as they were held, its file descriptors,
//! its own process id. A [`PerProcess`] notices that it has woken up in a child and makes its value
//! anew there, leaving the inherited one to be dropped or leaked by its owner's rules.
//!
//! Noticing costs one load: the kernel empties a page marked `MADV_WIPEONFORK` in every child.
//! Where it does not, each look compares the number of the process, which costs a system call. A
//! number may come again when the process that made the value is gone, so the page is better
//! (`docs/decisions/0036-answers-that-are-not-true.md`).
//!
//! # Safety
//!
//! Inherited values are never freed, and the newest is freed when the `PerProcess` is dropped, so a
//! reference handed out stays valid as long as the borrow of the `PerProcess`.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use rustix::io::{self, Errno};
use rustix::mm::{self, Advice, MapFlags, ProtFlags};

use crate::advice;

/// A value that a forked child must not use as its own.
pub trait Inherit {
    /// Closes the resources that the kernel shares with the parent. Called in the child, once, on
    /// the value it inherited, which is left alone afterwards: another thread of the parent may
    /// have been in the middle of changing it when the process was forked.
    fn disown(&self);
}

/// A step that a process has to take before another one; to repeat it changes nothing.
///
/// Threads that come first do it side by side. A `Once` has them wait for each other, and a child
/// that was forked meanwhile would wait for ever.
pub(crate) struct AtLeastOnce(AtomicBool);

impl AtLeastOnce {
    pub(crate) const fn new() -> AtLeastOnce {
        AtLeastOnce(AtomicBool::new(false))
    }

    /// Has `act` done when it returns.
    pub(crate) fn ensure(&self, act: impl FnOnce()) {
        if !self.0.load(Ordering::Acquire) {
            act();
            self.0.store(true, Ordering::Release);
        }
    }
}

/// A value made once in each process.
pub struct PerProcess<T: Inherit> {
    home: HomePage,
    newest: AtomicPtr<Node<T>>,
    /// Which process is making its value: its number, or 0. A child that inherits its parent's
    /// number here takes over, because no thread of the child can be holding it.
    maker: AtomicU32,
}

struct Node<T> {
    value: T,
    /// The process that made it.
    pid: u32,
}

/// A value that a child inherited and must not free.
struct Left {
    _node: *const (),
    _next: *mut Left,
}

/// All of them. Only a search for leaks reads this when the child ends: memory that can be reached
/// is not lost.
static LEFT: AtomicPtr<Left> = AtomicPtr::new(ptr::null_mut());

/// Leaves a value where it is for good.
fn leave<T>(node: *const T) {
    let left = Box::into_raw(Box::new(Left { _node: node.cast(), _next: ptr::null_mut() }));
    let mut next = LEFT.load(Ordering::Relaxed);
    loop {
        // SAFETY: made here, and invisible to all other threads before the exchange below succeeds.
        unsafe { (*left)._next = next };
        match LEFT.compare_exchange_weak(next, left, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(newest) => next = newest,
        }
    }
}

// SAFETY: it behaves as an owned `T`, shared by reference only.
unsafe impl<T: Inherit + Send + Sync> Send for PerProcess<T> {}
// SAFETY: as above; `newest` is published with release and read with acquire ordering.
unsafe impl<T: Inherit + Send + Sync> Sync for PerProcess<T> {}

impl<T: Inherit> PerProcess<T> {
    /// Holds `value`, which belongs to the calling process.
    pub fn new(value: T) -> io::Result<PerProcess<T>> {
        let home = HomePage::new()?;
        let pid = std::process::id();
        let node = Box::into_raw(Box::new(Node { value, pid }));
        home.settle();
        Ok(PerProcess { home, newest: AtomicPtr::new(node), maker: AtomicU32::new(0) })
    }

    /// The calling process's value; in a child that has none yet, what `make` makes of the
    /// inherited one.
    #[inline]
    pub fn get<E>(&self, make: impl FnOnce(&T) -> Result<T, E>) -> Result<&T, E> {
        if !self.home.is_settled() {
            self.make_anew(make)?;
        }
        Ok(self.newest())
    }

    /// The calling process's value, if one load shows that it has one.
    #[inline]
    pub fn at_hand(&self) -> Option<&T> {
        if self.home.is_settled() { Some(self.newest()) } else { None }
    }

    /// The newest value, which after a fork may still be the parent's.
    #[inline]
    pub fn newest(&self) -> &T {
        &self.newest_node().value
    }

    #[inline]
    fn newest_node(&self) -> &Node<T> {
        // SAFETY: `newest` always points to a live node; nodes are freed only by `drop`.
        unsafe { &*self.newest.load(Ordering::Acquire) }
    }

    /// Whether `newest` was made by the calling process.
    #[inline]
    pub fn is_own(&self) -> bool {
        self.home.is_settled() || self.is_own_by_number()
    }

    #[cold]
    fn is_own_by_number(&self) -> bool {
        !self.home.is_wiped && self.newest_node().pid == std::process::id()
    }

    #[cold]
    fn make_anew<E>(&self, make: impl FnOnce(&T) -> Result<T, E>) -> Result<(), E> {
        if self.is_own() {
            return Ok(());
        }
        let me = std::process::id();
        loop {
            let holder = self.maker.load(Ordering::Relaxed);
            if holder == me {
                // Another thread of this process is at it.
                std::thread::yield_now();
            } else if self
                .maker
                .compare_exchange(holder, me, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                break;
            }
            if self.is_own() {
                return Ok(());
            }
        }
        let made = if self.is_own() {
            Ok(())
        } else {
            make(self.newest()).map(|value| {
                self.newest().disown();
                let node = Box::into_raw(Box::new(Node { value, pid: me }));
                leave(self.newest.swap(node, Ordering::AcqRel));
                self.home.settle();
            })
        };
        self.maker.store(0, Ordering::Release);
        made
    }
}

impl<T: Inherit> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let newest = *self.newest.get_mut();
        // SAFETY: the node came from `Box::into_raw`, and no borrow of a value outlives `self`.
        let node = unsafe { Box::from_raw(newest) };
        if node.pid != std::process::id() {
            node.value.disown();
            leave(Box::into_raw(node));
        }
    }
}

/// One page that a forked child finds empty.
struct HomePage {
    word: NonNull<AtomicU32>,
    len: usize,
    /// Whether that is so; where it is not, the page stays empty everywhere.
    is_wiped: bool,
}

impl HomePage {
    fn new() -> io::Result<HomePage> {
        let len = rustix::param::page_size();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping overlaps nothing, and is zeroed, as `AtomicU32` may be.
        let start =
            unsafe { mm::mmap_anonymous(ptr::null_mut(), len, protection, MapFlags::PRIVATE) }?;
        let word = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        let mut page = HomePage { word, len, is_wiped: false };
        // SAFETY: the range is the mapping just made; the advice changes only the memory of a
        // child.
        match unsafe { advice::give(start, len, Advice::LinuxWipeOnFork) } {
            Ok(()) => page.is_wiped = true,
            // `INVAL`: known to no kernel before 4.14, and not to all emulations of one.
            Err(Errno::OPNOTSUPP | Errno::INVAL) => {}
            Err(errno) => return Err(errno),
        }
        Ok(page)
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the page lives as long as `self` and starts with this word.
        unsafe { self.word.as_ref() }
    }

    #[inline]
    fn is_settled(&self) -> bool {
        self.word().load(Ordering::Acquire) != 0
    }

    fn settle(&self) {
        if self.is_wiped {
            self.word().store(1, Ordering::Release);
        }
    }
}

impl Drop for HomePage {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and `self` is going away with every borrow of it.
        let _ = unsafe { mm::munmap(self.word.as_ptr().cast(), self.len) };
    }
}
