//! The holds that others may wait for: locks, groups on their way, reservations, the gate.
//!
//! Nothing here is part of the protocol: it shows people why a log does not move. The next process
//! that needs a hold of the dead takes it over; a hold of a stopped process is not taken over,
//! because that one may continue at any moment (`docs/protocol.md`, "Why there is no fencing").

use std::fmt;
use std::time::Duration;

use rustix::fs::OFlags;

use crate::Lsn;
use crate::files::names::LOCK_NAME;
use crate::log::state::core::{Core, Participation};
use crate::lsn::Range;
use crate::options::choice::named;
use crate::shared::commit;
use crate::shared::lock::Watched;
use crate::shared::participants::{
    self, COMPRESS_BYTE, CURSORS_BYTE, GATE_BYTE, Liveness, Owner, Standing,
};
use crate::shared::tail_word;
use crate::sys::process::{Incarnation, Life};
use crate::sys::{clock, lock};

/// Something that others may wait for, and its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hold {
    /// The kind of the hold.
    pub what: HoldKind,
    /// Which part of the log it is about: of a commit group or an append.
    pub range: Option<InFlight>,
    /// The process that holds it, by the number in its own PID namespace; `None` where it cannot be
    /// told.
    pub pid: Option<u32>,
    /// Whether that is another PID namespace than the caller's, so that the number means another
    /// process here, or none.
    pub other_namespace: bool,
    /// The state of that process.
    pub state: ProcessState,
    /// For how long others have waited for this, since the first of them noticed, which takes about
    /// 10 ms; `None` where none had to, or its time is unknown.
    pub waited: Option<Duration>,
}

/// A reservation that has not been published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InFlight {
    /// Where it starts.
    pub first_lsn: Lsn,
    /// Its length.
    pub bytes: u64,
}

/// The kinds of holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HoldKind {
    /// The lock under which space is made ready and files are named and removed. A process that
    /// needs more space waits for it, and so does one that trims or rotates.
    Space,
    /// The lock under which reservations of the dead are padded.
    Repair,
    /// The lock under which commit groups begin and end. A commit waits for it.
    Commit,
    /// A commit group on its way to the device. A commit of one of its records, or of one behind,
    /// waits for it.
    CommitGroup,
    /// The lock under which text is written. An append waits for it for a tenth of a second.
    TextWriteLock,
    /// The lock of the line that reports dropped records.
    DroppedRecords,
    /// A reservation that is being filled. Readers and commits do not get past it.
    Append,
    /// The gate. Opening and closing the log wait for it.
    Gate,
    /// The right to compress closed files. No process waits for it.
    Compression,
    /// The right to change named cursors. A process that commits or sets one waits for it.
    Cursors,
}

/// The state of a process that holds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessState {
    /// It runs.
    Running,
    /// It waits for something, as far as its first thread goes.
    Sleeping,
    /// It does not continue until another process continues it: stopped by a signal or a debugger,
    /// or its control group is frozen, as by `docker pause`.
    Stopped,
    /// It is dead: the next process that needs its hold takes it over.
    Dead,
    /// It cannot be seen from here: in another PID namespace, or behind the caller's rights.
    Unknown,
}

/// Everything that is held at this moment.
pub(crate) fn holds(core: &Core) -> Vec<Hold> {
    const LOCKS: [HoldKind; 5] = [
        HoldKind::Space,
        HoldKind::Repair,
        HoldKind::Commit,
        HoldKind::TextWriteLock,
        HoldKind::DroppedRecords,
    ];
    let mut all: Vec<Hold> = LOCKS.iter().filter_map(|what| of_lock(core, *what)).collect();
    all.extend(groups(core));
    all.extend(appends(core));
    all.extend(of_lock_file(core, HoldKind::Gate, GATE_BYTE));
    all.extend(of_lock_file(core, HoldKind::Compression, COMPRESS_BYTE));
    all.extend(of_lock_file(core, HoldKind::Cursors, CURSORS_BYTE));
    all
}

/// The holder of a lock in the shared words.
pub(crate) fn of_lock(core: &Core, what: HoldKind) -> Option<Hold> {
    let (owner, since) = lock_of(core, what)?.holder()?;
    Some(hold(core, what, owner, None, since))
}

/// The groups on their way to the device.
pub(crate) fn groups(core: &Core) -> impl Iterator<Item = Hold> {
    commit::on_their_way(&core.words().commits).map(|(owner, group, since)| {
        let bytes = group.end.get().saturating_sub(group.start.get());
        let range = InFlight { first_lsn: group.start, bytes };
        hold(core, HoldKind::CommitGroup, owner, Some(range), since)
    })
}

fn appends(core: &Core) -> impl Iterator<Item = Hold> {
    let words = core.words();
    let seen = tail_word::load(words);
    let granted = move |slot| Some((slot, tail_word::granted(words, slot, seen)?));
    let granted = (0..tail_word::used_slots(words)).filter_map(granted);
    granted.filter_map(|(slot, range)| append(core, slot, range))
}

/// The reservation that holds the published end back.
pub(crate) fn oldest_append(core: &Core) -> Option<Hold> {
    let words = core.words();
    let (slot, range) = tail_word::oldest_in_flight(words, tail_word::load(words))?;
    append(core, slot, range)
}

/// The reservation in flight in a slot.
pub(crate) fn append_in(core: &Core, slot: usize) -> Option<Hold> {
    let range = tail_word::granted(core.words(), slot, tail_word::load(core.words()))?;
    append(core, slot, range)
}

