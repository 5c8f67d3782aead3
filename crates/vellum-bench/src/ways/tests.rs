//! Each way alone: records that one process appended can be read back, and survive the process.

use super::*;
use crate::verify::Ledger;

/// Two appenders in this process take turns; then the log is read and verified.
fn round_trip(name: WayName) {
    for bytes in [1, 2, 15, 16, 128, 4095, 4096, 9000] {
        let way = name.way(&vellum::Options::default());
        let setting = Setting::new(2, 40, bytes);
        let dir = tempfile::tempdir().unwrap();
        if let Err(reason) = way.probe(dir.path()) {
            assert!(!reason.is_empty());
            return;
        }
        let prepared = way.prepare(dir.path(), &setting).unwrap();
        let mut appenders = [0, 1].map(|process| prepared.open(process).unwrap());
        let mut sources = [0, 1].map(|process| Records::new(process, bytes));
        let mut acknowledged = 0;
        for _ in 0..10 {
            for (appender, records) in appenders.iter_mut().zip(&mut sources) {
                appender.append_all(records, 4, &mut acknowledged).unwrap();
            }
        }
        appenders[1].wait_readable().unwrap();
        assert_eq!(acknowledged, 80);
        let mut ledger = Ledger::new(&setting);
        prepared.read_back(&mut |record| ledger.enter(record)).unwrap();
        assert_eq!(ledger.close().unwrap(), 80, "{name} {bytes}");
    }
}

#[test]
fn write_reads_back() {
    round_trip(WayName::Write);
}

#[test]
fn writev_reads_back() {
    round_trip(WayName::Writev);
}

#[test]
fn stdio_reads_back() {
    round_trip(WayName::Stdio);
}

#[test]
fn direct_reads_back() {
    round_trip(WayName::Direct);
}

#[test]
fn aio_reads_back() {
    round_trip(WayName::Aio);
}

#[test]
fn io_uring_reads_back() {
    round_trip(WayName::IoUring);
}

#[test]
fn vellum_framed_reads_back() {
    round_trip(WayName::VellumFramed);
}

#[test]
fn vellum_text_reads_back() {
    round_trip(WayName::VellumText);
}

#[cfg(feature = "capi")]
#[test]
fn vellum_c_reads_back() {
    round_trip(WayName::VellumC);
}

#[cfg(not(feature = "capi"))]
#[test]
fn vellum_c_says_that_it_was_left_out() {
    let way = WayName::VellumC.way(&vellum::Options::default());
    let reason = way.probe(std::path::Path::new("/")).unwrap_err();
    assert!(reason.contains("without the feature `capi`"), "{reason}");
}
