//! Envelopes: the time and the writer of each record, by every path that writes and reads one.

use std::fs;
use std::io::{IoSlice, Write};
use std::time::SystemTime;

use vellum::{
    ErrorKind, Fill, Layout, Log, Lsn, Options, OwnedRecord, Preallocate, Tuning, WriterId, repair,
};

use crate::support::child::{self, Child};
use crate::support::crc::seal_control_header;
use crate::support::{assert_sound, fork, payload, place, scratch, segment_files, small};

const ALL_FILLS: [Fill; 3] = [Fill::Mapped, Fill::Pwrite, Fill::Staged];

fn enveloped() -> Options {
    small(Layout::Framed).envelope(true)
}

fn all(log: &Log) -> Vec<OwnedRecord> {
    log.reader(Lsn::ZERO).unwrap().into_iter().map(Result::unwrap).collect()
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    payload(Layout::Framed, seed, len)
}

/// Appends records by every path there is; returns those that must be read.
fn append_in_every_way(log: &Log) -> Vec<(Lsn, Vec<u8>)> {
    let mut appended = Vec::new();
    for (seed, len) in (0..).zip([0, 1, 15, 16, 300, 4056, 4072, 4096, 9000, 200_000]) {
        appended.push((log.append(&bytes(seed, len)).unwrap(), bytes(seed, len)));
    }
    for count in [0, 1, 2, 12] {
        let parts: Vec<Vec<u8>> = (0..count).map(|seed| bytes(seed, 40)).collect();
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        appended.push((log.append_vectored(&slices).unwrap(), parts.concat()));
    }
    let members: Vec<Vec<u8>> = [0, 7, 500, 3000].map(|len| bytes(len as u64, len)).to_vec();
    let mut batch = log.batch();
    members.iter().for_each(|member| batch.push(member).unwrap());
    appended.extend(batch.append_each().unwrap().into_iter().zip(members));
    for (seed, len) in [(50, 0), (51, 100), (52, 9000)] {
        let mut reservation = log.reserve(len).unwrap();
        let payload = bytes(seed, len);
        assert_eq!(reservation.remaining(), len);
        reservation.write_all(&payload).unwrap();
        appended.push((reservation.publish().unwrap(), payload));
    }
    let mut reservation = log.reserve(100).unwrap();
    reservation.write_all(&[0; 100]).unwrap();
    reservation.rewrite(10, &[1; 80]).unwrap();
    let rewritten = [&[0; 10][..], &[1; 80], &[0; 10]].concat();
    appended.push((reservation.publish().unwrap(), rewritten));
    drop(log.reserve(100).unwrap());
    let mut writer = log.writer();
    writer.write_all(b"piece by ").unwrap();
    writer.write_all(b"piece").unwrap();
    appended.push((writer.append().unwrap(), b"piece by piece".to_vec()));
    appended
}

#[test]
fn every_record_has_its_time_and_writer_whichever_way_it_is_written_and_read() {
    for fill in ALL_FILLS {
        let dir = scratch();
        let before = SystemTime::now();
        let log = enveloped().tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        let appended = append_in_every_way(&log);
        log.sync().unwrap();
        let after = SystemTime::now();
        let found = all(&log);
        let read: Vec<_> = found.iter().map(|r| (r.lsn, r.payload.clone())).collect();
        assert!(read == appended, "{fill}: every record has the bytes that were appended");
        let writer = found[0].writer().unwrap();
        assert_eq!(writer.pid(), std::process::id());
        for record in &found {
            let time = record.time().unwrap();
            assert!(before <= time && time <= after, "{fill}: {time:?}");
            assert_eq!(record.writer(), Some(writer));
        }
        let view = Options::default().read_only(true).open(place(&dir)).unwrap();
        for log in [&log, &view] {
            assert_eq!(all(log), found);
            let mut back: Vec<_> = log.backwards(Lsn::MAX).unwrap().map(Result::unwrap).collect();
            back.reverse();
            assert_eq!(back, found);
            assert_eq!(
                log.backwards(Lsn::MAX).unwrap().next().transpose().unwrap(),
                found.last().cloned()
            );
            let mut durable = log.reader(Lsn::ZERO).unwrap().durable();
            let mut pollable = log.reader(Lsn::ZERO).unwrap().pollable().unwrap();
            for record in &found {
                assert_eq!(log.read_at(record.lsn).unwrap(), *record);
                assert_eq!(durable.next().unwrap().unwrap().into_owned(), *record);
                assert_eq!(pollable.next().unwrap().unwrap().into_owned(), *record);
            }
            let report = log.verify().unwrap();
            let len: usize = found.iter().map(|record| record.payload.len()).sum();
            assert_eq!((report.records, report.record_bytes), (found.len() as u64, len as u64));
            assert_sound(log);
        }
    }
}

