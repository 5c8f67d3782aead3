//! Every case of the test: the operation, the log, and the survivor.

use vellum::{Fill, Layout, Preallocate};

use super::scenario::{Case, Operation, Survivor};

/// Every case, in the order in which they are run.
pub fn all_cases() -> Vec<Case> {
    let mut cases = cases_in_memory();
    cases.extend(cases_on_the_device());
    cases.extend(cases_on_full_disks());
    cases.extend(cases_of_cursors());
    cases.extend(cases_of_envelopes());
    cases
}

/// Those that are about processes.
fn cases_in_memory() -> Vec<Case> {
    use Operation::*;
    use Survivor::*;
    let mut cases = Vec::new();
    let mut add = |operations: &[Operation], survivors: &[Survivor], preallocate: Preallocate| {
        for operation in operations {
            for survivor in survivors {
                for layout in [Layout::Framed, Layout::Text] {
                    let (operation, survivor) = (*operation, *survivor);
                    let is_refused = layout == Layout::Text
                        && matches!(preallocate, Preallocate::Recycle | Preallocate::Zeros);
                    if !is_refused {
                        cases.push(Case {
                            operation,
                            layout,
                            preallocate,
                            fill: None,
                            envelope: false,
                            survivor,
                        });
                    }
                }
            }
        }
    };
    let appends = [FirstRecord, ColdAppend, Append, UsualAppend, LargeAppend, RollOver, LongRecord];
    let in_place = [Batch, Publish, Abandon];
    let repairs = [RepairAtEnd, RepairInside, RepairLong, RepairByReader];
    let auto = Preallocate::Auto;
    add(&appends, &[Opener, Attached], auto);
    add(&[Append, UsualAppend, LargeAppend, RollOver, LongRecord], &[Holding], auto);
    add(&[Append, UsualAppend, RollOver], &[Follower], auto);
    add(&in_place, &[Opener, Attached], auto);
    add(&[Trim, AttachDetach], &[Opener, Attached], auto);
    add(&[Create], &[Opener], auto);
    add(&repairs, &[Opener, Attached], auto);
    add(&[RepairAtEnd, RepairByReader], &[Holding], auto);
    add(&[FirstRecord, Append, RollOver, Trim, AttachDetach, Create], &[Waiting], auto);
    add(&[RepairAtEnd, RepairByReader], &[Waiting], auto);
    add(&[ForkedAppend], &[Attached], auto);
    add(&[DetachBesideChild], &[Opener, Attached], auto);
    add(&[FirstRecord, RollOver, LongRecord], &[Opener, Attached], Preallocate::Off);
    // Sparse logs take every record by `pwrite`.
    add(&[ColdAppend, RollOver, LongRecord], &[Opener, Attached], Preallocate::Sparse);
    add(&[Batch, Publish], &[Opener, Attached], Preallocate::Sparse);
    add(&[RollOver, RepairAtEnd], &[Opener], Preallocate::Zeros);
    add(&[RollOver, LongRecord, Trim], &[Opener, Attached], Preallocate::Recycle);
    cases.extend(cases_of_text_files());
    cases
}

/// Those that are about the files of text logs.
fn cases_of_text_files() -> Vec<Case> {
    use Operation::*;
    use Survivor::*;
    let mut cases = Vec::new();
    for preallocate in [Preallocate::Auto, Preallocate::Sparse] {
        for operation in [Rotate, Retain, SetPolicy] {
            for survivor in [Opener, Attached, Waiting] {
                let (layout, fill, envelope) = (Layout::Text, None, false);
                cases.push(Case { operation, layout, preallocate, fill, envelope, survivor });
            }
        }
    }
    cases
}

