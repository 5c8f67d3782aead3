//! Beyond 4 GiB, and at the limits of a process: F1 to F3, F6, F7, F9 and F17.

use std::io::Write;
use std::path::Path;

use vellum::{ErrorKind, Fill, Layout, Log, Lsn, Options, Preallocate, Tuning};

use crate::support::child::{self, Child};
use crate::support::{
    FILLS, LAYOUTS, PATIENCE, Read, assert_holds, assert_sound, concatenated, payload, payloads,
    place, read_all, read_from, scratch, segment_files, small,
};

const LINE: u64 = 1 << 32;

fn append(log: &Log, len: usize) -> Read {
    let bytes = payload(log.layout(), log.tail().get(), len);
    (log.append(&bytes).unwrap(), bytes)
}

// F1: the log was destroyed when it reached 4 GiB.
#[test]
fn a_framed_log_goes_beyond_4_gib() {
    let dir = scratch();
    let options = Options::events()
        .tuning(Tuning::new().segment_capacity_bytes(64 << 20).preallocate(Preallocate::Sparse));
    let log = options.open(place(&dir)).unwrap();
    let mut expected = vec![append(&log, 100)];
    // Space that is abandoned costs no blocks.
    let last_before = LINE - (64 << 20);
    drop(log.reserve((last_before - (128 << 20) - 8) as usize).unwrap());
    assert_eq!(log.tail().get(), last_before, "a record's start away from the line");
    expected.push(append(&log, 70 << 20));
    assert!(expected[1].0.get() < LINE && log.tail().get() > LINE, "one record crosses the line");
    expected.extend([append(&log, 100), append(&log, 9000), append(&log, 0)]);
    assert_holds(&log, &expected);
    drop(log);
    let log = options.open(place(&dir)).unwrap();
    assert_holds(&log, &expected);
    drop(log.reserve(u32::MAX as usize).unwrap());
    expected.push(append(&log, 5));
    assert!(expected.last().unwrap().0.get() > 2 * LINE, "the longest record there is");
    assert_holds(&log, &expected);
    log.trim(expected[1].0).unwrap();
    expected.remove(0);
    drop(log);
    std::fs::remove_file(place(&dir).join("control")).unwrap();
    assert_holds(&options.open(place(&dir)).unwrap(), &expected);
}

// F1: the same in a text log, which is moved to just below the line: its files have no header.
#[test]
fn a_text_log_goes_beyond_4_gib() {
    for fill in FILLS {
        let dir = scratch();
        let options = small(Layout::Text).tuning(Tuning::new().fill(fill));
        let log = options.open(place(&dir)).unwrap();
        let mut lines = vec![append(&log, 3000).1, append(&log, 3000).1];
        drop(log);
        std::fs::remove_file(place(&dir).join("control")).unwrap();
        for (file, first) in segment_files(&place(&dir)).iter().zip([LINE - 8192, LINE - 4096]) {
            std::fs::rename(file, place(&dir).join(format!("{first:016x}.seg"))).unwrap();
        }
        let log = options.open(place(&dir)).unwrap();
        assert_eq!((log.begin().get(), log.tail().get()), (LINE - 8192, LINE - 1096));
        for len in [1000, 200, 9000, 50, 3000] {
            lines.push(append(&log, len).1);
        }
        assert!(payloads(&log) == lines);
        log.trim(Lsn::new(LINE)).unwrap();
        drop(log);
        assert!(concatenated(&place(&dir)) == lines[3..].concat(), "all from the line on");
        assert!(payloads(&options.open(place(&dir)).unwrap()) == lines[3..]);
    }
}

// F2: a writer killed in the middle left NULs or half a record that readers took for records.
pub(crate) fn die_half_way(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let len: usize = arguments[1].parse().unwrap();
    let mut reservation = log.reserve(len).unwrap();
    reservation.write_all(&payload(log.layout(), 1, len)[..len / 2]).unwrap();
    child::say("half");
    child::hear();
}

