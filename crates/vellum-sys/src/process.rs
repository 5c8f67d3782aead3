//! The identity of a process, across forks, reuse of its number and PID namespaces.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::io::{self, Errno};

use crate::file;

/// Where the kernel tells its name for this boot.
pub const BOOT_ID_PATH: &str = "/proc/sys/kernel/random/boot_id";

/// Identity of one life of a process: its number alone comes back after it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// The number of the process.
    pub pid: u32,
    /// Start time of the first thread in clock ticks since boot, field 22 of its `stat`; 0 where
    /// unknown.
    pub start_ticks: u64,
    /// The namespaces in which `pid` and `start_ticks` mean something; 0 where unknown.
    pub namespace: u64,
}

/// The state of another process, by its incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// On a processor, or ready to be.
    Running,
    /// Waiting for something, as far as its first thread goes.
    Asleep,
    /// Stopped by a signal or a debugger: alive, and not continuing by itself.
    Stopped,
    /// It has ended.
    Gone,
    /// In a PID namespace that cannot be seen from here.
    Unknown,
}

impl Incarnation {
    /// The calling process.
    pub fn current() -> Incarnation {
        Incarnation::of(std::process::id())
    }

    /// The process that has this number now.
    pub fn of(pid: u32) -> Incarnation {
        let start_ticks = read_stat(pid).map_or(0, |stat| stat.start_ticks);
        Incarnation { pid, start_ticks, namespace: namespace() }
    }

    /// Whether this process still lives, as far as `/proc` tells.
    pub fn life(&self) -> Life {
        if self.namespace == 0 || self.namespace != namespace() || self.start_ticks == 0 {
            return Life::Unknown;
        }
        match read_stat(self.pid) {
            Some(stat) if stat.start_ticks != self.start_ticks => Life::Gone,
            Some(stat) => match stat.state {
                // Its first thread has ended; others may continue.
                b'Z' | b'X' | b'x' if !has_other_threads(self.pid) => Life::Gone,
                b'T' | b't' => Life::Stopped,
                b'R' => Life::Running,
                _ => Life::Asleep,
            },
            // Not visible: /proc may be missing, or hide the processes of other users.
            None if does_not_exist(self.pid) => Life::Gone,
            None => Life::Unknown,
        }
    }
}

impl Incarnation {
    /// Whether it is in a PID namespace that is not the caller's.
    pub fn is_elsewhere(&self) -> bool {
        let own = namespace();
        self.namespace != 0 && own != 0 && self.namespace != own
    }

    /// Whether it lives and continues only when another process continues it: stopped, or in a
    /// frozen control group (`docker pause`), which its state does not show.
    pub fn is_halted(&self) -> bool {
        match self.life() {
            Life::Stopped => true,
            Life::Running | Life::Asleep => is_frozen(self.pid),
            Life::Gone | Life::Unknown => false,
        }
    }
}

/// Whether a process's control group is frozen; of either version, and of both side by side.
fn is_frozen(pid: u32) -> bool {
    let groups = file::read_text(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let has = |file: String, line: &str| {
        file::read_text(file).is_some_and(|text| text.lines().any(|found| found == line))
    };
    groups.lines().any(|line| {
        // Number, controllers, group.
        let mut fields = line.splitn(3, ':').skip(1);
        match (fields.next(), fields.next()) {
            (Some(""), Some(group)) => ["", "/unified"]
                .iter()
                .any(|root| has(format!("/sys/fs/cgroup{root}{group}/cgroup.events"), "frozen 1")),
            (Some("freezer"), Some(group)) => {
                has(format!("/sys/fs/cgroup/freezer{group}/freezer.state"), "FROZEN")
            }
            _ => false,
        }
    })
}

fn has_other_threads(pid: u32) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.count() > 1)
}

fn does_not_exist(pid: u32) -> bool {
    // The number comes from a shared word and may be anything.
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0);
    let pid = pid.and_then(rustix::process::Pid::from_raw);
    pid.is_none_or(|pid| rustix::process::test_kill_process(pid) == Err(Errno::SRCH))
}

/// A number for the PID namespace, and the time namespace, in which start times are told.
fn namespace() -> u64 {
    let inode = |name: &str| {
        fs::metadata(format!("/proc/self/ns/{name}")).map_or(0, |metadata| metadata.ino())
    };
    match inode("pid") {
        0 => 0,
        pid => pid ^ inode("time").rotate_left(32),
    }
}

struct ProcessStat {
    state: u8,
    start_ticks: u64,
}

/// Reads the two fields that matter of the `stat` of a process's first thread; the name in brackets
/// may hold anything. `/proc/PID/stat` tells the same but under `qemu-user`, which makes up another
/// start time for the process that asks: all others would take it for dead.
fn read_stat(pid: u32) -> Option<ProcessStat> {
    let text = file::read(format!("/proc/{pid}/task/{pid}/stat")).ok()?;
    let after_name = text.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = text[after_name..].split(|byte| *byte == b' ').filter(|f| !f.is_empty());
    let state = *fields.next()?.first()?;
    let start_ticks = std::str::from_utf8(fields.nth(18)?).ok()?.parse().ok()?;
    Some(ProcessStat { state, start_ticks })
}

/// The kernel's name for this boot, or zeros where it is not told. That it cannot be read now is an
/// error: it must not pass for another boot.
pub fn boot_id() -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    let text = match file::read(BOOT_ID_PATH) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::PERM) => return Ok(id),
        text => text?,
    };
    let digits: Vec<u32> = text.iter().filter_map(|byte| char::from(*byte).to_digit(16)).collect();
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (pair[0] * 16 + pair[1]) as u8;
    }
    Ok(id)
}

/// A number that no other log has.
pub fn random_u64() -> u64 {
    let mut bytes = [0; 8];
    if rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) != Ok(8) {
        // No entropy at all: the clock and the process still tell logs of one machine apart.
        let clock = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        return (clock.tv_sec as u64) << 30 ^ clock.tv_nsec as u64 ^ u64::from(std::process::id());
    }
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_is_gone_and_its_number_alone_does_not_count() {
        let me = Incarnation::current();
        assert!(matches!(me.life(), Life::Running | Life::Asleep), "{:?}", me.life());
        assert_eq!(Incarnation { start_ticks: me.start_ticks + 1, ..me }.life(), Life::Gone);
        assert_eq!(Incarnation { namespace: me.namespace + 1, ..me }.life(), Life::Unknown);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        let start_ticks = read_stat(pid).unwrap().start_ticks;
        child.wait().unwrap();
        assert_eq!(Incarnation { pid, start_ticks, ..me }.life(), Life::Gone);
    }

    #[test]
    fn the_boot_has_a_name() {
        assert_ne!(boot_id().unwrap(), [0; 16]);
        assert_eq!(boot_id(), boot_id());
    }
}
