//! Telling the living from the dead: threads, forks, hidden processes, the dead in great number.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use vellum::{Layout, Log, Lsn, Options};

use super::stopped::hold_a_reservation;
use crate::support::child::{self, Child};
use crate::support::mount::Mount;
use crate::support::{
    LAYOUTS, PATIENCE, assert_holds, assert_sound, fork, is_root, open_to_all, payload, payloads,
    place, read_all, scratch, skip, small,
};

/// Forks a process whose main thread ends while another thread holds a reservation.
pub(crate) fn lose_the_main_thread(arguments: &[String]) {
    let pid = fork::fork(|| {
        let path = arguments[0].clone();
        std::thread::spawn(move || {
            let log = Options::default().open(path).unwrap();
            let mut reservation = log.reserve(5).unwrap();
            child::say(&std::process::id().to_string());
            child::hear();
            reservation.write_all(b"held\n").unwrap();
            reservation.publish().unwrap();
            child::say("published");
            child::hear();
            drop(log);
            // SAFETY: ends the process, whose other thread is gone.
            unsafe { libc::_exit(0) };
        });
        // SAFETY: ends this thread alone; nothing of it is used by the other one.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
        unreachable!("the main thread has ended")
    });
    assert_eq!(fork::wait(pid), 0);
}

/// The state letter of a process.
fn state_of(pid: u32) -> Option<u8> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(name_end + 2).copied()
}

#[test]
fn a_process_lives_as_long_as_one_of_its_threads() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let mut other = Child::start("lose the main thread", &[place(&dir).to_str().unwrap()]);
        let pid: u32 = other.hears().unwrap().parse().unwrap();
        crate::support::until("the main thread has ended", || {
            (state_of(pid) == Some(b'Z')).then_some(())
        });
        let behind = log.append(b"behind\n").unwrap();
        let stat = log.stat().unwrap();
        let holder = stat.participants.iter().find(|p| p.pid == pid).unwrap();
        assert!(holder.alive, "its other thread holds a reservation");
        let mut reader = log.reader(Lsn::ZERO).unwrap();
        assert_eq!(reader.follow(Some(Duration::from_millis(100))).unwrap(), None, "not padded");
        other.tell("go on");
        other.expect("published");
        let held = reader.follow(Some(PATIENCE)).unwrap().unwrap();
        assert_eq!(held.payload, b"held\n");
        assert_eq!(reader.next().unwrap().unwrap().lsn, behind);
        other.tell("end");
        other.finish_well();
        assert_sound(&log);
    }
}

/// As another user, in a `/proc` that shows only one's own processes.
pub(crate) fn look_through_a_veiled_proc(arguments: &[String]) {
    // SAFETY: the calls change this process alone, and the strings end with NUL.
    let veil = || unsafe {
        libc::mount(
            c"proc".as_ptr(),
            c"/proc".as_ptr(),
            c"proc".as_ptr(),
            0,
            c"hidepid=2".as_ptr().cast(),
        ) == 0
            && libc::setgid(65534) == 0
            && libc::setuid(65534) == 0
    };
    let parent = format!("/proc/{}/stat", arguments[1]);
    if !Mount::alone() || !veil() || std::fs::read(parent).is_ok() {
        return child::say("no veil");
    }
    let log = Options::default().open(&arguments[0]).unwrap();
    let pid: u32 = arguments[1].parse().unwrap();
    let stat = log.stat().unwrap();
    let alive = stat.participants.iter().find(|p| p.pid == pid).is_some_and(|p| p.alive);
    // No process repairs ranges of the living.
    log.append(b"behind\n").unwrap();
    let mut reader = log.reader(Lsn::ZERO).unwrap();
    let seen = reader.follow(Some(Duration::from_millis(100))).unwrap().is_some();
    child::say(&format!("alive {alive}, padded {seen}"));
}

