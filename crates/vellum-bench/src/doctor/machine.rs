//! What else went on: processor time of this program and of others, and what others did with the
//! disk while nothing was written here.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// What the processors did while something was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Processors {
    /// What this program used, in processors.
    pub own: f64,
    /// The share of all processors that others used.
    pub others: f64,
    /// The share that the host kept.
    pub stolen: f64,
    /// The share of its time that a writer was ready and waited for a processor.
    pub waiting: f64,
}

/// With so much of all processors in use, a thread that is ready waits for one.
const SCARCE: f64 = 0.8;
/// A writer that waits for so much of its time is slow because of that.
const WAITING: f64 = 0.2;
/// The same for what the host keeps.
const STOLEN: f64 = 0.1;

impl Processors {
    /// Do others use so much of the processors that writers wait for one?
    pub(super) fn are_busy(&self) -> bool {
        self.others >= SCARCE || self.waiting >= WAITING
    }

    /// Does the host keep so much of them?
    pub(super) fn are_stolen(&self) -> bool {
        self.stolen >= STOLEN
    }

    /// One or the other.
    pub(super) fn are_scarce(&self) -> bool {
        self.are_busy() || self.are_stolen()
    }
}

/// What others did with the disk in a second, while nothing was written here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OtherIo {
    /// Reads and writes.
    pub operations: f64,
    /// Bytes of them.
    pub bytes: f64,
}

/// Of which cloud is the disk `name`, if its limits can be raised there? Disks of the machine
/// itself have other models.
pub(super) fn cloud_of(name: &str) -> Option<&'static str> {
    let model = Path::new("/sys/class/block").join(name).join("device/model");
    cloud_of_model(fs::read_to_string(model).ok()?.trim())
}

fn cloud_of_model(model: &str) -> Option<&'static str> {
    match model {
        "Amazon Elastic Block Store" => Some("aws"),
        "PersistentDisk" | "nvme_card-pd" => Some("google"),
        _ => None,
    }
}

/// Counters of the processors at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    at: Instant,
    own: Duration,
    busy: u64,
    stolen: u64,
    all: u64,
}

impl Moment {
    pub(super) fn now() -> Moment {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let own = clock_gettime(ClockId::ProcessCPUTime);
        let own = Duration::new(own.tv_sec as u64, own.tv_nsec as u32);
        let (busy, stolen, all) = counted(&stat);
        Moment { at: Instant::now(), own, busy, stolen, all }
    }

    /// What the processors did since then.
    pub(super) fn since(&self) -> Processors {
        let now = Moment::now();
        let seconds = (now.at - self.at).as_secs_f64().max(1e-9);
        let own = (now.own - self.own).as_secs_f64() / seconds;
        let all = now.all.saturating_sub(self.all).max(1) as f64;
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / all;
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let others = (share(now.busy, self.busy) - own / cores).max(0.0);
        Processors { own, others, stolen: share(now.stolen, self.stolen), waiting: 0.0 }
    }
}

/// For how long this thread was ready and had no processor, since it began; 0 where the kernel does
/// not count it.
pub(super) fn waited() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Busy, stolen and all of the first line of `/proc/stat`.
fn counted(stat: &str) -> (u64, u64, u64) {
    let words = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let counts: Vec<u64> = words.take(8).map(|word| word.parse().unwrap_or(0)).collect();
    let at = |index: usize| counts.get(index).copied().unwrap_or(0);
    let (idle, stolen, all) = (at(3) + at(4), at(7), counts.iter().sum::<u64>());
    (all - idle - stolen, stolen, all)
}

/// Waits for `pause` and tells what others did with `disks` in it, with the busiest of them.
pub(super) fn others(disks: &[String], pause: Duration) -> OtherIo {
    let before: Vec<_> = disks.iter().map(|disk| done(disk)).collect();
    let begun = Instant::now();
    std::thread::sleep(pause);
    let seconds = begun.elapsed().as_secs_f64();
    let rates = disks.iter().zip(before).map(|(disk, before)| {
        let now = done(disk);
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        OtherIo { operations: rate(now.0, before.0), bytes: rate(now.1, before.1) }
    });
    rates.max_by(|one, other| one.bytes.total_cmp(&other.bytes)).unwrap_or_default()
}

/// Reads and writes of a disk since it is there, and their bytes.
fn done(disk: &str) -> (u64, u64) {
    let stat = Path::new("/sys/class/block").join(disk).join("stat");
    let text = fs::read_to_string(stat).unwrap_or_default();
    let counts: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
    let at = |index: usize| counts.get(index).copied().unwrap_or(0);
    (at(0) + at(4), (at(2) + at(6)) * 512)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_stolen_time_is_not_busy() {
        let stat = "cpu  10 1 5 100 4 0 2 7 0 0\ncpu0 1 1 1 1 1 1 1 1\n";
        assert_eq!(counted(stat), (18, 7, 129));
        assert_eq!(counted(""), (0, 0, 0));
    }

    #[test]
    fn a_disk_of_the_machine_itself_is_of_no_cloud() {
        assert_eq!(cloud_of_model("Amazon Elastic Block Store"), Some("aws"));
        assert_eq!(cloud_of_model("Amazon EC2 NVMe Instance Storage"), None);
        assert_eq!((cloud_of_model("nvme_card"), cloud_of_model("")), (None, None));
    }

    #[test]
    fn this_machine_has_counters() {
        let then = Moment::now();
        assert!(then.all > 0);
        let others = others(&["no-such-disk".into()], Duration::from_millis(1));
        assert_eq!(others, OtherIo::default());
        assert!(then.since().own >= 0.0);
    }
}
