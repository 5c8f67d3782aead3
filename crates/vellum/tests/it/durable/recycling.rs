//! Segments made ahead of need and used again.

use vellum::stat::SegmentState;
use vellum::{Fill, Lsn, Options, Preallocate, Tuning};

use super::{after_power_cut, kinds, staged};
use crate::support::mount::Mount;
use crate::support::{
    assert_holds, assert_sound, copy_log, place, read_all, scratch, segment_files,
};

fn prepared(log: &vellum::Log) -> usize {
    let segments = log.stat().unwrap().segments;
    segments.iter().filter(|segment| segment.state == SegmentState::Prepared).count()
}

#[test]
fn prepare_makes_segments_ahead_and_commits_make_none_then() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    log.prepare(6).unwrap();
    assert!(prepared(&log) >= 6);
    assert_eq!(log.prepare(6).unwrap(), 0, "they are there");
    let files = segment_files(&place(&dir)).len();
    for _ in 0..4 * 16 {
        log.append_durable(&[1; 900]).unwrap();
    }
    assert!(segment_files(&place(&dir)).len() <= files + 1);
    for segment in log.stat().unwrap().segments {
        assert_eq!(segment.file_bytes, 4096 + 16384, "{segment:?}");
        assert!(segment.allocated_bytes >= segment.file_bytes, "{segment:?}");
    }
}

#[test]
fn prepared_segments_are_given_back_and_made_again() {
    for options in
        [staged(), Options::default().tuning(Tuning::new().segment_capacity_bytes(16384))]
    {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let mut kept = vec![(log.append_durable(b"before").unwrap(), b"before".to_vec())];
        log.prepare(9).unwrap();
        let other = Options::default().open(place(&dir)).unwrap();
        assert_eq!(log.release_prepared().unwrap_err().kind(), vellum::ErrorKind::Busy);
        assert!(prepared(&log) >= 9);
        drop(other);
        let released = log.release_prepared().unwrap();
        assert!(released >= 8 && prepared(&log) <= 1, "{released}");
        assert_eq!(log.release_prepared().unwrap(), 0);
        // The same positions in new files, by a process that had the old ones open.
        for number in 0..200u8 {
            let bytes = vec![number; 900];
            kept.push((log.append_durable(&bytes).unwrap(), bytes));
        }
        assert_sound(&log);
        assert!(read_all(&log) == kept);
        drop(log);
        let copy = after_power_cut(&place(&dir));
        assert!(read_all(&Options::default().open(place(&copy)).unwrap()) == kept);
    }
}

/// Files that wait for records: spares, and segments behind the newest record.
fn waiting(path: &std::path::Path, log: &vellum::Log) -> usize {
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    let spares = names.filter(|name| name.to_str().unwrap().ends_with(".spare")).count();
    spares + prepared(log)
}

#[test]
fn a_trim_keeps_as_many_segments_as_the_program_wants() {
    for (most, kept) in [(None, 4..9), (Some(0), 0..2), (Some(2), 0..4)] {
        let dir = scratch();
        let options = most
            .map_or_else(staged, |most| staged().tuning(Tuning::new().spare_segments_max(most)));
        let log = options.open(place(&dir)).unwrap();
        // A program that ships is there too, and holds the records that it has not shipped.
        let beside = vellum::ship::open(place(&dir)).unwrap();
        let shipper = beside.ship().elect().unwrap().unwrap();
        shipper.hold(log.begin(), None).unwrap();
        for _ in 0..20 * 16 {
            log.append_durable(&[1; 900]).unwrap();
        }
        let (begin, end) = (log.begin(), log.published());
        assert_eq!(log.trim(end).unwrap().held_at, Some(begin));
        shipper.durable().unwrap();
        shipper.set_shipped(log.durable()).unwrap();
        shipper.release(end).unwrap();
        let trimmed = log.trim(end).unwrap();
        assert!(trimmed.segments_removed > 15);
        assert_eq!(log.release_prepared().unwrap_err().kind(), vellum::ErrorKind::Busy);
        let waiting = waiting(&place(&dir), &log);
        assert!(kept.contains(&waiting), "{most:?}: {waiting}");
        for _ in 0..20 * 16 {
            log.append_durable(&[2; 900]).unwrap();
        }
        assert_sound(&log);
    }
}

#[test]
fn prepare_gives_back_what_it_made_before_the_disk_was_full() {
    let Some(mount) = Mount::tmpfs("prepare_gives_back", 8) else { return };
    let log = Options::default()
        .tuning(Tuning::new().segment_capacity_bytes(1 << 20))
        .open(mount.path().join("log"))
        .unwrap();
    log.append(b"one").unwrap();
    let before = prepared(&log);
    // Not so many that they are refused at once: some may be made of spares.
    assert_eq!(log.prepare(9).unwrap_err().kind(), vellum::ErrorKind::NoSpace);
    assert_eq!(prepared(&log), before);
    log.append(&vec![2; 3 << 20]).unwrap();
    assert_eq!(read_all(&log).len(), 2);
}

