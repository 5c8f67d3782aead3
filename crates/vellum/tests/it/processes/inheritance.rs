//! The inheritance of a forked child: a participant's presence, and locks that must block no
//! process.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use vellum::{ErrorKind, Fill, Layout, Log, Options, Tuning};

use crate::support::child::{self, Child};
use crate::support::{
    Over, PATIENCE, assert_sound, fork, memory_scratch, payloads, place, scratch, small,
};

const COMMITTED: usize = 100;

/// A record of the test: a line, so that both layouts take it.
fn line(index: usize) -> Vec<u8> {
    format!("record {index}\n").into_bytes()
}

/// Every layout and way to fill.
fn kinds() -> [Options; 5] {
    let of = |layout, fill| {
        vellum::internal::options(layout)
            .tuning(Tuning::new().fill(fill).segment_capacity_bytes(16384))
    };
    [
        of(Layout::Framed, Fill::Staged),
        of(Layout::Framed, Fill::Mapped),
        of(Layout::Framed, Fill::Pwrite),
        of(Layout::Text, Fill::Mapped),
        of(Layout::Text, Fill::Pwrite),
    ]
}

/// Commits, forks a worker and leaves the log to it; the worker appends when it is told to, commits
/// where `arguments[1]` says so, and is killed in the middle of its life.
pub(crate) fn commit_fork_and_leave(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    for index in 0..COMMITTED {
        log.append_durable(&line(index)).unwrap();
    }
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let pid = fork::fork(|| {
        assert_eq!(reader.read(&mut [0]).unwrap(), 1);
        match arguments[1].as_str() {
            "commit" => log.append_durable(&line(COMMITTED)).unwrap(),
            _ => log.append(&line(COMMITTED)).unwrap(),
        };
        // SAFETY: ends this process at once, as a crash would.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        0
    });
    drop(log);
    writer.write_all(b"!").unwrap();
    child::say(&format!("worker {:?}", fork::wait_patiently(pid)));
}

#[test]
fn what_a_worker_appends_after_its_master_has_left_is_there_and_all_before_it() {
    crate::support::in_own_process(|| {
        for options in kinds() {
            for then in ["commit", "append"] {
                let dir = scratch();
                drop(options.open(place(&dir)).unwrap());
                let arguments = [place(&dir).to_str().unwrap().to_string(), then.to_string()];
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let mut master = Child::start("commit, fork and leave", &arguments);
                master.expect("worker Some(-9)");
                master.finish_well();
                let log = options.open(place(&dir)).unwrap();
                let expected: Vec<_> = (0..=COMMITTED).map(line).collect();
                assert!(payloads(&log) == expected, "{then}, {options:?}");
                log.append_durable(&line(COMMITTED + 1)).unwrap();
                assert_sound(&log);
            }
        }
    });
}

/// Forks a worker that does nothing until it is told to end; then truncates.
pub(crate) fn truncate_beside_a_child(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let from = log.append(&line(0)).unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let pid = fork::fork(|| {
        // The parent's end only, or this process would wait for itself.
        // SAFETY: the writer is not used in this process any more.
        unsafe { libc::close(writer.as_raw_fd()) };
        assert_eq!(reader.read(&mut [0]).unwrap(), 0);
        0
    });
    let refused = log.truncate(from).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy);
    // Present again: no process truncates beside this one either.
    child::say("refused");
    child::hear();
    drop(writer);
    assert_eq!(fork::wait_patiently(pid), Some(0));
    log.truncate(from).unwrap();
    log.append(&line(1)).unwrap();
    child::say("truncated");
}

#[test]
fn a_child_that_has_not_attached_yet_keeps_its_parent_from_truncating() {
    crate::support::in_own_process(|| {
        for options in kinds() {
            let dir = scratch();
            drop(options.open(place(&dir)).unwrap());
            let mut other =
                Child::start("truncate beside a child", &[place(&dir).to_str().unwrap()]);
            other.expect("refused");
            let log = options.open(place(&dir)).unwrap();
            assert_eq!(log.truncate(log.begin()).unwrap_err().kind(), ErrorKind::Busy);
            drop(log);
            other.tell("go on");
            other.expect("truncated");
            other.finish_well();
            assert_eq!(payloads(&options.open(place(&dir)).unwrap()), [line(1)]);
        }
    });
}

