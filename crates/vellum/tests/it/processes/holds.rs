//! The holds of a stopped process are reported: kind, holder, state, for how long others wait.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use vellum::stat::{Hold, HoldKind, ProcessState};
use vellum::{Layout, Log, Lsn, Options};

use crate::support::child::{self, Child};
use crate::support::{LAYOUTS, assert_sound, is_root, place, scratch, skip, small, until};

/// Where the shared words start in the control file, and the first participant's.
const WORDS: u64 = 4096;
const PARTICIPANTS: u64 = WORDS + 8 * 128;
const SLOTS: u64 = PARTICIPANTS + 1024 * 64;
const COMMITS: u64 = WORDS + 197_632;
const FILES: u64 = WORDS + 199_680;

/// Where the words of each lock are.
pub(crate) const LOCKS: [(HoldKind, u64); 5] = [
    (HoldKind::Space, WORDS + 512),
    (HoldKind::Repair, WORDS + 640),
    (HoldKind::Commit, COMMITS + 128),
    (HoldKind::TextWriteLock, FILES),
    (HoldKind::DroppedRecords, FILES + 512 + 32),
];

/// Appends and commits without a pause.
pub(crate) fn commit_without_end(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    child::say("ready");
    loop {
        let lsn = log.append(b"a record\n").unwrap();
        log.commit(lsn).unwrap();
    }
}

/// Stays in the gate, as an opening or closing process does for a moment.
pub(crate) fn stay_in_the_gate(arguments: &[String]) {
    let file = File::options().write(true).open(&arguments[0]).unwrap();
    crate::support::lock_byte(&file, 0);
    child::say("in the gate");
    child::hear();
}

/// A participant that is stopped.
pub(crate) fn stopped_participant(log: &Log) -> Child {
    let mut child = Child::start("append on command", &[log.path().to_str().unwrap()]);
    child.expect("ready");
    stop(&child, log);
    child
}

/// Stops a participant and waits until it has stopped, because `kill` returns before.
pub(crate) fn stop(child: &Child, log: &Log) {
    child.signal(libc::SIGSTOP);
    let pid = child.pid() as u32;
    until("it is stopped", || {
        let stat = log.stat().unwrap();
        stat.participants.iter().any(|p| p.pid == pid && p.stopped).then_some(())
    });
}

/// Has the word of a lock name a participant as its holder, as if it had stopped there; or none.
pub(crate) fn set_holder(log: &Path, lock: u64, pid: Option<i32>) {
    let control = File::options().read(true).write(true).open(log.join("control")).unwrap();
    let word = |offset: u64| {
        let mut bytes = [0; 8];
        control.read_exact_at(&mut bytes, offset).unwrap();
        u64::from_ne_bytes(bytes)
    };
    let place = |index: u64| PARTICIPANTS + index * 64;
    let owner = pid.map_or(0, |pid| {
        let is_it = |index: &u64| word(place(*index) + 8) == pid as u64;
        let index = (0..1024).find(is_it).expect("it is attached");
        word(place(index)) << 10 | index
    });
    control.write_all_at(&owner.to_ne_bytes(), lock).unwrap();
}

/// Has the notice say that the reservation which a process holds was waited for since `time` ago.
pub(crate) fn set_waited(log: &Log, child: &Child, time: Duration) {
    let hold = hold_of(log, HoldKind::Append, child).unwrap();
    assert!(hold.waited.is_some(), "somebody has waited");
    let control = File::options().read(true).write(true).open(log.path().join("control")).unwrap();
    let start = hold.range.unwrap().first_lsn.get().to_ne_bytes();
    let is_it = |slot: &u64| {
        let mut noticed = [0; 8];
        control.read_exact_at(&mut noticed, SLOTS + slot * 128 + 32).unwrap();
        noticed == start
    };
    let slot = (0..1024).find(is_it).expect("it has been noticed");
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now = Duration::new(clock.tv_sec as u64, clock.tv_nsec as u32);
    let since = now.saturating_sub(time).as_micros() as u64;
    control.write_all_at(&since.to_ne_bytes(), SLOTS + slot * 128 + 40).unwrap();
    let told = hold_of(log, HoldKind::Append, child).unwrap().waited.unwrap();
    assert!(told >= time.min(now), "{told:?}");
}

