//! Functions that put a process into a world, end it, and wait for its end; the `unsafe` code of
//! this module.
//!
//! # Safety
//!
//! Every call here is a thin one to the C library, with numbers or with strings that outlive it.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::ptr;

use anyhow::bail;
use libc::{c_int, pid_t};
use rustix::process::{Resource, Rlimit, setrlimit};

/// Tells the campaign a line that is short enough to be one write to a pipe.
pub(crate) fn tell(line: &str) {
    // Not by `Stdout`: another thread may have held its lock when this process was forked. No
    // reader is there once the campaign was given up. SAFETY: the call reads the bytes of `line`.
    unsafe { libc::write(libc::STDOUT_FILENO, line.as_ptr().cast(), line.len()) };
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exited(i32),
    Killed(i32),
}

/// Forks; the child runs `body` and exits with its result. It does not die with its parent.
pub(crate) fn fork(body: impl FnOnce() -> i32) -> io::Result<pid_t> {
    // SAFETY: the child uses nothing that another thread of this process may hold locked, but the
    // allocator, which the C library makes safe across forks, and the tested library.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let code = catch_unwind(AssertUnwindSafe(body)).unwrap_or(101);
            // SAFETY: ends the process at once, without the parent's exit handlers.
            unsafe { libc::_exit(code) }
        }
        child => Ok(child),
    }
}

/// Forks, and continues in both; `None` in the child. For a process with one thread.
pub(crate) fn fork_both() -> io::Result<Option<pid_t>> {
    // SAFETY: there is no other thread that might hold a lock.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        child => Ok(Some(child)),
    }
}

/// Dies of a signal that another process died of.
pub(crate) fn die_of(signal: c_int) -> ! {
    // SAFETY: the calls take numbers.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
        libc::_exit(128 + signal)
    }
}

/// Waits for a child of the calling process.
pub(crate) fn wait_for(child: pid_t) -> io::Result<End> {
    let mut status: c_int = 0;
    loop {
        // SAFETY: `status` outlives the call.
        match unsafe { libc::waitpid(child, &raw mut status, 0) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            _ => return Ok(end_of(status)),
        }
    }
}

/// A child that has ended, or one whose parent has died, if there is one.
pub(crate) fn reap() -> Option<(pid_t, End)> {
    let mut status: c_int = 0;
    // SAFETY: `status` outlives the call.
    let child = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (child > 0).then(|| (child, end_of(status)))
}

/// How a child of the calling process has ended, if it has.
pub(crate) fn has_ended(child: pid_t) -> Option<End> {
    let mut status: c_int = 0;
    // SAFETY: `status` outlives the call.
    let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
    (ended == child).then(|| end_of(status))
}

fn end_of(status: c_int) -> End {
    match libc::WIFEXITED(status) {
        true => End::Exited(libc::WEXITSTATUS(status)),
        false => End::Killed(libc::WTERMSIG(status)),
    }
}

/// Sends a signal to a process or, where `process` is negative, to a group of processes.
pub(crate) fn signal(process: pid_t, signal: c_int) {
    // SAFETY: the call takes numbers. A process that is gone already needs none.
    unsafe { libc::kill(process, signal) };
}

/// Whether no process of a group is left, nor one that was not reaped.
pub(crate) fn is_gone(group: pid_t) -> bool {
    // SAFETY: the call takes numbers, and sends nothing.
    let answer = unsafe { libc::kill(-group, 0) };
    answer == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// Whether something can be read, after at most so many milliseconds.
pub(crate) fn can_read(from: BorrowedFd<'_>, millis: i32) -> bool {
    let mut poll = libc::pollfd { fd: from.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: `poll` outlives the call, and is one structure.
    unsafe { libc::poll(&raw mut poll, 1, millis) > 0 }
}

/// Gives the calling process namespaces of its own.
pub(crate) fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: the call takes a number.
    check(unsafe { libc::unshare(flags) })
}

/// Mounts; `kind` is empty where nothing new is mounted.
pub(crate) fn mount(
    source: &Path,
    target: &Path,
    kind: &str,
    flags: libc::c_ulong,
    data: &str,
) -> io::Result<()> {
    let [source, target] = [source, target].map(|path| CString::new(path.as_os_str().as_bytes()));
    let (source, target, kind, data) = (source?, target?, CString::new(kind)?, CString::new(data)?);
    // SAFETY: the strings outlive the call.
    check(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data.as_ptr().cast())
    })
    .map_err(|error| io::Error::new(error.kind(), format!("mount {target:?}: {error}")))
}

/// Unmounts what can be, also while it is in use.
pub(crate) fn unmount(target: &Path) {
    let Ok(target) = CString::new(target.as_os_str().as_bytes()) else { return };
    // SAFETY: the string outlives the call.
    unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
}

/// Sets the limit that counts.
pub(crate) fn limit(what: Resource, to: u64) -> io::Result<()> {
    Ok(setrlimit(what, Rlimit { current: Some(to), maximum: Some(to) })?)
}

pub(crate) fn ignore(signal: c_int) {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

pub(crate) fn umask(mask: libc::mode_t) {
    // SAFETY: the call takes a number.
    unsafe { libc::umask(mask) };
}

/// Becomes another user for good, with no group but this one.
pub(crate) fn become_user(user: u32, group: u32) -> io::Result<()> {
    // SAFETY: the calls take numbers, and an empty list.
    check(unsafe { libc::setgroups(0, ptr::null()) })?;
    // SAFETY: as above.
    check(unsafe { libc::setgid(group) })?;
    // SAFETY: as above.
    check(unsafe { libc::setuid(user) })
}

/// Makes a device like one that is there.
pub(crate) fn make_device(like: &Path, at: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let device = fs::metadata(like)?.rdev();
    let path = CString::new(at.as_os_str().as_bytes())?;
    // SAFETY: the string outlives the call.
    check(unsafe { libc::mknod(path.as_ptr(), libc::S_IFCHR | 0o666, device) })
}

fn check(answer: c_int) -> io::Result<()> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has a filesystem stop, as it does after an error of its journal: `XFS_IOC_GOINGDOWN`, which is
/// `EXT4_IOC_SHUTDOWN`. `how` is the part that is written before: all (0), the journal (1), nothing
/// (2).
pub(crate) fn shut_down(root: &File, how: u32) -> io::Result<()> {
    const GOING_DOWN: libc::c_ulong = 0x8004_587d;
    // SAFETY: the call reads a `u32`, which outlives it.
    check(unsafe { libc::ioctl(root.as_raw_fd(), GOING_DOWN as _, &raw const how) })
}

/// A command of these words.
pub(crate) fn words(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

/// Runs a program of the administrator's, which must succeed; returns its output.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output()?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        bail!("{:?}: {}", command.get_program(), words.trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// As [`output`], where nothing of interest is printed.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    output(command).map(drop)
}
