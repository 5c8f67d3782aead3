//! Every word that participants share, in one structure laid over the control file.
//!
//! ```text
//!  tail ─ ready_end ─ allocated_end ─ begin ─ locks ─ event_count ─ counts  pairs of lines
//!  participants[1024]   who is attached: one line each
//!  slots[1024]          appends in flight: two lines each
//!  commits              what is durable, what is on its way there, and what went wrong
//!  files                text logs: when to go on in a new file, and what the newest is called
//!  full                 what a full disk has cost
//!  removed              what retention has removed
//!  ship                 what of the log is beyond this machine
//! ```
//!
//! **Invariants**: (I1) begin ≤ published ≤ tail ≤ allocated_end, ready_end ≤ allocated_end, and
//! each only grows while more than one participant is attached. (I2) a slot is written by its owner
//! alone, or by the repairer once the owner is gone, but for `confirmed`, which only grows. All
//! zeros is a valid state: a log in which nothing has happened but the setting of the first
//! positions.
//!
//! Nothing read from here is trusted: a position is checked before it becomes an offset.

use super::primitive::{AtomicU32, AtomicU64, HintU64};
use crate::options::policy::NUMBER_COUNT;

/// Processes that can be attached at the same time.
#[cfg(not(any(all(loom, test), shuttle)))]
pub(crate) const PARTICIPANT_COUNT: usize = 1024;
#[cfg(any(all(loom, test), shuttle))]
pub(crate) const PARTICIPANT_COUNT: usize = 4;

/// Appends that can be in flight at the same time; the tail word has ten bits for the slot.
#[cfg(not(any(all(loom, test), shuttle)))]
pub(crate) const SLOT_COUNT: usize = 1024;
#[cfg(any(all(loom, test), shuttle))]
pub(crate) const SLOT_COUNT: usize = 4;

/// Batches of records that can be on their way to the device at the same time.
#[cfg(not(any(all(loom, test), shuttle)))]
pub(crate) const LANE_COUNT: usize = 4;
#[cfg(any(all(loom, test), shuttle))]
pub(crate) const LANE_COUNT: usize = 2;

/// Words on which the waiters of groups sleep: more than groups in flight, and the next one.
#[cfg(not(any(all(loom, test), shuttle)))]
pub(crate) const GROUP_WORD_COUNT: usize = 16;
#[cfg(any(all(loom, test), shuttle))]
pub(crate) const GROUP_WORD_COUNT: usize = 4;

/// A word with two cache lines to itself: processors fetch lines in pairs.
#[derive(Default)]
#[repr(C, align(128))]
pub(crate) struct Alone<T>(pub(crate) T);

impl<T> std::ops::Deref for Alone<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// All shared words of a log.
#[cfg_attr(any(all(loom, test), shuttle), derive(Default))]
#[repr(C)]
pub(crate) struct Words {
    /// The tail and the slot of its last winner, packed (`tail_word::TailWord`).
    pub(super) tail: Alone<AtomicU64>,
    /// Reservations that end here or before need nothing made ready.
    pub(super) ready_end: Alone<AtomicU64>,
    /// End of the last segment that exists.
    pub(super) allocated_end: Alone<AtomicU64>,
    /// Oldest position still kept.
    pub(super) begin: Alone<AtomicU64>,
    /// Held while making segments ready, reserving beyond `ready_end`, or removing segments.
    pub(crate) prepare: Alone<WatchedLockWords>,
    /// Held while padding the ranges of dead participants.
    pub(crate) repair: Alone<WatchedLockWords>,
    /// Rung when something was published and a reader waits for it.
    pub(crate) event_count: Alone<EventCountWords>,
    pub(crate) counts: Alone<CountWords>,
    pub(crate) participants: [ParticipantWords; PARTICIPANT_COUNT],
    pub(crate) slots: [SlotWords; SLOT_COUNT],
    pub(crate) commits: CommitWords,
    pub(crate) files: FileWords,
    pub(crate) full: Alone<FullWords>,
    pub(crate) removed: Alone<RemovedWords>,
    pub(crate) ship: Alone<ShipWords>,
}

/// The files of a text log (`files`).
#[derive(Default)]
#[repr(C)]
pub(crate) struct FileWords {
    /// Held while writing text by system call.
    pub(crate) write_lock: Alone<WatchedLockWords>,
    pub(crate) rule: Alone<RuleWords>,
    pub(crate) policy: Alone<PolicyWords>,
    pub(crate) names: Alone<NameWords>,
}

