//! The operations of victims, and the log that must be left by each.
//!
//! A case is an operation, a layout, a way to make file space ready, and a survivor. Everything
//! happens in one order, so the records of the log are known but for those of the operation under
//! test: they may be there or not, until it was acknowledged.

use std::fmt;

use vellum::{CommitPath, DeviceWrite, Fill, Layout, Options, Preallocate, Tuning};

use crate::payload::Payload;

/// The operation that a victim is killed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The first record of a new log, which needs the first segment.
    FirstRecord,
    /// The first record of a process, which opens and maps the segment.
    ColdAppend,
    /// A record through the mapping, everything being warm.
    Append,
    /// The same with room for many of its kind, so that it needs nothing but its bytes.
    UsualAppend,
    /// A record of more than 8 KiB, by `pwrite`.
    LargeAppend,
    /// A record that skips the end of a segment, and prepares the one after the next.
    RollOver,
    /// A record longer than two segments.
    LongRecord,
    /// Three records that appear all or none.
    Batch,
    /// A reservation, filled in two pieces and published.
    Publish,
    /// A reservation, half filled and dropped.
    Abandon,
    /// Dropping all but the last records, with the files they are in.
    Trim,
    /// Opening a directory that is not there.
    Create,
    /// Opening a log and dropping it, which for a text log cuts its end.
    AttachDetach,
    /// Opening a log with the unfilled reservation of a dead process at its end.
    RepairAtEnd,
    /// The same with an acknowledged record of the dead process behind it.
    RepairInside,
    /// The same with a reservation over four segments.
    RepairLong,
    /// Reading over such a reservation with the log already open.
    RepairByReader,
    /// The first append of a forked child, which attaches for itself.
    ForkedAppend,
    /// Dropping the log while an idle forked child has a copy of it.
    DetachBesideChild,
    /// A record and its commit, in a log in which others were committed.
    Commit,
    /// A record and its commit by a write and an `fdatasync`, in a staged log.
    CommitByFlush,
    /// The first commit of a log.
    FirstCommit,
    /// The commit of a record that skips the end of a segment.
    CommitRollOver,
    /// The commit of a record longer than two segments.
    CommitLong,
    /// A commit behind the batch of a process that died while writing it.
    CommitBehindDead,
    /// A record and a `sync` behind the reservation of a process that died.
    SyncBehindDead,
    /// Making segments ahead of need.
    Prepare,
    /// Dropping the newest records.
    Truncate,
    /// Storing the user's mark.
    SetCheckpoint,
    /// Opening a log of another boot, with a torn record at its end.
    Recover,
    /// Opening a staged log whose stage is gone, in the same boot.
    RecoverStage,
    /// Dropping a log with a record that was not committed.
    Close,
    /// A rotation of a text log, and the first record in the new file.
    Rotate,
    /// A record that begins a new file of a text log that keeps only the newest few.
    Retain,
    /// Opening a text log with another policy.
    SetPolicy,
    /// Making a named cursor, the first one of the log.
    CursorMake,
    /// Moving a cursor forward.
    CursorCommit,
    /// Setting a cursor that holds records back to the oldest.
    CursorSet,
    /// Removing a cursor that holds records.
    CursorRemove,
    /// Trimming in front of a cursor that holds all records.
    TrimHeld,
    /// A record that there is no room for on a full disk, and that is dropped.
    Drop,
    /// The same where others were dropped that no line reports yet.
    DropAgain,
    /// A record for which there is room again, behind the line that reports dropped ones.
    Tell,
    /// The same where both go to a new file.
    TellRollOver,
    /// A record that waits for space on a full disk, for ever.
    Block,
    /// A record that finds space when its process has removed what the policy does not keep.
    BlockRetain,
}