#[test]
fn what_a_killed_writer_left_half_written_is_never_read() {
    for layout in LAYOUTS {
        for len in [1, 8, 100, 4000, 4096, 20_000] {
            let dir = scratch();
            let log = small(layout).open(place(&dir)).unwrap();
            let before = append(&log, 50);
            let path = place(&dir);
            let mut victim =
                Child::start("die half-way", &[path.to_str().unwrap(), &len.to_string()]);
            victim.expect("half");
            let after = append(&log, 50);
            assert_eq!(read_all(&log), std::slice::from_ref(&before), "not yet decided");
            victim.kill();
            let mut reader = log.reader(after.0).unwrap();
            assert!(reader.follow(Some(PATIENCE)).unwrap().is_some());
            let mut found = read_all(&log);
            found.retain(|(_, line)| line != b"\n" && line.first() != Some(&b'~'));
            assert!(found == [before, after], "{layout} {len}");
            assert_sound(&log);
        }
    }
}

/// How many mappings of files below `path` this process has, and their bytes.
fn mappings_of(path: &Path) -> (usize, u64) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let ours = maps.lines().filter(|line| line.contains(path.to_str().unwrap()));
    let ours = ours.filter(|line| line.contains(".seg"));
    let lens = ours.map(|line| {
        let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let parse = |text| u64::from_str_radix(text, 16).unwrap();
        parse(to) - parse(from)
    });
    lens.fold((0, 0), |(count, bytes), len| (count + 1, bytes + len))
}

// F3: mappings were never given back: 65 530 chunks, and the process could map no more.
#[test]
fn mapped_address_space_is_bounded_however_long_the_log() {
    for layout in LAYOUTS {
        let dir = scratch();
        let options = small(layout).tuning(Tuning::new().mapped_bytes_max(64 << 10));
        let log = options.open(place(&dir)).unwrap();
        let line = payload(layout, 1, 1000);
        for round in 0..1500 {
            log.append(&line).unwrap();
            if round % 100 == 0 {
                let (count, bytes) = mappings_of(&place(&dir));
                assert!(count <= 17 && bytes <= 17 * 8192, "{count} mappings, {bytes} bytes");
            }
            if round % 500 == 0 {
                log.trim(log.published()).unwrap();
            }
        }
    }
}

// F3 and F22: with threads in different segments, and mappings that go while others still write.
#[test]
fn mapped_address_space_is_bounded_with_many_threads_too() {
    const THREADS: usize = 8;
    for layout in LAYOUTS {
        let dir = scratch();
        let log =
            small(layout).tuning(Tuning::new().mapped_bytes_max(4096)).open(place(&dir)).unwrap();
        let line = payload(layout, 1, 1000);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..300 {
                        log.append(&line).unwrap();
                    }
                });
            }
        });
        let found = read_all(&log);
        assert!(found.len() == THREADS * 300 && found.iter().all(|read| read.1 == line));
        let (count, _) = mappings_of(&place(&dir));
        assert!(count <= THREADS + 2, "{count} mappings");
        assert_sound(&log);
    }
}

/// Appends until an error, under a limit of the size of files.
pub(crate) fn append_under_a_size_limit(arguments: &[String]) {
    let [path, limit, len] = arguments else { panic!("three arguments") };
    let limit = limit.parse().unwrap();
    let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: `limit` outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
    let record = vec![b'l'; len.parse::<usize>().unwrap() - 1];
    let record = [record, b"\n".to_vec()].concat();
    let log = match Options::default().open(path) {
        Ok(log) => log,
        Err(error) => return child::say(&format!("0 {:?} {error}", error.kind())),
    };
    let mut count = 0;
    let error = loop {
        match log.append(&record) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
        assert!(count < 100_000, "no limit");
    };
    child::say(&format!("{count} {:?} {error}", error.kind()));
    // A second attempt is refused as well, and nothing is worse.
    assert_eq!(log.append(&record).unwrap_err().kind(), ErrorKind::NoSpace);
}