/// Words that every append to a text log looks at; rarely written.
#[derive(Default)]
#[repr(C)]
pub(crate) struct RuleWords {
    /// Bytes of a segment that records go to, or 0 for all of them.
    pub(super) limit: AtomicU64,
    /// End of the segment that was left early; records go behind it. Only grows while the log is
    /// open.
    pub(super) closed_before: AtomicU64,
    /// When to continue in a new file, in seconds since 1970, or 0 for never.
    pub(super) rotate_at: AtomicU64,
    /// Position beyond which the next file has to be made ready; `u64::MAX` once it is.
    pub(super) edge: AtomicU64,
    _retired: AtomicU64,
    /// The moment before `rotate_at`: a clock that tells less has been put back.
    pub(super) rotated_at: AtomicU64,
}

/// The log's `Policy`.
#[derive(Default)]
#[repr(C)]
pub(crate) struct PolicyWords {
    /// Odd while the others hold the values of the geometry file. Grows with each change: to the
    /// next even number before it, to the next odd one after it.
    pub(super) version: AtomicU64,
    /// As `Policy::to_numbers` has them.
    pub(super) numbers: [AtomicU64; NUMBER_COUNT],
}

/// The newest segment's name, and the next file.
#[derive(Default)]
#[repr(C)]
pub(crate) struct NameWords {
    /// First position of the newest segment, or 0 where the directory has to be listed. Stored
    /// last, taken back first.
    pub(super) first: AtomicU64,
    /// Its time, in seconds since 1970.
    pub(super) time: AtomicU64,
    /// 1 if the file under the unfinished name is whole and waits for its own.
    pub(super) is_next_made: AtomicU64,
    _retired: AtomicU64,
    /// 1 if the newest segment continues the one before it. Stored with `time`.
    pub(super) is_continuation: AtomicU64,
    /// Bytes of text in the files that it continues.
    pub(super) group_bytes: AtomicU64,
}

/// How records are made durable (`commit`).
#[derive(Default)]
#[repr(C)]
pub(crate) struct CommitWords {
    /// Why nothing more can be; looked at by every append.
    pub(crate) poison: Alone<PoisonWords>,
    /// Held while beginning a group, or raising `durable`.
    pub(crate) lock: Alone<WatchedLockWords>,
    pub(crate) ends: Alone<CommitEndWords>,
    pub(crate) lanes: [LaneWords; LANE_COUNT],
    /// The group with number `n` is waited for on word `n % 16`; they only count up.
    pub(super) groups: [Line<AtomicU32>; GROUP_WORD_COUNT],
    pub(crate) stage: Alone<StageWords>,
    pub(crate) counts: CommitCountWords,
}

/// The first failed write or sync.
#[derive(Default)]
#[repr(C)]
pub(crate) struct PoisonWords {
    /// The error number, or 0 while all is well. Stored last.
    pub(super) errno: AtomicU64,
    /// First position of the segment it was about.
    pub(super) segment: AtomicU64,
    /// The operation that failed (`commit::Operation`).
    pub(super) operation: AtomicU64,
}

/// Positions of the commit protocol. Written under its lock.
#[derive(Default)]
#[repr(C)]
pub(crate) struct CommitEndWords {
    /// End of the records that survive a power cut.
    pub(super) durable: AtomicU64,
    /// End of the records that groups have taken.
    pub(super) grouped: AtomicU64,
    /// Number of the group that will begin next.
    pub(super) next_group: AtomicU64,
    /// Batches before this number end on a block boundary, so that the next need not wait.
    pub(super) pad_until_group: AtomicU64,
    /// Positions below this lie in segments whose names survive a power cut.
    pub(super) named_end: AtomicU64,
    /// The user's own mark.
    pub(super) checkpoint: AtomicU64,
    /// End of the newest commit record in the log, with which the next group ends.
    pub(super) record_end: AtomicU64,
    /// When a waiter has looked for the dead last, in microseconds of the machine's own clock.
    pub(super) looked_at: AtomicU64,
    /// Rung when `durable` was raised, or nothing more will be durable, and a reader waits for it.
    pub(crate) durable_count: EventCountWords,
}

/// A group on its way to the device.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct LaneWords {
    /// `participants::Owner` of its writer, or 0 while the lane is free. Stored last.
    pub(super) owner: AtomicU64,
    pub(super) start: AtomicU64,
    pub(super) end: AtomicU64,
    pub(super) number: AtomicU64,
    /// 1 once it has been written.
    pub(super) is_written: AtomicU64,
    /// Of this group: its owner and `number`.
    pub(crate) noticed: NoticeWords,
}

