//! Forks, descriptors and signals: F20, F23 and F24.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::process::{Signal, set_parent_process_death_signal};
use vellum::{Layout, Log, Lsn, Options, Tuning};

use crate::support::child::{self, Child, command};
use crate::support::{
    LAYOUTS, Over, PATIENCE, assert_sound, fork, memory_scratch, payload, payloads, place,
    read_all, scratch, small,
};

const FORKS: usize = 200;

/// Forks again and again while other threads append; each child appends at once.
pub(crate) fn fork_beside_threads(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&stop);
        for thread in 0..3 {
            let (log, stop) = (&log, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    log.append(format!("thread {thread}\n").as_bytes()).unwrap();
                }
            });
        }
        for index in 0..FORKS {
            let pid = fork::fork(|| {
                let line = format!("child {index}\n");
                let lsn = log.append(line.as_bytes()).unwrap();
                assert!(log.tail() > lsn);
                0
            });
            let ended = fork::wait_patiently(pid);
            assert_eq!(ended, Some(0), "child {index} appends and ends");
        }
    });
    child::say("done");
}

// F20: a child forked while another thread held a lock could never append.
#[test]
fn a_child_forked_beside_appending_threads_appends_at_once() {
    for layout in LAYOUTS {
        let dir = scratch();
        let options = small(layout).tuning(Tuning::new().segment_capacity_bytes(64 << 10));
        let log = options.open(place(&dir)).unwrap();
        let mut forker = Child::start("fork beside threads", &[place(&dir).to_str().unwrap()]);
        forker.expect("done");
        forker.finish_well();
        let found = payloads(&log);
        let of_children = found.iter().filter(|line| line.starts_with(b"child "));
        let expected = (0..FORKS).map(|index| format!("child {index}\n").into_bytes());
        assert!(of_children.cloned().eq(expected), "each child's record, once");
        assert_sound(&log);
    }
}

/// Forks while another thread opens the first log of this process; each child opens one at once.
pub(crate) fn fork_beside_the_first_opening(arguments: &[String]) {
    let place = |name: String| Path::new(&arguments[0]).join(name);
    let has_begun = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            has_begun.store(true, Ordering::SeqCst);
            drop(Options::events().open(place("parent".into())).unwrap());
        });
        while !has_begun.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
        let children: Vec<i32> = (0..20)
            .map(|index| {
                fork::fork(|| {
                    // Where one hangs, the others are not left behind.
                    let _ = set_parent_process_death_signal(Some(Signal::KILL));
                    drop(Options::events().open(place(format!("child {index}"))).unwrap());
                    0
                })
            })
            .collect();
        for child in children {
            assert_eq!(fork::wait_patiently(child), Some(0), "a child opens a log");
        }
    });
    child::say("done");
}

#[test]
fn a_child_forked_beside_the_first_opening_opens_a_log_of_its_own() {
    for _ in 0..20 {
        let dir = memory_scratch();
        let mut forker =
            Child::start("fork beside the first opening", &[dir.path().to_str().unwrap()]);
        forker.expect("done");
        forker.finish_well();
    }
}

/// Opens, appends and closes many times; says how many descriptors and mappings were left over.
pub(crate) fn open_and_close(arguments: &[String]) {
    let cycle = || {
        let log = Options::default().open(&arguments[0]).unwrap();
        log.append(b"record\n").unwrap();
        assert!(log.reader(Lsn::ZERO).unwrap().next().unwrap().is_some());
        let view = Options::default().read_only(true).open(&arguments[0]).unwrap();
        assert!(view.stat().unwrap().tail > Lsn::ZERO);
    };
    let count = || {
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().count();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        (descriptors, maps.lines().count())
    };
    (0..10).for_each(|_| cycle());
    let before = count();
    (0..1000).for_each(|_| cycle());
    let after = count();
    assert_eq!(before.0, after.0, "descriptors");
    assert!(after.1 <= before.1 + 5, "mappings: {} and then {}", before.1, after.1);
    child::say("done");
}

