//! Counts the syscalls of a process, by stopping it at each one with ptrace.
//!
//! ```text
//! us ── fork ── tracer ── fork ── tracee     each stop of the tracee: the tracer looks, counts
//! ```
//!
//! The tracee marks where the counted stretch begins and ends by a word in shared memory that the
//! tracer reads while the tracee is stopped, so no marker syscall is needed. The tracer is a
//! process of its own: its time is limited like that of any race, and when it is killed the kernel
//! kills the tracee.
//!
//! A traced process is very slow: nothing here is timed. There is only one of it, so syscalls that
//! come from waiting for others don't show.
//!
//! # Safety
//!
//! A room for unsafe code: ptrace and waiting for a traced process, which have no safe form.
#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use zerocopy::FromZeros;

use crate::error::{Context, Error, Result};
use crate::process::{Child, Slot, fork_child, race, report};
use crate::shared::Shared;

/// After this many syscalls the tracee may stop: the quotient is known well enough, and a way
/// with a syscall per record would take minutes.
const SYSCALLS_ENOUGH: u64 = 4_000;

/// Words that tracer and tracee share. Ptrace stops order all accesses; the atomics are relaxed.
#[derive(FromZeros)]
#[repr(C)]
pub(crate) struct Stretch {
    /// 0 before the counted stretch, 1 in it, 2 after it. Only the tracee writes.
    stage: AtomicU32,
    /// 1 when the tracee need not continue. Only the tracer writes.
    enough: AtomicU32,
    /// How many records the tracee appended in the stretch. Only the tracee writes.
    records: AtomicU64,
    /// How many syscalls it entered in the stretch. Only the tracer writes.
    syscalls: AtomicU64,
}

impl Stretch {
    /// The tracee is about to make the first call that counts.
    pub(crate) fn begin(&self) {
        self.stage.store(1, Ordering::Relaxed);
    }

    /// The tracee has made the last call that counts.
    pub(crate) fn end(&self, records: u64) {
        self.stage.store(2, Ordering::Relaxed);
        self.records.store(records, Ordering::Relaxed);
    }

    /// Has enough been counted?
    pub(crate) fn is_enough(&self) -> bool {
        self.enough.load(Ordering::Relaxed) != 0
    }
}

/// Runs `work` in a traced process, and says how many syscalls it made for each record between
/// [`Stretch::begin`] and [`Stretch::end`].
///
/// # Errors
///
/// The system forbids tracing, or `work` failed.
pub(crate) fn syscalls_per_record(
    limit: Duration,
    work: &dyn Fn(&Stretch) -> Result<()>,
) -> Result<f64> {
    let stretch = Shared::<Stretch>::new(1)?;
    race(1, limit, &|runner| {
        let standing = runner.stand_ready()?;
        trace(&stretch[0], work)?;
        runner.finish(standing, 0)
    })?;
    let records = stretch[0].records.load(Ordering::Relaxed);
    if records == 0 {
        return Err(Error::failed("the traced process appended nothing"));
    }
    Ok(stretch[0].syscalls.load(Ordering::Relaxed) as f64 / records as f64)
}

/// The tracer: starts the tracee and counts until it has exited.
fn trace(stretch: &Stretch, work: &dyn Fn(&Stretch) -> Result<()>) -> Result<()> {
    let slot = Shared::<Slot>::new(1)?;
    let traced = || stop_for_tracer().and_then(|()| work(stretch));
    let mut child =
        fork_child(|| report(&slot[0], traced)).context(|| "start the process to be traced")?;
    let status = follow(&mut child, stretch)?;
    if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 {
        return Ok(());
    }
    Err(Error::failed(if libc::WIFSIGNALED(status) {
        format!("the traced process was killed by signal {}", libc::WTERMSIG(status))
    } else {
        format!("the traced process failed: {}", slot[0].text())
    }))
}

/// The tracee asks to be traced and stops until it is.
fn stop_for_tracer() -> Result<()> {
    // SAFETY: this request takes no arguments and changes nothing but the tracer of this process.
    if unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, ptr::null_mut::<u8>(), 0) } != 0 {
        return Err(std::io::Error::last_os_error()).context(|| "ask to be traced");
    }
    // SAFETY: sends a signal to ourselves; it stops us, being traced.
    if unsafe { libc::raise(libc::SIGSTOP) } != 0 {
        return Err(std::io::Error::last_os_error()).context(|| "stop for the tracer");
    }
    Ok(())
}

