//! Long records of a staged log, which are written to the stage by system call, and stages that are
//! used again.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use vellum::{ErrorKind, Layout, Log, Options, Tuning};

use super::{after_power_cut, staged};
use crate::support::child::{Child, hear, say};
use crate::support::mount::Mount;
use crate::support::{
    Read, assert_holds, payload, payloads, place, read_all, scratch, segment_files,
};

/// Longer than a record that is stored through a mapping.
const LONG: usize = 150_000;

fn spare(log: &Path) -> PathBuf {
    log.join("spare.stage")
}

fn append(log: &Log, seed: u64, len: usize) -> Read {
    let bytes = payload(log.layout(), seed, len);
    (log.append(&bytes).unwrap(), bytes)
}

/// Leaves no block; returns the file that takes them all.
fn fill_up(mount: &Mount) -> PathBuf {
    let path = mount.path().join("hog");
    let mut hog = fs::File::create(&path).unwrap();
    for piece in [1 << 20, 4096, 1] {
        while hog.write_all(&vec![1; piece]).and_then(|()| hog.sync_data()).is_ok() {}
    }
    path
}

#[test]
fn long_and_short_records_of_many_threads_are_there_before_and_after_a_power_cut() {
    for capacity in [16384, 1 << 18, 1 << 20] {
        let dir = scratch();
        let log = staged()
            .tuning(Tuning::new().segment_capacity_bytes(capacity))
            .open(place(&dir))
            .unwrap();
        let work = |thread: u64| {
            let lens = [100, LONG, 3, 4096, LONG + 1, 200_000, 511, 131_064, 131_065];
            let one = |(seed, len)| {
                let record = append(&log, seed, len);
                if seed % 3 == thread % 3 {
                    log.commit(record.0).unwrap();
                }
                record
            };
            (thread * 100..).zip(lens).map(one).collect::<Vec<_>>()
        };
        let mut expected = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|thread| scope.spawn(move || work(thread))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        expected.sort();
        assert_holds(&log, &expected);
        assert_holds(&Options::default().read_only(true).open(place(&dir)).unwrap(), &expected);
        log.sync().unwrap();
        let copy = after_power_cut(&place(&dir));
        assert_holds(&Options::default().open(place(&copy)).unwrap(), &expected);
        drop(log);
        assert_holds(&Options::default().open(place(&dir)).unwrap(), &expected);
    }
}

/// Appends long and short records, and commits one in the middle.
pub(crate) fn long_stager(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    for seed in 0..12 {
        let (lsn, _) = append(&log, seed, [LONG, 700][seed as usize % 2]);
        if seed == 4 {
            log.commit(lsn).unwrap();
        }
    }
    say("done");
    hear();
}

#[test]
fn long_records_survive_the_death_of_every_process() {
    let dir = scratch();
    drop(staged().tuning(Tuning::new().segment_capacity_bytes(1 << 19)).open(place(&dir)).unwrap());
    let mut child = Child::start("long stager", &[place(&dir).to_str().unwrap()]);
    child.expect("done");
    child.kill();
    let wanted: Vec<_> =
        (0..12).map(|seed| payload(Layout::Framed, seed, [LONG, 700][seed as usize % 2])).collect();
    assert!(payloads(&Options::default().read_only(true).open(place(&dir)).unwrap()) == wanted);
    let log = Options::default().open(place(&dir)).unwrap();
    assert!(payloads(&log) == wanted);
    log.sync().unwrap();
    let copy = after_power_cut(&place(&dir));
    assert!(payloads(&Options::default().open(place(&copy)).unwrap()) == wanted);
}