/// The process that continues after the victim's death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivor {
    /// A process that opens the log afterwards.
    Opener,
    /// A process that had the log open, and appended to it.
    Attached,
    /// A process that had a reservation in flight, and fills and publishes it afterwards.
    Holding,
    /// A process that opens the log and appends while the victim is stopped at the point, and has
    /// come as far as it can when the victim dies.
    Waiting,
    /// Beside one that had the log open, a reader asleep at the end of the log.
    Follower,
    /// A process that commits one record after the other all the time.
    Committing,
    /// A process that opens the log, commits a record and leaves while the victim is stopped at the
    /// point, as far as it can. The victim lives on, and is killed when it is done.
    Between,
    /// The same; it stores a checkpoint of its own.
    Marking,
    /// The same; it appends over several segments then, and trims all of the log.
    Trimming,
}

impl Survivor {
    /// Whether the victim lives on while it comes and goes.
    pub fn is_between(self) -> bool {
        matches!(self, Survivor::Between | Survivor::Trimming | Survivor::Marking)
    }
}

/// One row of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The operation of the victim.
    pub operation: Operation,
    /// How records lie in the log.
    pub layout: Layout,
    /// How file space is made ready.
    pub preallocate: Preallocate,
    /// Which way records take, where that is not left to the library.
    pub fill: Option<Fill>,
    /// Whether records have envelopes.
    pub envelope: bool,
    /// The process that continues.
    pub survivor: Survivor,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { operation, layout, preallocate, fill, envelope, survivor } = self;
        let way = fill.map_or_else(|| preallocate.to_string(), |fill| fill.to_string());
        let envelope = if *envelope { "-envelope" } else { "" };
        let text = format!("{operation:?}/{layout}/{way}{envelope}/{survivor:?}");
        f.pad(&text.to_lowercase())
    }
}

/// Whether a record has to be in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It was acknowledged.
    Must,
    /// Its writer died in the middle of it; with others of the same number, all or none.
    May(u32),
    /// It was acknowledged and not committed: a power cut may take it, with all behind it.
    Should,
    /// It was abandoned or trimmed.
    Never,
}

/// Records in the order of the log, and whether each has to be there.
pub type Expected = Vec<(Payload, Need)>;

impl Operation {
    /// Share of a sample's time, by the number of places where something can be seen from outside.
    pub fn weight(self) -> u32 {
        use Operation::{Abandon, Append, Batch, ColdAppend, LargeAppend, Publish, UsualAppend};
        match self {
            Append | UsualAppend | ColdAppend | LargeAppend | Batch | Publish | Abandon => 1,
            _ => 4,
        }
    }

    /// Bytes of log per segment: as few as can be, so that everything is small and rotates.
    pub fn segment_capacity(self) -> u64 {
        match self {
            Operation::LargeAppend => 16 << 10,
            Operation::UsualAppend => 4 << 20,
            _ => 4096,
        }
    }

    /// Whether the log is there before the victim starts.
    pub fn has_template(self) -> bool {
        self != Operation::Create
    }

    /// Records in the log before the victim starts.
    pub fn template_records(self) -> Vec<Payload> {
        let lens = match self {
            Operation::Create | Operation::FirstRecord => vec![],
            Operation::RollOver | Operation::CommitRollOver => vec![3200],
            Operation::Retain => vec![900; 10],
            Operation::BlockRetain => vec![3000; 2],
            Operation::Trim | Operation::Truncate | Operation::SetCheckpoint => {
                // One of them over several segments, so that not every segment starts with one.
                let mut lens = vec![Operation::CUT_LEN; 12];
                lens[3] = 10_000;
                lens
            }
            _ if self.is_of_cursors() => vec![Operation::CUT_LEN; 12],
            _ => vec![200, 50],
        };
        lens.iter().zip(0..).map(|(len, number)| Payload::new('t', number, *len)).collect()
    }

    /// Whether it is about records that survive a power cut.
    pub fn is_durable(self) -> bool {
        self.commits()
            || matches!(
                self,
                Operation::Prepare
                    | Operation::Truncate
                    | Operation::SetCheckpoint
                    | Operation::Recover
                    | Operation::RecoverStage
                    | Operation::Close
            )
    }

    /// Whether its records are durable when it has been acknowledged.
    pub fn commits(self) -> bool {
        use Operation::{
            Commit, CommitBehindDead, CommitByFlush, CommitLong, CommitRollOver, FirstCommit,
            SyncBehindDead,
        };
        matches!(
            self,
            Commit
                | CommitByFlush
                | FirstCommit
                | CommitRollOver
                | CommitLong
                | CommitBehindDead
                | SyncBehindDead
        )
    }

