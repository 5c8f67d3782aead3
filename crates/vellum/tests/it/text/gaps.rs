//! What goes on in a log of whose closed files somebody has removed one.

use std::fs;

use vellum::{Options, Tuning};

use super::{line, rotating};
use crate::support::{FILLS, concatenated, place, scratch, segment_files};

#[test]
fn what_stands_behind_a_file_that_is_gone_can_be_committed() {
    for fill in FILLS {
        let dir = scratch();
        let log = rotating(100).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        for number in 0..5 {
            log.append(&line(number, 90)).unwrap();
        }
        fs::remove_file(&segment_files(&place(&dir))[2]).unwrap();
        log.sync().unwrap();
        let last = log.append(&line(5, 90)).unwrap();
        log.commit(last).unwrap();
        assert_eq!(log.durable(), log.tail(), "{fill}");
        drop(log);
        let log = Options::default().open(place(&dir)).unwrap();
        log.append(&line(6, 90)).unwrap();
        log.sync().unwrap();
        let kept = [0, 1, 3, 4, 5, 6].map(|number| line(number, 90));
        drop(log);
        assert!(concatenated(&place(&dir)) == kept.concat(), "{fill}");
    }
}

#[test]
fn a_log_whose_newest_file_is_gone_goes_on_behind_it() {
    for (fill, forgets) in FILLS.into_iter().flat_map(|fill| [(fill, false), (fill, true)]) {
        let dir = scratch();
        let log = rotating(200).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        for number in 0..5 {
            log.append(&line(number, 90)).unwrap();
        }
        let end = log.tail();
        drop(log);
        fs::remove_file(segment_files(&place(&dir)).pop().unwrap()).unwrap();
        if forgets {
            fs::remove_file(place(&dir).join("control")).unwrap();
        }
        let log = Options::default().open(place(&dir)).unwrap();
        let next = log.append(&line(5, 90)).unwrap();
        // Without a control file nothing tells that there was more.
        assert!(forgets || next > end, "{next} was given to a record before {end}");
        log.sync().unwrap();
        let found = concatenated(&place(&dir));
        assert!(found.starts_with(&[0, 1, 2, 3].map(|number| line(number, 90)).concat()), "{fill}");
        let mut reader = log.reader(next).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().payload, line(5, 90));
        drop((reader, log));
        let kept = [0, 1, 2, 3, 5].map(|number| line(number, 90));
        assert!(concatenated(&place(&dir)) == kept.concat(), "{fill}");
    }
}
