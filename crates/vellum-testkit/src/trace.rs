//! Processes that are made, stepped through and killed; `unsafe` code.
//!
//! A *victim* is a forked child that asks to be traced and stops itself at marks. Its tracer takes
//! it from stop to stop: to the next system call, over one instruction, or to its death.
//!
//! # Safety
//!
//! Every call here is a thin one to the C library. Children are made only by processes with one
//! thread, so a child may do whatever its parent might. The memory behind a [`SharedPage`]
//! or a [`FileWatch`] is reached through atomics alone.

#![allow(unsafe_code)]

mod page;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use libc::{c_int, c_void, pid_t};

pub use page::{FileWatch, SharedPage};

/// `PTRACE_SYSEMU_SINGLESTEP`: one instruction, or the entry of a system call that then is skipped.
const STEP_OR_SKIP: libc::c_uint = 32;

/// A child process that has not been reaped.
pub type Pid = pid_t;

/// Where a traced process stopped, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// At a mark of its own.
    Mark,
    /// At the entry or the exit of a system call.
    SystemCall,
    /// Behind one instruction.
    Step,
    /// By a signal that would do nothing.
    Harmless,
    /// By any other signal.
    Signal(i32),
    /// It is gone, with this exit status.
    Exited(i32),
    /// It is gone, by this signal.
    Killed(i32),
}

/// How far a stopped process may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    /// To its next mark.
    ToMark,
    /// To the next entry or exit of a system call, or to its next mark.
    ToSystemCall,
    /// Over one instruction; a system call is reported at its entry and not carried out.
    OneStep,
}

/// Forks; the child runs `body` and exits with the result of `body`, or is killed with its parent.
pub fn fork(body: impl FnOnce() -> i32) -> io::Result<Pid> {
    // SAFETY: this process has one thread, so the child inherits no lock in an unknown state.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: the call takes two numbers; nothing of a child outlives its tracer.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let code = catch_unwind(AssertUnwindSafe(body)).unwrap_or(101);
            // SAFETY: ends the process at once, without the parent's exit handlers.
            unsafe { libc::_exit(code) }
        }
        child => Ok(child),
    }
}

/// Lets the parent trace the calling process.
pub fn trace_me() -> io::Result<()> {
    // SAFETY: the request takes no address.
    check(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, ptr::null_mut::<c_void>(), 0) })
}

/// Whether a child may be traced, which a container can forbid.
pub fn try_tracing() -> io::Result<()> {
    let child = fork(|| match trace_me() {
        Ok(()) => {
            mark();
            0
        }
        Err(error) => error.raw_os_error().unwrap_or(1),
    })?;
    match wait(child)? {
        Stop::Mark => {
            let allowed = set_options(child);
            kill_and_reap(child)?;
            allowed
        }
        Stop::Exited(code) => Err(io::Error::from_raw_os_error(code)),
        stop => Err(io::Error::other(format!("the child ended by {stop:?}"))),
    }
}

/// Stops the calling process at a mark, until its tracer lets it go.
pub fn mark() {
    // SAFETY: sends a signal to the calling process itself.
    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
}

/// Ends the calling process as `kill -9` does.
pub fn die() -> ! {
    loop {
        // SAFETY: sends a signal to the calling process itself.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
}

/// Does nothing for so many seconds, even when the parent has gone, and ends.
pub fn linger(seconds: u32) -> ! {
    // SAFETY: calls that take numbers; the alarm ends the process.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, 0);
        libc::alarm(seconds);
        loop {
            libc::pause();
        }
    }
}

/// Gives the calling process, which must be root, mounts of its own: its mounts from now on vanish
/// when it and its children have ended.
pub fn leave_mounts() -> io::Result<()> {
    // SAFETY: the call takes a number.
    check(i64::from(unsafe { libc::unshare(libc::CLONE_NEWNS) }))
}

/// Makes the calling process the parent of children whose own parent dies, so that it can end and
/// reap them.
pub fn adopt_orphans() {
    // SAFETY: the call takes two numbers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Makes system-call stops distinguishable, and the victim die with its tracer.
pub fn set_options(victim: Pid) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    // SAFETY: the request takes bits in place of an address, and stores nothing here.
    check(unsafe {
        libc::ptrace(libc::PTRACE_SETOPTIONS, victim, ptr::null_mut::<c_void>(), options)
    })
}

/// Continues a stopped victim; [`wait`] returns its next stop.
pub fn go(victim: Pid, go: Go) -> io::Result<()> {
    let request = match go {
        Go::ToMark => libc::PTRACE_CONT,
        Go::ToSystemCall => libc::PTRACE_SYSCALL,
        // The C libraries disagree on the type.
        Go::OneStep => STEP_OR_SKIP as _,
    };
    // SAFETY: the request takes a signal number, here none, and no address.
    check(unsafe { libc::ptrace(request, victim, ptr::null_mut::<c_void>(), 0) })
}