    /// Whether the victim's record from before it is durable when it begins.
    pub fn has_committed_before(self) -> bool {
        self.is_durable() && !matches!(self, Operation::FirstCommit | Operation::Close)
    }

    /// Whether others may commit while it runs.
    pub fn runs_beside_commits(self) -> bool {
        self.is_durable() && !self.drops_log() && !self.opens_itself()
    }

    /// How many closed files its policy keeps, where it removes older ones.
    pub fn retained_files(self) -> Option<u64> {
        (self == Operation::Retain).then_some(6)
    }

    /// Whether the log has a checkpoint when it begins.
    pub fn has_checkpoint_before(self) -> bool {
        self == Operation::Truncate
    }

    /// Whether it opens a log whose words do not hold.
    pub fn recovers(self) -> bool {
        matches!(self, Operation::Recover | Operation::RecoverStage)
    }

    /// Whether it is the victim's opening of the log.
    pub fn opens_itself(self) -> bool {
        use Operation::{AttachDetach, Create, RepairAtEnd, RepairInside, RepairLong};
        self.recovers()
            || matches!(self, Create | AttachDetach | RepairAtEnd | RepairInside | RepairLong)
            || self == Operation::SetPolicy
    }

    /// Whether it is the victim's closing of the log.
    pub fn drops_log(self) -> bool {
        matches!(self, Operation::Close | Operation::DetachBesideChild)
    }

    /// Bytes of the record where a log is cut.
    pub const CUT_LEN: usize = 1000;

    /// Bytes of the first record behind a death: where a log was cut, the record and its seal have
    /// just the length of the record that was there.
    pub fn len_behind_death(self) -> usize {
        const SEAL_LEN: usize = 32;
        let cuts = self.recovers() || self == Operation::Truncate;
        if cuts { Operation::CUT_LEN - SEAL_LEN } else { 50 }
    }

    /// Segments that the victim prepares.
    pub const PREPARED: u64 = 6;

    /// Number of the template's record that the victim trims or truncates to, or marks.
    pub const TRIM_TO: u32 = 9;

    /// Records that the victim appends, and has acknowledged, before it starts.
    pub fn records_before(self) -> impl Iterator<Item = Payload> {
        use Operation::{ColdAppend, FirstRecord, ForkedAppend, UsualAppend};
        let count = match self {
            FirstRecord | ColdAppend | ForkedAppend => 0,
            // The first opens the segment, the next maps more than it needs, and with each the
            // zeros ahead of a text log become twice as many.
            UsualAppend => 12,
            _ => u32::from(!self.opens_itself()),
        };
        (0..count).map(|number| Payload::new('v', number, 100))
    }

    /// Records of the operation under test.
    pub fn records(self) -> Vec<Payload> {
        match self {
            Operation::FirstRecord
            | Operation::ColdAppend
            | Operation::Append
            | Operation::UsualAppend
            | Operation::Commit
            | Operation::CommitByFlush
            | Operation::FirstCommit
            | Operation::CommitBehindDead
            | Operation::SyncBehindDead
            | Operation::Rotate
            | Operation::Tell
            | Operation::ForkedAppend => vec![Payload::new('v', 1, 100)],
            Operation::LargeAppend => vec![Payload::new('v', 1, 9000)],
            Operation::RollOver | Operation::CommitRollOver | Operation::Retain => {
                vec![Payload::new('v', 1, 900)]
            }
            Operation::LongRecord | Operation::CommitLong => vec![Payload::new('v', 1, 10_000)],
            Operation::Batch => (1..4).map(|n| Payload::new('v', n, 40 + n as usize)).collect(),
            Operation::Publish | Operation::Abandon => vec![Payload::new('v', 1, 300)],
            _ if self.is_on_full_disk() => vec![self.long_record('v', 1)],
            _ => vec![],
        }
    }

    /// The bytes that another process reserves, and leaves by its death, before the victim starts.
    pub fn hole_len(self) -> Option<usize> {
        match self {
            Operation::RepairAtEnd
            | Operation::RepairInside
            | Operation::RepairByReader
            | Operation::SyncBehindDead => Some(300),
            Operation::RepairLong => Some(10_000),
            _ => None,
        }
    }