// F24: every open leaked descriptors and mappings; there was no close.
#[test]
fn a_thousand_opens_and_closes_leave_nothing_behind() {
    for layout in LAYOUTS {
        let dir = scratch();
        drop(small(layout).open(place(&dir)).unwrap());
        let mut cycler = Child::start("open and close", &[place(&dir).to_str().unwrap()]);
        cycler.expect("done");
        cycler.finish_well();
        let log = Options::default().open(place(&dir)).unwrap();
        assert_eq!(read_all(&log).len(), 1010);
        assert_eq!(log.stat().unwrap().participants.len(), 1);
    }
}

/// Opens a log and replaces itself by another program.
pub(crate) fn execute_another_program(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    log.append(b"before\n").unwrap();
    let _reader = log.reader(Lsn::ZERO).unwrap();
    let _reservation = log.reserve(7).unwrap();
    panic!("{}", command("list descriptors", &[&arguments[0]]).exec());
}

/// Says which of its descriptors are files of the log.
pub(crate) fn list_descriptors(arguments: &[String]) {
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = links.filter_map(|link| std::fs::read_link(link.unwrap().path()).ok());
    let ours: Vec<_> = targets.filter(|path| path.starts_with(&arguments[0])).collect();
    child::say(&format!("{ours:?}"));
    child::hear();
}

// F24: descriptors were inherited by every program that the process executed.
#[test]
fn an_executed_program_inherits_nothing_and_what_it_left_is_repaired() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let mut other = Child::start("execute another program", &[place(&dir).to_str().unwrap()]);
        other.expect("[]");
        // The process lives on, and is no participant any more: its reservation is padded.
        let lsn = log.append(b"after\n").unwrap();
        let mut reader = log.reader(lsn).unwrap();
        assert!(reader.follow(Some(PATIENCE)).unwrap().is_some());
        other.finish_well();
        assert_sound(&log);
    }
}

static ALARMS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_alarm(_: libc::c_int) {
    ALARMS.fetch_add(1, Ordering::Relaxed);
}

/// Appends while a timer interrupts every system call that can be interrupted.
pub(crate) fn append_under_signals(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let every = libc::timeval { tv_sec: 0, tv_usec: 1000 };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: the action is valid all zeros but for the handler, which only counts; no SA_RESTART.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count_alarm as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()), 0);
        assert_eq!(libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()), 0);
    }
    append_series(&log);
    assert!(ALARMS.load(Ordering::Relaxed) > 0);
    // SAFETY: as above; stops the timer.
    unsafe {
        let timer: libc::itimerval = std::mem::zeroed();
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
    child::say("done");
}

fn series(layout: Layout) -> impl Iterator<Item = Vec<u8>> {
    let lens = [100, 9000, 200_000, 3_000_000, 1, 60_000];
    (0..60).map(move |index| payload(layout, index, lens[index as usize % lens.len()]))
}

fn append_series(log: &Log) {
    for record in series(log.layout()) {
        let mut reader = log.reader(log.tail()).unwrap();
        log.append(&record).unwrap();
        assert!(reader.follow(Some(PATIENCE)).unwrap().unwrap().payload == record);
    }
}

// F23: a short or interrupted write was a failure.
#[test]
fn signals_interrupt_nothing() {
    for layout in LAYOUTS {
        let dir = memory_scratch();
        let log = vellum::internal::options(layout).open(place(&dir)).unwrap();
        let mut other = Child::start("append under signals", &[place(&dir).to_str().unwrap()]);
        other.expect("done");
        other.finish_well();
        assert!(payloads(&log).into_iter().eq(series(layout)));
        assert_sound(&log);
    }
}

#[test]
fn mappings_of_a_closed_log_are_gone() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    log.append(&[1; 100]).unwrap();
    let is_mapped = |path: &Path| {
        std::fs::read_to_string("/proc/self/maps").unwrap().contains(path.to_str().unwrap())
    };
    assert!(is_mapped(&place(&dir)));
    drop(log);
    assert!(!is_mapped(&place(&dir)));
}
