//! A device that fails, for real: a filesystem on a loop device whose own disk is full.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use vellum::{CursorHold, ErrorKind, Fill, Layout, Log, Lsn, Options, Tuning};
use vellum_testing::kernel::where_it_fails;

use super::{in_another_boot, staged};
use crate::support::child::{Child, hear, say};
use crate::support::crc::seal_control_header;
use crate::support::mount::{Failing, Thin};
use crate::support::{PATIENCE, copy_log, payload, payloads, place, read_all, scratch};
use crate::support::{segment_files, skip, until};

/// Appends, commits when told to, and says how that failed. Its own writes fail if it is told so.
pub(crate) fn waiter(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let lsn = log.append(&[1; 10_000]).unwrap();
    say("ready");
    hear();
    let commit = || log.commit(lsn).unwrap_err();
    let error = match arguments[1] == WRITES_FAIL {
        true => where_it_fails(libc::SYS_pwrite64, libc::EIO, commit),
        false => commit(),
    };
    say(&format!("{:?} {:?}", error.kind(), error.raw_os_error()));
    hear();
}

/// Opens a log whose device works again. The kernel may tell an opener of a write that has failed
/// before; it tells the next one nothing.
fn open_again(path: &Path) -> Log {
    until("the device takes it", || Options::default().open(path).ok())
}

const WRITES_FAIL: &str = "writes fail";