/// Where records lie that are not in the segments yet.
#[derive(Default)]
#[repr(C)]
pub(crate) struct StageWords {
    /// From here on records are in the stage; those before are durable, in the segments.
    pub(super) begin: AtomicU64,
    /// The identity of the stages, or 0 where there are none.
    pub(super) id: AtomicU64,
}

/// Counts of commits.
#[derive(Default)]
#[repr(C, align(128))]
pub(crate) struct CommitCountWords {
    pub(super) commits: AtomicU64,
    pub(super) syncs: AtomicU64,
    pub(super) synced_bytes: AtomicU64,
    /// Syncs by the logarithm of their time in microseconds.
    pub(super) sync_micros: [AtomicU64; 24],
    /// Time of all syncs together, in microseconds.
    pub(super) sync_micros_sum: AtomicU64,
}

/// The losses of a full disk (`log::append::disk_full`).
#[derive(Default)]
#[repr(C)]
pub(crate) struct FullWords {
    /// Records that were dropped.
    pub(super) dropped: AtomicU64,
    /// How many of them the log itself reports; every append of a text log reads it.
    pub(super) told: AtomicU64,
    /// The position of the line that will report more, or 0.
    pub(super) line_at: AtomicU64,
    /// What `told` will be when that line is there. Stored before `line_at`.
    pub(super) line_told: AtomicU64,
    /// Held while writing such a line.
    pub(crate) lock: LockWords,
    /// Counts removals of files; appends that wait for space sleep on it.
    pub(super) removals: AtomicU32,
    /// Of `lock`.
    pub(crate) noticed: NoticeWords,
    /// Until when records are dropped without looking for space, in microseconds of the machine's
    /// own clock; 0 while there may be some (`full`).
    pub(super) shut_until: AtomicU64,
    /// The shortest record that there was no space for since then.
    pub(super) refused_len: AtomicU64,
    /// How often dropping appends have looked for space in vain.
    pub(super) tries: AtomicU64,
}

/// The files that the policy of a text log has removed, by `files::RemovalRule`.
#[derive(Default)]
#[repr(C)]
pub(crate) struct RemovedWords {
    pub(super) files: [AtomicU64; 3],
    /// Bytes of text in them.
    pub(super) bytes: [AtomicU64; 3],
}

/// The part of the log that is beyond this machine (`ship`). Written by the shipper, but for
/// `wanted` and the two event counts; all of it means nothing after a reboot or in a copy.
#[derive(Default)]
#[repr(C)]
pub(crate) struct ShipWords {
    /// End of the shipped records.
    pub(super) shipped: AtomicU64,
    /// The same, as far as it is known to end where a record does. Waiters read it.
    pub(super) whole: AtomicU64,
    /// A process waits until everything before this is shipped.
    pub(super) wanted: AtomicU64,
    /// Rung when `whole` was raised, or will not be.
    pub(crate) shipped_count: EventCountWords,
    /// Rung when `wanted` was raised.
    pub(crate) wanted_count: EventCountWords,
    /// `participants::Owner` of the shipper, or 0. The holder of the lock counts.
    pub(super) holder: HintU64,
    /// Reserved: an earlier version stores the generation here.
    _generation: HintU64,
    /// The state of shipping, and its failure (`log::ship::state`).
    pub(super) status: HintU64,
    /// Reserved: an earlier version stores here when `shipped` was stored last.
    _shipped_at: HintU64,
    /// The newest stretch that was removed before it was shipped. `gap_end` is stored last.
    pub(super) gap_start: HintU64,
    pub(super) gap_end: HintU64,
    /// Reserved: an earlier version counts requests and bytes here.
    _counts: [HintU64; 5],
}

/// A lock between processes (`lock`).
#[derive(Default)]
#[repr(C)]
pub(crate) struct LockWords {
    /// `participants::Owner` of the holder, or 0.
    pub(super) holder: AtomicU64,
    /// Counts releases with a waiter, wake-ups before a release, and every release of the text
    /// write lock (`log::layout::text::write_lock`); slept on.
    pub(super) releases: AtomicU32,
    /// 1 if a waiter may be asleep.
    pub(super) contended: AtomicU32,
}

/// A lock, and its holder as a waiter noted it: `holder` and `releases`.
#[derive(Default)]
#[repr(C)]
pub(crate) struct WatchedLockWords {
    pub(crate) lock: LockWords,
    pub(crate) noticed: NoticeWords,
}