#[test]
fn a_long_record_that_finds_no_block_is_an_error_and_keeps_nothing_from_going_on() {
    let test = "a_long_record_that_finds_no_block";
    let Some(mount) = Mount::ext4(test, 24) else { return };
    let path = mount.path().join("log");
    let log = Options::wal()
        .exclusive(false)
        .tuning(Tuning::new().segment_capacity_bytes(1 << 20))
        .open(&path)
        .unwrap();
    log.prepare(2).unwrap();
    let mut expected = vec![append(&log, 1, LONG), append(&log, 2, 100)];
    log.sync().unwrap();
    let hog = fill_up(&mount);
    let long = payload(log.layout(), 3, 900_000);
    let error = (0..3).find_map(|_| log.append(&long).err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    // Now it is known: the next ones find out before they reserve.
    let tail = log.tail();
    for _ in 0..20 {
        let error = log.append(&long).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    }
    assert_eq!(log.tail(), tail, "what fails takes no more of the log");
    assert_eq!(log.published(), tail, "nothing is held back");
    fs::remove_file(hog).unwrap();
    expected.extend((4..7).map(|seed| append(&log, seed, 900_000)));
    log.sync().unwrap();
    let long = |(_, bytes): &Read| bytes.len() == 900_000;
    let found: Vec<_> =
        read_all(&log).into_iter().filter(|record| expected.contains(record)).collect();
    assert!(found == expected && found.iter().filter(|record| long(record)).count() == 3);
}

#[test]
fn a_stage_that_is_over_is_used_again_for_a_later_segment() {
    let dir = scratch();
    let log =
        staged().tuning(Tuning::new().segment_capacity_bytes(1 << 18)).open(place(&dir)).unwrap();
    let mut expected = Vec::new();
    let mut commit = |seed| {
        expected.push(append(&log, seed, [LONG, 60_000][seed as usize % 2]));
        log.commit(expected.last().unwrap().0).unwrap();
    };
    let mut seeds = 0..100;
    let mut commit_until = |is_so: &dyn Fn() -> bool| {
        seeds.by_ref().take_while(|_| !is_so()).for_each(&mut commit);
        assert!(is_so());
    };
    commit_until(&|| spare(&place(&dir)).exists());
    let inode = |path: &Path| fs::metadata(path).map(|found| found.ino()).ok();
    let reused = inode(&spare(&place(&dir)));
    commit_until(&|| {
        let stages = fs::read_dir(place(&dir)).unwrap().map(|entry| entry.unwrap().path());
        let mut stages = stages.filter(|path| path.extension() == Some("stage".as_ref()));
        stages.any(|path| inode(&path) == reused && path != spare(&place(&dir)))
    });
    seeds.take(20).for_each(&mut commit);
    assert_holds(&log, &expected);
    // The last, uncommitted record is read from there.
    expected.push(append(&log, 99, 1000));
    assert_holds(&Options::default().read_only(true).open(place(&dir)).unwrap(), &expected);
    let copy = after_power_cut(&place(&dir));
    expected.pop();
    assert_holds(&Options::default().open(place(&copy)).unwrap(), &expected);
    drop(log);
    assert!(!spare(&place(&dir)).exists(), "closing the log leaves no stage");
}

#[test]
fn a_file_that_was_linked_as_the_spare_keeps_its_bytes() {
    let dir = scratch();
    let log = staged().open(place(&dir)).unwrap();
    append(&log, 1, 100);
    let mine = dir.path().join("mine");
    fs::write(&mine, "precious").unwrap();
    let _ = fs::remove_file(spare(&place(&dir)));
    fs::hard_link(&mine, spare(&place(&dir))).unwrap();
    let records: Vec<_> = (2..60).map(|seed| append(&log, seed, 1000)).collect();
    log.sync().unwrap();
    assert!(read_all(&log).ends_with(&records));
    assert_eq!(fs::read(&mine).unwrap(), b"precious");
}

/// Whether some segment has blocks that nothing was written to.
fn has_unwritten_blocks(log: &Path) -> bool {
    segment_files(log).iter().any(|path| {
        let file = fs::File::open(path).unwrap();
        let hole = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(0)).unwrap();
        let metadata = file.metadata().unwrap();
        hole < metadata.len() && metadata.blocks() * 512 >= metadata.len()
    })
}

#[test]
fn long_groups_go_to_blocks_alone_and_short_ones_to_written_zeros() {
    let dir = scratch();
    let capacity = 2 << 20;
    let log =
        staged().tuning(Tuning::new().segment_capacity_bytes(capacity)).open(place(&dir)).unwrap();
    let mut expected = Vec::new();
    let mut commit = |seed, len| {
        expected.push(append(&log, seed, len));
        log.commit(expected.last().unwrap().0).unwrap();
    };
    (0..24).for_each(|seed| commit(seed, 100_000));
    assert!(!has_unwritten_blocks(&place(&dir)), "those of 100 000 bytes are written twice");
    (24..32).for_each(|seed| commit(seed, 600_000));
    assert!(has_unwritten_blocks(&place(&dir)), "those of 600 000 bytes are not");
    // Enough to leave the segments behind that have no zeros.
    (32..92).for_each(|seed| commit(seed, 100_000));
    let tail = log.tail();
    assert!(tail.get() > 6 * capacity);
    let copy = after_power_cut(&place(&dir));
    assert_holds(&Options::default().open(place(&copy)).unwrap(), &expected);
    drop(log);
    assert_holds(&Options::default().open(place(&dir)).unwrap(), &expected);
}
