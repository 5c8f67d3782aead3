//! `madvise(2)`, where its answer is true.
//!
//! `qemu-user` answers 0 to every advice and follows none. A page that must be empty in a forked
//! child is full there, and pages that must have blocks have none. So before an answer counts, the
//! system is asked for something that does not exist, once in each process: a system that refuses
//! that reads the request.
//!
//! # Safety
//!
//! The question is for no bytes at all; the caller answers for the effect of advice on a range.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::io::{self, Errno};
use rustix::mm::{self, Advice};

/// An advice that no kernel knows.
const UNKNOWN: libc::c_int = -1;

const NOT_ASKED: u8 = 0;
const IGNORED: u8 = 1;
const FOLLOWED: u8 = 2;

/// `MADV_COLLAPSE`.
const COLLAPSE: libc::c_int = 25;

/// The answer, once it is known. No lock: a child could be forked while it is held.
static ANSWER: AtomicU8 = AtomicU8::new(NOT_ASKED);

/// Gives the kernel an advice. `Ok` means that it was followed; `OPNOTSUPP` that this system
/// follows none. Finding that out costs one system call in the life of a process.
///
/// # Safety
///
/// As for `madvise(2)`.
pub unsafe fn give(start: *mut c_void, len: usize, advice: Advice) -> io::Result<()> {
    if !is_followed() {
        return Err(Errno::OPNOTSUPP);
    }
    // SAFETY: the caller's.
    unsafe { mm::madvise(start, len, advice) }
}

/// Puts the pages of a range into huge ones (Linux 6.1). The answers are those of [`give`].
///
/// # Safety
///
/// As for `madvise(2)`.
pub unsafe fn collapse(start: *mut c_void, len: usize) -> io::Result<()> {
    if !is_followed() {
        return Err(Errno::OPNOTSUPP);
    }
    // SAFETY: the caller's.
    match unsafe { libc::madvise(start, len, COLLAPSE) } {
        0 => Ok(()),
        _ => Err(crate::last_errno()),
    }
}

fn is_followed() -> bool {
    let known = ANSWER.load(Ordering::Relaxed);
    let answer = if known == NOT_ASKED { ask() } else { known };
    answer == FOLLOWED
}

#[cold]
fn ask() -> u8 {
    // SAFETY: the range is empty, and advice that is unknown changes nothing.
    let is_refused = unsafe { libc::madvise(ptr::null_mut(), 0, UNKNOWN) } != 0;
    let answer = if is_refused { FOLLOWED } else { IGNORED };
    ANSWER.store(answer, Ordering::Relaxed);
    answer
}

#[cfg(test)]
mod tests {
    #[test]
    fn linux_refuses_what_it_does_not_know() {
        // `qemu-user` emulates another machine than this one.
        assert!(super::is_followed() || cfg!(not(target_arch = "x86_64")));
    }
}