/// The hold of a process, of one kind.
pub(crate) fn hold_of(log: &Log, what: HoldKind, child: &Child) -> Option<Hold> {
    let holds = log.stat().unwrap().holds;
    holds.into_iter().find(|hold| hold.what == what && hold.pid == Some(child.pid() as u32))
}

#[track_caller]
fn assert_blames(hold: &Hold, child: &Child) {
    assert_eq!((hold.state, hold.other_namespace), (ProcessState::Stopped, false));
    let blame = format!("is held by process {}, which is stopped", child.pid());
    assert!(hold.to_string().contains(&blame), "{hold}");
}

#[test]
fn a_stopped_append_is_named_and_how_long_a_commit_waits_for_it() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let path = place(&dir);
        let mut holder = Child::start("hold a reservation", &[path.to_str().unwrap(), "100"]);
        holder.expect("holds");
        stop(&holder, &log);
        let lsn = log.append(b"behind\n").unwrap();
        let hold = hold_of(&log, HoldKind::Append, &holder).unwrap();
        assert_blames(&hold, &holder);
        let range = hold.range.unwrap();
        assert_eq!(range.first_lsn, log.published());
        assert_eq!(Lsn::new(range.first_lsn.get() + range.bytes), lsn);
        assert_eq!(hold.waited, None, "nobody waits");
        let waited = std::thread::scope(|scope| {
            let commit = scope.spawn(|| log.commit(lsn));
            let waited = until("the commit has waited", || {
                hold_of(&log, HoldKind::Append, &holder).unwrap().waited
            });
            // A process that looks later sees a longer time, however often the waiting one has
            // looked.
            let longer = until("it waits for longer", || {
                let now = hold_of(&log, HoldKind::Append, &holder).unwrap().waited.unwrap();
                (now >= waited + Duration::from_millis(20)).then_some(now)
            });
            holder.signal(libc::SIGCONT);
            holder.tell("publish");
            holder.expect("published");
            commit.join().unwrap().unwrap();
            longer
        });
        assert!(waited >= Duration::from_millis(20));
        assert_eq!(hold_of(&log, HoldKind::Append, &holder), None);
        holder.finish_well();
        assert_sound(&log);
    }
}

#[test]
fn a_process_that_is_stopped_while_it_writes_a_batch_is_named() {
    for options in [Options::default(), Options::wal().exclusive(false)] {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        let mut holder = Child::start("commit without end", &[place(&dir).to_str().unwrap()]);
        holder.expect("ready");
        let hold = until("it is stopped with a batch in its hands", || {
            stop(&holder, &log);
            let hold = hold_of(&log, HoldKind::CommitGroup, &holder);
            if hold.is_none() {
                holder.signal(libc::SIGCONT);
            }
            hold
        });
        assert_blames(&hold, &holder);
        assert!(hold.range.is_some_and(|range| range.bytes > 0));
        std::thread::scope(|scope| {
            let lsn = log.append(b"behind\n").unwrap();
            let commit = scope.spawn(move || log.commit(lsn).map(|()| log));
            let looker = Options::default().read_only(true).open(place(&dir)).unwrap();
            until("the commit has waited", || {
                hold_of(&looker, HoldKind::CommitGroup, &holder).unwrap().waited
            });
            // The dead block no process.
            holder.kill();
            let log = commit.join().unwrap().unwrap();
            assert!(log.stat().unwrap().holds.is_empty());
        });
    }
}

/// A control group that can be frozen, as `docker pause` does it, of whichever version there is.
struct FrozenGroup {
    path: std::path::PathBuf,
    thaw: (&'static str, &'static str),
}

