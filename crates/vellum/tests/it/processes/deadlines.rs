//! A call with a time limit gives up behind a stopped process, names it, and has changed nothing.

use std::path::Path;
use std::time::Duration;

use vellum::stat::HoldKind;
use vellum::{Error, ErrorKind, Layout, Lsn, Options};

use super::holds::{LOCKS, hold_of, set_holder, stop, stopped_participant};
use crate::support::child::Child;
use crate::support::{
    LAYOUTS, Over, assert_sound, payload, place, read_all, scratch, small, until,
};

/// Long enough that a healthy log never needs it, short enough to wait for in vain.
const TIMEOUT: Duration = Duration::from_millis(300);

#[track_caller]
fn assert_blames(error: &Error, holder: &Child) {
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    let blame = format!("is held by process {}, which is stopped; others have", holder.pid());
    assert!(error.to_string().contains(&blame), "{error}");
}

/// Runs `attempt` while the stopped `holder` has the lock that `what` is about.
fn behind<T>(log: &Path, what: HoldKind, holder: &Child, attempt: impl FnOnce() -> T) -> T {
    let (_, lock) = LOCKS.into_iter().find(|(kind, _)| *kind == what).unwrap();
    set_holder(log, lock, Some(holder.pid()));
    let answer = attempt();
    set_holder(log, lock, None);
    answer
}

#[test]
fn an_append_that_gives_up_has_reserved_nothing() {
    for options in [small(Layout::Framed), small(Layout::Text), Options::wal().exclusive(false)] {
        let dir = scratch();
        let log = options.timeout(TIMEOUT).open(place(&dir)).unwrap();
        let holder = stopped_participant(&log);
        let record = payload(log.layout(), 1, 200);
        let mut lsns = Vec::new();
        let error = behind(log.path(), HoldKind::Space, &holder, || {
            loop {
                match log.append(&record) {
                    Ok(lsn) => lsns.push(lsn),
                    Err(error) => break error,
                }
            }
        });
        assert_blames(&error, &holder);
        assert_eq!(log.published(), log.tail(), "nothing is in flight");
        assert!(log.stat().unwrap().participants.iter().all(|p| p.in_flight.is_empty()));
        lsns.push(log.append(&record).unwrap());
        let found: Vec<Lsn> = read_all(&log).into_iter().map(|(lsn, _)| lsn).collect();
        assert_eq!(found, lsns);
        assert_sound(&log);
    }
}

#[test]
fn a_reservation_and_a_batch_give_up_as_appends_do() {
    let dir = scratch();
    let log = small(Layout::Framed).timeout(TIMEOUT).open(place(&dir)).unwrap();
    let holder = stopped_participant(&log);
    let long = vec![1; 5000];
    behind(log.path(), HoldKind::Space, &holder, || {
        assert_blames(&log.reserve(long.len()).unwrap_err(), &holder);
        let mut batch = log.batch();
        batch.push(&long).unwrap();
        assert_blames(&batch.append().unwrap_err(), &holder);
        assert_blames(&log.prepare(3).unwrap_err(), &holder);
    });
    assert_eq!(read_all(&log), []);
    assert_eq!(log.published(), log.tail());
}

#[test]
fn a_commit_that_gives_up_leaves_the_record_to_be_committed_later() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let path = place(&dir);
        let mut holder = Child::start("hold a reservation", &[path.to_str().unwrap(), "100"]);
        holder.expect("holds");
        stop(&holder, &log);
        let lsn = log.append(b"behind\n").unwrap();
        let durable = log.durable();
        let error = log.commit_within(lsn, TIMEOUT).unwrap_err();
        assert_blames(&error, &holder);
        assert!(error.to_string().contains("the reservation from"), "{error}");
        assert!(log.durable() <= lsn && log.durable() >= durable);
        holder.signal(libc::SIGCONT);
        holder.tell("publish");
        holder.expect("published");
        log.commit(lsn).unwrap();
        assert!(log.durable() > lsn);
        holder.finish_well();
        assert_sound(&log);
    }
}

#[test]
fn a_commit_gives_up_behind_every_lock_and_batch_that_it_needs() {
    for options in [Options::default(), Options::wal().exclusive(false)] {
        let dir = scratch();
        let log = options.timeout(TIMEOUT).open(place(&dir)).unwrap();
        let holder = stopped_participant(&log);
        let lsn = log.append(b"a record").unwrap();
        behind(log.path(), HoldKind::Commit, &holder, || {
            assert_blames(&log.commit(lsn).unwrap_err(), &holder);
            assert_blames(&log.sync().unwrap_err(), &holder);
            assert_blames(&log.append_durable(b"another").unwrap_err(), &holder);
            assert_blames(&log.checkpoint().set(lsn).unwrap_err(), &holder);
        });
        log.commit(lsn).unwrap();
        holder.kill();
        let mut writer = Child::start("commit without end", &[place(&dir).to_str().unwrap()]);
        writer.expect("ready");
        until("it is stopped with a batch in its hands", || {
            stop(&writer, &log);
            let hold = hold_of(&log, HoldKind::CommitGroup, &writer);
            if hold.is_none() {
                writer.signal(libc::SIGCONT);
            }
            hold
        });
        let behind_it = log.append(b"behind").unwrap();
        let error = log.commit(behind_it).unwrap_err();
        assert_blames(&error, &writer);
        assert!(error.to_string().contains("the commit group from"), "{error}");
        // The dead are not waited for.
        writer.kill();
        log.commit(behind_it).unwrap();
    }
}

/// A leader writes its batch, and finds the lock held by one that is stopped when it wants to say
/// so.
#[test]
fn what_a_commit_has_written_before_it_gives_up_others_make_known() {
    let dir = scratch();
    let log = Options::default().timeout(TIMEOUT).open(place(&dir)).unwrap();
    let holder = stopped_participant(&log);
    let path = log.path();
    let (_, lock) = LOCKS[2];
    let lsn = log.append(b"a record").unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let commits = scope.spawn(|| {
            let _over = Over(&is_over);
            let mut last = Ok(());
            while last.is_ok() {
                let lsn = log.append(b"another").unwrap();
                last = log.commit(lsn);
            }
            last.unwrap_err()
        });
        // Whatever the thread has in its hands when the lock is taken away.
        set_holder(path, lock, Some(holder.pid()));
        while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
            set_holder(path, lock, Some(holder.pid()));
            std::thread::yield_now();
        }
        assert_blames(&commits.join().unwrap(), &holder);
    });
    set_holder(path, lock, None);
    log.commit(lsn).unwrap();
    let end = log.sync().unwrap();
    assert_eq!(end, log.published());
    assert!(log.stat().unwrap().holds.is_empty());
    assert_sound(&log);
}

#[test]
fn a_log_without_stopped_processes_never_gives_up() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).timeout(Duration::from_secs(30)).open(place(&dir)).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let log = &log;
                scope.spawn(move || {
                    for index in 0..100 {
                        let record = payload(layout, thread * 100 + index, 200);
                        let lsn = log.append(&record).unwrap();
                        log.commit_within(lsn, Duration::from_secs(30)).unwrap();
                    }
                });
            }
        });
        assert_eq!(read_all(&log).len(), 400);
        // Durable records are not waited for.
        log.commit_within(log.begin(), Duration::ZERO).unwrap();
    }
}