#[test]
fn more_than_there_is_space_for_is_refused_before_anything_is_made() {
    let Some(mount) = Mount::tmpfs("more_than_there_is_space_for", 8) else { return };
    for preallocate in [Preallocate::Auto, Preallocate::Sparse] {
        let options = Options::default()
            .tuning(Tuning::new().segment_capacity_bytes(1 << 20).fill(Fill::Pwrite));
        let options = options.tuning(Tuning::new().preallocate(preallocate));
        let path = mount.path().join(preallocate.to_string());
        let log = options.open(&path).unwrap();
        log.append(b"one").unwrap();
        // Others have it open, so nothing would be given back.
        let _other = Options::default().open(&path).unwrap();
        let before = segment_files(&path);
        for segments in [5000, u64::MAX] {
            for error in
                [log.prepare(segments).unwrap_err(), log.keep_prepared(segments).unwrap_err()]
            {
                assert_eq!(error.kind(), vellum::ErrorKind::NoSpace, "{error}");
                assert!(error.to_string().contains(&segments.to_string()), "{error}");
            }
            assert_eq!(segment_files(&path), before);
        }
    }
}

#[test]
fn a_log_that_is_trimmed_uses_its_files_again_and_old_records_never_come_back() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    let mut most = 0;
    let mut kept = Vec::new();
    for turn in 0..1500u64 {
        let bytes = vec![turn as u8; 300 + turn as usize % 700];
        let lsn = log.append_durable(&bytes).unwrap();
        kept.push((lsn, bytes));
        if turn % 50 == 49 {
            let before = kept[kept.len() - 20].0;
            log.trim(before).unwrap();
            kept.drain(..kept.len() - 20);
            most = most.max(segment_files(&place(&dir)).len());
        }
        if turn % 150 == 149 {
            let copy = after_power_cut(&place(&dir));
            let recovered = Options::default().open(place(&copy)).unwrap();
            assert!(read_all(&recovered) == kept, "turn {turn}");
            assert_eq!(recovered.begin(), kept[0].0);
            assert_sound(&recovered);
        }
    }
    assert!(most < 16, "{most} files");
    drop(log);
    let log = Options::default().open(place(&dir)).unwrap();
    assert!(read_all(&log) == kept);
}

#[test]
fn a_segment_that_is_being_read_is_not_used_again() {
    let dir = scratch();
    let log = Options::wal()
        .exclusive(false)
        .tuning(Tuning::new().segment_capacity_bytes(512 << 10))
        .open(place(&dir))
        .unwrap();
    let lsns: Vec<_> = (0..200).map(|_| log.append_durable(&[9; 5000]).unwrap()).collect();
    let first_file = segment_files(&place(&dir))[0].clone();
    let pinned = std::fs::File::open(&first_file).unwrap();
    let mut reader = log.reader(Lsn::ZERO).unwrap();
    reader.next().unwrap().unwrap();
    log.trim(lsns[150]).unwrap();
    for _ in 0..400 {
        log.append_durable(&[8; 5000]).unwrap();
    }
    let mut bytes = [0; 5000];
    std::os::unix::fs::FileExt::read_exact_at(&pinned, &mut bytes, 4096 + 8).unwrap();
    assert!(bytes == [9; 5000], "the file that the reader has open keeps its records");
}

#[test]
fn a_recovered_log_has_the_segments_it_thinks_it_has() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        log.append_durable(&[b'1'; 3000]).unwrap();
        log.prepare(3).unwrap();
        let copy = after_power_cut(&place(&dir));
        let recovered = Options::default().open(place(&copy)).unwrap();
        assert_sound(&recovered);
        for _ in 0..20 {
            recovered.append_durable(&[b'2'; 3000]).unwrap();
        }
        assert_sound(&recovered);
    }
}

#[test]
fn a_trim_that_a_power_cut_interrupts_keeps_what_lies_behind() {
    for options in kinds().into_iter().take(3) {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        log.append_durable(&[1; 100]).unwrap();
        // A segment in the middle of it starts with no record.
        log.append_durable(&[2; 50_000]).unwrap();
        let kept: Vec<_> = (0..8)
            .map(|seed| (log.append_durable(&[seed; 900]).unwrap(), vec![seed; 900]))
            .collect();
        let before = scratch();
        copy_log(&place(&dir), &place(&before));
        log.trim(kept[2].0).unwrap();
        let after = after_power_cut(&place(&dir));
        // The files before it have not all gone.
        let left = segment_files(&place(&before));
        for file in left.iter().skip(2).filter(|file| !at(&after, file).exists()) {
            std::fs::copy(file, at(&after, file)).unwrap();
        }
        assert_holds(&Options::default().open(place(&after)).unwrap(), &kept[2..]);
    }
}

#[test]
fn what_was_trimmed_need_not_be_committed() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        log.append_durable(&[b'1'; 900]).unwrap();
        let lsns: Vec<_> = (0..60).map(|_| log.append(&[b'2'; 900]).unwrap()).collect();
        log.trim(lsns[50]).unwrap();
        // By a process that has the old files open, and by one that has not.
        log.commit(lsns[55]).unwrap();
        let other = Options::default().open(place(&dir)).unwrap();
        let lsns: Vec<_> = (0..60).map(|_| log.append(&[b'3'; 900]).unwrap()).collect();
        log.trim(lsns[50]).unwrap();
        other.sync().unwrap();
        assert_eq!(log.durable(), log.published());
        let copy = after_power_cut(&place(&dir));
        let recovered = Options::default().open(place(&copy)).unwrap();
        // A text log remembers its beginning to the segment only.
        let is_exact = log.layout() == vellum::Layout::Framed;
        assert!(!is_exact || read_all(&recovered) == read_all(&log));
    }
}

/// The file of the same name in another directory.
fn at(dir: &tempfile::TempDir, file: &std::path::Path) -> std::path::PathBuf {
    place(dir).join(file.file_name().unwrap())
}
