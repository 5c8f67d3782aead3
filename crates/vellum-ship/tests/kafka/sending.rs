//! The messages that arrive: each durable record once, in order, with the headers that identify it.

use rustix::process::Signal;
use vellum::Options;

use crate::broker::shared;
use crate::place::{Place, fill, good, records, sent, signal, small_segments};

#[test]
fn each_record_is_one_message_in_order_and_a_second_time_sends_what_is_new() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "each-once", 1);
    let log = place.open("log");
    fill(&log, "first", 1000);
    good(&place.ship("log", &[]));
    assert_eq!(place.payloads(), records(&log));
    good(&place.ship("log", &[]));
    fill(&log, "second", 1000);
    // It is never committed.
    log.append(b"").unwrap();
    good(&place.ship("log", &[]));
    assert_eq!(place.payloads(), records(&log));
    assert_eq!(place.payloads().len(), 2001);
}

#[test]
fn headers_tell_log_position_time_and_writer() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "headers", 1);
    let log = Options::default().envelope(true).open(place.path("log")).unwrap();
    let lsn = fill(&log, "a", 3);
    // An abandoned record is not sent.
    drop(log.reserve(100).unwrap());
    fill(&log, "b", 1);
    good(&place.ship("log", &[]));
    let got = place.got(0);
    assert_eq!(got.len(), 4);
    let record = log.read_at(lsn).unwrap();
    let number = |key: &str| got[2].header(key).unwrap().parse::<u128>().unwrap();
    assert_eq!(got[2].header("vellum-log"), Some(log.id().unwrap().to_string().as_str()));
    assert_eq!(number("vellum-epoch"), u128::from(log.epoch()));
    assert_eq!(number("vellum-position"), u128::from(record.lsn.get()));
    assert_eq!(number("vellum-next"), u128::from(record.next_lsn.get()));
    let time = record.time().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(number("vellum-time"), time.as_nanos());
    assert_eq!(got[2].header("vellum-writer"), Some(record.writer().unwrap().to_string().as_str()));
    assert_eq!(got[2].header("vellum-gap-from"), None);
}

#[test]
fn lines_of_a_text_log_that_rotates_arrive_without_their_newlines() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "lines", 1);
    let options = Options::mapped_text().rotate_bytes(1 << 16);
    let log = options.open(place.path("log")).unwrap();
    for round in 0..3 {
        for index in 0..2000 {
            log.append(format!("{round} a line of some length, number {index}\n").as_bytes())
                .unwrap();
        }
        good(&place.ship("log", &[]));
    }
    let mut lines = place.payloads();
    lines.iter_mut().for_each(|line| line.push(b'\n'));
    assert_eq!(lines, records(&log));
}

/// No reader can begin in the midst of a line, so no position is there.
#[test]
fn a_line_that_is_appended_in_parts_is_sent_when_it_ends() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "parts", 1);
    let log = Options::mapped_text().open(place.path("log")).unwrap();
    for (part, lines) in [("one\nt", 1), ("w", 1), ("o\nthree\n", 3)] {
        log.append(part.as_bytes()).unwrap();
        good(&place.ship("log", &[]));
        assert_eq!(place.payloads().len(), lines);
    }
    assert_eq!(place.payloads(), ["one", "two", "three"].map(|line| line.as_bytes().to_vec()));
}

#[test]
fn more_than_one_transaction_holds_is_sent_in_several() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "much", 1);
    let log = place.open("log");
    for index in 0..300_u32 {
        log.append(&[&index.to_le_bytes()[..], &[7; 100_000]].concat()).unwrap();
    }
    good(&place.ship("log", &[]));
    assert!(place.payloads() == records(&log));
}

#[test]
fn two_logs_share_a_topic_and_are_told_apart() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "two-logs", 1);
    let (one, two) = (place.open("one"), place.open("two"));
    for round in 0..3 {
        fill(&one, &format!("one {round}"), 50);
        fill(&two, &format!("two {round}"), 50);
        good(&place.ship("one", &[]));
        good(&place.ship("two", &[]));
    }
    for log in [&one, &two] {
        let id = log.id().unwrap().to_string();
        let mut all = place.got(0);
        all.retain(|got| got.header("vellum-log") == Some(&id));
        let payloads: Vec<_> = all.into_iter().map(|got| got.payload).collect();
        assert_eq!(payloads, records(log));
    }
}

#[test]
fn one_partition_gets_all_and_each_partition_has_a_position_of_its_own() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "partitions", 3);
    let log = place.open("log");
    fill(&log, "a", 50);
    good(&place.ship("log", &["--partition", "2"]));
    assert_eq!([0, 1, 2].map(|partition| place.got(partition).len()), [0, 0, 50]);
    good(&place.ship("log", &[]));
    assert_eq!([0, 1, 2].map(|partition| place.got(partition).len()), [50, 0, 50]);
    assert_eq!(log.cursors().unwrap().len(), 2);
}

#[test]
fn a_shipper_that_is_told_to_end_ends_well() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "signals", 1);
    let log = place.open("log");
    let end = fill(&log, "a", 100);
    let mut shipper = place.spawn("log");
    while sent(&log) <= end {
        std::thread::yield_now();
    }
    signal(&shipper, Signal::TERM);
    assert!(shipper.wait().unwrap().success());
    assert_eq!(place.payloads(), records(&log));
}

#[test]
fn what_is_not_sent_is_kept() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "kept", 1);
    let log = Options::default().tuning(small_segments()).open(place.path("log")).unwrap();
    fill(&log, "a", 100);
    good(&place.ship("log", &[]));
    fill(&log, "b", 10_000);
    log.trim(log.published()).unwrap();
    assert!(log.begin() <= sent(&log));
    good(&place.ship("log", &[]));
    assert_eq!(place.payloads().len(), 10_100);
    let before = log.begin();
    log.trim(log.published()).unwrap();
    assert!(log.begin() > before);
}