#[test]
fn a_log_without_envelopes_tells_neither_time_nor_writer() {
    for layout in crate::support::LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        log.append(b"a record\n").unwrap();
        let record = log.backwards(Lsn::MAX).unwrap().next().transpose().unwrap().unwrap();
        assert_eq!((record.time(), record.writer()), (None, None));
    }
}

#[test]
fn an_envelope_is_chosen_when_the_log_is_created_and_stays() {
    let dir = scratch();
    drop(enveloped().open(place(&dir)).unwrap());
    for has_control in [true, false] {
        if !has_control {
            fs::remove_file(place(&dir).join("control")).unwrap();
        }
        let log = Options::default().open(place(&dir)).unwrap();
        log.append(b"a record").unwrap();
        assert!(
            log.backwards(Lsn::MAX).unwrap().next().transpose().unwrap().unwrap().time().is_some()
        );
        drop(log);
        let error = Options::default().envelope(false).open(place(&dir)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
    }
    let log = Options::default().envelope(true).open(place(&dir)).unwrap();
    fs::rename(place(&dir), dir.path().join("moved")).unwrap();
    let log = log.reopen().unwrap();
    log.append(b"in a new log").unwrap();
    assert!(
        log.backwards(Lsn::MAX).unwrap().next().transpose().unwrap().unwrap().time().is_some(),
        "one that is like the old"
    );

    let plain = dir.path().join("plain");
    drop(small(Layout::Framed).open(&plain).unwrap());
    let error = Options::default().envelope(true).open(&plain).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
    assert!(error.to_string().contains("envelope"), "{error}");
    let text = Options::mapped_text().envelope(true);
    let error = text.open(dir.path().join("text")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
}

#[test]
fn a_log_with_marks_that_are_not_known_is_refused_and_stays_as_it_is() {
    let dir = scratch();
    let log = enveloped().open(place(&dir)).unwrap();
    log.append(b"a record").unwrap();
    drop(log);
    // The control file counts, and the geometry where there is none.
    for name in ["control", "geometry"] {
        let path = place(&dir).join(name);
        let good = fs::read(&path).unwrap();
        assert_eq!((good[8], good[28] & 2), (2, 2), "version 2, marked");
        for (offset, value, told) in [(28, good[28] | 64, "0x40"), (8, 3, "version 3")] {
            let mut header = good.clone();
            header[offset] = value;
            seal_control_header(&mut header);
            fs::write(&path, &header).unwrap();
            for options in [Options::default(), Options::default().read_only(true)] {
                let error = options.open(place(&dir)).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Incompatible, "{error}");
                assert!(error.to_string().contains(told), "{error}");
            }
            assert_eq!(fs::read(&path).unwrap(), header);
            fs::write(&path, &good).unwrap();
        }
        assert_eq!(all(&Options::default().open(place(&dir)).unwrap()).len(), 1);
        fs::remove_file(place(&dir).join("control")).unwrap();
    }
}

#[test]
fn a_record_with_its_envelope_may_be_as_long_as_a_frame() {
    let dir = scratch();
    let log = enveloped().open(place(&dir)).unwrap();
    let error = log.reserve(u32::MAX as usize - 15).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RecordTooLarge);
    assert!(error.to_string().contains("4294967279"), "{error}");
}

