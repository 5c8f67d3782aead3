//! The system calls that no safe interface offers; the `unsafe` code of this module.
//!
//! # Safety
//!
//! Each function is a thin one over a few calls to the C library or the kernel, and hands out only
//! safe values. Who may call it and when is said at each: namespaces and forks want a process with
//! one thread.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use libc::c_int;
use rustix::thread::UnshareFlags;

/// Ends a supervised process when one of these reaches its supervisor.
const DEADLY: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4c82;
const LOOP_CONFIGURE: libc::c_ulong = 0x4c0a;
const LOOP_GET_STATUS64: libc::c_ulong = 0x4c05;
const BLKFLSBUF: libc::c_ulong = 0x1261;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

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
    // SAFETY: only the table of descriptors would be a matter of safety, and the one caller that
    // leaves it, `leave_descriptors`, says why that is sound.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Gives this process mounts of its own.
pub fn leave_mounts() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)
}

/// Gives the calling thread mounts and a table of descriptors of its own, with what is open now.
///
/// A thread that serves a disk must not hold the mounts that lie on it: if it is the last to die,
/// unmounting would wait for an answer that nobody gives. And its end of the connection must be
/// closed with it, whoever else is still dying.
///
/// Descriptors of the caller keep their numbers in both tables, so values that own or borrow one
/// stay valid; closing it in one table leaves it open in the other.
pub fn leave_descriptors() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS | UnshareFlags::FILES)
}

/// The number of a loop device that was free a moment ago.
pub fn free_loop_device(control: &File) -> io::Result<u32> {
    // SAFETY: this request takes no argument.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
    u32::try_from(number).map_err(|_| io::Error::last_os_error())
}

/// `struct loop_info64` of the kernel; the fields nobody here reads are bytes.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo {
    identity: [u8; 52],
    flags: u32,
    names_and_keys: [u8; 176],
}

/// `struct loop_config` of the kernel.
#[repr(C)]
struct LoopConfig {
    descriptor: u32,
    block_len: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<LoopInfo>() == 232 && size_of::<LoopConfig>() == 304);

const NO_LOOP_INFO: LoopInfo = LoopInfo { identity: [0; 52], flags: 0, names_and_keys: [0; 176] };

/// Puts a file behind a loop device, past the page cache; the device lets go of it when it is
/// closed for the last time. Fails if the file allows no direct I/O.
pub fn configure_loop_device(device: &File, file: &File, block_len: u32) -> io::Result<()> {
    let flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
    let config = LoopConfig {
        descriptor: file.as_raw_fd() as u32,
        block_len,
        info: LoopInfo { flags, ..NO_LOOP_INFO },
        reserved: [0; 8],
    };
    // SAFETY: the kernel reads one `struct loop_config`, which this is.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) })?;
    let mut info = NO_LOOP_INFO;
    // SAFETY: the kernel writes one `struct loop_info64`, which this is.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut info) })?;
    match info.flags & LO_FLAGS_DIRECT_IO {
        0 => Err(io::Error::other("the loop device does not do direct I/O")),
        _ => Ok(()),
    }
}

/// Forgets what the kernel has cached of a block device, after its content was exchanged.
pub fn forget_cached(device: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: this request takes no argument.
    check(unsafe { libc::ioctl(device.as_raw_fd(), BLKFLSBUF as _) })
}

fn check(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