impl FrozenGroup {
    fn freeze(pid: i32) -> Option<FrozenGroup> {
        let name = format!("vellum-test-{}", std::process::id());
        let kinds = [
            ("/sys/fs/cgroup", "cgroup.freeze", "1", "0"),
            ("/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"),
            ("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"),
        ];
        kinds.into_iter().find_map(|(root, file, freeze, thaw)| {
            let path = Path::new(root).join(&name);
            // Elsewhere than in a hierarchy of groups this makes a directory with nothing in it.
            std::fs::create_dir(&path).ok()?;
            let group = FrozenGroup { path, thaw: (file, thaw) };
            group.path.join(file).exists().then_some(())?;
            std::fs::write(group.path.join("cgroup.procs"), pid.to_string()).ok()?;
            std::fs::write(group.path.join(file), freeze).ok().map(|()| group)
        })
    }
}

impl Drop for FrozenGroup {
    fn drop(&mut self) {
        let (file, thaw) = self.thaw;
        if let Ok(file) = File::options().write(true).open(self.path.join(file)) {
            let _ = file.write_all_at(thaw.as_bytes(), 0);
        }
        // Its process leaves it when it ends.
        let is_gone = || match std::fs::remove_dir(&self.path) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => None,
            _ => Some(()),
        };
        until("the control group is empty", is_gone);
    }
}

#[test]
fn a_process_in_a_frozen_control_group_is_stopped() {
    const TEST: &str = "a_process_in_a_frozen_control_group_is_stopped";
    if !is_root(TEST) {
        return;
    }
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let mut holder = Child::start("hold a reservation", &[log.path().to_str().unwrap(), "100"]);
    holder.expect("holds");
    assert_ne!(hold_of(&log, HoldKind::Append, &holder).unwrap().state, ProcessState::Stopped);
    let Some(group) = FrozenGroup::freeze(holder.pid()) else {
        return skip(TEST, "no control group can be made and frozen here");
    };
    until("it is frozen", || {
        let hold = hold_of(&log, HoldKind::Append, &holder).unwrap();
        (hold.state == ProcessState::Stopped).then_some(())
    });
    std::fs::write(group.path.join(group.thaw.0), group.thaw.1).unwrap();
    holder.tell("publish");
    holder.expect("published");
    holder.finish_well();
    drop(group);
}

#[test]
fn the_holder_of_every_lock_is_named() {
    let dir = scratch();
    let log = small(Layout::Text).open(place(&dir)).unwrap();
    let holder = stopped_participant(&log);
    for (what, lock) in LOCKS {
        assert_eq!(hold_of(&log, what, &holder), None, "{what}");
        set_holder(log.path(), lock, Some(holder.pid()));
        assert_blames(&hold_of(&log, what, &holder).unwrap(), &holder);
        set_holder(log.path(), lock, None);
    }
}

#[test]
fn how_long_a_lock_is_waited_for_counts_for_this_hold_of_it_alone() {
    let dir = scratch();
    let log = small(Layout::Framed).open(place(&dir)).unwrap();
    let holder = stopped_participant(&log);
    let (what, lock) = LOCKS[0];
    set_holder(log.path(), lock, Some(holder.pid()));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| log.prepare(2));
        until("it has waited", || hold_of(&log, what, &holder).unwrap().waited);
        set_holder(log.path(), lock, None);
        waiter.join().unwrap().unwrap();
    });
    // The waiter had the lock in between, and released it.
    set_holder(log.path(), lock, Some(holder.pid()));
    assert_eq!(hold_of(&log, what, &holder).unwrap().waited, None);
    set_holder(log.path(), lock, None);
}

#[test]
fn who_stays_in_the_gate_is_named() {
    let dir = scratch();
    let log = small(Layout::Text).open(place(&dir)).unwrap();
    let file = place(&dir).join("lock");
    let mut holder = Child::start("stay in the gate", &[file.to_str().unwrap()]);
    holder.expect("in the gate");
    assert!(hold_of(&log, HoldKind::Gate, &holder).is_some());
    holder.signal(libc::SIGSTOP);
    let hold = until("it is stopped", || {
        hold_of(&log, HoldKind::Gate, &holder).filter(|h| h.state == ProcessState::Stopped)
    });
    assert_blames(&hold, &holder);
    holder.kill();
    assert_eq!(log.stat().unwrap().holds, []);
}
