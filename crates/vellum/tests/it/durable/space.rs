//! Recovery on a disk that has no block left.

use std::io::Write;

use vellum::{ErrorKind, Options, Tuning};

use super::{in_another_boot, staged};
use crate::support::mount::Mount;
use crate::support::{assert_holds, payload, read_all};

// raft-engine could not start on a full disk.
#[test]
fn a_full_disk_keeps_no_log_from_being_recovered() {
    let test = "a_full_disk_keeps_no_log_from_being_recovered";
    for options in
        [staged(), Options::default().tuning(Tuning::new().segment_capacity_bytes(16384))]
    {
        let Some(mount) = Mount::ext4(test, 16) else { return };
        let place = mount.path().join("log");
        let log = options.open(&place).unwrap();
        for seed in 0..50 {
            log.append_durable(&payload(log.layout(), seed, 700)).unwrap();
        }
        let expected = read_all(&log);
        let (id, mut epoch) = (log.id(), log.epoch());
        let taken = log.position(expected[49].0).unwrap();
        drop(log);
        fill(&mount.path().join("hog"));
        for has_control in [true, true, false] {
            in_another_boot(&place);
            if !has_control {
                // Its blocks are free then, and it takes no more to make it again.
                std::fs::remove_file(place.join("control")).unwrap();
            }
            let log = Options::default().open(&place).unwrap();
            assert_holds(&log, &expected);
            assert!(log.recovery().is_some());
            assert!(log.id() == id && log.epoch() > epoch, "the epoch needs no space");
            assert_eq!(log.reader_at(taken).unwrap().position(), expected[49].0);
            epoch = log.epoch();
        }
        let log = Options::default().open(&place).unwrap();
        let error = (0..1000).find_map(|_| log.append_durable(&[1; 4000]).err()).unwrap();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        std::fs::remove_file(mount.path().join("hog")).unwrap();
        log.append_durable(b"goes on").unwrap();
        assert!(read_all(&log).starts_with(&expected));
    }
}

/// Writes a file until nothing is left.
fn fill(path: &std::path::Path) {
    let mut hog = std::fs::File::create(path).unwrap();
    for piece in [1 << 20, 4096, 1] {
        while hog.write_all(&vec![1; piece]).and_then(|()| hog.sync_data()).is_ok() {}
    }
}
