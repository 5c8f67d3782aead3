//! A store that is away for long, and a log that may not keep all unshipped records.

use vellum::ship::ShipStatus;

use crate::ledger::{Ledger, record};
use crate::place::{Place, Shipper, good, records_in, text};
use crate::writers::{Kind, Writer};
use crate::wrong::WrongServer;

const LIMIT: &str = "100000";
/// More than a shipper has in flight and has read ahead.
const CHUNKS_READ: u64 = 8;

/// Waits for a step that the shipper takes in its own time, while it lives.
fn until(shipper: &mut Shipper, mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        assert_eq!(shipper.ended(), None);
        std::thread::yield_now();
    }
}

/// A writer continues undisturbed; the removed records are a gap, which every reader can see.
#[test]
fn a_store_that_is_away_for_long_costs_a_gap_and_stops_nobody() {
    let server = WrongServer::start(1, 0);
    let place = Place::at("s3://bucket/app", server.environment());
    let log = Kind::Retaining.open(&place.path("log"));
    let mut ledger = Ledger::default();
    let mut writer = Writer::start(&place.path("log"), Kind::Retaining, "writer", "local");
    writer.hear(&mut ledger, 5);
    let mut shipper = place.spawn("log", &["--max-unshipped", LIMIT]);
    until(&mut shipper, || log.ship().end() > log.begin());
    server.set_away(true);
    until(&mut shipper, || log.ship().state().unwrap().status == ShipStatus::Retrying);
    // More than may be kept, and more than the shipper has read: a file is in one chunk or in more.
    // The writer is heard while the store is away.
    let away = log.ship().end();
    let read = CHUNKS_READ * log.ship().shape().unwrap().segment_capacity_bytes();
    while log.begin().get() <= away.get() + read {
        writer.hear(&mut ledger, 20);
    }
    assert_eq!(log.ship().end(), away, "nothing was shipped");
    let gap_end = log.begin();
    server.set_away(false);
    until(&mut shipper, || log.ship().end() > gap_end);
    writer.kill(&mut ledger);
    log.sync().unwrap();
    until(&mut shipper, || log.ship().end() >= log.durable());
    let state = log.ship().state().unwrap();
    assert!(state.gap.is_some_and(|gap| gap.0 >= away), "{state:?}");
    shipper.kill();
    look(&place);
}

/// No shipper runs, and the log removes records beyond its limit; the shipped ones stay good.
#[test]
fn a_shipper_that_is_stopped_does_not_fill_the_disk() {
    let place = Place::new();
    let log = Kind::Retaining.open(&place.path("log"));
    let mut ledger = Ledger::default();
    let mut writer = Writer::start(&place.path("log"), Kind::Retaining, "writer", "local");
    writer.hear(&mut ledger, 5);
    good(&place.ship("log", &["--max-unshipped", LIMIT]));
    let shipped = restored(&place);
    let end = log.ship().end();
    while log.begin() <= end {
        writer.hear(&mut ledger, 20);
    }
    writer.kill(&mut ledger);
    assert!(restored(&place) == shipped);
}

/// The log may have removed files before it held any for the shipper.
fn restored(place: &Place) -> Vec<Vec<u8>> {
    let output = place.restore("copy");
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", text(&output));
    let all = records_in(&place.path("copy"));
    std::fs::remove_dir_all(place.path("copy")).unwrap();
    all
}

/// Retention continues until the log keeps something for the shipper.
#[test]
fn a_position_that_is_gone_before_it_is_held_is_held_from_where_the_log_begins() {
    let place = Place::new();
    let log = Kind::Mapped.open(&place.path("log"));
    let first = log.append(b"first").unwrap();
    let second = log.append(b"second").unwrap();
    log.sync().unwrap();
    let shipper = log.ship().elect().unwrap().unwrap();
    assert!(log.trim(second).unwrap().begin > first);
    shipper.hold(first, None).unwrap();
    assert_eq!(log.ship().state().unwrap().held_from, Some(log.begin()));
}

/// A restored log begins where the original began by then; the records before that are not lost,
/// and the restore says so.
#[test]
fn a_trim_of_the_original_is_told_by_a_restore() {
    let place = Place::new();
    let log = Kind::Staged.open(&place.path("log"));
    let mut end = log.begin();
    for number in 0..2000 {
        end = log.append(record("a", number).as_bytes()).unwrap();
    }
    log.sync().unwrap();
    good(&place.ship("log", &[]));
    let before = restored(&place);
    log.trim(end).unwrap();
    for number in 0..10 {
        log.append(record("b", number).as_bytes()).unwrap();
        log.sync().unwrap();
    }
    good(&place.ship("log", &[]));
    let output = place.restore("copy");
    assert!(text(&output).contains("had been trimmed"), "{}", text(&output));
    assert!(records_in(&place.path("copy")) == records_in(&place.path("log")));
    let (earlier, to) = (place.path("earlier"), end.get().to_string());
    let words = ["restore", place.url(), earlier.to_str().unwrap(), "--to", &to];
    let output = place.command(&words).output().unwrap();
    assert!(!text(&output).contains("had been trimmed"), "{}", text(&output));
    assert!(records_in(&earlier) == before[..before.len() - 1]);
}

/// The reports of the commands on it, and a restore.
fn look(place: &Place) {
    let stat = place.command(&["stat", "--json", place.url()]).output().unwrap();
    assert_eq!(stat.status.code(), Some(3), "{}", text(&stat));
    let stat: serde_json::Value = serde_json::from_slice(&stat.stdout).unwrap();
    assert!(stat["gaps"].as_u64() > Some(0), "{stat}");
    let verified = place.command(&["verify", place.url()]).output().unwrap();
    assert_eq!(verified.status.code(), Some(3));
    let verdict = text(&verified).lines().last().unwrap().to_string();
    assert!(verdict.contains("lost in") && !verdict.contains("all good"), "{verdict}");
    let restored = place.restore("copy");
    assert_eq!(restored.status.code(), Some(3), "{}", text(&restored));
    assert!(text(&restored).contains("were lost before they were shipped"), "{}", text(&restored));
    // The local log has the end of the stored log.
    let (all, local) = (records_in(&place.path("copy")), records_in(&place.path("log")));
    assert!(all.len() > local.len(), "{} of {}", all.len(), local.len());
    assert!(all.ends_with(&local));
}
