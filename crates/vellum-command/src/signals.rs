//! Signals that ask this process to end.
//!
//! The kernel gives the first process of a container only those signals that it handles, and it
//! cannot kill itself by a signal. So there the action of each is to exit, with the code that a
//! shell tells of a process that the signal killed.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::{fs, io, process};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

/// What a supervisor or a terminal asks a process to end with.
const ASKING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Has signals end this process at once also where it is the first one of a container, but for
/// those that the command takes itself.
pub fn end_first_process(taken: &[i32]) -> io::Result<()> {
    let always = Arc::new(AtomicBool::new(true));
    let mut signals = not_ignored(&ASKING).filter(|signal| !taken.contains(signal));
    match is_first_process() {
        true => signals.try_for_each(|signal| end_at_once_if(&always, signal)),
        false => Ok(()),
    }
}

/// Has `signal` end this process at once, if `condition` holds by then.
pub fn end_at_once_if(condition: &Arc<AtomicBool>, signal: i32) -> io::Result<()> {
    let condition = Arc::clone(condition);
    match is_first_process() {
        true => flag::register_conditional_shutdown(signal, code(signal), condition)?,
        false => flag::register_conditional_default(signal, condition)?,
    };
    Ok(())
}

/// Those of `signals` that this process does not ignore: `nohup` means it.
pub fn not_ignored(signals: &[i32]) -> impl Iterator<Item = i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The first signal is the lowest bit.
    let ignored = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    signals.iter().copied().filter(move |signal| ignored >> (signal - 1) & 1 == 0)
}

/// Whether the kernel treats this process as the first one of a container.
pub fn is_first_process() -> bool {
    process::id() == 1
}

/// The exit code that tells of `signal`.
pub fn code(signal: i32) -> i32 {
    128 + signal
}
