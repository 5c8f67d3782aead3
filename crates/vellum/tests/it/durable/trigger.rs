//! When a checkpoint is due, and the event for it.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use vellum::{CheckpointEvent, ErrorKind, Log, Options, Tuning};

use super::{after_power_cut, staged};
use crate::support::{Over, PATIENCE, child, child::Child, fork, place, scratch};

const LIMIT: u64 = 4096;

fn limited() -> Options {
    staged().tuning(Tuning::new().checkpoint_after_bytes(LIMIT))
}

fn is_readable(event: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(event, PollFlags::IN)];
    poll(&mut fds, Some(&Default::default())).unwrap() == 1
}

/// Appends and commits until a checkpoint is due.
fn fill(log: &Log) {
    while !log.checkpoint().is_due() {
        log.append_durable(&[7; 500]).unwrap();
    }
}

/// Stores a checkpoint at the durable end.
fn checkpoint(log: &Log) {
    log.checkpoint().set(log.durable()).unwrap();
}

#[test]
fn a_checkpoint_is_due_when_so_many_bytes_are_durable_behind_it() {
    let dir = scratch();
    let log = limited().open(place(&dir)).unwrap();
    let start = log.begin().get();
    let lsn = log.append(&[1; 2 * LIMIT as usize]).unwrap();
    assert!(!log.checkpoint().is_due(), "what is not durable does not count");
    log.commit(lsn).unwrap();
    assert!(log.checkpoint().is_due());
    checkpoint(&log);
    assert!(!log.checkpoint().is_due());
    fill(&log);
    let bytes = log.durable().get() - log.checkpoint().lsn().get();
    assert!((LIMIT..LIMIT + 1500).contains(&bytes), "{bytes} behind the checkpoint");
    assert!(log.checkpoint().lsn().get() > start);
}

#[test]
fn what_was_trimmed_is_not_to_be_recovered() {
    let dir = scratch();
    let log = limited().open(place(&dir)).unwrap();
    fill(&log);
    log.trim(log.published()).unwrap();
    assert!(!log.checkpoint().is_due());
}

