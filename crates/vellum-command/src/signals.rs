//! Signals that ask this process to end.
//!
//! The kernel gives the first process of a container only those signals that it handles, and it
//! cannot kill itself by a signal. So there the action of each is to exit, with the code that a
//! shell shows for a process that the signal killed.

use std::io::{self, PipeReader, PipeWriter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{fs, process};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;

/// The signals by which a supervisor or a terminal asks a process to end.
const ASKING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Signals that end a run early, which reports its result then.
pub const INTERRUPTING: [i32; 2] = [SIGINT, SIGTERM];

/// Signals that ask this process to end in good order. A second one ends it at once, but for
/// SIGHUP: a shell sends it after others, and again.
#[derive(Debug)]
pub struct Asked {
    newest: Arc<AtomicUsize>,
    news: PipeReader,
    waking: PipeWriter,
}

impl Asked {
    /// Takes `signals` from now on, but for those that are ignored.
    pub fn take(signals: &[i32]) -> io::Result<Asked> {
        let (news, waking) = io::pipe()?;
        let asked = Asked { newest: Arc::default(), news, waking };
        let has_come = Arc::new(AtomicBool::new(false));
        for signal in not_ignored(signals) {
            // These actions run in this order.
            if signal != SIGHUP {
                end_at_once_if(&has_come, signal)?;
            }
            flag::register(signal, Arc::clone(&has_come))?;
            flag::register_usize(signal, Arc::clone(&asked.newest), signal as usize)?;
        }
        asked.wake_by(signals)?;
        Ok(asked)
    }

    /// Has these signals make [`Asked::news`] readable, too.
    pub fn wake_by(&self, signals: &[i32]) -> io::Result<()> {
        not_ignored(signals)
            .try_for_each(|signal| pipe::register(signal, self.waking.try_clone()?).map(drop))
    }

    /// Readable once a signal has come.
    pub fn news(&self) -> &PipeReader {
        &self.news
    }

    /// The signal that came last of those that ask to end.
    pub fn signal(&self) -> Option<i32> {
        Some(self.newest.load(Ordering::SeqCst) as i32).filter(|signal| *signal != 0)
    }
}

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

/// The exit code of `signal`.
pub fn code(signal: i32) -> i32 {
    128 + signal
}
