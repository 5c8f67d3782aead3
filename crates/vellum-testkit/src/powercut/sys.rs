//! The system calls that no safe interface offers; the `unsafe` code of this module.
//!
//! # Safety
//!
//! Each function is a thin one over a few calls to the C library or the kernel, and hands out only
//! safe values. The comment of each names its permitted callers: namespaces and forks want a
//! process with one thread.

#![allow(unsafe_code)]

use std::io;
use std::ptr;

use libc::c_int;
use rustix::thread::UnshareFlags;

/// Ends a supervised process when one of these reaches its supervisor.
const DEADLY: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// How a supervised process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this status.
    Exited(u8),
    /// By a signal, which was sent to it or to its supervisor.
    Signalled(c_int),
}

/// Runs `body` as the first process of a new process namespace and waits for it. When it ends, or
/// this process does, or a signal asks this process to, the kernel kills all its descendants and
/// takes down what only they held: mounts, loop devices, connections.
pub fn supervise(body: impl FnOnce() -> u8) -> io::Result<End> {
    let mut watched = empty_signal_set();
    for signal in DEADLY.into_iter().chain([libc::SIGCHLD]) {
        // SAFETY: the set is initialised, and the numbers are those of signals.
        unsafe { libc::sigaddset(&raw mut watched, signal) };
    }
    change_blocked(libc::SIG_BLOCK, &watched)?;
    unshare(UnshareFlags::NEWPID)?;
    // SAFETY: called by a process with one thread, so the child inherits no lock in an unknown
    // state and may do whatever its parent might.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => std::process::exit(i32::from(run_supervised(&watched, body))),
        child => wait_for(child, &watched),
    }
}

/// The life of the supervised process.
fn run_supervised(watched: &libc::sigset_t, body: impl FnOnce() -> u8) -> u8 {
    let dies_with_parent =
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    match dies_with_parent
        .map_err(io::Error::from)
        .and_then(|()| change_blocked(libc::SIG_UNBLOCK, watched))
    {
        Ok(()) => body(),
        Err(error) => {
            eprintln!("cannot set up the supervised process: {error}");
            2
        }
    }
}

fn wait_for(child: libc::pid_t, watched: &libc::sigset_t) -> io::Result<End> {
    let mut asked_by = None;
    loop {
        // SAFETY: the set is initialised; no information beyond the number is asked for.
        let signal = unsafe { libc::sigwaitinfo(watched, ptr::null_mut()) };
        if DEADLY.contains(&signal) {
            asked_by = Some(signal);
            // SAFETY: the child has not been waited for, so the number still is its own.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        let mut status = 0;
        // SAFETY: the status is a live integer.
        match unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } {
            0 => {}
            -1 => return Err(io::Error::last_os_error()),
            _ if libc::WIFEXITED(status) => {
                return Ok(End::Exited(libc::WEXITSTATUS(status) as u8));
            }
            _ => return Ok(End::Signalled(asked_by.unwrap_or(libc::WTERMSIG(status)))),
        }
    }
}

fn empty_signal_set() -> libc::sigset_t {
    // SAFETY: a signal set is plain integers, for which zeros are a value; sigemptyset makes it
    // the empty one.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        set
    }
}

fn change_blocked(how: c_int, set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the set is initialised; the former one is not asked for.
    let result = unsafe { libc::sigprocmask(how, set, ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: only the table of descriptors would be a matter of safety, and no caller leaves it.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Gives this process mounts of its own.
pub fn leave_mounts() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)
}
