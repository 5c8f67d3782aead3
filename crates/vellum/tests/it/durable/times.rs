//! The modification times of files: programs that copy what has changed, as rsync, go by them.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use super::kinds;
use crate::support::{place, scratch, segment_files, until};

/// The latest time at which a segment was changed, as other programs see it.
fn changed(log: &Path) -> SystemTime {
    let times = segment_files(log).into_iter().map(|file| fs::metadata(file).unwrap().modified());
    times.map(Result::unwrap).max().unwrap()
}

/// Waits until the clock of filesystems, which ticks every few milliseconds, is beyond `time`.
fn wait_for_tick(dir: &Path, time: SystemTime) {
    until("the clock has gone on", || {
        fs::write(dir.join("clock"), "tick").unwrap();
        (fs::metadata(dir.join("clock")).unwrap().modified().unwrap() > time).then_some(())
    });
}

#[test]
fn a_commit_moves_the_modification_time() {
    for options in kinds() {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        log.append_durable(b"first\n").unwrap();
        // Makes the page dirty: stores that follow move no time by themselves.
        log.append(b"copied\n").unwrap();
        let copied = changed(&place(&dir));
        wait_for_tick(dir.path(), copied);
        let lsn = log.append(b"not copied\n").unwrap();
        log.commit(lsn).unwrap();
        assert!(changed(&place(&dir)) > copied, "{options:?}");
    }
}
