//! Commits as futures.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::task::JoinSet;
use vellum::{Committer, ErrorKind, Lsn, Options};
use vellum_testing::kernel::where_it_fails;

use super::{after_power_cut, staged};
use crate::support::child::{Child, say};
use crate::support::{payloads, place, scratch};

const TASKS: usize = 10_000;

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Appends and commits in ten thousand tasks, with hardly any descriptors.
pub(crate) fn await_without_descriptors(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let committer = Arc::new(log.committer().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, rustix::process::Rlimit { current: Some(64), maximum }).unwrap();
    let lsns = runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for number in 0..TASKS {
            let committer = Arc::clone(&committer);
            tasks.spawn(
                async move { committer.append_durable(&(number as u64).to_le_bytes()).await },
            );
        }
        tasks.join_all().await.into_iter().collect::<vellum::Result<Vec<Lsn>>>().unwrap()
    });
    assert!(lsns.iter().all(|lsn| *lsn < log.durable()));
    say(&format!("{}", lsns.len()));
}

#[test]
fn ten_thousand_futures_wait_for_one_committer_and_need_no_descriptors() {
    let dir = scratch();
    drop(Options::wal().open(place(&dir)).unwrap());
    let mut child = Child::start("await without descriptors", &[place(&dir).to_str().unwrap()]);
    child.expect(&TASKS.to_string());
    child.finish_well();
    let log = Options::default().open(place(&dir)).unwrap();
    let numbers = payloads(&log).into_iter().map(|bytes| bytes.try_into().unwrap());
    assert!(numbers.map(u64::from_le_bytes).eq(0..TASKS as u64), "in the order of the polls");
}

#[test]
fn a_future_that_is_dropped_loses_nothing() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let committer = log.committer().unwrap();
    let mut context = Context::from_waker(Waker::noop());
    // Not polled, not appended.
    drop(committer.append_durable(b"never"));
    for _ in 0..50 {
        let mut future = pin!(committer.append_durable(b"dropped"));
        let _either: Poll<_> = future.as_mut().poll(&mut context);
    }
    drop(committer.submit(log.append(b"submitted").unwrap()).unwrap());
    drop(committer);
    let copy = after_power_cut(&place(&dir));
    let left = payloads(&Options::default().open(super::place(&copy)).unwrap());
    assert_eq!(left.len(), 51);
    assert_eq!(left.last().unwrap(), b"submitted");
}

#[test]
fn the_waker_of_the_last_poll_is_woken() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let committer = log.committer().unwrap();
    // As long as it is held, nothing behind it is committed.
    let held = log.reserve(4).unwrap();
    let behind = log.append(b"behind").unwrap();
    let mut commit = pin!(committer.submit(behind).unwrap());
    let mut context = Context::from_waker(Waker::noop());
    assert!(commit.as_mut().poll(&mut context).is_pending());
    // Another task polls it now, and releases the reservation that the commit waits for.
    let mut held = Some(held);
    run(std::future::poll_fn(|context| {
        let answer = commit.as_mut().poll(context);
        drop(held.take());
        answer
    }))
    .unwrap();
    assert!(log.durable() > behind);
}

#[test]
fn a_committer_that_fails_tells_every_future() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let lsns: Vec<Lsn> = (0..10).map(|_| log.append(b"lost").unwrap()).collect();
    let outcomes = where_it_fails(libc::SYS_pwrite64, libc::EIO, || {
        // Its thread inherits that writes fail.
        let committer = log.committer().unwrap();
        let commits: Vec<_> = lsns.iter().map(|lsn| committer.submit(*lsn).unwrap()).collect();
        run(async {
            let mut outcomes = Vec::new();
            for commit in commits {
                outcomes.push(commit.await);
            }
            outcomes
        })
    });
    for outcome in outcomes {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Poisoned);
    }
    let committer = log.committer().unwrap();
    let error = run(committer.append_durable(b"too late")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
}

fn is_readable(committer: &Committer) -> bool {
    let descriptor = committer.descriptor().unwrap();
    let no_time = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&no_time)).unwrap() == 1
}

#[test]
fn one_descriptor_tells_of_all_commits() {
    let dir = scratch();
    let log = Options::wal().open(place(&dir)).unwrap();
    let committer = log.committer().unwrap();
    assert!(is_readable(&committer), "what was committed before has told nobody");
    committer.take().unwrap();
    assert!(!is_readable(&committer));
    let mut newest = Lsn::ZERO;
    for number in 0..200u64 {
        newest = log.append(&number.to_le_bytes()).unwrap();
        drop(committer.submit(newest).unwrap());
    }
    // No end is missed: it is taken until all of it is durable.
    while committer.take().unwrap() <= newest {
        let descriptor = committer.descriptor().unwrap();
        poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], None).unwrap();
    }
    drop(committer);
    assert!(newest < log.durable());
}

#[test]
fn the_descriptor_tells_of_a_commit_that_fails() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let lsn = log.append(b"lost").unwrap();
    where_it_fails(libc::SYS_pwrite64, libc::EIO, || {
        // Its thread inherits that writes fail.
        let committer = log.committer().unwrap();
        assert!(is_readable(&committer));
        committer.take().unwrap();
        drop(committer.submit(lsn).unwrap());
        let descriptor = committer.descriptor().unwrap();
        poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], None).unwrap();
        assert_eq!(committer.take().unwrap_err().kind(), ErrorKind::Poisoned);
        assert!(committer.take().unwrap() <= lsn, "each failure is told once");
    });
}