#[test]
fn a_process_that_cannot_be_seen_in_proc_is_not_taken_for_dead() {
    const TEST: &str = "a_process_that_cannot_be_seen_in_proc";
    if !is_root(TEST) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    open_to_all(dir.path());
    // Whatever the umask: new segments get the permissions of the control file.
    drop(small(Layout::Framed).open(place(&dir)).unwrap());
    open_to_all(&place(&dir));
    for entry in std::fs::read_dir(place(&dir)).unwrap() {
        open_to_all(&entry.unwrap().path());
    }
    let log = Options::default().open(place(&dir)).unwrap();
    let mut reservation = log.reserve(4).unwrap();
    let pid = std::process::id().to_string();
    let arguments = [place(&dir).to_str().unwrap().to_string(), pid];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut other = Child::start("look through a veiled proc", &arguments);
    match other.hears().as_deref() {
        Some("no veil") => return skip(TEST, "/proc cannot be mounted with hidepid"),
        answer => assert_eq!(answer, Some("alive true, padded false")),
    }
    other.finish_well();
    reservation.write_all(b"mine").unwrap();
    reservation.publish().unwrap();
    assert_eq!(payloads(&log), [b"mine".to_vec(), b"behind\n".to_vec()]);
}

/// Holds a reservation where `/proc/self/stat` tells another start time than others see, as under
/// `qemu-user`.
pub(crate) fn reserve_with_a_forged_start(arguments: &[String]) {
    let pid = std::process::id();
    let (path, forged) = (format!("/proc/{pid}/stat"), &arguments[2]);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut fields: Vec<&str> = text.split(' ').collect();
    let start = (fields[21].parse::<u64>().unwrap() + 3).to_string();
    fields[21] = &start;
    std::fs::write(forged, fields.join(" ")).unwrap();
    let bind = || Command::new("mount").args(["--bind", forged, &path]).status();
    if !Mount::alone() || !bind().is_ok_and(|status| status.success()) {
        return child::say("not forged");
    }
    hold_a_reservation(arguments);
}

#[test]
fn a_process_that_reads_another_start_time_than_others_is_not_taken_for_dead() {
    const TEST: &str = "a_process_that_reads_another_start_time_than_others";
    if !is_root(TEST) {
        return;
    }
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let forged = dir.path().join("stat");
    let arguments = [place(&dir), forged].map(|path| path.to_str().unwrap().to_string());
    let arguments = [arguments[0].as_str(), "5", &arguments[1]];
    let mut other = Child::start("reserve with a forged start", &arguments);
    match other.hears().as_deref() {
        Some("not forged") => return skip(TEST, "nothing can be mounted on /proc/PID/stat"),
        answer => assert_eq!(answer, Some("holds")),
    }
    log.append(b"behind\n").unwrap();
    let mut reader = log.reader(Lsn::ZERO).unwrap();
    // Longer than it takes to notice a death.
    assert!(reader.follow(Some(Duration::from_millis(100))).unwrap().is_none(), "it was padded");
    other.tell("go on");
    other.expect("published");
    other.finish_well();
    assert_eq!(payloads(&log), [payload(Layout::Framed, 1, 5), b"behind\n".to_vec()]);
}

/// A server that opens the log, forks a worker and leaves the log to it.
pub(crate) fn fork_and_leave(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    log.append(b"master\n").unwrap();
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let pid = fork::fork(|| {
        use std::io::Read;
        drop(writer.try_clone());
        assert_eq!(reader.read(&mut [0]).unwrap(), 1);
        log.append(b"worker\n").unwrap();
        0
    });
    drop(log);
    child::say("left");
    child::hear();
    writer.write_all(b"!").unwrap();
    let ended = fork::wait_patiently(pid);
    child::say(&format!("worker {ended:?}"));
}

#[test]
fn a_forked_worker_appends_after_its_master_has_left() {
    for layout in LAYOUTS {
        let dir = scratch();
        drop(small(layout).open(place(&dir)).unwrap());
        let mut master = Child::start("fork and leave", &[place(&dir).to_str().unwrap()]);
        master.expect("left");
        master.tell("let the worker append");
        master.expect("worker Some(0)");
        master.finish_well();
        let log = Options::default().open(place(&dir)).unwrap();
        assert_eq!(payloads(&log), [b"master\n", b"worker\n"]);
    }
}

