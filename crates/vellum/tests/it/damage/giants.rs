//! Files that are longer than any that Vellum makes, and positions beyond all files: an error or
//! an answer, soon, and in little memory.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use vellum::{ErrorKind, Fill, Layout, Log, Lsn, Options, Tuning};

use crate::support::{LAYOUTS, PATIENCE, place, scratch, segment_files, small};

/// No process reads as much as this in time; a hole takes no space.
const GIANT_LEN: u64 = 4 << 40;
/// Positions where no file is, far behind all others.
const FAR: u64 = 1 << 53;

/// Where the shared words start, and how far apart the first ones are.
const WORDS: u64 = 4096;
const LINE: u64 = 128;
const TAIL: u64 = 0;
const READY_END: u64 = 1;
const ALLOCATED_END: u64 = 2;
const BEGIN: u64 = 3;

/// What `act` does to the log at `path`, which does not take long.
#[track_caller]
fn soon<T: Send + 'static>(path: PathBuf, act: fn(PathBuf) -> T) -> T {
    let (sender, answer) = mpsc::channel();
    std::thread::spawn(move || drop(sender.send(act(path))));
    answer.recv_timeout(PATIENCE).expect("it takes too long")
}

fn filled(layout: Layout, fill: Fill) -> tempfile::TempDir {
    let dir = scratch();
    let log = small(layout).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
    for _ in 0..5 {
        log.append(&[&[b'x'; 3000][..], b"\n"].concat()).unwrap();
    }
    log.sync().unwrap();
    dir
}

fn lengthen(file: &Path, len: u64) {
    File::options().write(true).open(file).unwrap().set_len(len).unwrap();
}

/// Everything that there is, read in every way.
fn read_all_ways(path: PathBuf) -> vellum::Result<usize> {
    let log = Options::default().read_only(true).open(path)?;
    log.stat()?;
    // Of text, NULs are told as damage.
    log.verify()?;
    let mut reader = log.reader(Lsn::ZERO)?;
    let mut count = 0;
    while reader.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

#[test]
fn a_long_geometry_file_is_refused() {
    for layout in LAYOUTS {
        let dir = filled(layout, Fill::Mapped);
        let geometry = place(&dir).join("geometry");
        lengthen(&geometry, GIANT_LEN);
        for is_read_only in [true, false] {
            let error = Options::default().read_only(is_read_only).open(place(&dir)).unwrap_err();
            assert_eq!((error.kind(), error.path()), (ErrorKind::Corrupt, Some(&*geometry)));
        }
        // Also where it is all there is.
        fs::remove_file(place(&dir).join("control")).unwrap();
        let error = Options::default().open(place(&dir)).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corrupt, Some(&*geometry)));
    }
}

#[test]
fn what_lies_behind_the_end_of_a_segment_is_not_read() {
    for (layout, fill) in [
        (Layout::Framed, Fill::Mapped),
        (Layout::Framed, Fill::Staged),
        (Layout::Text, Fill::Mapped),
        (Layout::Text, Fill::Pwrite),
    ] {
        for lost in ["nothing", "control", "boot"] {
            let dir = filled(layout, fill);
            for file in segment_files(&place(&dir)) {
                lengthen(&file, GIANT_LEN);
            }
            let control = place(&dir).join("control");
            match lost {
                "control" => fs::remove_file(&control).unwrap(),
                "boot" => {
                    let bytes = fs::read(&control).unwrap();
                    fs::remove_file(&control).unwrap();
                    fs::write(&control, bytes).unwrap();
                }
                _ => {}
            }
            let what = format!("{layout} {fill}, {lost} lost");
            let count = soon(place(&dir), read_all_ways);
            let count = count.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(count >= 5, "{what}: {count}");
            let append = |path: PathBuf| -> vellum::Result<()> {
                let log = Options::default().open(path)?;
                let lsn = log.append(b"line\n")?;
                log.commit(lsn)?;
                log.truncate(lsn)
            };
            soon(place(&dir), append).unwrap_or_else(|error| panic!("{what}: {error}"));
            let again = soon(place(&dir), read_all_ways);
            let again = again.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(again >= 5, "{what}: {again}");
        }
    }
}

/// Stores positions into the shared words of an unused log.
fn scribble(log: &Path, words: &[(u64, u64)]) {
    let control = File::options().write(true).open(log.join("control")).unwrap();
    for (word, value) in words {
        control.write_all_at(&value.to_le_bytes(), WORDS + word * LINE).unwrap();
    }
}

fn use_cursor(log: &Log) -> vellum::Result<()> {
    log.verify()?;
    log.sync()?;
    let cursor = log.cursor("one", Lsn::ZERO)?;
    cursor.set(log.tail())?;
    log.append(b"line\n")?;
    log.sync().map(drop)
}

#[test]
fn positions_behind_all_files_are_told_or_not_believed() {
    for layout in LAYOUTS {
        for fill in [Fill::Mapped, Fill::Pwrite] {
            let far = FAR + 4096;
            for words in [
                vec![(TAIL, FAR << 10), (READY_END, FAR), (ALLOCATED_END, far), (BEGIN, FAR)],
                vec![(TAIL, FAR << 10), (READY_END, FAR), (ALLOCATED_END, far)],
                vec![(ALLOCATED_END, far)],
                vec![(READY_END, far), (ALLOCATED_END, far)],
            ] {
                // Before a process opens the log, and while it has it open.
                for is_open in [false, true] {
                    let dir = filled(layout, fill);
                    let open = is_open.then(|| Options::default().open(place(&dir)).unwrap());
                    scribble(&place(&dir), &words);
                    let answer = soon(place(&dir), |path| {
                        let _ = read_far(&path);
                        Options::default().open(path).and_then(|log| use_cursor(&log))
                    });
                    let used = open.map(|log| soon_with(log, use_cursor));
                    for answer in [Some(answer), used].into_iter().flatten() {
                        assert_told(answer, &format!("{layout} {fill} {words:?} {is_open}"));
                    }
                }
            }
        }
    }
}

/// Asserts that positions that no file holds are an error of the log, if anything goes wrong.
#[track_caller]
fn assert_told(answer: vellum::Result<()>, what: &str) {
    if let Err(error) = answer {
        let is_told = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound);
        assert!(is_told && error.path().is_some(), "{what}: {error}");
    }
}

#[test]
fn a_framed_log_that_begins_behind_its_files_is_refused_or_recovered() {
    let dir = filled(Layout::Framed, Fill::Mapped);
    let words = [(TAIL, FAR << 10), (READY_END, FAR), (ALLOCATED_END, FAR + 4096), (BEGIN, FAR)];
    scribble(&place(&dir), &words);
    for is_read_only in [true, false] {
        // A process that may write does not believe words that disagree with the segments.
        if let Err(error) = Options::default().read_only(is_read_only).open(place(&dir)) {
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            let reason = "make no sense: begin is 9007199254740992";
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
    fs::remove_file(place(&dir).join("control")).unwrap();
    assert_eq!(soon(place(&dir), read_all_ways).unwrap(), 5);
}

fn read_far(path: &Path) -> vellum::Result<()> {
    let log = Options::default().read_only(true).open(path)?;
    log.verify()?;
    log.stat().map(drop)
}

#[track_caller]
fn soon_with<T: Send + 'static>(log: Log, act: fn(&Log) -> T) -> T {
    let (sender, answer) = mpsc::channel();
    std::thread::spawn(move || drop(sender.send(act(&log))));
    answer.recv_timeout(PATIENCE).expect("it takes too long")
}
