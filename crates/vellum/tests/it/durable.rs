//! Records that survive a power cut, as far as it can be seen without one: the files of a log are
//! copied while it is open, and opened as if in another boot. Real power cuts at any point of the
//! stream of writes are for `vellum-powercut`.

mod awaiting;
mod begun;
mod checkpoints;
mod closing;
mod commits;
mod damage;
mod failed_syncs;
mod following;
mod half_done;
mod helping;
mod identity;
mod long;
mod opening;
mod paths;
mod poison;
mod recycling;
mod refusals;
pub(crate) mod seals;
mod space;
mod stage;
mod stopped;
mod times;
mod trigger;
mod truncation;
mod trust;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vellum::{Fill, Layout, Options, Tuning};

use crate::support::crc::seal_control_header;
use crate::support::{child::Role, copy_log, memory_scratch, place};

pub(crate) const ROLES: &[Role] = &[
    ("await without descriptors", awaiting::await_without_descriptors),
    ("answering committer", following::answering_committer),
    ("committer", commits::committer),
    ("stager", commits::stager),
    ("long stager", long::long_stager),
    ("forked checkpointer", trigger::forked_checkpointer),
    ("daemon with an event", trigger::daemon_with_an_event),
    ("waiter", poison::waiter),
    ("acknowledger", trust::acknowledger),
    ("without a boot id", trust::without_a_boot_id),
    ("follower without a boot id", trust::follower_without_a_boot_id),
];

/// Every way to fill, with a layout it is for, and small segments.
pub(crate) fn kinds() -> [Options; 5] {
    let of = |layout, fill| {
        vellum::internal::options(layout)
            .tuning(Tuning::new().fill(fill).segment_capacity_bytes(16384))
    };
    [
        of(Layout::Framed, Fill::Staged),
        of(Layout::Framed, Fill::Mapped),
        of(Layout::Framed, Fill::Pwrite),
        of(Layout::Text, Fill::Mapped),
        of(Layout::Text, Fill::Pwrite),
    ]
}

/// A small log that stages its records.
fn staged() -> Options {
    Options::wal().exclusive(false).tuning(Tuning::new().segment_capacity_bytes(16384))
}

/// The files of a log as they are now, as another boot would find them: without the stage, which
/// the kernel keeps from the device.
fn after_power_cut(log: &Path) -> TempDir {
    let dir = memory_scratch();
    copy_log(log, &place(&dir));
    stages(&place(&dir)).iter().for_each(|stage| fs::remove_file(stage).unwrap());
    in_another_boot(&place(&dir));
    dir
}

/// The files of a log's stage, by their names.
pub(crate) fn stages(log: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension() == Some("stage".as_ref()));
    paths.sort();
    paths
}

/// Makes an unused log one of another boot.
pub(crate) fn in_another_boot(log: &Path) {
    for name in ["control", "geometry"] {
        let path = log.join(name);
        let mut bytes = fs::read(&path).unwrap();
        bytes[48] ^= 1;
        seal_control_header(&mut bytes);
        fs::write(&path, bytes).unwrap();
    }
}