#[test]
fn another_process_opens_the_log_while_a_worker_of_one_that_left_lives() {
    for layout in LAYOUTS {
        let dir = scratch();
        let path = place(&dir);
        drop(small(layout).open(&path).unwrap());
        let mut master = Child::start("fork and leave", &[path.to_str().unwrap()]);
        master.expect("left");
        let mut newcomer = Child::start("append a few", &[path.to_str().unwrap(), "new"]);
        let answer = newcomer.hears_within(PATIENCE / 4);
        assert_eq!(answer, Ok(Some("done".into())), "a newcomer is not held up ({layout})");
        newcomer.finish_well();
        master.tell("let the worker append");
        master.expect("worker Some(0)");
        master.finish_well();
    }
}

/// A forked child that has not appended yet tells whether its parent lives, and then it does not.
pub(crate) fn fork_and_look(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    let parent = std::process::id();
    let alive = |log: &Log| {
        let stat = log.stat().unwrap();
        stat.participants.iter().any(|p| p.pid == parent && p.alive)
    };
    fork::fork(|| {
        let first = alive(&log);
        child::say(&format!("alive {first}"));
        // A child gets another parent before the last thread of the dead one closes its files.
        crate::support::until("the parent is gone", || {
            (std::os::unix::process::parent_id() != parent && !alive(&log)).then_some(())
        });
        child::say("alive false");
        0
    });
    child::hear();
    // SAFETY: ends this process at once, as a crash would.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

#[test]
fn a_forked_child_tells_the_death_of_its_parent() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let mut parent = Child::start("fork and look", &[place(&dir).to_str().unwrap()]);
    parent.expect("alive true");
    parent.tell("die");
    parent.expect("alive false");
    drop(log);
}

/// Takes every slot of the log by many threads and handles, and stays.
pub(crate) fn own_every_slot(arguments: &[String]) {
    let logs: Vec<Log> = (0..8).map(|_| Options::default().open(&arguments[0]).unwrap()).collect();
    // One thread after the other: each takes a slot of its own in each handle.
    for _ in 0..128 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for log in &logs {
                    log.append(b"slot\n").unwrap();
                }
            });
        });
    }
    child::say("owns");
    child::hear();
}

#[test]
fn slots_of_the_dead_are_given_to_who_comes() {
    for layout in LAYOUTS {
        let dir = scratch();
        drop(small(layout).open(place(&dir)).unwrap());
        let mut owner = Child::start("own every slot", &[place(&dir).to_str().unwrap()]);
        owner.expect("owns");
        owner.kill();
        let log = Options::default().open(place(&dir)).expect("the dead hold no place");
        log.append(b"after\n").unwrap();
        assert_eq!(read_all(&log).len(), 8 * 128 + 1);
    }
}

#[test]
fn few_processes_with_many_threads_leave_room_for_others() {
    let dir = scratch();
    drop(small(Layout::Framed).open(place(&dir)).unwrap());
    let mut owner = Child::start("own every slot", &[place(&dir).to_str().unwrap()]);
    owner.expect("owns");
    let log = Options::default().open(place(&dir)).expect("eight participants are not many");
    log.append(b"after\n").unwrap();
    owner.finish_well();
}

#[test]
fn a_reader_alone_repairs_what_the_dead_left() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let path = place(&dir);
        let mut dead: Vec<Child> = (0..5)
            .map(|_| Child::start("hold a reservation", &[path.to_str().unwrap(), "600"]))
            .collect();
        dead.iter_mut().for_each(|holder| holder.expect("holds"));
        let lsn = log.append(b"last\n").unwrap();
        dead.into_iter().for_each(Child::kill);
        let mut reader = log.reader(lsn).unwrap();
        let found = reader.follow(Some(PATIENCE)).unwrap().unwrap();
        assert_eq!(found.payload, b"last\n");
        assert_eq!(log.stat().unwrap().repairs, 5);
        drop(reader);
        if layout == Layout::Framed {
            assert_holds(&log, &[(lsn, b"last\n".to_vec())]);
        }
    }
}