/// Forks idle children while another thread opens and closes the log, until the parent ends it.
pub(crate) fn fork_beside_openers(arguments: &[String]) {
    const FORKS: usize = 100;
    let (mut reader, writer) = std::io::pipe().unwrap();
    let stop = AtomicBool::new(false);
    let pids = std::thread::scope(|scope| {
        let _over = Over(&stop);
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let log = Options::default().open(&arguments[0]).unwrap();
                    log.append(b"record\n").unwrap();
                }
            });
        }
        let fork_one = |_| {
            fork::fork(|| {
                // SAFETY: as in `truncate_beside_a_child`.
                unsafe { libc::close(writer.as_raw_fd()) };
                i32::from(reader.read(&mut [0]).unwrap() != 0)
            })
        };
        (0..FORKS).map(fork_one).collect::<Vec<_>>()
    });
    child::say("forked");
    child::hear();
    drop(writer);
    for pid in pids {
        assert_eq!(fork::wait_patiently(pid), Some(0));
    }
}

#[test]
fn locks_that_children_inherit_stop_nobody_from_opening() {
    crate::support::in_own_process(|| {
        for layout in crate::support::LAYOUTS {
            let dir = memory_scratch();
            drop(small(layout).open(place(&dir)).unwrap());
            let mut forker = Child::start("fork beside openers", &[place(&dir).to_str().unwrap()]);
            assert_eq!(forker.hears_within(PATIENCE / 2), Ok(Some("forked".into())), "{layout}");
            let mut newcomer =
                Child::start("append a few", &[place(&dir).to_str().unwrap(), "new"]);
            assert_eq!(newcomer.hears_within(PATIENCE / 2), Ok(Some("done".into())), "{layout}");
            newcomer.finish_well();
            forker.finish_well();
            assert_sound(&Options::default().open(place(&dir)).unwrap());
        }
    });
}

/// A daemon: forks, closes every descriptor and opens others in their places; then it appends.
pub(crate) fn close_all_and_append(arguments: &[String]) {
    const PLACES: i32 = 40;
    let mut log = Some(Options::default().open(&arguments[0]).unwrap());
    let appended =
        |log: &Option<Log>, index| log.as_ref().unwrap().append_durable(&line(index)).is_ok();
    assert!(appended(&log, 0));
    let pid = fork::fork(|| {
        // SAFETY: closes and opens descriptors that nothing of this process uses afterwards, but
        // the log, which this is about; the string ends with NUL.
        let opened: Vec<i32> = unsafe {
            (3..PLACES).for_each(|fd| assert!(libc::close(fd) >= -1));
            (3..PLACES).map(|_| libc::open(c"/dev/null".as_ptr(), libc::O_RDWR)).collect()
        };
        assert!(appended(&log, 1));
        // The child's alone: the parent's memory is another.
        drop(log.take());
        // SAFETY: only asks.
        let is_open = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } != -1;
        i32::from(!opened.iter().all(is_open))
    });
    assert_eq!(fork::wait_patiently(pid), Some(0), "nothing of others was closed");
    let pid = fork::fork(|| {
        // SAFETY: as above.
        unsafe { (3..PLACES).for_each(|fd| assert!(libc::close(fd) >= -1)) };
        // The new descriptors get the numbers of the old ones.
        i32::from(!(appended(&log, 2) && appended(&log, 3)))
    });
    assert_eq!(fork::wait_patiently(pid), Some(0), "nothing of its own was closed");
    child::say("done");
}

#[test]
fn a_child_that_closed_all_descriptors_closes_none_of_those_that_came_in_their_places() {
    crate::support::in_own_process(|| {
        for options in kinds() {
            let dir = scratch();
            drop(options.open(place(&dir)).unwrap());
            let mut daemon = Child::start("close all and append", &[place(&dir).to_str().unwrap()]);
            daemon.expect("done");
            daemon.finish_well();
            let log = options.open(place(&dir)).unwrap();
            assert_eq!(payloads(&log), (0..4).map(line).collect::<Vec<_>>());
        }
    });
}
