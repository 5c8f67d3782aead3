//! The ledger finds each kind of fault, in logs made by hand.

use super::*;

/// A good log: the processes take turns.
fn log(setting: &Setting) -> Vec<Vec<u8>> {
    let mut sources: Vec<Records> =
        (0..setting.processes).map(|process| Records::new(process, setting.bytes)).collect();
    let mut log = Vec::new();
    for _ in 0..setting.records {
        log.extend(sources.iter_mut().map(|source| source.next_record().to_vec()));
    }
    log
}

fn verdict(setting: &Setting, log: &[Vec<u8>]) -> Result<u64> {
    let mut ledger = Ledger::new(setting);
    log.iter().for_each(|record| ledger.enter(record));
    ledger.close()
}

fn fault(setting: &Setting, log: &[Vec<u8>]) -> String {
    verdict(setting, log).unwrap_err().to_string()
}

const LENGTHS: [usize; 8] = [1, 2, 5, 15, 16, 17, 128, 4095];

#[test]
fn a_good_log_is_good_in_any_interleaving() {
    for bytes in LENGTHS {
        let setting = Setting::new(3, 150, bytes);
        let mut log = log(&setting);
        assert_eq!(verdict(&setting, &log).unwrap(), 450);
        log.sort_by_key(|record| record::process_of(record));
        assert_eq!(verdict(&setting, &log).unwrap(), 450);
    }
}

#[test]
fn a_lost_record_is_found_at_any_place() {
    for bytes in LENGTHS {
        let setting = Setting::new(3, 50, bytes);
        for lost in [0, 1, 75, 148, 149] {
            let mut log = log(&setting);
            log.remove(lost);
            let fault = fault(&setting, &log);
            assert!(fault.contains("1 lost"), "{bytes} {lost}: {fault}");
        }
    }
}

#[test]
fn an_empty_log_has_lost_everything() {
    let setting = Setting::new(2, 10, 64);
    assert!(fault(&setting, &[]).contains("20 lost"));
}

#[test]
fn a_doubled_record_is_found_at_any_place() {
    for bytes in LENGTHS {
        let setting = Setting::new(3, 50, bytes);
        for doubled in [0, 1, 75, 149] {
            let mut log = log(&setting);
            log.insert(doubled, log[doubled].clone());
            let fault = fault(&setting, &log);
            assert!(fault.contains("1 doubled"), "{bytes} {doubled}: {fault}");
        }
    }
}

#[test]
fn a_record_that_overwrote_another_is_lost_and_doubled() {
    let setting = Setting::new(3, 50, 128);
    let mut log = log(&setting);
    log[30] = log[33].clone();
    let fault = fault(&setting, &log);
    assert!(fault.contains("1 lost") && fault.contains("1 doubled"), "{fault}");
}

#[test]
fn records_of_one_process_out_of_order_are_found() {
    for bytes in LENGTHS.into_iter().filter(|bytes| *bytes >= 3) {
        let setting = Setting::new(3, 50, bytes);
        let mut log = log(&setting);
        log.swap(30, 33);
        let fault = fault(&setting, &log);
        assert!(fault.contains("out of order"), "{bytes}: {fault}");
        assert!(!fault.contains("lost") && !fault.contains("doubled"), "{bytes}: {fault}");
    }
}

#[test]
fn every_single_wrong_byte_is_found() {
    for bytes in [1, 2, 5, 15, 16, 64] {
        let setting = Setting::new(3, 20, bytes);
        let good = log(&setting);
        for at in 0..bytes {
            for wrong in [0, b'\n', b'#', 0xff] {
                let mut log = good.clone();
                if log[31][at] != wrong {
                    log[31][at] = wrong;
                    assert!(verdict(&setting, &log).is_err(), "{bytes} {at} {wrong}");
                }
            }
        }
    }
}

#[test]
fn a_record_made_of_two_is_torn() {
    let setting = Setting::new(3, 50, 4095);
    let good = log(&setting);
    for other in [31, 33, 36] {
        let mut log = good.clone();
        log[30][2048..].copy_from_slice(&good[other][2048..]);
        let fault = fault(&setting, &log);
        assert!(fault.contains("1 torn"), "{fault}");
        assert!(fault.contains("torn at its byte 20"), "{fault}");
    }
}

#[test]
fn a_hole_is_torn() {
    let setting = Setting::new(3, 50, 128);
    let mut log = log(&setting);
    log[30].fill(0);
    assert!(fault(&setting, &log).contains("1 lost, 1 torn"));
}

#[test]
fn a_record_of_another_length_is_torn() {
    for bytes in LENGTHS {
        let setting = Setting::new(3, 50, bytes);
        let mut log = log(&setting);
        log[30].push(b'!');
        assert!(fault(&setting, &log).contains("torn"));
    }
}

#[test]
fn the_splitter_does_not_care_how_the_stream_arrives() {
    let setting = Setting::new(2, 30, 17);
    let stream = log(&setting).concat();
    for piece in [1, 2, 16, 17, 18, 100, 4096] {
        let mut ledger = Ledger::new(&setting);
        let mut splitter = Splitter::new(setting.bytes);
        for piece in stream.chunks(piece) {
            splitter.feed(piece, &mut |record| ledger.enter(record));
        }
        splitter.finish(&mut |record| ledger.enter(record));
        assert_eq!(ledger.close().unwrap(), 60, "{piece}");
    }
}

#[test]
fn what_is_left_of_a_stream_is_a_torn_record() {
    let setting = Setting::new(1, 3, 16);
    let stream = log(&setting).concat();
    let mut ledger = Ledger::new(&setting);
    let mut splitter = Splitter::new(setting.bytes);
    splitter.feed(&stream[..40], &mut |record| ledger.enter(record));
    splitter.finish(&mut |record| ledger.enter(record));
    let fault = ledger.close().unwrap_err().to_string();
    assert!(fault.contains("1 lost, 1 torn"), "{fault}");
}

/// The verdict on a log of `records` without its first `missing`, if so many were reported as
/// dropped.
fn closed_but(missing: usize, dropped: u64) -> Result<u64> {
    let setting = Setting::new(1, 10, 128);
    let mut records = Records::new(0, 128);
    let mut ledger = Ledger::new(&setting);
    for index in 0..10 {
        let record = records.next_record();
        if index >= missing {
            ledger.enter(record);
        }
    }
    ledger.close_but(dropped)
}

#[test]
fn what_was_told_to_be_dropped_and_nothing_else_may_be_missing() {
    assert_eq!(closed_but(0, 0).unwrap(), 10);
    assert_eq!(closed_but(3, 3).unwrap(), 7);
    for (missing, dropped) in [(3, 0), (3, 2), (3, 4), (0, 1)] {
        assert!(closed_but(missing, dropped).is_err(), "{missing} {dropped}");
    }
}
