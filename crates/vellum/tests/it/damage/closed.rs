//! A program that closes all descriptors, also those of its log, and opens files of its own.

use std::fs::{self, File};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use vellum::{ErrorKind, Log, Lsn, Options, Reader, Tuning};

use super::directory::{SHAPES, shape};
use crate::support::child::{Child, say};
use crate::support::{PATIENCE, assert_sound, payloads, place, scratch};

const OWN: [u8; 1024] = [b'o'; 1024];

fn own_files(dir: &Path) -> impl Iterator<Item = PathBuf> {
    (0..64).map(|number| dir.join(format!("own-{number}")))
}

fn line(number: usize) -> Vec<u8> {
    format!("line {number}\n").into_bytes()
}

/// Appends until the log refuses; returns how many lines were acknowledged.
fn append_until_refused(log: &Log) -> usize {
    let start = Instant::now();
    for number in 0.. {
        if let Err(error) = log.append(&line(number)) {
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            return number;
        }
        assert!(start.elapsed() < PATIENCE, "nothing was noticed");
    }
    unreachable!()
}

pub(crate) fn close_descriptors(arguments: &[String]) {
    let dir = Path::new(&arguments[0]);
    let (layout, fill) = shape(&arguments[1..]);
    let tuning = Tuning::new().fill(fill).segment_capacity_bytes(1 << 20);
    let log = vellum::internal::options(layout).tuning(tuning).open(dir.join("log")).unwrap();
    let first = log.append(b"first\n").unwrap();
    log.commit(first).unwrap();
    // SAFETY: nothing in this process uses a descriptor beyond these but the log.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    assert_eq!(closed, 0);
    let open = |path| File::options().read(true).write(true).open(path).unwrap();
    let own: Vec<File> = own_files(dir).map(open).collect();
    // A record that is committed in the same moment is in the log, or this fails.
    let committed = log.append(b"second\n").and_then(|lsn| log.commit(lsn));
    let acknowledged = append_until_refused(&log);
    drop(log);
    for file in &own {
        let mut bytes = [0; OWN.len() + 1];
        let count = file.read_at(&mut bytes, 0).expect("it was closed");
        assert!(bytes[..count] == OWN, "it was written to");
    }
    say(&format!("{} {acknowledged}", committed.is_ok()));
}

#[test]
fn no_record_goes_into_a_file_that_has_the_number_of_a_descriptor() {
    for (layout, fill) in SHAPES {
        let dir = scratch();
        own_files(dir.path()).for_each(|path| fs::write(path, OWN).unwrap());
        let (name, way) = (layout.to_string(), fill.to_string());
        let arguments = [dir.path().to_str().unwrap(), &name, &way];
        let mut child = Child::start("close descriptors", &arguments);
        let said = child.hears().unwrap();
        child.finish_well();
        let (is_committed, acknowledged) = said.split_once(' ').unwrap();
        let acknowledged: usize = acknowledged.parse().unwrap();
        let lines = payloads(&Options::default().open(place(&dir)).unwrap());
        let expected: Vec<_> = (0..acknowledged).map(line).collect();
        let found: Vec<_> = lines.iter().filter(|found| found.starts_with(b"line ")).collect();
        assert!(found.len() >= acknowledged, "{layout} {fill}: {} of {said}", found.len());
        assert!(found.iter().zip(&expected).all(|(found, line)| *found == line));
        let has_second = lines.iter().any(|line| line == b"second\n");
        assert!(has_second || is_committed == "false", "{layout} {fill}");
        assert_sound(&Options::default().open(place(&dir)).unwrap());
    }
}

/// Bytes of a record of the log that is read: a reader fetches few of them at a time.
const LONG: usize = 100_000;

fn long(number: usize) -> Vec<u8> {
    [format!("line {number} ").into_bytes(), vec![b'x'; LONG], b"\n".to_vec()].concat()
}

/// Whether a reader finds the numbered records from `first` on, and then the end of the log.
fn has_rest(reader: &mut Reader, first: usize) -> bool {
    let is_there = |number| {
        reader.next().is_ok_and(|found| found.is_some_and(|record| record.payload == long(number)))
    };
    (first..40).all(is_there)
}

/// The descriptors of this process that are not the standard ones, by what they are of.
fn descriptors(dir: &Path) -> Vec<i32> {
    let links = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap());
    let of_log = links.filter(|link| {
        fs::read_link(link.path()).is_ok_and(|target| target.starts_with(dir.join("log")))
    });
    of_log.map(|link| link.file_name().to_str().unwrap().parse().unwrap()).collect()
}

pub(crate) fn read_with_closed_descriptors(arguments: &[String]) {
    let dir = Path::new(&arguments[0]);
    let log = Options::default().read_only(true).open(dir.join("log")).unwrap();
    let first = log.begin();
    let mut reader = log.reader(first).unwrap();
    assert!(has_one(&mut reader, 0) && has_one(&mut reader, 1));
    let single = log.read_at(first).unwrap();
    let numbers = descriptors(dir);
    assert!(numbers.iter().all(|number| *number >= 512), "programs come to {numbers:?}");
    // SAFETY: nothing in this process uses a descriptor beyond these but the log.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    assert_eq!(closed, 0);
    if arguments[1] == "closed" {
        assert!(has_rest(&mut reader, 2));
        assert_eq!(log.read_at(first).unwrap(), single);
        return say("read");
    }
    // Own files get the numbers.
    let own: Vec<File> = own_files(dir).map(|path| File::open(path).unwrap()).collect();
    let numbered = |(number, file): (&i32, &File)| {
        // SAFETY: the number was free, and belongs to what is made of it.
        unsafe {
            assert_eq!(libc::dup2(file.as_raw_fd(), *number), *number);
            File::from_raw_fd(*number)
        }
    };
    let taken: Vec<File> = numbers.iter().zip(&own).map(numbered).collect();
    let start = Instant::now();
    // For the rest of a second, it may read what is there.
    while !(reader.seek(Lsn::ZERO).is_ok() && has_rest(&mut reader, 0)) {
        assert!(start.elapsed() < PATIENCE, "the reader notices nothing");
    }
    while !log.read_at(first).is_ok_and(|record| record == single) {
        assert!(start.elapsed() < PATIENCE, "the log notices nothing");
    }
    drop((reader, log));
    for file in taken.iter().chain(&own) {
        let mut bytes = [0; OWN.len() + 1];
        let count = file.read_at(&mut bytes, 0).expect("it was closed");
        assert!(bytes[..count] == OWN, "another file has the number");
    }
    say("read");
}

fn has_one(reader: &mut Reader, number: usize) -> bool {
    reader.next().unwrap().unwrap().payload == long(number)
}

#[test]
fn a_reader_outlives_its_descriptors_and_leaves_those_of_others_alone() {
    for (layout, fill) in SHAPES {
        for how in ["closed", "replaced"] {
            let dir = scratch();
            own_files(dir.path()).for_each(|path| fs::write(path, OWN).unwrap());
            let tuning = Tuning::new().fill(fill).segment_capacity_bytes(1 << 20);
            let options = vellum::internal::options(layout).tuning(tuning);
            let log = options.open(place(&dir)).unwrap();
            (0..40).for_each(|number| _ = log.append(&long(number)).unwrap());
            log.sync().unwrap();
            drop(log);
            let arguments = [dir.path().to_str().unwrap(), how];
            let mut child = Child::start("read with closed descriptors", &arguments);
            let said = child.hears().unwrap_or_else(|| panic!("{layout} {fill} {how}: it died"));
            assert_eq!(said, "read", "{layout} {fill} {how}");
            child.finish_well();
        }
    }
}
