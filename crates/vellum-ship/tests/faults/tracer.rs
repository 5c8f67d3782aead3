//! Kills a process at the entry of one of its system calls, or lets that fail; `unsafe` code.
//!
//! # Safety
//!
//! Every call here is a thin one to the C library, with numbers or addresses of values that outlive
//! it.

#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::ptr::null_mut;

use libc::{c_int, c_void, pid_t};
use vellum_testing::child::{Role, say};

pub(crate) const ROLES: &[Role] = &[("tracer", trace)];

/// Calls that change files, and the argument that is a descriptor, where it decides.
const WRITES: [i64; 5] =
    [libc::SYS_write, libc::SYS_pwrite64, libc::SYS_writev, libc::SYS_pwritev, libc::SYS_pwritev2];
const CHANGES: [i64; 13] = [
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mkdirat,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_msync,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_sync_file_range,
    libc::SYS_copy_file_range,
];
/// The same under their older names.
const OLDER: [i64; 5] =
    [libc::SYS_rename, libc::SYS_unlink, libc::SYS_link, libc::SYS_mkdir, libc::SYS_rmdir];

/// In a second process, so that no other children are waited for: runs a command and kills it
/// before its call number N that changes something; or lets that call fail, if there is an error.
/// Returns the number of calls.
fn trace(arguments: &[String]) {
    let [fatal, error, words @ ..] = arguments else { panic!("a number, an error, a command") };
    let (fatal, error): (u64, i64) = (fatal.parse().unwrap(), error.parse().unwrap());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: a system call between fork and exec.
    unsafe { command.pre_exec(|| check(request(libc::PTRACE_TRACEME, 0, 0))) };
    // It is waited for with all of its threads.
    let leader = command.spawn().unwrap().id() as pid_t;
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
    assert_eq!(wait(leader).map(|(_, status)| libc::WIFSTOPPED(status)), Some(true));
    check(request(libc::PTRACE_SETOPTIONS, leader, options as usize)).unwrap();
    go_on(leader, 0);
    let mut count = 0_u64;
    let mut failing = None;
    while let Some((thread, status)) = wait(-1) {
        if !libc::WIFSTOPPED(status) {
            continue;
        }
        let signal = libc::WSTOPSIG(status);
        let is_call = signal == libc::SIGTRAP | 0x80;
        if is_call && failing == Some(thread) {
            failing = None;
            set_registers(thread, |registers| registers.rax = -error as u64);
        }
        let is_change = is_call && is_change(thread);
        count += u64::from(is_change);
        match is_change && count == fatal {
            // SAFETY: it sends a signal to a child that has not been waited for.
            true if error == 0 => drop(unsafe { libc::kill(leader, libc::SIGKILL) }),
            true => {
                failing = Some(thread);
                // No call has this number, so nothing is done.
                set_registers(thread, |registers| registers.orig_rax = u64::MAX);
                go_on(thread, 0);
            }
            false if is_call || signal == libc::SIGTRAP || signal == libc::SIGSTOP => {
                go_on(thread, 0);
            }
            false => go_on(thread, signal),
        }
    }
    say(&count.to_string());
}

/// A thread that was killed meanwhile cannot continue, which is no error.
fn go_on(thread: pid_t, signal: c_int) {
    request(libc::PTRACE_SYSCALL, thread, signal as usize);
}

fn request(what: libc::c_uint, thread: pid_t, data: usize) -> i64 {
    // SAFETY: these requests take a number in place of the second address, and no first one.
    unsafe { libc::ptrace(what, thread, null_mut::<c_void>(), data) }
}

/// Changes the registers of a stopped thread.
fn set_registers(thread: pid_t, change: impl FnOnce(&mut libc::user_regs_struct)) {
    // SAFETY: all zeros is a valid value of a structure of numbers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    let place = (&raw mut registers).cast::<c_void>();
    // SAFETY: both requests fill and take this structure, which outlives them.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETREGS, thread, null_mut::<c_void>(), place) };
    check(got).unwrap();
    change(&mut registers);
    let place = (&raw mut registers).cast::<c_void>();
    // SAFETY: as above.
    let set = unsafe { libc::ptrace(libc::PTRACE_SETREGS, thread, null_mut::<c_void>(), place) };
    check(set).unwrap();
}

fn check(answer: i64) -> std::io::Result<()> {
    if answer == -1 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// The next thread that stops or ends, and how; nothing if there is none left.
fn wait(thread: pid_t) -> Option<(pid_t, c_int)> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let thread = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL) };
    (thread > 0).then_some((thread, status))
}

/// Whether the thread is about to change a file.
fn is_change(thread: pid_t) -> bool {
    // SAFETY: all zeros is a valid value of a structure of numbers.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: `info` has this size and outlives the call.
    let got = unsafe {
        libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, (&raw mut info).cast::<c_void>())
    };
    if got <= 0 || info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return false;
    }
    // SAFETY: at an entry this is the part that is filled.
    let call = unsafe { info.u.entry };
    let number = call.nr as i64;
    let makes = libc::O_CREAT | libc::O_TRUNC;
    match number {
        libc::SYS_openat => call.args[2] as c_int & makes != 0,
        _ if WRITES.contains(&number) => is_file(thread, call.args[0]),
        _ => CHANGES.contains(&number) || OLDER.contains(&number),
    }
}

/// Not a pipe, and nothing that only wakes another thread.
fn is_file(thread: pid_t, descriptor: u64) -> bool {
    let path = std::fs::read_link(format!("/proc/{thread}/fd/{descriptor}"));
    path.is_ok_and(|path| path.is_absolute() && !path.starts_with("/dev"))
}