#[test]
fn nothing_is_due_without_a_limit_or_in_a_text_log() {
    for options in [staged(), staged().tuning(Tuning::new().checkpoint_after_bytes(0))] {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        log.append_durable(&[1; 9000]).unwrap();
        assert!(!log.checkpoint().is_due());
        let event = log.checkpoint().event().unwrap();
        log.append_durable(&[1; 9000]).unwrap();
        assert!(!is_readable(&event) && !event.take().unwrap());
    }
    let dir = scratch();
    let text = Options::mapped_text().tuning(Tuning::new().checkpoint_after_bytes(1));
    let text = text.open(place(&dir)).unwrap();
    text.append_durable(b"a line\n").unwrap();
    assert!(!text.checkpoint().is_due());
    assert_eq!(text.checkpoint().event().unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn the_limit_counts_what_a_recovery_finds_and_belongs_to_the_process() {
    let dir = scratch();
    let log = limited().open(place(&dir)).unwrap();
    fill(&log);
    let copy = after_power_cut(&place(&dir));
    let recovered = limited().open(place(&copy)).unwrap();
    assert!(recovered.checkpoint().is_due());
    assert!(is_readable(&recovered.checkpoint().event().unwrap()), "it is readable at once");
    assert!(!staged().open(place(&dir)).unwrap().checkpoint().is_due(), "each has its own limit");
    let reader = limited().read_only(true).open(place(&dir)).unwrap();
    assert!(reader.checkpoint().is_due());
    assert_eq!(reader.checkpoint().event().unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn the_commit_that_reaches_the_limit_sets_the_event() {
    let dir = scratch();
    let log = limited().open(place(&dir)).unwrap();
    let event = log.checkpoint().event().unwrap();
    assert!(!is_readable(&event));
    fill(&log);
    assert!(is_readable(&event));
    log.append_durable(b"more").unwrap();
    assert!(event.take().unwrap());
    assert!(!is_readable(&event), "one call resets it, however often a commit found it due");
}

#[test]
fn it_is_set_again_where_no_checkpoint_was_made() {
    let dir = scratch();
    let log = limited().open(place(&dir)).unwrap();
    let event = log.checkpoint().event().unwrap();
    fill(&log);
    assert!(event.take().unwrap());
    log.append_durable(b"the checkpoint has failed").unwrap();
    assert!(is_readable(&event));
    checkpoint(&log);
    assert!(!event.take().unwrap(), "this wake-up is in vain");
    log.append_durable(b"small").unwrap();
    assert!(!is_readable(&event));
    fill(&log);
    assert!(is_readable(&event), "and the next event is not lost");
}

#[test]
fn all_events_of_a_log_are_one_descriptor() {
    let dir = scratch();
    let log = limited().open(place(&dir)).unwrap();
    let (one, other) = (log.checkpoint().event().unwrap(), log.checkpoint().event().unwrap());
    assert_eq!(one.as_raw_fd(), other.as_raw_fd());
    fill(&log);
    assert!(one.take().unwrap() && !is_readable(&other));
    drop(one);
    drop(log);
    assert!(other.take().unwrap(), "an event keeps the log open");
}

#[test]
fn a_committer_sets_it_too() {
    let dir = scratch();
    let log = limited().open(place(&dir)).unwrap();
    let event = log.checkpoint().event().unwrap();
    let committer = log.committer().unwrap();
    let _commit = committer.submit(log.append(&[1; 9000]).unwrap()).unwrap();
    assert!(hears(&event) && event.take().unwrap());
}

/// Two threads commit as long as the calling one makes checkpoints, each time it is told.
#[test]
fn no_event_is_lost_between_threads() {
    const CHECKPOINTS: u64 = 600;
    let dir = scratch();
    let log = limited().open(place(&dir)).unwrap();
    let event = log.checkpoint().event().unwrap();
    let is_over = AtomicBool::new(false);
    let write = || {
        while !is_over.load(Ordering::Relaxed) {
            log.append_durable(&[3; 900]).unwrap();
        }
    };
    let made = std::thread::scope(|scope| {
        let _over = Over(&is_over);
        let _writers = [scope.spawn(write), scope.spawn(write)];
        let made = (0..CHECKPOINTS).take_while(|_| hears(&event)).map(|_| {
            if event.take().unwrap() {
                checkpoint(&log);
            }
        });
        made.count() as u64
    });
    assert_eq!(made, CHECKPOINTS, "an event was lost");
}

/// Whether the event is set within a time in which it always is.
fn hears(event: &CheckpointEvent) -> bool {
    let patience = rustix::fs::Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    poll(&mut [PollFd::new(event, PollFlags::IN)], Some(&patience)).unwrap() == 1
}

/// A role: a forked child leaves the parent's event alone, and asks by itself.
pub(super) fn forked_checkpointer(arguments: &[String]) {
    let log = limited().open(&arguments[0]).unwrap();
    let event = log.checkpoint().event().unwrap();
    let pid = fork::fork(|| {
        fill(&log);
        assert_eq!(event.take().unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(log.checkpoint().event().unwrap_err().kind(), ErrorKind::Unsupported);
        0
    });
    assert_eq!(fork::wait(pid), 0);
    assert!(!is_readable(&event));
    assert!(log.checkpoint().is_due(), "the parent can ask");
    log.append_durable(b"one more").unwrap();
    assert!(is_readable(&event), "and its next commit sets it");
    assert!(event.take().unwrap());
    child::say("done");
}

#[test]
fn a_forked_child_leaves_the_event_to_its_parent() {
    let dir = scratch();
    let mut child = Child::start("forked checkpointer", &[place(&dir).to_str().unwrap()]);
    child.expect("done");
    assert!(child.finish().success());
}

/// A role: a forked child closes every descriptor, as daemons do, and opens others in their places;
/// then it closes the log and the event that it inherited.
pub(super) fn daemon_with_an_event(arguments: &[String]) {
    const PLACES: i32 = 40;
    let mut inherited = Some(limited().open(&arguments[0]).unwrap());
    let mut event = Some(inherited.as_ref().unwrap().checkpoint().event().unwrap());
    let pid = fork::fork(|| {
        // SAFETY: closes and opens descriptors that nothing of this process uses afterwards, but
        // the log, which this is about; the string ends with NUL.
        let opened: Vec<i32> = unsafe {
            (3..PLACES).for_each(|fd| assert!(libc::close(fd) >= -1));
            (3..PLACES).map(|_| libc::open(c"/dev/null".as_ptr(), libc::O_RDWR)).collect()
        };
        fill(inherited.as_ref().unwrap());
        drop((inherited.take(), event.take()));
        // SAFETY: only asks.
        let is_open = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } != -1;
        i32::from(!opened.iter().all(is_open))
    });
    assert_eq!(fork::wait(pid), 0, "nothing of others was closed");
    child::say("done");
}

#[test]
fn a_daemon_closes_no_descriptor_that_came_in_the_place_of_its_parents_event() {
    let dir = scratch();
    let mut child = Child::start("daemon with an event", &[place(&dir).to_str().unwrap()]);
    child.expect("done");
    child.finish_well();
}
