//! A program that closes all descriptors, also those of its log, and opens files of its own.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use vellum::{ErrorKind, Log, Options, Tuning};

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
