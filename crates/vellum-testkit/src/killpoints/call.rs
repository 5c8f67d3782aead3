//! The system calls of a stopped victim: the one that it is about to make, and its answer.
//!
//! Where the machine's registers are not known (not x86-64), no call is recognised.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::answer;
#[cfg(target_arch = "x86_64")]
use crate::trace;
use crate::trace::Pid;

/// A system call, at its entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number.
    pub number: i64,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// Whether it writes past the page cache, which takes whole sectors only.
    pub is_direct: bool,
}

impl Call {
    /// The bytes, or pieces of a vectored call, that it is to write; `None` if it writes nothing.
    pub fn write_len(&self) -> Option<u64> {
        let is_write =
            [libc::SYS_pwrite64, libc::SYS_pwritev, libc::SYS_write].contains(&self.number);
        is_write.then_some(self.arguments[2])
    }

    /// Whether it makes records durable: the direct write of a staged log, the sync of any other.
    pub fn brings_to_the_device(&self, is_staged: bool) -> bool {
        self.number == if is_staged { libc::SYS_pwrite64 } else { libc::SYS_fdatasync }
    }
}

/// A call for people: its name, and the file that it is about.
pub fn describe(victim: Pid, call: &Call) -> String {
    let name = answer::name_of(call.number).map_or_else(|| call.number.to_string(), String::from);
    match file_of(victim, call).as_ref().and_then(|path| path.file_name()) {
        Some(file) => format!("{name}({})", file.to_string_lossy()),
        None => name,
    }
}

/// The file that a call names, or that its first argument is a descriptor of.
pub fn file_of(victim: Pid, call: &Call) -> Option<PathBuf> {
    match answer::path_argument(call.number) {
        Some(index) => text_at(victim, call.arguments[index]).map(PathBuf::from),
        // Some calls start with something else; there is hardly such a descriptor then.
        None => fs::read_link(format!("/proc/{victim}/fd/{}", call.arguments[0] as u32)).ok(),
    }
}

/// The text at an address of a stopped victim, up to its NUL.
fn text_at(victim: Pid, address: u64) -> Option<String> {
    let memory = File::open(format!("/proc/{victim}/mem")).ok()?;
    let mut bytes = [0; 256];
    let len = memory.read_at(&mut bytes, address).ok()?;
    let text = bytes[..len].split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// The call at whose entry a victim stopped.
#[cfg(target_arch = "x86_64")]
pub fn at_entry(victim: Pid) -> io::Result<Option<Call>> {
    let registers = trace::registers(victim)?;
    let arguments =
        [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9];
    let number = registers.orig_rax as i64;
    let is_direct = number == libc::SYS_pwrite64 && is_direct(victim, arguments[0] as u32);
    Ok(Some(Call { number, arguments, is_direct }))
}

/// Whether a descriptor of the victim is of a file that was opened for direct writes.
#[cfg(target_arch = "x86_64")]
fn is_direct(victim: Pid, descriptor: u32) -> bool {
    let info = fs::read_to_string(format!("/proc/{victim}/fdinfo/{descriptor}"));
    let info = info.unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_DIRECT != 0)
}

/// Has the call at which the victim stopped take `count` as its third argument: so many bytes or
/// pieces of a read or a write. The code behind the call finds its own count there, or computes
/// with this one: the kernel leaves arguments alone.
#[cfg(target_arch = "x86_64")]
pub fn set_count(victim: Pid, count: u64) -> io::Result<()> {
    let mut registers = trace::registers(victim)?;
    registers.rdx = count;
    trace::set_registers(victim, &registers)
}

/// Has the kernel not carry out the call at whose entry the victim stopped.
#[cfg(target_arch = "x86_64")]
pub fn skip(victim: Pid) -> io::Result<()> {
    let mut registers = trace::registers(victim)?;
    registers.orig_rax = u64::MAX;
    trace::set_registers(victim, &registers)
}

/// Has the call at whose exit the victim stopped answer with this error number.
#[cfg(target_arch = "x86_64")]
pub fn fail(victim: Pid, errno: i32) -> io::Result<()> {
    let mut registers = trace::registers(victim)?;
    registers.rax = -i64::from(errno) as u64;
    trace::set_registers(victim, &registers)
}

/// The answer of the call at whose exit the victim stopped: a negative error number, or a count.
#[cfg(target_arch = "x86_64")]
pub fn answer_at_exit(victim: Pid) -> io::Result<i64> {
    Ok(trace::registers(victim)?.rax as i64)
}

/// Elsewhere no answer is known.
#[cfg(not(target_arch = "x86_64"))]
pub fn answer_at_exit(_victim: Pid) -> io::Result<i64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Elsewhere no call is recognised.
#[cfg(not(target_arch = "x86_64"))]
pub fn at_entry(_victim: Pid) -> io::Result<Option<Call>> {
    Ok(None)
}

/// Elsewhere there is nothing to shorten.
#[cfg(not(target_arch = "x86_64"))]
pub fn set_count(_victim: Pid, _count: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Elsewhere there is nothing to skip.
#[cfg(not(target_arch = "x86_64"))]
pub fn skip(_victim: Pid) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Elsewhere no call fails.
#[cfg(not(target_arch = "x86_64"))]
pub fn fail(_victim: Pid, _errno: i32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
