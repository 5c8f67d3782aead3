//! Dropping the newest part of a log.

use vellum::{ErrorKind, Log, Options};

use super::{after_power_cut, kinds};
use crate::support::{Read, assert_holds, memory_scratch, payload, place};

fn append(log: &Log, seed: u64) -> Read {
    let bytes = payload(log.layout(), seed, 200 + seed as usize * 37 % 900);
    (log.append(&bytes).unwrap(), bytes)
}

#[test]
fn what_is_truncated_is_gone_for_good_and_its_positions_are_used_again() {
    for options in kinds() {
        for keep in [0, 1, 5, 30, 59, 60] {
            let dir = memory_scratch();
            let log = options.open(place(&dir)).unwrap();
            let mut all: Vec<_> = (0..60).map(|seed| append(&log, seed)).collect();
            log.sync().unwrap();
            let from = all.get(keep).map_or(log.tail(), |read| read.0);
            log.truncate(from).unwrap();
            assert_eq!((log.tail(), log.durable()), (from, from));
            all.truncate(keep);
            assert_holds(&log, &all);
            let copy = after_power_cut(&place(&dir));
            assert_holds(&Options::default().open(place(&copy)).unwrap(), &all);
            // The same lengths again, so that old records would be where new ones end.
            for seed in keep as u64..40 {
                all.push(append(&log, seed));
                let lsn = all.last().unwrap().0;
                log.commit(lsn).unwrap();
                let copy = after_power_cut(&place(&dir));
                assert_holds(&Options::default().open(place(&copy)).unwrap(), &all);
            }
            drop(log);
            assert_holds(&Options::default().open(place(&dir)).unwrap(), &all);
        }
    }
}

#[test]
fn a_truncation_in_the_middle_of_things_is_refused() {
    let dir = memory_scratch();
    let log = kinds()[0].open(place(&dir)).unwrap();
    let all: Vec<_> = (0..20).map(|seed| append(&log, seed)).collect();
    let error = |answer: vellum::Result<()>| answer.unwrap_err().kind();
    assert_eq!(error(log.truncate(vellum::Lsn::new(all[3].0.get() + 8))), ErrorKind::OutOfRange);
    assert_eq!(error(log.truncate(vellum::Lsn::new(8))), ErrorKind::OutOfRange);
    assert_eq!(error(log.truncate(vellum::Lsn::MAX)), ErrorKind::OutOfRange);
    let reserved = log.reserve(10).unwrap();
    assert_eq!(error(log.truncate(all[3].0)), ErrorKind::Busy);
    drop(reserved);
    let other = Options::default().open(place(&dir)).unwrap();
    assert_eq!(error(log.truncate(all[3].0)), ErrorKind::Busy);
    drop(other);
    assert_holds(&log, &all);
    let mut reader = log.reader(all[10].0).unwrap();
    reader.next().unwrap().unwrap();
    log.truncate(all[3].0).unwrap();
    // It may still return records that it has read ahead.
    let end = std::iter::repeat_with(|| reader.next().map(|record| record.is_some()));
    let error = end.take(30).find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    assert_holds(&log, &all[..3]);
}