/// Those that are about power cuts.
fn cases_on_the_device() -> Vec<Case> {
    use Operation::*;
    use Survivor::*;
    let mut cases = Vec::new();
    let mut add = |layout: Layout, operations: &[Operation], survivors: &[Survivor], fill: Fill| {
        for operation in operations {
            for survivor in survivors {
                let (operation, survivor) = (*operation, *survivor);
                let (fill, preallocate, envelope) = (Some(fill), Preallocate::Auto, false);
                cases.push(Case { operation, layout, preallocate, fill, envelope, survivor });
            }
        }
    };
    let framed = Layout::Framed;
    let long = [FirstCommit, CommitLong, CommitBehindDead];
    let ahead = [Prepare, SetCheckpoint, Close];
    for fill in [Fill::Staged, Fill::Mapped, Fill::Pwrite] {
        add(framed, &[Commit], &[Opener, Attached, Waiting, Committing], fill);
        add(framed, &[CommitRollOver], &[Opener, Attached, Waiting, Committing], fill);
        add(framed, &long, &[Opener, Attached], fill);
        add(framed, &[CommitBehindDead], &[Waiting, Committing], fill);
        add(framed, &[SyncBehindDead], &[Opener, Attached, Waiting], fill);
        add(framed, &ahead, &[Opener, Attached, Waiting], fill);
        add(framed, &[Truncate, Recover], &[Opener, Waiting], fill);
        add(framed, &[Trim], &[Opener, Attached, Waiting], fill);
        add(framed, &[Trim, SetCheckpoint, Close], &[Committing], fill);
        add(
            framed,
            &[SetCheckpoint, Commit, CommitRollOver, Trim, Close, Recover],
            &[Between, Marking],
            fill,
        );
        add(framed, &[SetCheckpoint, Commit, Close], &[Trimming], fill);
    }
    let staged = Fill::Staged;
    add(framed, &[CommitByFlush], &[Opener, Attached, Waiting, Committing], staged);
    add(framed, &[AttachDetach], &[Opener, Attached, Waiting], staged);
    add(framed, &[Create, RecoverStage], &[Opener, Waiting], staged);
    add(framed, &[FirstRecord, RollOver, LongRecord, Batch], &[Opener, Attached], staged);
    add(framed, &[Abandon, RepairAtEnd, RepairInside], &[Opener, Attached], staged);
    let text = Layout::Text;
    add(text, &[Commit, FirstCommit, CommitRollOver], &[Opener, Attached, Waiting], Fill::Mapped);
    add(text, &[Truncate, Recover, Close], &[Opener, Waiting], Fill::Mapped);
    cases
}

/// Those that are about named cursors.
fn cases_of_cursors() -> Vec<Case> {
    use Operation::{CursorCommit, CursorMake, CursorRemove, CursorSet, TrimHeld};
    let mut cases = Vec::new();
    for operation in [CursorMake, CursorCommit, CursorSet, CursorRemove, TrimHeld] {
        for survivor in [Survivor::Opener, Survivor::Attached, Survivor::Waiting] {
            for layout in [Layout::Framed, Layout::Text] {
                let (preallocate, fill, envelope) = (Preallocate::Auto, None, false);
                cases.push(Case { operation, layout, preallocate, fill, envelope, survivor });
            }
        }
    }
    cases
}

/// Those that are about a full disk; framed logs drop nothing, and wait in the same way.
fn cases_on_full_disks() -> Vec<Case> {
    use Operation::*;
    use Survivor::*;
    let mut cases = Vec::new();
    let mut add = |operations: &[Operation], fill: Option<Fill>| {
        for operation in operations {
            for survivor in [Opener, Attached, Waiting] {
                let (layout, preallocate, envelope) = (Layout::Text, Preallocate::Auto, false);
                let operation = *operation;
                cases.push(Case { operation, layout, preallocate, fill, envelope, survivor });
            }
        }
    };
    add(&[Drop, DropAgain, Tell, TellRollOver, Block, BlockRetain], None);
    add(&[DropAgain, Tell, TellRollOver], Some(Fill::Pwrite));
    cases
}

/// Those of records with envelopes, which go in before the payloads, and before the header that
/// makes a record of it.
fn cases_of_envelopes() -> Vec<Case> {
    use Operation::*;
    use Survivor::*;
    let mut cases = Vec::new();
    let mut add = |operations: &[Operation], preallocate: Preallocate, fill: Option<Fill>| {
        for operation in operations {
            // A process that opens the log afterwards would find the forked child's parent alive.
            let is_forked = *operation == ForkedAppend;
            for survivor in [Opener, Attached].into_iter().skip(is_forked.into()) {
                let (operation, layout, envelope) = (*operation, Layout::Framed, true);
                cases.push(Case { operation, layout, preallocate, fill, envelope, survivor });
            }
        }
    };
    let auto = Preallocate::Auto;
    add(&[Create, Append, LargeAppend, RollOver, LongRecord], auto, None);
    add(&[Batch, Publish, Abandon, ForkedAppend], auto, None);
    add(&[Append, Batch, Publish], Preallocate::Sparse, None);
    add(&[Batch, RollOver, Commit, Publish], auto, Some(Fill::Staged));
    cases
}
