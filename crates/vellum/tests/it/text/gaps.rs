//! What goes on in a log of whose closed files somebody has removed one.

use std::fs;

use vellum::Options;

use super::{line, rotating};
use crate::support::{FILLS, concatenated, place, scratch, segment_files};

#[test]
fn what_stands_behind_a_file_that_is_gone_can_be_committed() {
    for fill in FILLS {
        let dir = scratch();
        let log = rotating(100).fill(fill).open(place(&dir)).unwrap();
        for number in 0..5 {
            log.append(&line(number, 90)).unwrap();
        }
        fs::remove_file(&segment_files(&place(&dir))[2]).unwrap();
        log.sync().unwrap();
        let last = log.append(&line(5, 90)).unwrap();
        log.commit(last).unwrap();
        assert_eq!(log.durable(), log.tail(), "{fill}");
        drop(log);
        let log = Options::new().open(place(&dir)).unwrap();
        log.append(&line(6, 90)).unwrap();
        log.sync().unwrap();
        let kept = [0, 1, 3, 4, 5, 6].map(|number| line(number, 90));
        drop(log);
        assert!(concatenated(&place(&dir)) == kept.concat(), "{fill}");
    }
}
