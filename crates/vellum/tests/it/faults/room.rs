//! A process that waits on a full disk makes room by the log's own policy, without help.

use std::time::Duration;

use vellum::{Layout, OnFull, Options, Tuning};

use super::full::Small;
use crate::support::child::{self, Child};
use crate::support::{assert_sound, payload, payloads};

const RECORD_LEN: usize = 64 << 10;
/// Four records, to the byte: a file that is removed has the blocks that the next one asks for.
const FILE_BYTES: u64 = 256 << 10;

fn record(number: usize) -> Vec<u8> {
    payload(Layout::Text, number as u64, RECORD_LEN)
}

/// Appends so many records, then hears that the disk is full, and appends the rest.
pub(crate) fn wait_and_make_room(arguments: &[String]) {
    let numbers: Vec<usize> = arguments[1..].iter().map(|text| text.parse().unwrap()).collect();
    let log = Options::default()
        .tuning(Tuning::new().on_full(OnFull::Block))
        .open(&arguments[0])
        .unwrap();
    let append = |numbers: std::ops::Range<usize>| {
        for number in numbers {
            log.append(&record(number)).unwrap();
        }
    };
    append(0..numbers[0]);
    child::say("ready");
    child::hear();
    append(numbers[0]..numbers[1]);
    child::say("done");
}

/// Has one process append `count` records, the first `before` of them while there is space, under
/// `policy`: from there on it has the space of the files that it removes, and no other.
fn check_making_room(
    disks: impl IntoIterator<Item = Small>,
    policy: Options,
    before: usize,
    count: usize,
) {
    for small in disks {
        let options =
            vellum::internal::with_layout(policy.clone(), Layout::Text).rotate_bytes(FILE_BYTES);
        drop(options.open(small.log()).unwrap());
        let numbers = [before.to_string(), count.to_string()];
        let path = small.log();
        let arguments = [path.to_str().unwrap(), &numbers[0], &numbers[1]];
        let mut writer = Child::start("wait and make room", &arguments);
        writer.expect("ready");
        small.take_all();
        writer.tell("go on");
        writer.expect("done");
        writer.finish_well();
        let log = Options::default().open(small.log()).unwrap();
        let found = payloads(&log);
        let kept: Vec<_> = (count - found.len()..count).map(record).collect();
        assert!(found == kept, "the newest {} are kept", found.len());
        // Empty, the disk would have had space for all.
        assert!(found.len() < count / 2, "{} on the full disk {path:?}", found.len());
        assert_sound(&log);
    }
}

#[test]
fn a_waiter_removes_what_has_become_too_much() {
    // Of four files none goes when the newest begins, and one when it is full: that is when the
    // next is needed, for which there was no space before.
    let policy = Options::default().retain_bytes(900_000);
    let disk = Small::tmpfs("a_waiter_removes_what_has_become_too_much");
    check_making_room(disk, policy, 9, 60);
}

#[test]
fn a_waiter_removes_what_grows_old_while_it_waits() {
    let policy = Options::default().retain_age(Duration::from_secs(2));
    let test = "a_waiter_removes_what_grows_old_while_it_waits";
    let disks = [Small::tmpfs(test), Small::ext4(test)];
    check_making_room(disks.into_iter().flatten(), policy, 9, 60);
}
