//! Storage that fails under a mapping: no process dies of it, nothing that was acknowledged is
//! lost, and the log works again when the storage does.

use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use vellum::{ErrorKind, Fill, Layout, Log, Options, Tuning};

use crate::support::child::{self, Child};
use crate::support::mount::Mount;
use crate::support::{LAYOUTS, PATIENCE, assert_sound, payload, payloads, place, scratch};

const LEN: usize = 900;

/// The log, mapped whatever the filesystem.
fn mapped(layout: Layout) -> Options {
    vellum::internal::options(layout)
        .tuning(Tuning::new().fill(Fill::Mapped).segment_capacity_bytes(64 << 20))
}

/// Every kind of log whose records go through a mapping.
fn kinds() -> [(&'static str, Options); 3] {
    let wal =
        Options::wal().exclusive(false).tuning(Tuning::new().segment_capacity_bytes(16 << 20));
    [("framed", mapped(Layout::Framed)), ("text", mapped(Layout::Text)), ("wal", wal)]
}

/// Appends until that fails, and prints the number of records now and the error. Continues on
/// command.
pub(crate) fn append_until_it_fails(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let layout = log.layout();
    let mut number = 0;
    loop {
        let failed = loop {
            match log.append(&payload(layout, number, LEN)) {
                Ok(_) => number += 1,
                Err(error) => break error,
            }
        };
        child::say(&format!("{number} {:?}", failed.kind()));
        if child::hear().is_none() {
            return;
        }
        // Where that is reported once, the next one continues.
    }
}

/// Appends and commits record after record until that fails, each committed one said.
pub(crate) fn commit_until_it_fails(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let layout = log.layout();
    for number in 0.. {
        let answer = log.append(&payload(layout, number, LEN)).and_then(|lsn| log.commit(lsn));
        match answer {
            Ok(()) => child::say(&format!("{number}")),
            Err(error) => return child::say(&format!("failed {:?}", error.kind())),
        }
    }
}

fn count_of(line: &str) -> (u64, &str) {
    let (count, kind) = line.split_once(' ').unwrap();
    (count.parse().unwrap(), kind)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_full_ext4_is_an_error_and_never_a_signal() {
    for (kind, options) in kinds() {
        let Some(disk) = Mount::ext4("a_full_ext4_is_an_error_and_never_a_signal", 60) else {
            return;
        };
        let path = disk.path().join("log");
        drop(options.open(&path).unwrap());
        let mut counts = Vec::new();
        for turn in 0..3 {
            let mut writer = Child::start("append until it fails", &[text(&path)]);
            let said = writer.hears().unwrap_or_else(|| panic!("{kind}: writer {turn} died"));
            let (count, error) = count_of(&said);
            assert_eq!(error, "NoSpace", "{kind}, writer {turn}");
            counts.push(count);
            writer.finish_well();
        }
        assert!(counts[0] > 10_000, "{kind}: {counts:?}");
        let log = Options::default().open(&path).unwrap();
        let layout = log.layout();
        let all = counts.iter().flat_map(|count| 0..*count).map(|n| payload(layout, n, LEN));
        assert!(payloads(&log).into_iter().eq(all), "{kind}: everything acknowledged is there");
        assert_sound(&log);
    }
}

#[test]
fn a_filesystem_that_shuts_down_is_an_error_for_each_writer() {
    let test = "a_filesystem_that_shuts_down_is_an_error_for_each_writer";
    for (kind, options) in kinds() {
        for disk in [Mount::ext4(test, 200), Mount::xfs(test)].into_iter().flatten() {
            let path = disk.path().join("log");
            drop(options.open(&path).unwrap());
            let mut writers: Vec<Child> =
                (0..3).map(|_| Child::start("append for ever", &[text(&path)])).collect();
            writers.iter_mut().for_each(|writer| writer.expect("open"));
            let mut committer = Child::start("commit until it fails", &[text(&path)]);
            let mut committed = 0;
            while committed < 20 {
                committed = committer.hears().unwrap().parse().unwrap();
            }
            disk.shut_down();
            for writer in &mut writers {
                let said = writer.hears().unwrap_or_else(|| panic!("{kind}: a writer died"));
                assert!(["Io", "Poisoned", "NoSpace"].contains(&&*said), "{kind}: {said}");
            }
            loop {
                let said = committer.hears().unwrap_or_else(|| panic!("{kind}: committer died"));
                match said.strip_prefix("failed ") {
                    Some(error) => {
                        assert!(["Io", "Poisoned"].contains(&error), "{kind}: {error}");
                        break;
                    }
                    None => committed = said.parse().unwrap(),
                }
            }
            writers.into_iter().chain([committer]).for_each(Child::finish_well);
            disk.mount_again();
            let log = Options::default().open(&path).unwrap();
            let found = payloads(&log);
            for number in 0..=committed {
                let record = payload(log.layout(), number, LEN);
                assert!(found.contains(&record), "{kind}: {number} of {committed} is lost");
            }
            log.append(&payload(log.layout(), 0, LEN)).unwrap();
            assert_sound(&log);
        }
    }
}

/// Appends a record now and then until that fails, and prints the error.
pub(crate) fn append_for_ever(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    child::say("open");
    let layout = log.layout();
    loop {
        if let Err(error) = log.append(&payload(layout, 1 << 40, 100)) {
            return child::say(&format!("{:?}", error.kind()));
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[test]
fn a_writer_whose_segment_is_cut_gets_an_error_and_goes_on() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = mapped(layout).open(place(&dir)).unwrap();
        for number in 0..100 {
            log.append(&payload(layout, number, LEN)).unwrap();
        }
        let file = crate::support::segment_files(&place(&dir)).pop().unwrap();
        let cut = OpenOptions::new().write(true).open(&file).unwrap();
        cut.set_len(8192).unwrap();
        let error = log.append(&payload(layout, 100, LEN)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{layout}: {error}");
        assert!(error.to_string().contains("something other than Vellum"), "{error}");
        for number in 101..200 {
            log.append(&payload(layout, number, LEN)).unwrap();
        }
        let last = log.append(&payload(layout, 200, LEN)).unwrap();
        assert_eq!(log.read_at(last).unwrap().payload, payload(layout, 200, LEN), "{layout}");
    }
}

#[test]
fn whoever_has_lost_the_control_file_gets_an_error_and_does_nothing_more() {
    for (kind, options) in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let layout = log.layout();
        let first = log.append(&payload(layout, 1, LEN)).unwrap();
        log.commit(first).unwrap();
        let reading = Options::default().read_only(true).open(place(&dir)).unwrap();
        let mut reader = reading.reader(first).unwrap();
        assert!(reader.next().unwrap().is_some(), "{kind}");
        let control = place(&dir).join("control");
        OpenOptions::new().write(true).open(&control).unwrap().set_len(0).unwrap();
        let refusals = [
            log.append(&payload(layout, 2, LEN)).map(drop),
            log.append(&payload(layout, 3, LEN)).map(drop),
            log.commit(first),
            log.sync().map(drop),
            log.prepare(1).map(drop),
            log.stat().map(drop),
            reader.next().map(drop),
            reading.stat().map(drop),
        ];
        for (number, refusal) in refusals.into_iter().enumerate() {
            let error = refusal.expect_err(&format!("{kind}: call {number}"));
            assert_eq!(error.kind(), ErrorKind::Io, "{kind}, call {number}: {error}");
            assert!(error.to_string().contains("control"), "{error}");
        }
        drop((log, reader, reading));
        std::fs::remove_file(&control).unwrap();
        let log = Options::default().open(place(&dir)).unwrap();
        assert_eq!(payloads(&log), [payload(layout, 1, LEN)], "{kind}");
        log.append(&payload(layout, 4, LEN)).unwrap();
        assert_sound(&log);
    }
}

static WAS_CALLED: AtomicBool = AtomicBool::new(false);

extern "C" fn own_handler(_: libc::c_int) {
    WAS_CALLED.store(true, Ordering::SeqCst);
}

/// Sets a handler of its own, and says which is set when a log is open, and after it was asked to
/// chain.
pub(crate) fn handle_the_signal(arguments: &[String]) {
    let own = own_handler as extern "C" fn(libc::c_int) as libc::sighandler_t;
    let current = || {
        // SAFETY: the call fills in the action.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut action);
            action.sa_sigaction
        }
    };
    // SAFETY: the handler stores an atomic.
    unsafe { libc::signal(libc::SIGBUS, own) };
    let log: Log = mapped(Layout::Framed).open(&arguments[0]).unwrap();
    assert_eq!(current(), own, "the program's handler stays");
    vellum::guard_bus_errors().unwrap();
    vellum::guard_bus_errors().unwrap();
    assert_ne!(current(), own);
    // SAFETY: the signal has a handler.
    unsafe { libc::raise(libc::SIGBUS) };
    assert!(WAS_CALLED.swap(false, Ordering::SeqCst), "what is not ours is passed on");
    log.append(b"one").unwrap();
    let file = crate::support::segment_files(Path::new(&arguments[0])).pop().unwrap();
    OpenOptions::new().write(true).open(&file).unwrap().set_len(0).unwrap();
    assert_eq!(log.append(b"two").unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(!WAS_CALLED.load(Ordering::SeqCst), "what is ours is not");
    child::say("both");
}

#[test]
fn a_program_keeps_its_own_handler_and_may_have_both() {
    let dir = scratch();
    let mut program = Child::start("handle the signal", &[text(&place(&dir))]);
    program.expect("both");
    program.finish_well();
}

/// Reads a byte behind the end of a mapping of its own.
pub(crate) fn fault_elsewhere(arguments: &[String]) {
    let log: Log = mapped(Layout::Framed).open(&arguments[0]).unwrap();
    log.append(b"one").unwrap();
    child::say("open");
    let file = tempfile::tempfile().unwrap();
    // SAFETY: a new mapping; the load behind the end of the file is the purpose of the test.
    unsafe {
        let (protection, null) = (libc::PROT_READ, std::ptr::null_mut());
        let map = libc::mmap(null, 4096, protection, libc::MAP_SHARED, file.as_raw_fd(), 0);
        std::ptr::read_volatile(map.cast::<u8>());
    }
    child::say("still there");
}

#[test]
fn a_fault_of_the_program_itself_ends_it_as_ever() {
    use std::os::unix::process::ExitStatusExt;
    let dir = scratch();
    let mut program = Child::start("fault elsewhere", &[text(&place(&dir))]);
    program.expect("open");
    assert_eq!(program.hears(), None);
    assert_eq!(program.finish().signal(), Some(libc::SIGBUS));
}

/// Has stores into the control file fail from now on, in this process alone.
fn fail_control_file(log: &Path) {
    let empty = tempfile::tempfile().unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let control = log.join("control");
    let mut count = 0;
    for line in maps.lines().filter(|line| line.ends_with(text(&control))) {
        let range = line.split(' ').next().unwrap();
        let [start, end] =
            [0, 1].map(|at| usize::from_str_radix(range.split('-').nth(at).unwrap(), 16).unwrap());
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: it takes the place of a mapping that is as long; only numbers are read there.
        let map = unsafe {
            libc::mmap(start as *mut _, end - start, protection, flags, empty.as_raw_fd(), 0)
        };
        assert_ne!(map, libc::MAP_FAILED);
        count += 1;
    }
    assert_eq!(count, 1, "{maps}");
}

/// Loses the control file while a record is in hand, and lives on.
pub(crate) fn lose_the_control_file(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    log.append(&payload(log.layout(), 0, LEN)).unwrap();
    let reservation = log.reserve(LEN).unwrap();
    fail_control_file(Path::new(&arguments[0]));
    let error = log.append(&payload(log.layout(), 1, LEN)).unwrap_err();
    child::say(&format!("{:?} {}", error.kind(), error.to_string().contains("control file")));
    child::hear();
    drop(reservation);
    child::say("let go");
    while child::hear().is_some() {
        child::say(&format!("{:?}", log.append(b"more\n").map_err(|error| error.kind())));
    }
}

#[test]
fn a_process_that_has_lost_the_control_file_holds_nobody_up() {
    for layout in LAYOUTS {
        let dir = scratch();
        let path = place(&dir);
        let log = mapped(layout).open(&path).unwrap();
        let mut loser = Child::start("lose the control file", &[text(&path)]);
        loser.expect("Io true");
        // As long as it may still store what it has in hand, the others wait for it.
        let behind = log.append(&payload(layout, 2, LEN)).unwrap();
        let mut reader = log.reader(behind).unwrap();
        assert!(reader.follow(Some(Duration::from_millis(60))).unwrap().is_none(), "{layout}");
        loser.tell("let go");
        loser.expect("let go");
        let mut reader = log.reader(log.begin()).unwrap();
        let mut next =
            || reader.follow(Some(PATIENCE)).unwrap().map(|r| (r.lsn, r.payload.to_vec()));
        assert_eq!(next().unwrap().1, payload(layout, 0, LEN), "{layout}");
        while next().expect("the others go on").0 < behind {}
        log.commit(behind).unwrap();
        loser.tell("append");
        loser.expect("Err(Io)");
        loser.finish_well();
        assert_sound(&log);
    }
}