#[test]
fn repair_keeps_times_and_writers() {
    let dir = scratch();
    let log = enveloped().open(place(&dir)).unwrap();
    let appended = append_in_every_way(&log);
    let before = all(&log);
    drop(log);
    let file = segment_files(&place(&dir)).remove(0);
    let damaged = 4096 + (appended[2].0.get() % 4096) as usize + 9;
    let mut bytes = fs::read(&file).unwrap();
    bytes[damaged] ^= 1;
    fs::write(&file, bytes).unwrap();
    let report = repair(place(&dir), dir.path().join("new")).unwrap();
    assert_eq!((report.records, report.damage.len()), (before.len() as u64 - 1, 1));
    let kept = |(index, record): (usize, OwnedRecord)| (index != 2).then_some(record);
    let kept: Vec<OwnedRecord> = before.into_iter().enumerate().filter_map(kept).collect();
    let new = Options::default().open(dir.path().join("new")).unwrap();
    let of = |record: &OwnedRecord| (record.payload.clone(), record.time(), record.writer());
    assert!(all(&new).iter().map(of).eq(kept.iter().map(of)));
    let len: u64 = kept.iter().map(|record| record.payload.len() as u64).sum();
    assert_eq!(report.record_bytes, len);
    assert_sound(&new);
}

/// Appends, forks, and has the child append.
pub(crate) fn fork_and_append(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    log.append(b"parent").unwrap();
    let child = fork::fork(|| {
        log.append(b"child").unwrap();
        0
    });
    assert_eq!(fork::wait(child), 0);
    log.append(b"parent").unwrap();
    child::say(&format!("{} {child}", std::process::id()));
}

#[test]
fn writers_differ_though_they_are_forked_or_open_the_log_again() {
    let dir = scratch();
    let log = enveloped().open(place(&dir)).unwrap();
    log.append(b"this").unwrap();
    let mut forker = Child::start("fork and append", &[place(&dir).to_str().unwrap()]);
    let pids = forker.hears().unwrap();
    forker.finish_well();
    drop(log);
    let log = Options::default().open(place(&dir)).unwrap();
    log.append(b"again").unwrap();
    let writers: Vec<WriterId> = all(&log).iter().map(|r| r.writer().unwrap()).collect();
    let [this, parent, child, parent_later, again] = writers[..] else { panic!("{writers:?}") };
    assert_eq!(parent, parent_later);
    assert_eq!(format!("{} {}", parent.pid(), child.pid()), pids.trim());
    assert_eq!(this.pid(), again.pid());
    assert_ne!(this, again, "the same process, opened again");
    assert_ne!(parent.get() >> 32, child.get() >> 32);
    let text = this.to_string();
    assert_eq!(text, format!("{:08x}-{}", this.get() >> 32, std::process::id()));
}

#[test]
fn records_are_found_by_time_while_files_are_recycled_and_removed() {
    let dir = scratch();
    let options =
        enveloped().tuning(Tuning::new().fill(Fill::Staged).preallocate(Preallocate::Recycle));
    let log = options.open(place(&dir)).unwrap();
    let append = |count| (0..count).for_each(|seed| _ = log.append(&bytes(seed, 900)).unwrap());
    append(40);
    log.sync().unwrap();
    let middle = SystemTime::now();
    append(40);
    let before_trim = log.reader_at_time(middle).unwrap().next().unwrap().unwrap().lsn;
    log.trim(all(&log)[30].lsn).unwrap();
    append(40);
    let mut reader = log.reader_at_time(middle).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().lsn, before_trim);
    assert_eq!(all(&log).iter().filter(|r| r.time().unwrap() >= middle).count(), 80);
    log.trim(log.published()).unwrap();
    assert!(log.reader_at_time(middle).unwrap().next().unwrap().is_none());
    assert!(log.reader_at_time(SystemTime::UNIX_EPOCH).unwrap().next().unwrap().is_none());
}