impl std::ops::Deref for WatchedLockWords {
    type Target = LockWords;

    #[inline]
    fn deref(&self) -> &LockWords {
        &self.lock
    }
}

/// Since when a process waits for a hold of another (`notice`). Hints for people: the protocol does
/// not depend on them, so they are no steps of the model either.
#[derive(Default)]
#[repr(C)]
pub(crate) struct NoticeWords {
    /// Its holder, or 0. Stored last, taken back first.
    pub(super) holder: HintU64,
    /// Which of the holder's holds it is.
    pub(super) number: HintU64,
    /// In microseconds of the machine's own clock.
    pub(super) since: HintU64,
}

/// How writers wake readers (`event_count`).
#[derive(Default)]
#[repr(C)]
pub(crate) struct EventCountWords {
    /// Counts rings; slept on.
    pub(super) rings: AtomicU32,
    /// The kinds of waiters that there may be: `event_count::SLEEPER`, `POLLER`.
    pub(super) armed: AtomicU32,
}

/// How far arrays are in use, and counts of events.
#[derive(Default)]
#[repr(C)]
pub(crate) struct CountWords {
    /// Slots with this index and above have never been claimed.
    pub(super) slots_used: AtomicU64,
    /// Participants with this index and above have never been attached.
    pub(super) participants_used: AtomicU64,
    /// Reservations of dead participants that were padded.
    pub(super) repairs: AtomicU64,
    /// Bytes of those.
    pub(super) repaired_bytes: AtomicU64,
    /// Segments that were made and named.
    pub(super) segments_made: AtomicU64,
}

/// A participant: one life of one process, attached to the log.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct ParticipantWords {
    /// Grows with each life that takes this place: odd while attached, even while free.
    pub(super) generation: AtomicU64,
    pub(super) pid: AtomicU64,
    pub(super) start_ticks: AtomicU64,
    pub(super) namespace: AtomicU64,
    /// A [`Claim`](super::participants::Claim).
    pub(super) claim: AtomicU64,
}

/// An append in flight.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct SlotWords {
    /// Where the reservation starts, or would; 0 when nothing is in flight.
    pub(super) start: AtomicU64,
    /// Its length in bytes.
    pub(super) len: AtomicU64,
    /// `participants::Owner` of the process that uses this slot, 0 if it is free, or
    /// `Owner::GIVEN_UP`.
    pub(super) owner: AtomicU64,
    /// Of the range in flight: `owner` and `start`. Written by others that have waited for long.
    pub(crate) noticed: NoticeWords,
    /// The appends with this slot of all its owners. On the owner's line, so that counting costs no
    /// other.
    pub(crate) appended: AppendedWords,
    /// Proof of a reservation that others have built upon: all of this slot's up to here were
    /// granted. On a line of its own, because others write it while the owner writes `start`.
    pub(super) confirmed: Line<AtomicU64>,
}

/// The appends with a slot. Counts for people: the protocol does not depend on them, so they are no
/// steps of the model either.
#[derive(Default)]
#[repr(C)]
pub(crate) struct AppendedWords {
    pub(super) records: HintU64,
    /// Bytes of log that they take.
    pub(super) bytes: HintU64,
}

/// A word with a cache line to itself.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct Line<T>(pub(crate) T);

impl<T> std::ops::Deref for Line<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(not(any(all(loom, test), shuttle)))]
const _: () = {
    assert!(size_of::<ParticipantWords>() == 64);
    assert!(size_of::<SlotWords>() == 128);
    assert!(std::mem::offset_of!(SlotWords, confirmed) == 64);
    assert!(size_of::<LaneWords>() == 64);
    assert!(std::mem::offset_of!(FullWords, removals) == 48);
    assert!(std::mem::offset_of!(CommitEndWords, durable_count) == 64);
    assert!(size_of::<CommitEndWords>() <= 128);
    assert!(size_of::<FullWords>() <= 128);
    assert!(size_of::<ShipWords>() <= 128);
    assert!(std::mem::offset_of!(Words, commits) == 8 * 128 + 1024 * 64 + 1024 * 128);
    assert!(std::mem::offset_of!(Words, files) == 197_632 + 2048);
    assert!(std::mem::offset_of!(Words, ship) == 200_448);
    // The control file is as long as it was before there were these words.
    assert!(size_of::<Words>() <= 49 * 4096);
    assert!(SLOT_COUNT == 1 << super::tail_word::SLOT_BITS);
};