/// From stop to stop until the tracee has exited. Returns its wait status.
fn follow(child: &mut Child, stretch: &Stretch) -> Result<i32> {
    let pid = child.pid().as_raw_nonzero().get();
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    let mut is_set_up = false;
    loop {
        let status = wait(pid)?;
        if !libc::WIFSTOPPED(status) {
            child.set_reaped();
            return Ok(status);
        }
        let mut signal = 0;
        if !is_set_up {
            // The first stop is the one the tracee asked for: not a signal to pass on.
            request(libc::PTRACE_SETOPTIONS, pid, options as usize)
                .context(|| "set the trace options")?;
            is_set_up = true;
        } else if libc::WSTOPSIG(status) == libc::SIGTRAP | 0x80 {
            if stretch.stage.load(Ordering::Relaxed) == 1 && is_entry(pid)? {
                let syscalls = stretch.syscalls.fetch_add(1, Ordering::Relaxed) + 1;
                stretch.enough.store(u32::from(syscalls >= SYSCALLS_ENOUGH), Ordering::Relaxed);
            }
        } else if status >> 16 == 0 {
            // A signal on its way to the tracee: pass it on.
            signal = libc::WSTOPSIG(status) as usize;
        }
        request(libc::PTRACE_SYSCALL, pid, signal).context(|| "continue the traced process")?;
    }
}

/// Is the tracee about to enter a syscall (and not about to leave one)?
fn is_entry(pid: i32) -> Result<bool> {
    const ENTRY: u8 = 1; // PTRACE_SYSCALL_INFO_ENTRY
    const GET_SYSCALL_INFO: Request = 0x420e; // PTRACE_GET_SYSCALL_INFO; musl's libc lacks both
    let mut info = [0_u8; 128];
    // SAFETY: the kernel writes at most `info.len()` bytes to `info`.
    let len = unsafe { libc::ptrace(GET_SYSCALL_INFO, pid, info.len(), info.as_mut_ptr()) };
    if len <= 0 {
        return Err(std::io::Error::last_os_error()).context(|| "ask about a syscall");
    }
    // The first byte is the kind of stop.
    Ok(info[0] == ENTRY)
}

/// The type of `ptrace`'s first argument, which C libraries declare differently.
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

/// A request that reads nothing and takes a number.
fn request(request: Request, pid: i32, data: usize) -> std::io::Result<()> {
    // SAFETY: the requests made here take `data` as a number and touch no memory of ours.
    let result = unsafe { libc::ptrace(request, pid, ptr::null_mut::<u8>(), data) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Waits until the tracee stops or ends.
fn wait(pid: i32) -> Result<i32> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is room for one int, which the call fills.
        if unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } == pid {
            return Ok(status);
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error).context(|| "wait for the traced process");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn only_syscalls_within_the_stretch_are_counted() {
        let per_record = syscalls_per_record(LIMIT, &|stretch| {
            let calls = |count| {
                for _ in 0..count {
                    let _ = rustix::process::getppid();
                }
            };
            calls(7);
            stretch.begin();
            calls(30);
            stretch.end(10);
            calls(7);
            Ok(())
        });
        assert_eq!(per_record.unwrap(), 3.0);
    }

    #[test]
    fn the_tracee_is_told_when_enough_was_counted() {
        let per_record = syscalls_per_record(LIMIT, &|stretch| {
            let mut records = 0;
            stretch.begin();
            while !stretch.is_enough() {
                let _ = rustix::process::getppid();
                records += 1;
            }
            stretch.end(records);
            assert_eq!(records, SYSCALLS_ENOUGH);
            Ok(())
        });
        assert_eq!(per_record.unwrap(), 1.0);
    }

    #[test]
    fn work_that_fails_is_an_error() {
        let result = syscalls_per_record(LIMIT, &|stretch| {
            stretch.begin();
            Err(Error::failed("no"))
        });
        assert!(result.unwrap_err().to_string().contains("the traced process failed"));
    }
}
