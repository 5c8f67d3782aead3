//! Ranges that a living process has reserved, could not fill, and could not pad: others pad them as
//! soon as that can be done, and no hole is ever published.

use std::sync::atomic::{AtomicBool, Ordering};

use vellum::{ErrorKind, Fill, Layout, Log, Options, Preallocate, Tuning};

use super::full::Small;
use crate::support::child::{self, Child};
use crate::support::{LAYOUTS, Over, PATIENCE, assert_sound, payload, payloads};

/// A record that takes a page and starts with it, so that a full disk has no room for a pad either.
fn page(log: &Log, seed: u64) -> Vec<u8> {
    let len = if log.layout() == Layout::Framed { 4088 } else { 4096 };
    payload(log.layout(), seed, len)
}

fn without_blocks(layout: Layout) -> Options {
    vellum::internal::options(layout).tuning(
        Tuning::new()
            .fill(Fill::Pwrite)
            .preallocate(Preallocate::Off)
            .segment_capacity_bytes(1 << 20),
    )
}

/// Fails to append on a full disk, lives on, and appends again when told to.
pub(crate) fn give_up_and_live_on(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let error = log.append(&page(&log, 1)).unwrap_err();
    child::say(&format!("{:?}", error.kind()));
    while child::hear().is_some() {
        log.append(&page(&log, 2)).unwrap();
        child::say("appended");
    }
}

/// Appends and commits once.
pub(crate) fn append_and_commit(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    log.append_durable(&page(&log, 3)).unwrap();
    child::say("durable");
}

#[test]
fn what_a_living_process_could_not_fill_holds_nobody_up() {
    for layout in LAYOUTS {
        let Some(small) = Small::tmpfs("what_a_living_process_could_not_fill") else { return };
        let path = small.log();
        let arguments = [path.to_str().unwrap()];
        let log = without_blocks(layout).open(&path).unwrap();
        let first = log.append(&page(&log, 0)).unwrap();
        small.take_all();
        let mut alive = Child::start("give up and live on", &arguments);
        alive.expect("NoSpace");
        // Nothing can be padded yet, and nothing more is reserved.
        let tail = log.tail();
        for _ in 0..3 {
            assert_eq!(log.append(&page(&log, 4)).unwrap_err().kind(), ErrorKind::NoSpace);
        }
        assert!(log.tail().get() <= tail.get() + 4096, "each process gives up once");
        small.leave_all();
        let mut committer = Child::start("append and commit", &arguments);
        committer.expect("durable");
        committer.finish_well();
        let mut reader = log.reader(first).unwrap();
        let mut follow = || reader.follow(Some(PATIENCE)).unwrap().map(|r| r.payload.to_vec());
        assert_eq!(follow(), Some(page(&log, 0)), "{layout}");
        while follow().unwrap() != page(&log, 3) {}
        alive.tell("go on");
        alive.expect("appended");
        alive.finish_well();
        log.append(&page(&log, 5)).unwrap();
        let found = payloads(&log);
        let seeds = [0, 3, 2, 5].map(|seed| page(&log, seed));
        assert!(seeds.iter().all(|page| found.contains(page)), "{layout}");
        assert_sound(&log);
    }
}

#[test]
fn threads_on_a_full_disk_publish_no_hole() {
    for layout in LAYOUTS {
        let Some(small) = Small::tmpfs("threads_on_a_full_disk") else { return };
        // For the end: the log itself will take the rest of the space.
        small.fill();
        let log = without_blocks(layout).open(small.log()).unwrap();
        let is_over = AtomicBool::new(false);
        let append = |thread: u64| {
            let record = payload(layout, thread, 3000);
            let mut kept = 0;
            while !is_over.load(Ordering::Relaxed) {
                match log.append(&record) {
                    Ok(_) => kept += 1,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}"),
                }
            }
            (record, kept)
        };
        let kept: Vec<_> = std::thread::scope(|scope| {
            let writers: Vec<_> =
                (0..8).map(|thread| scope.spawn(move || append(thread))).collect();
            let over = Over(&is_over);
            for _ in 0..60 {
                small.take_all();
                small.leave_all();
            }
            drop(over);
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        small.make_space();
        log.append(&payload(layout, 9, 100)).unwrap();
        // Pads what the last of them has given up.
        log.sync().unwrap();
        assert_sound(&log);
        assert_eq!(log.published(), log.tail(), "{layout}");
        let found = payloads(&log);
        for (record, kept) in kept {
            assert_eq!(found.iter().filter(|found| **found == record).count(), kept, "{layout}");
        }
    }
}