fn append(core: &Core, slot: usize, range: Range) -> Option<Hold> {
    let owner = participants::owner_of(core.words(), slot)?;
    let since = tail_word::waited_since(core.words(), slot, range);
    let range = InFlight { first_lsn: range.start, bytes: range.len };
    Some(hold(core, HoldKind::Append, owner, Some(range), since))
}

/// The processes that hold a byte of the lock file for a moment.
pub(crate) fn of_lock_file(core: &Core, what: HoldKind, byte: u64) -> Vec<Hold> {
    let path = core.files.dir.join(LOCK_NAME);
    let Ok(file) = core.files.dir.open_file(&path, OFlags::RDONLY) else { return Vec::new() };
    if lock::is_held_by_another(&file, byte) != Ok(true) {
        return Vec::new();
    }
    let nobody = Hold {
        what,
        range: None,
        pid: None,
        other_namespace: false,
        state: ProcessState::Unknown,
        waited: None,
    };
    let holders = lock::holders(&file, byte).into_iter().map(|pid| {
        let incarnation = Incarnation::of(pid);
        Hold { pid: Some(pid), state: state(&incarnation), ..nobody }
    });
    let known: Vec<Hold> = holders.collect();
    if known.is_empty() { vec![nobody] } else { known }
}

fn hold(
    core: &Core,
    what: HoldKind,
    owner: Owner,
    range: Option<InFlight>,
    since: Option<u64>,
) -> Hold {
    let waited = since.map(|since| Duration::from_micros(clock::micros().saturating_sub(since)));
    let place = participants::place_of(core.words(), owner);
    let who = place.map(participants::incarnation);
    Hold {
        what,
        range,
        pid: who.map(|who| who.pid),
        other_namespace: who.is_some_and(|who| who.is_elsewhere()),
        state: who.map_or(ProcessState::Dead, |who| state_of(core, owner, &who)),
        waited,
    }
}

/// The state of a participant.
pub(crate) fn state_of(core: &Core, owner: Owner, who: &Incarnation) -> ProcessState {
    let is_alive = match core.writer.as_ref().and_then(Participation::own) {
        Some(attachment) => attachment.liveness(core.words()).is_alive(owner),
        None => core.outsider().standing(owner) != Standing::Gone,
    };
    if is_alive { state(who) } else { ProcessState::Dead }
}

fn state(who: &Incarnation) -> ProcessState {
    match who.life() {
        Life::Gone => ProcessState::Dead,
        Life::Unknown => ProcessState::Unknown,
        _ if who.is_halted() => ProcessState::Stopped,
        Life::Running => ProcessState::Running,
        Life::Asleep | Life::Stopped => ProcessState::Sleeping,
    }
}

/// The lock in the shared words that `what` is about.
pub(crate) fn lock_of(core: &Core, what: HoldKind) -> Option<Watched<'_>> {
    let words = core.words();
    match what {
        HoldKind::Space => Some((&words.prepare).into()),
        HoldKind::Repair => Some((&words.repair).into()),
        HoldKind::Commit => Some((&words.commits.lock).into()),
        HoldKind::TextWriteLock => Some((&words.files.write_lock).into()),
        HoldKind::DroppedRecords => Some((&words.full).into()),
        HoldKind::CommitGroup
        | HoldKind::Append
        | HoldKind::Gate
        | HoldKind::Compression
        | HoldKind::Cursors => None,
    }
}

named!(
    HoldKind,
    Space = "space",
    Repair = "repair",
    Commit = "commit",
    CommitGroup = "commit-group",
    TextWriteLock = "text-write-lock",
    DroppedRecords = "dropped-records",
    Append = "append",
    Gate = "gate",
    Compression = "compression",
    Cursors = "cursors"
);
named!(
    ProcessState,
    Running = "running",
    Sleeping = "sleeping",
    Stopped = "stopped",
    Dead = "dead",
    Unknown = "unknown"
);

/// The hold, its holder, the state of that one, and since when others wait: a sentence without its
/// end.
impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.what {
            HoldKind::Space => "the lock for making space ready",
            HoldKind::Repair => "the lock for repairs",
            HoldKind::Commit => "the lock for commits",
            HoldKind::CommitGroup => "the commit group",
            HoldKind::TextWriteLock => "the lock for writing text",
            HoldKind::DroppedRecords => "the lock for reporting dropped records",
            HoldKind::Append => "the reservation",
            HoldKind::Gate => "the gate for opening and closing",
            HoldKind::Compression => "the right to compress",
            HoldKind::Cursors => "the right to change cursors",
        })?;
        if let Some(InFlight { first_lsn, bytes }) = self.range {
            write!(f, " from {first_lsn} to {}", Lsn::new(first_lsn.get().saturating_add(bytes)))?;
        }
        f.write_str(" is held by ")?;
        match self.pid {
            Some(pid) if pid == std::process::id() && !self.other_namespace => {
                write!(f, "this process, {pid}")?;
            }
            Some(pid) if self.other_namespace => {
                write!(f, "process {pid} of another PID namespace")?;
            }
            Some(pid) => write!(f, "process {pid}")?,
            None if self.state == ProcessState::Dead => f.write_str("nobody any more")?,
            None => f.write_str("a process that cannot be seen from here")?,
        }
        if self.pid.is_some() && self.state != ProcessState::Unknown {
            write!(f, ", which is {}", self.state)?;
        }
        if let Some(waited) = self.waited {
            write!(f, "; others have waited for {:.1} s", waited.as_secs_f64())?;
        }
        Ok(())
    }
}
