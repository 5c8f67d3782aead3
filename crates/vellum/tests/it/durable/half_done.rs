//! A call that fails half-way leaves a log as it was before or as it is after, also for the next
//! process.

use std::fs;
use std::path::Path;

use rustix::fs::{IFlags, ioctl_setflags};
use vellum::{ErrorKind, Log, Lsn, Options};

use super::{after_power_cut, kinds};
use crate::support::{
    Read, assert_holds, is_root, payload, place, scratch, segment_files, skip, until,
};

/// A file or directory that no process may change, until this is dropped.
struct Immutable<'a>(&'a Path);

impl Immutable<'_> {
    fn new<'a>(test: &str, path: &'a Path) -> Option<Immutable<'a>> {
        if is_root(test) && set_flags(path, IFlags::IMMUTABLE) {
            return Some(Immutable(path));
        }
        skip(test, "nothing can be made immutable here");
        None
    }
}

impl Drop for Immutable<'_> {
    fn drop(&mut self) {
        set_flags(self.0, IFlags::empty());
    }
}

fn set_flags(path: &Path, flags: IFlags) -> bool {
    fs::File::open(path).is_ok_and(|file| ioctl_setflags(file, flags).is_ok())
}

fn append(log: &Log, seed: u64) -> Read {
    let bytes = payload(log.layout(), seed, 200 + seed as usize * 37 % 900);
    (log.append(&bytes).unwrap(), bytes)
}

/// Truncates once no other test is in the middle of starting a process, which shares our locks
/// until it is another program.
fn truncate(log: &Log, from: Lsn) -> vellum::Result<()> {
    until("the log can be had alone", || match log.truncate(from) {
        Err(error) if error.kind() == ErrorKind::Busy => None,
        answer => Some(answer),
    })
}

#[test]
fn a_truncation_that_cannot_begin_leaves_the_log_as_it_was() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let mut all: Vec<_> = (0..60).map(|seed| append(&log, seed)).collect();
        log.sync().unwrap();
        {
            let place = place(&dir);
            let Some(_held) = Immutable::new("a truncation that fails", &place) else { return };
            assert_eq!(truncate(&log, all[10].0).unwrap_err().kind(), ErrorKind::PermissionDenied);
        }
        all.extend((60..80).map(|seed| append(&log, seed)));
        log.sync().unwrap();
        let copy = after_power_cut(&place(&dir));
        assert_holds(&Options::default().open(place(&copy)).unwrap(), &all);
        truncate(&log, all[10].0).unwrap();
        assert_holds(&log, &all[..10]);
    }
}

#[test]
fn a_truncation_that_cannot_end_lets_nobody_append_what_would_be_cut_off() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let mut all: Vec<_> = (0..60).map(|seed| append(&log, seed)).collect();
        log.sync().unwrap();
        let files = segment_files(&place(&dir));
        assert!(files.len() > 2);
        {
            let Some(_held) = Immutable::new("a truncation that stops", &files[1]) else { return };
            assert_eq!(truncate(&log, all[3].0).unwrap_err().kind(), ErrorKind::PermissionDenied);
            let error = log.append(b"lost").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Poisoned);
            assert!(error.to_string().contains("finish truncating"), "{error}");
            assert_eq!(log.truncate(all[3].0).unwrap_err().kind(), ErrorKind::Poisoned);
        }
        drop(log);
        let log = Options::default().open(place(&dir)).unwrap();
        all.truncate(3);
        assert_holds(&log, &all);
        all.extend((60..80).map(|seed| append(&log, seed)));
        log.sync().unwrap();
        let copy = after_power_cut(&place(&dir));
        assert_holds(&Options::default().open(place(&copy)).unwrap(), &all);
    }
}

#[test]
fn files_behind_a_truncation_have_durable_names_again() {
    let dir = scratch();
    let log = kinds()[1].open(place(&dir)).unwrap();
    let lsns: Vec<_> = (0..60).map(|seed| append(&log, seed).0).collect();
    log.sync().unwrap();
    let named_end = || {
        let control = fs::read(place(&dir).join("control")).unwrap();
        // The fifth word of `ends`, behind `poison` and `lock`.
        let offset = 4096 + 197_632 + 2 * 128 + 4 * 8;
        u64::from_le_bytes(control[offset..offset + 8].try_into().unwrap())
    };
    assert!(named_end() > lsns[59].get());
    truncate(&log, lsns[3]).unwrap();
    assert_eq!(named_end(), log.stat().unwrap().prepared_end.get());
    assert!(named_end() < lsns[59].get());
}

#[test]
fn a_segment_that_cannot_be_named_takes_no_space() {
    for options in kinds().into_iter().take(3) {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let end = log.stat().unwrap().prepared_end;
        let obstacle = place(&dir).join(format!("{:016x}.seg", end.get()));
        fs::create_dir(&obstacle).unwrap();
        assert_eq!(log.prepare(5).unwrap_err().kind(), ErrorKind::Io);
        assert!(!place(&dir).join("segment.new").exists());
        // So little is left that a seal does not fit, and there is no place for another segment.
        let left = end.get() - log.tail().get();
        let lsn = log.append(&vec![5; left as usize - 8 - 8]).unwrap();
        assert_eq!(log.checkpoint().set(lsn).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(log.checkpoint().lsn(), Lsn::ZERO, "as it was before");
        log.commit(lsn).unwrap();
        fs::remove_dir(&obstacle).unwrap();
        log.checkpoint().set(lsn).unwrap();
        let copy = after_power_cut(&place(&dir));
        assert_eq!(Options::default().open(place(&copy)).unwrap().checkpoint().lsn(), lsn);
    }
}

#[test]
fn a_trim_that_cannot_remove_files_is_taken_up_by_the_next() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let mut all: Vec<_> = (0..60).map(|seed| append(&log, seed)).collect();
        log.sync().unwrap();
        let files = segment_files(&place(&dir));
        {
            let Some(_held) = Immutable::new("a trim that fails", &files[0]) else { return };
            assert_eq!(log.trim(all[30].0).unwrap_err().kind(), ErrorKind::PermissionDenied);
            assert_eq!(log.begin(), all[30].0);
            all.extend((60..70).map(|seed| append(&log, seed)));
            log.sync().unwrap();
        }
        assert_holds(&log, &all[30..]);
        log.trim(all[31].0).unwrap();
        assert!(segment_files(&place(&dir)).iter().all(|file| *file != files[0]));
        let copy = after_power_cut(&place(&dir));
        let recovered = Options::default().open(place(&copy)).unwrap();
        let found = crate::support::read_all(&recovered);
        assert!(found.ends_with(&all[31..]));
    }
}
