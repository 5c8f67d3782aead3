//! Several handles, many threads, several processes: all of one log.

use std::io::Write;

use vellum::stat::SegmentState;
use vellum::{Layout, Log, Options, Tuning};

use crate::support::child::{self, Child};
use crate::support::{LAYOUTS, assert_holds, assert_sound, payloads, place, scratch, small};

#[test]
fn a_log_may_be_used_by_any_thread() {
    fn is_shareable<T: Send + Sync>() {}
    fn is_movable<T: Send>() {}
    is_shareable::<Log>();
    is_movable::<vellum::Reader>();
    is_shareable::<vellum::Error>();
}

#[test]
fn several_handles_of_one_process_are_one_log() {
    for layout in LAYOUTS {
        let dir = scratch();
        let mut logs: Vec<Log> = (0..5).map(|_| small(layout).open(place(&dir)).unwrap()).collect();
        let mut expected = Vec::new();
        for index in 0..200 {
            let line = format!("{index}\n").into_bytes();
            expected.push((logs[index % 5].append(&line).unwrap(), line));
        }
        logs.iter().for_each(|log| assert_holds(log, &expected));
        assert_eq!(logs[0].stat().unwrap().participants.len(), 5);
        let last = logs.pop().unwrap();
        drop(logs);
        assert_holds(&last, &expected);
        assert_eq!(last.stat().unwrap().participants.len(), 1, "who leaves is no participant");
    }
}

#[test]
fn more_threads_than_slots_share_one_handle() {
    const THREADS: usize = 300;
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let log = &log;
                scope.spawn(move || {
                    for index in 0..20 {
                        log.append(format!("{thread} {index}\n").as_bytes()).unwrap();
                    }
                });
            }
        });
        let mut next = [0; THREADS];
        for line in payloads(&log) {
            let line = String::from_utf8(line).unwrap();
            let (thread, index) = line.trim_end().split_once(' ').unwrap();
            let next = &mut next[thread.parse::<usize>().unwrap()];
            assert_eq!(index.parse::<usize>().unwrap(), *next, "in order per thread");
            *next += 1;
        }
        assert!(next.iter().all(|count| *count == 20));
        assert_sound(&log);
    }
}

/// Opens a log, holds a reservation, and does as it is told.
pub(crate) fn hold_a_log(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let mut reservation = log.reserve(5).unwrap();
    child::say("holds");
    child::hear();
    reservation.write_all(b"held\n").unwrap();
    reservation.publish().unwrap();
}

#[test]
fn stat_tells_what_the_log_is_and_who_is_there() {
    let dir = scratch();
    let options = Options::events().tuning(Tuning::new().segment_capacity_bytes(64 << 10));
    let log = options.open(place(&dir)).unwrap();
    for _ in 0..30 {
        log.append(&[1; 5000]).unwrap();
    }
    let end = log.published();
    let mut holder = Child::start("hold a log", &[place(&dir).to_str().unwrap()]);
    holder.expect("holds");
    log.append(b"behind").unwrap();
    let stat = log.stat().unwrap();
    assert_eq!((stat.layout, stat.segment_capacity_bytes), (Layout::Framed, 64 << 10));
    assert_eq!((stat.begin, stat.published, stat.tail), (log.begin(), end, log.tail()));
    assert!(stat.durable <= stat.published && stat.published < stat.tail);
    assert!(stat.tail <= stat.prepared_end);
    assert!(!stat.filesystem.is_empty() && !stat.preallocate_reason.is_empty());
    let states: Vec<_> = stat.segments.iter().map(|segment| segment.state).collect();
    assert_eq!(states[..2], [SegmentState::Sealed; 2]);
    assert!(states.contains(&SegmentState::Active));
    assert!(stat.segments.windows(2).all(|pair| pair[0].first_lsn < pair[1].first_lsn));
    assert!(stat.segments.iter().all(|s| s.path.exists() && s.file_bytes > 0));
    let find = |pid: u32| stat.participants.iter().find(|p| p.pid == pid).unwrap();
    let (me, other) = (find(std::process::id()), find(holder.pid() as u32));
    assert!(me.alive && !me.stopped && me.in_flight.is_empty());
    assert!(other.alive && !other.stopped);
    assert_eq!(other.in_flight.len(), 1);
    assert_eq!((other.in_flight[0].first_lsn, other.in_flight[0].bytes), (end, 16));
    assert_eq!(stat.held_back_by().map(|p| p.pid), Some(other.pid));
    holder.tell("publish");
    holder.finish_well();
    let stat = log.stat().unwrap();
    assert_eq!((stat.published, stat.participants.len()), (stat.tail, 1));
    assert!(stat.held_back_by().is_none());
    assert_eq!((stat.repairs, stat.repaired_bytes), (0, 0), "nobody died");
}

#[test]
fn stat_counts_the_repair_of_what_a_dead_process_held() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let mut holder = Child::start("hold a log", &[place(&dir).to_str().unwrap()]);
        holder.expect("holds");
        let behind = log.append(b"behind\n").unwrap();
        let pid = holder.pid() as u32;
        holder.kill();
        let dead = log.stat().unwrap().participants.into_iter().find(|p| p.pid == pid).unwrap();
        assert!(!dead.alive, "stat tells the dead from the living");
        let mut reader = log.reader(behind).unwrap();
        let found = reader.follow(Some(crate::support::PATIENCE)).unwrap().unwrap();
        assert_eq!((found.lsn, found.payload), (behind, b"behind\n".as_slice()));
        let stat = log.stat().unwrap();
        let bytes = if layout == Layout::Framed { 16 } else { 5 };
        assert_eq!((stat.repairs, stat.repaired_bytes), (1, bytes));
        assert_sound(&log);
    }
}
