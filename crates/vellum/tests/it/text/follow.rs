//! The view of a program that follows the files of a log by reading on, as `tail -f` does.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Instant;

use vellum::{Fill, Options, Tuning};

use super::rotating;
use crate::support::child::{self, Child};
use crate::support::{PATIENCE, concatenated, payloads, place, scratch, segment_files};

const WRITERS: usize = 3;
const ROUNDS: usize = 12;
/// The bytes that the follower reads before the next writer is killed.
const ROUND_BYTES: usize = 1_000_000;

/// Reads each file to its end, and nothing twice.
struct Follower {
    log: PathBuf,
    path: PathBuf,
    file: File,
    seen: Vec<u8>,
}

impl Follower {
    fn new(log: &Path) -> Follower {
        let path = segment_files(log).remove(0);
        let file = File::open(&path).unwrap();
        Follower { log: log.to_path_buf(), path, file, seen: Vec::new() }
    }

    /// Reads on, as fast as it goes, until there were so many bytes more.
    fn read_more(&mut self, bytes: usize) {
        let (start, goal) = (Instant::now(), self.seen.len() + bytes);
        while self.seen.len() < goal {
            assert!(start.elapsed() < PATIENCE, "nothing more to read");
            self.read_on();
        }
    }

    fn read_on(&mut self) {
        let files = segment_files(&self.log);
        let newer = files.into_iter().find(|file| *file > self.path);
        // First: once something is in the next file, nothing is written to this one.
        let newer = newer.filter(|file| fs::metadata(file).unwrap().len() > 0);
        self.file.read_to_end(&mut self.seen).unwrap();
        if let Some(newer) = newer {
            (self.file, self.path) = (File::open(&newer).unwrap(), newer);
        }
    }
}

#[test]
fn who_follows_the_files_reads_what_stays_there_though_writers_are_killed() {
    let dir = scratch();
    let path = place(&dir);
    let options =
        rotating(60_000).tuning(Tuning::new().fill(Fill::Pwrite).segment_capacity_bytes(64 << 10));
    options.open(&path).unwrap().append(b"first\n").unwrap();
    let mut follower = Follower::new(&path);
    let mut writers: Vec<Child> = Vec::new();
    for round in 0..ROUNDS {
        while writers.len() < WRITERS {
            let name = format!("w{round}.{}", writers.len());
            writers.push(Child::start("append numbered lines", &[path.to_str().unwrap(), &name]));
        }
        follower.read_more(ROUND_BYTES);
        writers.remove(0).kill();
    }
    writers.into_iter().for_each(Child::kill);
    follower.read_on();
    // Pads what the last of the dead left.
    drop(Options::default().open(&path).unwrap());
    assert_followed(&follower.seen, &concatenated(&path));
}

/// The text that was read is there, but for the beginning of a line whose writer was killed while
/// it wrote: the kernel ends a write between two pages. A marker has its space, and the follower
/// reads on with the rest of that.
fn assert_followed(seen: &[u8], text: &[u8]) {
    assert!(seen.len() <= text.len(), "read {} bytes of {}", seen.len(), text.len());
    let mut start = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let read = &seen[start.min(seen.len())..(start + line.len()).min(seen.len())];
        let same = read.iter().rev().zip(line[..read.len()].iter().rev());
        let begun = read.len() - same.take_while(|(read, there)| read == there).count();
        let is_torn = line.starts_with(b"~") && !read[..begun].contains(&b'\n');
        let show = String::from_utf8_lossy;
        assert!(begun == 0 || is_torn, "read {}\nthere {}", show(read), show(line));
        start += line.len();
    }
}

#[test]
fn a_reservation_that_is_held_keeps_nobody_from_appending() {
    let dir = scratch();
    let log =
        Options::mapped_text().tuning(Tuning::new().fill(Fill::Pwrite)).open(place(&dir)).unwrap();
    let held = log.reserve(5).unwrap();
    log.append(b"second\n").unwrap();
    log.append(b"third\n").unwrap();
    assert!(payloads(&log).is_empty(), "not before the first is there");
    drop(held);
    assert_eq!(payloads(&log).len(), 3, "a marker for the first, and the others");
}

/// Appends short lines without end, saying so now and then.
pub(crate) fn append_short_lines(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    for number in 0.. {
        log.append(b"theirs\n").unwrap();
        if number % 100 == 0 {
            child::say("more");
        }
    }
}

#[test]
fn a_writer_that_is_stopped_keeps_nobody_from_appending() {
    let dir = scratch();
    let path = place(&dir);
    let log = Options::mapped_text().tuning(Tuning::new().fill(Fill::Pwrite)).open(&path).unwrap();
    let mut writer = Child::start("append short lines", &[path.to_str().unwrap()]);
    let (sender, appended) = mpsc::channel();
    std::thread::scope(|scope| {
        // Often enough to stop it in the middle of its turn.
        for _ in 0..20 {
            writer.hears().unwrap();
            writer.signal(libc::SIGSTOP);
            scope.spawn(|| (0..2).for_each(|_| sender.send(log.append(b"mine\n")).unwrap()));
            for _ in 0..2 {
                appended.recv_timeout(PATIENCE).expect("waited in vain for an append").unwrap();
            }
            writer.signal(libc::SIGCONT);
        }
        writer.kill();
    });
    let mine = payloads(&log).iter().filter(|line| *line == b"mine\n").count();
    assert_eq!(mine, 40);
}
