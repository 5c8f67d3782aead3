//! A daemon that has closed its standard descriptors: no file of a log takes their place, so what
//! is written to standard error goes into no log.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use vellum::{Fill, Layout, Log, Lsn, Options, Tuning};

use crate::support::child::{self, Child};
use crate::support::{Over, assert_sound, payload, payloads, place, scratch, until};

const RECORDS: u64 = 40;

/// Small segments of every kind, so that many files are opened.
fn kinds() -> [(&'static str, Options); 4] {
    let of = |layout, fill| {
        vellum::internal::options(layout)
            .tuning(Tuning::new().fill(fill).segment_capacity_bytes(8192))
    };
    [
        ("staged", of(Layout::Framed, Fill::Staged)),
        ("framed", of(Layout::Framed, Fill::Mapped)),
        ("text", of(Layout::Text, Fill::Mapped)),
        (
            "text by pwrite",
            of(Layout::Text, Fill::Pwrite).rotate_bytes(5000).compress(cfg!(feature = "zstd")),
        ),
    ]
}

fn record(layout: Layout, seed: u64) -> Vec<u8> {
    payload(layout, seed, 1000)
}

/// Runs `act` without descriptors 0 to 2, while a thread writes to each of them.
fn without_standard_descriptors(act: impl FnOnce()) {
    // SAFETY: only numbers change hands, and no thread of this process uses them meanwhile.
    let kept = [0, 1, 2].map(|fd| unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 10) });
    let give_back = move || {
        for (fd, kept) in (0..).zip(kept) {
            // SAFETY: as above.
            unsafe { libc::dup2(kept, fd) };
        }
    };
    // So that a panic is seen.
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back();
        print(panic);
    }));
    for fd in 0..3 {
        // SAFETY: as above.
        unsafe { libc::close(fd) };
    }
    let stop = AtomicBool::new(false);
    let is_written = std::thread::scope(|scope| {
        let over = Over(&stop);
        let writer = scope.spawn(|| {
            let mut is_written = false;
            while !is_written && !stop.load(Ordering::Relaxed) {
                is_written = (0..3).any(write_to);
            }
            is_written
        });
        act();
        drop(over);
        writer.join().unwrap()
    });
    // SAFETY: as above.
    let taken = (0..3).filter(|fd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } != -1).count();
    give_back();
    assert!(!is_written, "what was written to a standard descriptor went somewhere");
    assert_eq!(taken, 0, "standard descriptors are in use");
}

fn write_to(fd: i32) -> bool {
    // SAFETY: the bytes are static.
    unsafe { libc::write(fd, c"noise".as_ptr().cast(), 5) != -1 }
}

/// Opens everything that a log can open.
pub(crate) fn use_everything_without_standard_descriptors(arguments: &[String]) {
    without_standard_descriptors(|| {
        let log = Options::default().open(&arguments[0]).unwrap();
        let event = (log.layout() == Layout::Framed).then(|| log.checkpoint().event().unwrap());
        let cursor = log.cursor("reader", Lsn::ZERO).unwrap();
        let mut reader = log.reader(Lsn::ZERO).unwrap().pollable().unwrap();
        append_and_commit(&log);
        while reader.next().unwrap().is_some() {}
        cursor.set(log.tail()).unwrap();
        drop(event);
        assert!(Options::default().read_only(true).open(&arguments[0]).unwrap().stat().is_ok());
    });
    child::say("done");
}

fn append_and_commit(log: &Log) {
    let committer = log.committer().unwrap();
    for seed in 0..RECORDS {
        let lsn = log.append(&record(log.layout(), seed)).unwrap();
        let completion = committer.submit(lsn).unwrap();
        until("it is committed", || completion.outcome()).unwrap();
    }
    log.verify().unwrap();
}

#[test]
fn no_file_takes_the_place_of_a_standard_descriptor() {
    for (kind, options) in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let layout = log.layout();
        drop(log);
        in_daemon(&place(&dir));
        let log = Options::default().open(place(&dir)).unwrap();
        let expected: Vec<_> = (0..RECORDS).map(|seed| record(layout, seed)).collect();
        assert!(payloads(&log) == expected, "{kind}");
        assert_sound(&log);
    }
}

fn in_daemon(log: &Path) {
    let role = "use everything without standard descriptors";
    let mut daemon = Child::start(role, &[log.to_str().unwrap()]);
    daemon.expect("done");
    daemon.finish_well();
}
