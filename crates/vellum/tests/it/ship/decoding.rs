//! Records found in shipped bytes are those that a reader finds in the log.

use vellum::ship::Decoder;
use vellum::{Layout, Log, Lsn, OwnedRecord};

use super::{append, restore, ship};
use crate::durable::kinds;
use crate::support::{place, scratch, small};

fn read(log: &Log) -> Vec<OwnedRecord> {
    let mut reader = log.reader(Lsn::ZERO).unwrap();
    let mut all = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        all.push(record.into_owned());
    }
    all
}

fn decoded(log: &Log, len: usize) -> Vec<OwnedRecord> {
    let shipper = log.ship().elect().unwrap().unwrap();
    let mut decoder = Decoder::new(&log.ship().shape().unwrap());
    let mut all = Vec::new();
    for (start, _, bytes) in ship(&shipper, shipper.begin(), len) {
        decoder.push(start, &bytes);
        while let Some(record) = decoder.next().unwrap() {
            all.push(record.into_owned());
        }
    }
    all
}

#[test]
fn a_decoder_finds_what_a_reader_finds() {
    let enveloped = small(Layout::Framed).envelope(true);
    for options in kinds().into_iter().chain([enveloped]) {
        let dir = scratch();
        let log = options.open(place(&dir)).unwrap();
        append(&log, 60, 0, 40_000);
        log.sync().unwrap();
        for len in [900, 1 << 20] {
            let (expected, found) = (read(&log), decoded(&log, len));
            assert_eq!(found.len(), expected.len());
            for (expected, found) in expected.iter().zip(&found) {
                assert_eq!((found.lsn, &found.payload), (expected.lsn, &expected.payload));
                assert_eq!((found.time(), found.writer()), (expected.time(), expected.writer()));
            }
        }
    }
}

#[test]
fn a_restored_log_has_its_envelopes() {
    let dir = scratch();
    let log = small(Layout::Framed).envelope(true).open(place(&dir)).unwrap();
    append(&log, 60, 0, 3000);
    log.sync().unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    let shipped = ship(&shipper, shipper.begin(), 1 << 20);
    let copy = dir.path().join("copy");
    restore(&log.ship().shape().unwrap(), shipper.begin(), &shipped, &copy).unwrap();
    let restored = vellum::Options::default().open(&copy).unwrap();
    assert_eq!(read(&restored), read(&log));
    assert!(read(&restored)[0].time().is_some());
}
