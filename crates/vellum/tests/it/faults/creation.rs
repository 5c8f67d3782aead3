//! Creating, finding again and refusing: F11 to F15, F18, F19 and F26.

use std::path::Path;
use std::sync::Barrier;
use std::{fs, thread};

use vellum::{Create, ErrorKind, Layout, Lsn, Options, Tuning};

use crate::support::crc::seal_control_header;
use crate::support::{
    LAYOUTS, PATIENCE, Read, assert_holds, payload, place, read_all, scratch, segment_files, small,
};

/// A log with some records in several segments, closed.
fn closed_log(path: &Path, layout: Layout) -> Vec<Read> {
    let log = small(layout).open(path).unwrap();
    let append = |index| {
        let bytes = payload(layout, index, 300 + index as usize);
        (log.append(&bytes).unwrap(), bytes)
    };
    (0..40).map(append).collect()
}

// F11: a creator that died half-way left a log that could never be opened.
#[test]
fn a_log_whose_creator_died_anywhere_is_created_by_the_next() {
    type Leftovers = &'static [(&'static str, &'static [u8])];
    let leftovers: [Leftovers; 7] = [
        &[],
        &[("lock", b"")],
        &[("lock", b""), ("control.new", b"")],
        &[("lock", b""), ("control.new", b"VELLUMCT and no more")],
        &[("lock", b""), ("control.new", &[0x5a; 777])],
        &[("lock", b""), ("segment.new", &[0x5a; 777])],
        &[("lock", b""), ("control.new", &[0; 5]), ("segment.new", &[1; 12345])],
    ];
    for layout in LAYOUTS {
        for files in leftovers {
            let dir = scratch();
            fs::create_dir(place(&dir)).unwrap();
            for (name, bytes) in files {
                fs::write(place(&dir).join(name), bytes).unwrap();
            }
            let log = small(layout).open(place(&dir)).unwrap();
            let lsn = log.append(b"record\n").unwrap();
            assert_holds(&log, &[(lsn, b"record\n".to_vec())]);
        }
    }
}

// F11: the same, killed when the geometry was there and the control file was not.
#[test]
fn a_log_whose_creator_died_before_the_control_file_is_created_by_the_next() {
    for layout in LAYOUTS {
        let dir = scratch();
        drop(small(layout).open(place(&dir)).unwrap());
        fs::remove_file(place(&dir).join("control")).unwrap();
        segment_files(&place(&dir)).iter().for_each(|file| fs::remove_file(file).unwrap());
        let early = Options::default().read_only(true).open(place(&dir));
        let log = small(layout).open(place(&dir)).unwrap();
        let lsn = log.append(b"record\n").unwrap();
        assert_holds(&log, &[(lsn, b"record\n".to_vec())]);
        // A reader that came in between was refused, or sees later records.
        if let Ok(early) = early {
            let mut reader = early.reader(Lsn::ZERO).unwrap();
            let found = reader.follow(Some(PATIENCE / 20)).unwrap();
            assert!(found.is_some(), "the early reader silently reads another log");
        }
    }
}

// F12: a creation that failed left an orphan, and the log could not be opened afterwards.
#[test]
fn a_creation_that_failed_leaves_nothing_in_the_way() {
    let dir = scratch();
    let path = place(&dir);
    let missing = path.join("nowhere").join("log");
    assert_eq!(Options::default().open(&missing).unwrap_err().kind(), ErrorKind::NotFound);
    fs::write(&path, b"a file").unwrap();
    assert_eq!(Options::default().open(&path).unwrap_err().kind(), ErrorKind::Incompatible);
    assert_eq!(fs::read(&path).unwrap(), b"a file", "and it is left alone");
    fs::remove_file(&path).unwrap();
    for name in ["lock", "control", "control.new", "geometry"] {
        fs::create_dir_all(path.join(name)).unwrap();
        assert!(Options::default().open(&path).is_err(), "{name} is a directory");
        fs::remove_dir(path.join(name)).unwrap();
        let log = Options::default().open(&path).unwrap();
        log.append(b"record").unwrap();
        drop(log);
        fs::remove_dir_all(&path).unwrap();
    }
}