// F6: one process at its file-size limit killed the log for all others.
#[test]
fn a_process_at_its_file_size_limit_gets_an_error_and_the_others_go_on() {
    for layout in LAYOUTS {
        for (fill, preallocate) in [
            (Fill::Mapped, Preallocate::Auto),
            (Fill::Mapped, Preallocate::Off),
            (Fill::Pwrite, Preallocate::Off),
            (Fill::Pwrite, Preallocate::Auto),
        ] {
            for len in [128, 20_000] {
                let case = format!("{layout} {fill} {preallocate} {len}");
                let dir = scratch();
                let options = vellum::internal::options(layout).tuning(
                    Tuning::new()
                        .segment_capacity_bytes(1 << 20)
                        .fill(fill)
                        .preallocate(preallocate),
                );
                let log = options.open(place(&dir)).unwrap();
                let first = append(&log, 1000);
                let path = place(&dir);
                let arguments = [path.to_str().unwrap(), "300000", &len.to_string()];
                let mut limited = Child::start("append under a size limit", &arguments);
                let answer = limited.hears();
                let answer = answer.unwrap_or_else(|| panic!("{case}: killed by the limit"));
                assert!(answer.contains(" NoSpace "), "{case}: {answer}");
                let count: usize = answer.split(' ').next().unwrap().parse().unwrap();
                limited.finish_well();
                let last = append(&log, 100);
                append(&log, 500_000);
                let found = read_from(&log, first.0).unwrap();
                assert_eq!(found[0], first, "{case}");
                assert!(found.contains(&last), "{case}");
                let theirs = found.iter().filter(|read| read.1.starts_with(b"ll")).count();
                assert_eq!(theirs, count, "{case}: all that was acknowledged");
                assert_sound(&log);
            }
        }
    }
}

// F7 and F9: an append after a trim was lost or killed the process, and a short log that had been
// trimmed could never be opened again.
#[test]
fn a_short_log_that_is_trimmed_goes_on_and_can_be_opened_again() {
    for layout in LAYOUTS {
        let dir = scratch();
        let mut log = small(layout).open(place(&dir)).unwrap();
        for _ in 0..5 {
            append(&log, 100);
            log.trim(log.published()).unwrap();
            let second = append(&log, 100);
            let third = append(&log, 4000);
            assert_holds(&log, &[second.clone(), third.clone()]);
            drop(log);
            log = small(layout).open(place(&dir)).unwrap();
            assert_holds(&log, &[second, third]);
            log.trim(log.published()).unwrap();
        }
    }
}

/// Appends until there is no address space for another mapping, then with some again.
pub(crate) fn append_with_little_address_space(arguments: &[String]) {
    let log = Options::default()
        .tuning(Tuning::new().mapped_bytes_max(1 << 40))
        .open(&arguments[0])
        .unwrap();
    let record = payload(log.layout(), 1, 1000);
    log.append(&record).unwrap();
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split(' ').next().unwrap().parse().unwrap();
    let limit = |bytes: u64| {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: `limit` outlives the call.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    };
    // Of a text log no more than the newest segments stay mapped, so the next one must be too many.
    let room = if log.layout() == Layout::Text { 2 << 20 } else { 24 << 20 };
    limit(pages * 4096 + room);
    let mut count = 1;
    let error = loop {
        match log.append(&record) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.raw_os_error(), Some(libc::ENOMEM), "{error}");
    limit(libc::RLIM_INFINITY);
    for _ in 0..100 {
        log.append(&record).unwrap();
    }
    child::say(&(count + 100).to_string());
}

// F17: the result of a failed `mmap` was used.
#[test]
fn without_address_space_an_append_is_an_error_and_later_ones_succeed() {
    for layout in LAYOUTS {
        let dir = scratch();
        let options =
            vellum::internal::options(layout).tuning(Tuning::new().segment_capacity_bytes(4 << 20));
        let log = options.tuning(Tuning::new().fill(Fill::Mapped)).open(place(&dir)).unwrap();
        let mut other =
            Child::start("append with little address space", &[place(&dir).to_str().unwrap()]);
        let count: usize = other.hears().expect("survives").parse().unwrap();
        other.finish_well();
        append(&log, 100);
        let mut found = read_all(&log);
        found.retain(|(_, line)| line != b"\n" && line.first() != Some(&b'~'));
        assert_eq!(found.len(), count + 1, "{layout}");
        assert!(log.begin() > Lsn::ZERO);
        assert_sound(&log);
    }
}