    /// The record that another process appends and dies committing, before the victim starts.
    pub fn record_of_dead(self) -> Option<Payload> {
        (self == Operation::CommitBehindDead).then_some(Payload::new('d', 0, 700))
    }

    /// The record that it appends and has acknowledged behind that.
    pub fn record_behind_hole(self) -> Option<Payload> {
        matches!(self, Operation::RepairInside | Operation::RepairByReader)
            .then_some(Payload::new('d', 0, 70))
    }
}

/// A write that is not durable before the `fdatasync` behind it.
const BY_FLUSH: CommitPath =
    CommitPath { write: DeviceWrite::Fdatasync, block_bytes: 4096, lanes: 2 };

impl Case {
    /// Options that open this case's log, or create it.
    pub fn options(&self) -> Options {
        let options = vellum::internal::options(self.layout)
            .tuning(
                Tuning::new()
                    .segment_capacity_bytes(self.operation.segment_capacity())
                    .preallocate(self.preallocate),
            )
            .tuning(Tuning::new().on_full(self.operation.on_full()))
            .envelope(self.envelope);
        let options = match self.operation {
            Operation::CommitByFlush => options.tuning(Tuning::new().commit_path(BY_FLUSH)),
            _ => options,
        };
        let options = match self.operation.retained_files() {
            Some(count) => options.rotate_bytes(1000).retain_files(count),
            None => options,
        };
        match self.fill {
            Some(fill) => options.tuning(Tuning::new().fill(fill)),
            None => options,
        }
    }

    /// Options that a victim opens the log with while it is killed.
    pub fn victim_options(&self) -> Options {
        match self.operation {
            Operation::SetPolicy => self.options().rotate_bytes(500).retain_files(100),
            _ => self.options(),
        }
    }

    /// Whether records are committed, by survivors at least.
    pub fn is_durable(&self) -> bool {
        self.operation.is_durable() || self.fill.is_some()
    }

    /// Whether records wait in a stage.
    pub fn is_staged(&self) -> bool {
        self.fill == Some(Fill::Staged)
    }

    /// The records that the log must hold: `own` is the survivor's record from before the victim's
    /// operation, `is_done` whether the operation was acknowledged, `later` the records that the
    /// survivor appended since.
    pub fn expected(&self, own: Option<Payload>, is_done: bool, later: &[Payload]) -> Expected {
        let mut all: Expected = Vec::new();
        // The oldest files may be gone, each with its record.
        let need = |number: u32| match self.operation {
            Operation::Retain | Operation::BlockRetain => Need::May(100 + number),
            _ => Need::Must,
        };
        let need_before = match self.operation {
            Operation::BlockRetain => Need::May(200),
            _ => Need::Must,
        };
        all.extend((0..).zip(self.operation.template_records()).map(|(n, p)| (p, need(n))));
        all.extend(self.operation.records_before().map(|p| (p, need_before)));
        if self.operation == Operation::Truncate {
            let need = if is_done { Need::Never } else { Need::May(1) };
            let cut = all.iter_mut().skip(Operation::TRIM_TO as usize);
            cut.for_each(|(_, was)| *was = need);
        }
        all.extend(own.map(|p| (p, need_before)));
        all.extend(self.operation.record_behind_hole().map(|p| (p, Need::Must)));
        all.extend(self.operation.record_of_dead().map(|p| (p, Need::Must)));
        all.extend(self.operation.records_on_full_disk().iter().map(|p| (*p, Need::Must)));
        let need = match (self.operation, is_done) {
            (Operation::Abandon | Operation::Drop | Operation::DropAgain, _) => Need::Never,
            // A process that is killed while it waits has reserved nothing.
            (Operation::Block, _) => Need::Never,
            (_, true) => Need::Must,
            (_, false) => Need::May(0),
        };
        all.extend(self.operation.records().iter().map(|p| (*p, need)));
        all.extend(later.iter().map(|p| (*p, Need::Must)));
        all
    }
}
