//! As many participants as there is room for, and one more.

use vellum::{ErrorKind, Layout, Log, Options, Tuning};

use crate::support::child::{self, Child};
use crate::support::{assert_sound, place, read_all, scratch, skip, small};

const PARTICIPANTS_MAX: usize = 1024;

fn raise_descriptor_limit() -> bool {
    let wanted = PARTICIPANTS_MAX as u64 + 200;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` outlives both calls.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = wanted.max(limit.rlim_cur);
        limit.rlim_max = limit.rlim_max.max(wanted);
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0
    }
}

pub(crate) fn crowd(arguments: &[String]) {
    if !raise_descriptor_limit() {
        return child::say("no descriptors");
    }
    let open = || Options::default().open(&arguments[0]);
    let mut logs: Vec<Log> = Vec::new();
    let error = loop {
        match open() {
            Ok(log) => logs.push(log),
            Err(error) => break error,
        }
        assert!(logs.len() <= PARTICIPANTS_MAX, "there is no limit");
    };
    child::say(&format!("{} {:?}", logs.len(), error.kind()));
    assert!(error.to_string().contains("1024"), "{error}");
    // Attached processes are not affected, and one that leaves makes room.
    for log in logs.iter().step_by(100) {
        log.append(b"here\n").unwrap();
    }
    assert_eq!(logs[0].stat().unwrap().participants.len(), logs.len());
    drop(logs.swap_remove(500));
    logs.push(open().expect("there is room again"));
    logs.last().unwrap().append(b"last\n").unwrap();
    assert_eq!(open().unwrap_err().kind(), ErrorKind::TooManyParticipants);
    child::say("done");
}

/// A few participants that have used all the slots they can get, and as many others as fit.
pub(crate) fn busy_crowd(arguments: &[String]) {
    const THREADS: usize = 128;
    if !raise_descriptor_limit() {
        return child::say("no descriptors");
    }
    let open = || Options::default().open(&arguments[0]).unwrap();
    let mut logs: Vec<Log> = (0..8).map(|_| open()).collect();
    for log in &logs {
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| log.append(b"many\n").unwrap());
            }
        });
    }
    child::say("many slots");
    logs.extend((8..PARTICIPANTS_MAX).map(|_| open()));
    child::say("many participants");
    for log in &logs {
        log.append(b"one\n").unwrap();
    }
    child::say("one by one");
    // At the same time: more than there are slots to be lent.
    std::thread::scope(|scope| {
        for log in &logs[600..] {
            scope.spawn(|| log.append(b"together\n").unwrap());
        }
    });
    let lsn = logs[PARTICIPANTS_MAX - 1].append(b"last\n").unwrap();
    logs[PARTICIPANTS_MAX - 1].commit(lsn).unwrap();
    child::say("done");
}

#[test]
fn as_many_participants_as_there_are_places_append() {
    let dir = scratch();
    drop(
        small(Layout::Framed)
            .tuning(Tuning::new().segment_capacity_bytes(1 << 20))
            .open(place(&dir))
            .unwrap(),
    );
    let mut crowd = Child::start("busy crowd", &[place(&dir).to_str().unwrap()]);
    match crowd.hears().as_deref() {
        Some("no descriptors") => return skip("as_many_participants", "too few descriptors"),
        answer => assert_eq!(answer, Some("many slots")),
    }
    ["many participants", "one by one", "done"].iter().for_each(|answer| crowd.expect(answer));
    crowd.finish_well();
    let log = Options::default().open(place(&dir)).unwrap();
    assert_eq!(read_all(&log).len(), 8 * 128 + 1024 + 424 + 1);
    assert_sound(&log);
}

#[test]
fn one_participant_too_many_is_refused_and_hurts_nobody() {
    let dir = scratch();
    drop(small(Layout::Framed).open(place(&dir)).unwrap());
    let mut crowd = Child::start("crowd", &[place(&dir).to_str().unwrap()]);
    match crowd.hears().as_deref() {
        Some("no descriptors") => return skip("one_participant_too_many", "too few descriptors"),
        answer => assert_eq!(answer, Some("1024 TooManyParticipants")),
    }
    crowd.expect("done");
    crowd.finish_well();
    let log = Options::default().open(place(&dir)).unwrap();
    assert_eq!(read_all(&log).len(), 12);
    assert_sound(&log);
}