#[test]
fn a_failed_write_reaches_every_waiting_process_and_reopening_recovers() {
    let test = "a_failed_write_reaches_every_waiting_process_and_reopening_recovers";
    for fill in [Fill::Staged, Fill::Pwrite] {
        let Some(thin) = Thin::new(test) else { return };
        let place = thin.path().join("log");
        let options =
            Options::default().tuning(Tuning::new().fill(fill).segment_capacity_bytes(1 << 20));
        let log = options.open(&place).unwrap();
        let before = payload(Layout::Framed, 1, 9000);
        log.append_durable(&before).unwrap();
        let view = Options::default().read_only(true).open(&place).unwrap();
        let mut followers = [&log, &view].map(|log| log.reader(Lsn::ZERO).unwrap().durable());
        // As long as it is held, commits of later records wait.
        let mut held = log.reserve(700_000).unwrap();
        held.write_all(&[2; 700_000]).unwrap();
        // A write of a staged log that finds no space on a thin disk is not the end of it.
        let how = if fill == Fill::Staged { WRITES_FAIL } else { "the disk fails" };
        let start = |_| Child::start("waiter", &[place.to_str().unwrap(), how]);
        let mut children: Vec<_> = (0..3).map(start).collect();
        children.iter_mut().for_each(|child| child.expect("ready"));
        let commits = || log.stat().unwrap().commits.commits;
        let commits_before = commits();
        children.iter_mut().for_each(|child| child.tell("commit"));
        until("all wait", || (commits() == commits_before + 3).then_some(()));

        let failing = (fill != Fill::Staged).then(|| fail_behind_durable(&thin, &log, &place));
        held.publish().unwrap();

        for child in &mut children {
            let said = child.hears().unwrap_or_else(|| panic!("{fill}: nothing failed"));
            assert!(said.starts_with("Poisoned Some("), "{fill}: {said}");
        }
        let error = log.commit(Lsn::new(log.published().get() - 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{fill}");
        assert!(error.raw_os_error().is_some() && error.path().is_some(), "{error}");
        assert_eq!(log.append(b"more").unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(log.sync().unwrap_err().kind(), ErrorKind::Poisoned);
        assert!(log.stat().unwrap().poison.is_some());
        assert_eq!(Options::default().open(&place).unwrap_err().kind(), ErrorKind::Poisoned);
        for follower in &mut followers {
            assert_eq!(follower.follow(None).unwrap().unwrap().payload, before);
            assert_eq!(follower.next().unwrap(), None);
            assert_eq!(follower.follow(None).unwrap_err().kind(), ErrorKind::Poisoned);
        }
        let newest = Lsn::new(log.published().get() - 1);
        assert_eq!(view.wait_durable(newest, None).unwrap_err().kind(), ErrorKind::Poisoned);
        children.into_iter().for_each(Child::kill);
        let durable = log.durable();
        let [follower, mut reader] = followers;
        drop((log, follower));
        failing.into_iter().for_each(Failing::mend);
        let log = open_again(&place);
        assert!(log.published() >= durable, "nothing committed is lost");
        assert_eq!(read_all(&log)[0].1, before);
        log.append_durable(b"more").unwrap();
        // A reader continues where it was: the failed part has been recovered.
        while reader.follow(Some(PATIENCE)).unwrap().expect("in time").payload != b"more" {}
    }
}

/// Has writes behind the durable end fail. The blocks of a staged log have been written before.
fn fail_behind_durable<'a>(thin: &'a Thin, log: &Log, place: &Path) -> Failing<'a> {
    let offset = HEADER_LEN + log.durable().get() - log.begin().get();
    thin.fail_writes(&segment_files(place)[0], offset / HEADER_LEN * HEADER_LEN..u64::MAX)
}

#[test]
fn a_thin_disk_that_is_full_is_an_error_and_commits_go_on_with_space() {
    let test = "a_thin_disk_that_is_full_is_an_error_and_commits_go_on_with_space";
    let Some(mut thin) = Thin::new(test) else { return };
    let place = thin.path().join("log");
    let log = staged().tuning(Tuning::new().segment_capacity_bytes(1 << 20)).open(&place).unwrap();
    let mut records: Vec<_> = (0..5_u8).map(|number| vec![number; 3000]).collect();
    for record in &records {
        log.append_durable(record).unwrap();
    }
    let failing = fail_behind_durable(&thin, &log, &place);
    records.push(vec![5; 9000]);
    let lsn = log.append(&records[5]).unwrap();
    for _ in 0..3 {
        assert_eq!(log.commit(lsn).unwrap_err().kind(), ErrorKind::NoSpace);
        assert!(log.durable() <= lsn);
    }
    failing.mend();
    log.commit(lsn).unwrap();
    drop(log);
    thin.mount_again();
    let log = Options::default().open(thin.path().join("log")).unwrap();
    assert_eq!(payloads(&log), records);
}

/// Where the records of a segment begin in its file.
const HEADER_LEN: u64 = 4096;
/// Where the geometry file says that the log is being cut.
const CUT_OFFSET: usize = 64;

/// Forty records, all durable; returns where they begin.
fn append_forty(log: &Log) -> Vec<Lsn> {
    let lsns = (0..40).map(|index| log.append(&[index; 1000]).unwrap()).collect();
    log.sync().unwrap();
    lsns
}

#[test]
fn a_truncation_that_no_device_took_is_finished_by_the_next_opener() {
    let test = "a_truncation_that_no_device_took_is_finished_by_the_next_opener";
    for fill in [Fill::Staged, Fill::Mapped, Fill::Pwrite] {
        let Some(mut thin) = Thin::new(test) else { return };
        let path = thin.path().join("log");
        let options =
            Options::default().tuning(Tuning::new().fill(fill).segment_capacity_bytes(1 << 20));
        let log = options.open(&path).unwrap();
        let lsns = append_forty(&log);
        let failing = thin.fail_writes(&segment_files(&path)[0], 2 * HEADER_LEN..u64::MAX);
        let error = until("the log can be had alone", || match log.truncate(lsns[5]) {
            Err(error) if error.kind() == ErrorKind::Busy => None,
            answer => Some(answer.unwrap_err()),
        });
        assert!(error.raw_os_error().is_some(), "{fill}: {error}");
        drop(log);
        failing.mend();
        let log = open_again(&path);
        assert_eq!(log.published(), lsns[5], "{fill}");
        let rest = HEADER_LEN + lsns[5].get() - log.begin().get();
        drop(log);

        thin.mount_again();
        let bytes = fs::read(&segment_files(&thin.path().join("log"))[0]).unwrap();
        // The process that closed the log may have sealed it there.
        let is_gone = bytes[rest as usize + 64..].iter().all(|byte| *byte == 0);
        assert!(is_gone, "{fill}: the device still has what was cut off");
    }
}

/// Where the first write of a block fails, ext4 notes nowhere that it is written later: the page
/// cache has it, and the device does not.
#[test]
fn commits_into_blocks_whose_first_write_failed_are_on_the_device() {
    let test = "commits_into_blocks_whose_first_write_failed_are_on_the_device";
    for (layout, fill) in [
        (Layout::Text, Fill::Pwrite),
        (Layout::Framed, Fill::Pwrite),
        (Layout::Text, Fill::Mapped),
        (Layout::Framed, Fill::Mapped),
    ] {
        let Some(mut thin) = Thin::new(test) else { return };
        let path = thin.path().join("log");
        let options = vellum::internal::options(layout)
            .tuning(Tuning::new().fill(fill).segment_capacity_bytes(8 << 20));
        let log = options.open(&path).unwrap();
        // The next record begins a block: a loop device takes a write for whole that it began.
        let line = |byte: u8, len: usize| [vec![byte; len - 1], vec![b'\n']].concat();
        let header_len = if layout == Layout::Framed { 8 } else { 0 };
        log.append_durable(&line(b'a', 4096 - header_len)).unwrap();
        thin.fill();
        // In a mapped log, more than the ready space.
        let failed = (0..4000).find_map(|_| {
            let lsn = log.append(&line(b'b', 2000)).ok()?;
            log.commit(lsn).err()
        });
        drop(log);
        thin.make_room();
        let log = open_again(&path);
        let wanted = line(b'c', 500);
        for _ in 0..8 {
            log.append_durable(&wanted).unwrap();
        }
        drop(log);
        thin.mount_again();
        let log = Options::default().open(thin.path().join("log"));
        let log = log.unwrap_or_else(|error| panic!("{layout} {fill}, {failed:?}: {error}"));
        let found = read_all(&log).into_iter().filter(|(_, payload)| *payload == wanted).count();
        assert_eq!(found, 8, "{layout} {fill}: after {failed:?}");
    }
}

/// Has a file hold `on_device` from `offset` on, but what it holds now in the page cache: a write
/// of that has failed. `sync` syncs it.
fn lose(thin: &Thin, path: &Path, on_device: &[u8], offset: u64, sync: impl FnOnce(&File)) {
    let mut bytes = vec![0; on_device.len()];
    let file = File::options().read(true).write(true).open(path).unwrap();
    file.read_exact_at(&mut bytes, offset).unwrap();
    file.write_all_at(on_device, offset).unwrap();
    file.sync_all().unwrap();
    let failing = thin.fail_writes(path, offset..u64::MAX);
    file.write_all_at(&bytes, offset).unwrap();
    sync(&file);
    failing.mend();
}

#[test]
fn a_copy_that_could_not_be_synced_is_synced_by_the_next_opener() {
    let test = "a_copy_that_could_not_be_synced_is_synced_by_the_next_opener";
    for has_control in [true, false] {
        let Some(mut thin) = Thin::new(test) else { return };
        let source = scratch();
        let options =
            Options::wal().exclusive(false).tuning(Tuning::new().segment_capacity_bytes(1 << 20));
        append_forty(&options.open(place(&source)).unwrap());
        let copy = thin.path().join("log");
        copy_log(&place(&source), &copy);
        if !has_control {
            fs::remove_file(copy.join("control")).unwrap();
        }
        lose(&thin, &segment_files(&copy)[0], &[0; 1 << 20], HEADER_LEN, |_| {
            let error = Options::default().open(&copy).expect_err("the copy is on no device");
            assert!(error.raw_os_error().is_some(), "{error}");
        });
        let log = Options::default().open(&copy).unwrap();
        assert_eq!(log.durable(), log.published());
        assert_eq!(payloads(&log).len(), 40);
        drop(log);

        thin.mount_again();
        let log = Options::default().open(thin.path().join("log")).expect("it is on the device");
        assert_eq!(payloads(&log).len(), 40, "with the control file: {has_control}");
    }
}

#[test]
fn a_cursor_that_no_device_took_holds_back_what_it_needs() {
    let test = "a_cursor_that_no_device_took_holds_back_what_it_needs";
    let Some(mut thin) = Thin::new(test) else { return };
    let path = thin.path().join("log");
    let log = staged().open(&path).unwrap();
    let lsns = append_forty(&log);
    let cursor = log.cursor("reader", Lsn::ZERO).unwrap();
    cursor.hold(CursorHold::new()).unwrap();
    let failing = thin.fail_writes(&path.join("cursors"), 0..u64::MAX);
    let error = cursor.commit(lsns[20]).unwrap_err();
    if error.kind() != ErrorKind::NoSpace {
        return skip(test, &format!("the kernel has another error for a full disk below: {error}"));
    }
    // So the log continues.
    failing.mend();
    let begin = log.trim(lsns[39]).unwrap().begin;
    drop((cursor, log));

    thin.mount_again();
    let path = thin.path().join("log");
    in_another_boot(&path);
    let log = Options::default().open(&path).unwrap();
    assert!(log.cursor("reader", Lsn::ZERO).unwrap().position().unwrap() >= begin);
}

#[test]
fn notes_that_no_device_took_are_written_again_after_a_failed_sync() {
    let test = "notes_that_no_device_took_are_written_again_after_a_failed_sync";
    for fill in [Fill::Staged, Fill::Pwrite] {
        let Some(mut thin) = Thin::new(test) else { return };
        let path = thin.path().join("log");
        let log = Options::default()
            .tuning(Tuning::new().fill(fill).segment_capacity_bytes(16384))
            .open(&path)
            .unwrap();
        let lsns = append_forty(&log);
        let cursor = log.cursor("reader", Lsn::ZERO).unwrap();
        cursor.commit(lsns[1]).unwrap();
        let files = [segment_files(&path)[1].clone(), path.join("cursors"), path.join("geometry")];
        let mut notes: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
        notes[0].truncate(HEADER_LEN as usize);
        // A truncation notes where it cuts, and that it has ended.
        notes[2][CUT_OFFSET..][..8].copy_from_slice(&lsns[30].get().to_le_bytes());
        seal_control_header(&mut notes[2]);
        cursor.commit(lsns[25]).unwrap();
        let trimmed = where_it_fails(libc::SYS_fdatasync, libc::EIO, || log.trim(lsns[20]));
        assert_eq!(trimmed.unwrap_err().raw_os_error(), Some(libc::EIO));
        assert_eq!(log.append(b"more").unwrap_err().kind(), ErrorKind::Poisoned);
        drop((cursor, log));
        for (file, note) in files.iter().zip(&notes) {
            // A loop device may take a write for whole that begins with a block beside this one.
            lose(&thin, file, note, 0, |file| drop(file.sync_all()));
        }
        let log = open_again(&path);
        log.append_durable(b"acknowledged").unwrap();
        drop(log);

        thin.mount_again();
        let path = thin.path().join("log");
        in_another_boot(&path);
        let log = Options::default().open(&path).unwrap();
        assert_eq!(log.begin(), lsns[20], "{fill}: in the header of a segment");
        let position = log.cursor("reader", Lsn::ZERO).unwrap().position().unwrap();
        assert_eq!(position, lsns[25], "{fill}: in the file of the cursors");
        assert_eq!(payloads(&log).last().unwrap(), b"acknowledged", "{fill}: in the geometry file");
    }
}
