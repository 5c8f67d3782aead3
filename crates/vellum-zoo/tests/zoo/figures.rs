//! What each animal does with a few requests, by the counts and the clock of the disk itself.

use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use vellum_zoo::{Cut, Figures};

use super::support::{Cage, is_possible};

const BLOCK_LEN: usize = 4096;

/// What `count` writes of a block come to that are each flushed.
fn figures(names: &str, parameters: &[&str], count: u64) -> Figures {
    let cage = Cage::new(names, parameters);
    cage.probe().commit(count);
    let figures = cage.figures();
    assert_eq!((figures.writes.count, figures.flushes.count), (count, count), "{figures:?}");
    assert_eq!(figures.writes.bytes, count * BLOCK_LEN as u64);
    assert_eq!((figures.writes.failed, figures.flushes.failed), (0, 0));
    figures
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn a_sound_disk_delays_nothing_and_loses_nothing() {
    if !is_possible() {
        return;
    }
    let figures = figures("sound", &[], 50);
    assert_eq!((figures.writes.delayed, figures.flushes.delayed), (ms(0), ms(0)));
    let cage = Cage::new("sound", &[]);
    cage.probe().write(0, 7, BLOCK_LEN).unwrap();
    assert_eq!(cage.device.disk().cut().unwrap(), Cut::default());
    assert!(cage.probe().read(0).is_err(), "the power is gone");
    cage.device.disk().power_on();
    assert_eq!(cage.probe().read(0).unwrap(), 7);
}

#[test]
fn a_slow_flush_takes_its_time_each() {
    if !is_possible() {
        return;
    }
    let begun = Instant::now();
    let figures = figures("slow-flush", &["flush=5ms", "write=1ms"], 20);
    assert_eq!((figures.writes.delayed, figures.flushes.delayed), (ms(20), ms(100)));
    // It cannot have been faster than it counted.
    assert!(begun.elapsed() >= ms(120));
}

#[test]
fn a_durable_write_is_a_write_and_a_flush() {
    if !is_possible() {
        return;
    }
    let cage = Cage::new("no-fua", &["flush=2ms", "write=0"]);
    let flags = (OFlags::DIRECT | OFlags::DSYNC).bits() as i32;
    let mut options = std::fs::File::options();
    let file = options.write(true).custom_flags(flags).open(cage.device.path()).unwrap();
    let room = vec![1u8; 2 * BLOCK_LEN];
    let start = room.as_ptr().align_offset(BLOCK_LEN);
    for block in 0..10 {
        file.write_all_at(&room[start..start + BLOCK_LEN], block * BLOCK_LEN as u64).unwrap();
    }
    let figures = cage.figures();
    assert_eq!(figures.writes.count, 10);
    // Of the block device itself the kernel flushes twice: for the write, and behind it.
    assert!(figures.flushes.count >= 10, "{figures:?}");
    assert_eq!(figures.flushes.delayed, ms(2) * figures.flushes.count as u32);
    let path = format!("/sys/block/loop{}/queue/fua", cage.device.number());
    if let Ok(text) = std::fs::read_to_string(path) {
        assert_eq!(text.trim(), "0", "no loop device has it");
    }
}

/// What is in the first `count` blocks after a cut that comes behind their flushes.
fn after_cut(names: &str, parameters: &[&str], count: u64) -> (Cut, Vec<u8>) {
    let cage = Cage::new(names, parameters);
    let mut probe = cage.probe();
    probe.commit(count);
    probe.write(count * BLOCK_LEN as u64, 9, BLOCK_LEN).unwrap();
    let cut = cage.device.disk().cut().unwrap();
    cage.device.disk().power_on();
    cage.device.forget_cached().unwrap();
    let found = (0..=count).map(|block| probe.read(block * BLOCK_LEN as u64).unwrap());
    (cut, found.collect())
}

#[test]
fn caches_forget_what_their_kind_forgets() {
    if !is_possible() {
        return;
    }
    let (cut, found) = after_cut("forgets", &["kept=0"], 10);
    assert_eq!((cut.forgotten, &found[..]), (1, &[7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0][..]));
    let (cut, found) = after_cut("lying", &["cache=32K"], 10);
    assert_eq!((cut.forgotten, &found[..]), (8, &[7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0][..]));
    let (cut, found) = after_cut("forgets-flushed", &["kept=1", "lost=3"], 10);
    assert_eq!((cut.flushed_lost, cut.kept), (3, 1));
    assert_eq!(found, [7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 9]);
}

#[test]
fn a_budget_ends() {
    if !is_possible() {
        return;
    }
    // 20 operations are free, and the other 20 come at 200 in a second: 5 ms each, from when the
    // first one was asked for.
    let parameters = ["operations=20", "operation-rate=200"];
    let begun = Instant::now();
    let cage = Cage::new("budget", &parameters);
    cage.probe().commit(10);
    assert_eq!(cage.figures().flushes.delayed, ms(0));
    cage.probe().commit(10);
    let figures = cage.figures();
    assert!(figures.writes.delayed + figures.flushes.delayed > ms(0));
    assert!(begun.elapsed() >= ms(100));
}

#[test]
fn a_throttle_lets_through_what_it_says() {
    if !is_possible() {
        return;
    }
    let begun = Instant::now();
    // 40 operations, one at once.
    figures("throttled", &["operations=1", "operation-rate=400", "byte-rate=0"], 20);
    assert!(begun.elapsed() >= ms(97));
    let begun = Instant::now();
    let cage = Cage::new("throttled", &["operation-rate=0", "bytes=0", "byte-rate=8M"]);
    for block in 0..16 {
        cage.probe().write(block << 16, 1, 64 << 10).unwrap();
    }
    assert_eq!(cage.figures().writes.bytes, 1 << 20);
    assert!(begun.elapsed() >= ms(125));
}

#[test]
fn a_stall_holds_whatever_comes() {
    if !is_possible() {
        return;
    }
    let cage = Cage::new("stalls", &["every=40ms", "for=20ms"]);
    let begun = Instant::now();
    let mut probe = cage.probe();
    while begun.elapsed() < ms(200) {
        probe.commit(1);
    }
    let figures = cage.figures();
    let longest = figures.writes.delayed_max.max(figures.flushes.delayed_max);
    assert!(longest > ms(0) && longest <= ms(20), "{figures:?}");
}

#[test]
fn a_burst_is_slow_and_the_time_before_it_is_not() {
    if !is_possible() {
        return;
    }
    let delayed = |length| {
        let length = format!("for={length}");
        let figures = figures("bursts", &["every=1000s", &length, "cost=1ms"], 5);
        (figures.writes.delayed, figures.flushes.delayed)
    };
    assert_eq!(delayed("1000s"), (ms(5), ms(5)));
    assert_eq!(delayed("1s"), (ms(0), ms(0)));
    let figures = figures("slow-flush", &["flush=1ms", "begins=1000s"], 5);
    assert_eq!(figures.flushes.delayed, ms(0));
}

#[test]
fn only_writes_of_the_journal_are_slow() {
    if !is_possible() {
        return;
    }
    let cage = Cage::new("slow-journal", &["cost=3ms"]);
    cage.probe().commit(5);
    assert_eq!(cage.figures().writes.delayed, ms(0));
    cage.probe().write_bytes(0, &[0xc0, 0x3b, 0x39, 0x98]).unwrap();
    assert_eq!(cage.figures().writes.delayed, ms(3));
}

#[test]
fn a_write_that_is_dropped_is_answered_and_goes_nowhere() {
    if !is_possible() {
        return;
    }
    let cage = Cage::new("drops", &["share=1"]);
    cage.probe().commit(1);
    assert_eq!((cage.probe().read(0).unwrap(), cage.figures().writes.count), (0, 1));
    let cage = Cage::new("drops", &["share=0.5"]);
    cage.probe().commit(64);
    let mut probe = cage.probe();
    let kept = (0..64).filter(|block| probe.read(block * BLOCK_LEN as u64).unwrap() == 7).count();
    assert!((10..54).contains(&kept), "{kept}");
}

#[test]
fn parts_of_physical_sectors_cost_more() {
    if !is_possible() {
        return;
    }
    let cage = Cage::new("512e", &["cost=3ms"]);
    let mut probe = cage.probe();
    probe.write(0, 1, BLOCK_LEN).unwrap();
    assert_eq!(cage.figures().writes.delayed, ms(0));
    probe.write(512, 1, 512).unwrap();
    probe.write(1024, 1, BLOCK_LEN).unwrap();
    assert_eq!(cage.figures().writes.delayed, ms(6));
}

#[test]
fn a_neighbour_and_jitter_delay_by_their_seeds() {
    if !is_possible() {
        return;
    }
    // 100 writes of 4096 bytes take 41 ms of a device that does 10 MB in a second, if it is idle.
    let parameters = ["bandwidth=10000000", "share=0.8", "bytes=64K"];
    let beside = figures("neighbour", &parameters, 100);
    assert!(beside.writes.delayed + beside.flushes.delayed > ms(80), "{beside:?}");
    let figures = figures("jitter", &["median=1ms", "sigma=0.5"], 100);
    assert!((ms(90)..ms(140)).contains(&figures.flushes.delayed), "{figures:?}");
    assert!(figures.flushes.delayed_max > ms(2));
}

#[test]
fn requests_fail_from_the_one_that_was_named() {
    if !is_possible() {
        return;
    }
    let cage = Cage::new("fails", &["what=write", "at=3", "count=1"]);
    let mut probe = cage.probe();
    let results = [0; 5].map(|_| probe.write(0, 1, BLOCK_LEN).is_ok());
    assert_eq!(results, [true, true, false, true, true]);
    let cage = Cage::new("fails", &["what=flush", "at=2"]);
    let results = [0; 4].map(|_| cage.probe().flush().is_ok());
    assert_eq!(results, [true, false, false, false]);
    let cage = Cage::new("fails", &["what=any", "from=1M", "to=2M"]);
    let results = [0, 1, 2].map(|mib| cage.probe().write(mib << 20, 1, BLOCK_LEN).is_ok());
    assert_eq!(results, [true, false, true]);
}

#[test]
fn animals_in_one_disk_do_what_each_does() {
    if !is_possible() {
        return;
    }
    let figures =
        figures("slow-flush+no-fua+lying", &["slow-flush.flush=2ms", "no-fua.flush=3ms"], 5);
    assert_eq!(figures.flushes.delayed, ms(25));
}