#[test]
fn who_does_not_want_to_create_makes_nothing() {
    let dir = scratch();
    let options = Options::default().create(Create::Never);
    assert_eq!(options.open(place(&dir)).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!place(&dir).exists());
    fs::create_dir(place(&dir)).unwrap();
    assert_eq!(options.open(place(&dir)).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(fs::read_dir(place(&dir)).unwrap().count(), 0);
    let error = Options::default().read_only(true).open(place(&dir)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    drop(Options::default().create(Create::New).open(place(&dir)).unwrap());
    let error = Options::default().create(Create::New).open(place(&dir)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    drop(options.open(place(&dir)).unwrap());
}

// F13: data without metadata was truncated to nothing.
#[test]
fn a_missing_control_file_is_rebuilt_from_the_segments() {
    for layout in LAYOUTS {
        let dir = scratch();
        let mut expected = closed_log(&place(&dir), layout);
        fs::remove_file(place(&dir).join("control")).unwrap();
        let view = Options::default().read_only(true).open(place(&dir)).unwrap();
        assert_holds(&view, &expected);
        assert!(!place(&dir).join("control").exists(), "a reader rebuilds for itself alone");
        let log = Options::default().open(place(&dir)).unwrap();
        assert_holds(&log, &expected);
        expected.push((log.append(b"more\n").unwrap(), b"more\n".to_vec()));
        assert_holds(&log, &expected);
        drop(log);
        assert_holds(&Options::default().open(place(&dir)).unwrap(), &expected);
    }
}

// F13: the same for the small file beside it.
#[test]
fn a_log_without_its_geometry_file_goes_on_and_one_without_both_is_refused_untouched() {
    for layout in LAYOUTS {
        let dir = scratch();
        let expected = closed_log(&place(&dir), layout);
        fs::remove_file(place(&dir).join("geometry")).unwrap();
        assert_holds(&Options::default().open(place(&dir)).unwrap(), &expected);
        let control = place(&dir).join("control");
        let kept = fs::read(&control).unwrap();
        fs::remove_file(&control).unwrap();
        let _ = fs::remove_file(place(&dir).join("geometry"));
        for options in [Options::default(), Options::default().read_only(true)] {
            let error = options.open(place(&dir)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains("geometry"), "{error}");
        }
        fs::write(&control, kept).unwrap();
        assert_holds(&Options::default().open(place(&dir)).unwrap(), &expected);
    }
}

// F14: after a segment was removed or renamed, opens failed for ever or wrote elsewhere.
#[test]
fn a_missing_segment_is_named_and_comes_back_when_it_is_restored() {
    for layout in LAYOUTS {
        for loses_control in [false, true] {
            let dir = scratch();
            let expected = closed_log(&place(&dir), layout);
            let missing = segment_files(&place(&dir))[1].clone();
            fs::rename(&missing, dir.path().join("aside")).unwrap();
            if loses_control {
                fs::remove_file(place(&dir).join("control")).unwrap();
            }
            let error = read_until_error(&place(&dir));
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            let named = error.path().unwrap().to_str().unwrap();
            // When a text segment was begun is told by nothing but its name.
            let known = match layout {
                Layout::Text => "-0000000000002000*.log",
                _ => "/0000000000002000.seg",
            };
            assert!(named.ends_with(known), "{error}");
            let start = known.trim_end_matches("*.log");
            assert!(missing.to_str().unwrap().contains(start), "{missing:?}");
            fs::rename(dir.path().join("aside"), &missing).unwrap();
            assert_holds(&Options::default().open(place(&dir)).unwrap(), &expected);
        }
    }
}

fn read_until_error(path: &Path) -> vellum::Error {
    let log = match Options::default().open(path) {
        Ok(log) => log,
        Err(error) => return error,
    };
    assert!(!log.verify().unwrap().damage.is_empty(), "verify reports it");
    let mut reader = log.reader(Lsn::ZERO).unwrap();
    loop {
        match reader.next() {
            Ok(record) => assert!(record.is_some(), "the end is not reached"),
            Err(error) => return error,
        }
    }
}

// F15: metadata was believed, whatever it held.
#[test]
fn a_corrupt_control_file_is_refused_and_rebuilt_when_removed() {
    for layout in LAYOUTS {
        for (from, to) in [(0, 8), (8, 12), (12, 16), (16, 20), (32, 40), (0, 4096)] {
            let dir = scratch();
            let expected = closed_log(&place(&dir), layout);
            let control = place(&dir).join("control");
            let mut bytes = fs::read(&control).unwrap();
            bytes[from..to].iter_mut().for_each(|byte| *byte ^= 0x55);
            fs::write(&control, &bytes).unwrap();
            let error = Options::default().open(place(&dir)).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Incompatible));
            assert_eq!(error.path(), Some(control.as_path()));
            assert!(Options::default().read_only(true).open(place(&dir)).is_err());
            assert_eq!(fs::read(&control).unwrap(), bytes, "nothing is changed");
            fs::remove_file(&control).unwrap();
            assert_holds(&Options::default().open(place(&dir)).unwrap(), &expected);
        }
    }
}

// F15: words of an earlier boot were believed although the page cache had not been written.
#[test]
fn after_a_reboot_the_segments_are_believed_and_not_the_control_file() {
    for layout in LAYOUTS {
        let dir = scratch();
        let mut expected = closed_log(&place(&dir), layout);
        for path in [place(&dir).join("control"), place(&dir).join("geometry")] {
            let mut bytes = fs::read(&path).unwrap();
            bytes[48] ^= 1;
            seal_control_header(&mut bytes);
            // The words are those of some other time: as if the log were nearly empty.
            for word in bytes.chunks_exact_mut(128).skip(32).take(1) {
                word[..8].copy_from_slice(&((4096u64 + 16) << 10).to_le_bytes());
            }
            fs::write(&path, bytes).unwrap();
        }
        assert_holds(&Options::default().read_only(true).open(place(&dir)).unwrap(), &expected);
        let log = Options::default().open(place(&dir)).unwrap();
        assert_holds(&log, &expected);
        expected.push((log.append(b"more\n").unwrap(), b"more\n".to_vec()));
        assert_holds(&log, &expected);
    }
}

// F18 and F19: capacities were cut to 32 bits, and a capacity that was no power of two or no
// multiple of the page size failed later.
#[test]
fn odd_capacities_are_refused_and_even_ones_need_no_power_of_two() {
    let dir = scratch();
    let odd =
        [0, 1, 4095, 4097, 6000, (1 << 30) + 4096, 1 << 32, (1 << 32) + 4096, u64::MAX - 4095];
    for capacity in odd {
        let error = Options::default()
            .tuning(Tuning::new().segment_capacity_bytes(capacity))
            .open(place(&dir))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
        assert!(error.to_string().contains(&capacity.to_string()), "{error}");
        assert!(!place(&dir).exists());
    }
    for capacity in [3 * 4096, 5 * 4096, 1_003_520] {
        let dir = scratch();
        let log = Options::default()
            .tuning(Tuning::new().segment_capacity_bytes(capacity))
            .open(place(&dir))
            .unwrap();
        let append = |len| (log.append(&vec![7; len]).unwrap(), vec![7; len]);
        assert_holds(&log, &[5000, 5000, 5000, 100_000].map(append));
        assert_eq!(log.stat().unwrap().segment_capacity_bytes, capacity);
    }
}

// F26: a second opener's contradicting options were ignored in silence.
#[test]
fn an_option_that_contradicts_the_log_is_an_error_that_names_both() {
    let dir = scratch();
    let log = small(Layout::Text).open(place(&dir)).unwrap();
    for options in [Options::events(), Options::events().read_only(true)] {
        let error = options.open(place(&dir)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
        let names = ["text", "framed"];
        assert!(names.iter().all(|name| error.to_string().contains(name)), "{error}");
    }
    let second = small(Layout::Text).open(place(&dir)).unwrap();
    second.append(b"both agree\n").unwrap();
    assert_eq!(read_all(&log).len(), 1);
}

// A directory was listed while another process made the log in it: one of the log's own files was
// taken for a stranger's.
#[test]
fn all_who_open_a_new_log_at_the_same_time_get_it() {
    const OPENERS: usize = 4;
    for _ in 0..200 {
        let dir = scratch();
        fs::create_dir(place(&dir)).unwrap();
        let start = Barrier::new(OPENERS);
        let open = || {
            start.wait();
            drop(small(Layout::Framed).open(place(&dir)).unwrap());
        };
        thread::scope(|scope| (0..OPENERS).for_each(|_| drop(scope.spawn(open))));
    }
}