/// Waits until a child stops or ends; one that has ended is reaped.
pub fn wait(child: Pid) -> io::Result<Stop> {
    let mut status: c_int = 0;
    loop {
        // SAFETY: `status` outlives the call.
        match unsafe { libc::waitpid(child, &raw mut status, libc::__WALL) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            _ => break,
        }
    }
    Ok(if libc::WIFEXITED(status) {
        Stop::Exited(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        Stop::Killed(libc::WTERMSIG(status))
    } else {
        match libc::WSTOPSIG(status) {
            libc::SIGSTOP => Stop::Mark,
            libc::SIGTRAP => Stop::Step,
            libc::SIGCHLD | libc::SIGCONT | libc::SIGURG | libc::SIGWINCH => Stop::Harmless,
            signal if signal == libc::SIGTRAP | 0x80 => Stop::SystemCall,
            signal => Stop::Signal(signal),
        }
    })
}

/// Waits for any child of the calling process to end; `None` when there is none left.
pub fn wait_any() -> io::Result<Option<(Pid, Stop)>> {
    let mut status: c_int = 0;
    // SAFETY: `status` outlives the call.
    match unsafe { libc::waitpid(-1, &raw mut status, 0) } {
        -1 => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ECHILD) => Ok(None),
            error => Err(error),
        },
        child if libc::WIFSIGNALED(status) => {
            Ok(Some((child, Stop::Killed(libc::WTERMSIG(status)))))
        }
        child => Ok(Some((child, Stop::Exited(libc::WEXITSTATUS(status))))),
    }
}

/// Sends `SIGKILL`.
pub fn kill(child: Pid) -> io::Result<()> {
    // SAFETY: sends a signal to a child that has not been reaped, so the number is still its own.
    check(i64::from(unsafe { libc::kill(child, libc::SIGKILL) }))
}

/// Kills a child and waits until it is gone. One that has been reaped is left alone: its number may
/// be another process's by now.
pub fn kill_and_reap(child: Pid) -> io::Result<()> {
    if !look(child, libc::WNOHANG | libc::WSTOPPED)? {
        return Ok(());
    }
    kill(child)?;
    while !matches!(wait(child)?, Stop::Killed(_) | Stop::Exited(_)) {}
    Ok(())
}

/// Waits until a killed child is dead, leaving it as a zombie.
pub fn wait_dead(child: Pid) -> io::Result<()> {
    if look(child, 0)? { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ECHILD)) }
}

/// Waits for a child's end, or for what `options` say, without taking notice of it; false if there
/// is no such child.
fn look(child: Pid, options: c_int) -> io::Result<bool> {
    // SAFETY: all zeros is a valid `siginfo_t`, and it outlives the call.
    let answer = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOWAIT | libc::__WALL | options;
        libc::waitid(libc::P_PID, child as libc::id_t, &raw mut info, options)
    };
    match check(i64::from(answer)) {
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Ok(false),
        answer => answer.map(|()| true),
    }
}

/// Ends the calling process by `SIGALRM` unless this is called again within `seconds`; 0 means
/// never.
pub fn watchdog(seconds: u32) {
    // SAFETY: sets a timer of the calling process; the default action of its signal is to end it.
    unsafe { libc::alarm(seconds) };
}

/// Keeps the calling process, and children made later, on one processor.
///
/// A tracer and its victim take turns, which costs a third on the same processor.
pub fn pin_to(processor: usize) {
    // SAFETY: all zeros is an empty set, the macro stays inside of it, and the set outlives the
    // call. A refusal costs speed only.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor % libc::CPU_SETSIZE as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// Address of the instruction that a stopped victim will execute next.
#[cfg(target_arch = "x86_64")]
pub fn instruction_address(victim: Pid) -> io::Result<u64> {
    Ok(registers(victim)?.rip)
}

/// Elsewhere no address is told, so the way to a point is stepped.
#[cfg(not(target_arch = "x86_64"))]
pub fn instruction_address(_victim: Pid) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Has a victim stop before it executes the instruction at `address`, or nowhere any more.
#[cfg(target_arch = "x86_64")]
pub fn set_breakpoint(victim: Pid, address: Option<u64>) -> io::Result<()> {
    /// Bit of the control register that switches the first breakpoint on, for execution.
    const ENABLE: u64 = 1;
    let registers = std::mem::offset_of!(libc::user, u_debugreg);
    let poke = |index: usize, value: u64| {
        let place = (registers + 8 * index) as *mut c_void;
        // SAFETY: the request takes an offset in place of an address, and a number; the kernel
        // refuses what is no debug register or no user address.
        check(unsafe { libc::ptrace(libc::PTRACE_POKEUSER, victim, place, value) })
    };
    match address {
        Some(address) => {
            poke(0, address)?;
            poke(7, ENABLE)
        }
        None => poke(7, 0),
    }
}

/// Elsewhere there are no breakpoints.
#[cfg(not(target_arch = "x86_64"))]
pub fn set_breakpoint(_victim: Pid, _address: Option<u64>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The registers of a stopped victim.
#[cfg(target_arch = "x86_64")]
pub(crate) fn registers(victim: Pid) -> io::Result<libc::user_regs_struct> {
    // SAFETY: all zeros is a valid value of a structure of numbers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: `registers` outlives the call and the request fills it.
    check(unsafe {
        libc::ptrace(libc::PTRACE_GETREGS, victim, ptr::null_mut::<c_void>(), &raw mut registers)
    })?;
    Ok(registers)
}

/// Gives a stopped victim other registers.
#[cfg(target_arch = "x86_64")]
pub(crate) fn set_registers(victim: Pid, registers: &libc::user_regs_struct) -> io::Result<()> {
    let registers: *const libc::user_regs_struct = registers;
    // SAFETY: `registers` outlives the call and the request reads it.
    check(unsafe {
        libc::ptrace(libc::PTRACE_SETREGS, victim, ptr::null_mut::<c_void>(), registers)
    })
}

fn check(answer: i64) -> io::Result<()> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The state of a process as the kernel tells it: `S` asleep, `Z` dead, and others.
pub fn state(process: Pid) -> io::Result<char> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let after_name = text.rsplit(')').next().unwrap_or_default();
    after_name.trim_start().chars().next().ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Nanoseconds of a clock that all processes share.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call, and the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
