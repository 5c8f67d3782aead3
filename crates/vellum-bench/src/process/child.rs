//! One child: fork, reap, and its page faults.
//!
//! # Safety
//!
//! A room for unsafe code: fork, exit and resource usage, which have no safe form.
//!
//! The parent should have no other thread: a child has only the thread that forked, so a lock that
//! another thread held stays locked in it. The work that a child does here allocates (glibc and
//! musl make their allocators whole again in a child) and makes system calls; it prints nothing.
#![allow(unsafe_code)]

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, pidfd_open,
    set_parent_process_death_signal, waitpid,
};

use crate::error::{Context, Error, Result};

/// The exit code of a child whose parent was gone before it began.
const ORPHANED: i32 = 102;

/// A forked process that is ours to reap.
pub(crate) struct Child {
    pid: Pid,
    /// Readable once the child has ended.
    pub(super) fd: OwnedFd,
    reaped: bool,
}

impl Child {
    /// Its number, its own until it is reaped.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Called by code that reaped it in another way, because its number may belong to another
    /// process by now.
    pub(crate) fn set_reaped(&mut self) {
        self.reaped = true;
    }

    /// Waits until it has ended, and lets the kernel forget it.
    pub(crate) fn reap(&mut self) -> Result<WaitStatus> {
        let status = loop {
            match waitpid(Some(self.pid), WaitOptions::empty()) {
                Err(Errno::INTR) => {}
                result => break result.context(|| "wait for a process")?,
            }
        };
        self.reaped = true;
        let (_pid, status) = status.ok_or_else(|| Error::failed("a process did not wait"))?;
        Ok(status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            // It may have ended meanwhile; its number is still its own, for it is not reaped.
            let _ = kill_process(self.pid, Signal::KILL);
            let _ = self.reap();
        }
    }
}

/// Forks. The child runs `work` and exits with the result of `work`, at once: no destructor of the
/// parent's values, no exit handler and no buffered output of the parent's runs twice.
pub(crate) fn fork_child(work: impl FnOnce() -> i32) -> std::io::Result<Child> {
    let parent = getpid();
    // SAFETY: the child continues with a copy of this thread only. It makes only calls that the
    // head of this module allows, and never returns from here.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            let code = catch_unwind(AssertUnwindSafe(|| {
                // Should the parent be killed, no process is left to stop its children.
                let _ = set_parent_process_death_signal(Some(Signal::KILL));
                // It may have been killed before that was heard.
                if getppid() == Some(parent) { work() } else { ORPHANED }
            }));
            // SAFETY: ends the process without running anything else, as a forked child must.
            unsafe { libc::_exit(code.unwrap_or(101)) }
        }
        pid => {
            let pid = Pid::from_raw(pid).ok_or(std::io::ErrorKind::Other)?;
            match pidfd_open(pid, PidfdFlags::empty()) {
                Ok(fd) => Ok(Child { pid, fd, reaped: false }),
                Err(error) => {
                    let _ = kill_process(pid, Signal::KILL);
                    let _ = waitpid(Some(pid), WaitOptions::empty());
                    Err(error.into())
                }
            }
        }
    }
}

/// The page faults of this process so far, minor and major.
pub(super) fn page_faults() -> Result<u64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is room for one `rusage`, which the call fills.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } != 0 {
        return Err(std::io::Error::last_os_error()).context(|| "read the resource usage");
    }
    // SAFETY: it is all zero or filled by the kernel; both are valid, it is plain integers.
    let usage = unsafe { usage.assume_init() };
    Ok(usage.ru_minflt as u64 + usage.ru_majflt as u64)
}
