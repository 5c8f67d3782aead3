//! The refusals, each with a sentence that names the remedy.

use std::process::Command;

use vellum::Options;

use crate::broker::shared;
use crate::place::{Place, fill, good, records, refused, sent, small_segments, text};

#[test]
fn a_log_that_was_truncated_below_what_was_sent_is_refused_until_told() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "truncated", 1);
    let log = place.open("log");
    fill(&log, "kept", 50);
    let cut = fill(&log, "cut", 1);
    fill(&log, "cut", 49);
    good(&place.ship("log", &[]));
    log.truncate(cut).unwrap();
    refused(&place.ship("log", &[]), "the log is not what was sent");
    fill(&log, "new", 100);
    refused(&place.ship("log", &[]), "--take-over");
    good(&place.ship("log", &["--take-over"]));
    let got = place.payloads();
    assert_eq!(got[..100].len() + records(&log)[50..].len(), got.len());
    assert_eq!(got[100..], records(&log)[50..]);
    // It is this log's position again.
    good(&place.ship("log", &[]));
    assert_eq!(place.payloads().len(), got.len());
}

/// So nothing is sent that is taken back meanwhile.
#[test]
fn a_log_is_not_truncated_while_it_is_sent() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "truncated-beside", 1);
    let log = place.open("log");
    let cut = fill(&log, "a", 50);
    let mut shipper = place.spawn("log");
    while sent(&log) <= cut {
        std::thread::yield_now();
    }
    let kind = log.truncate(cut).unwrap_err().kind();
    shipper.kill().unwrap();
    shipper.wait().unwrap();
    assert_eq!(kind, vellum::ErrorKind::Busy);
}

#[test]
fn a_copy_with_other_records_at_the_same_positions_is_refused() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "another-record", 1);
    let log = place.open("log");
    fill(&log, "common", 50);
    good(&place.ship("log", &[]));
    drop(log);
    place.copy("log", "other");
    let (ours, other) = (place.open("log"), place.open("other"));
    fill(&ours, "ours", 1);
    fill(&other, "else", 1);
    good(&place.ship("log", &[]));
    refused(&place.ship("other", &[]), "the log is not what was sent");
    fill(&ours, "ours", 1);
    good(&place.ship("log", &[]));
    assert_eq!(place.payloads(), records(&ours));
}

#[test]
fn a_directory_that_never_sent_asks_before_it_takes_over() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "never-sent", 1);
    let log = place.open("log");
    fill(&log, "a", 50);
    place.copy("log", "copy");
    good(&place.ship("log", &[]));
    let copy = place.open("copy");
    fill(&copy, "b", 50);
    refused(&place.ship("copy", &[]), "--take-over");
    drop(log);
}

#[test]
fn a_position_that_kafka_lost_is_not_guessed() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "lost-position", 1);
    let log = place.open("log");
    fill(&log, "a", 50);
    good(&place.ship("log", &[]));
    place.delete_topic();
    refused(&place.ship("log", &[]), "no topic lost-position");
    place.make_topic(1);
    fill(&log, "b", 50);
    refused(&place.ship("log", &[]), "does not have the position");
    good(&place.ship("log", &["--take-over"]));
    assert_eq!(place.payloads(), records(&log)[50..]);
}

#[test]
fn what_the_log_removed_is_a_gap_that_consumers_see() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "gap", 1);
    let log = Options::default().tuning(small_segments()).open(place.path("log")).unwrap();
    fill(&log, "a", 10);
    good(&place.ship("log", &["--max-unshipped", "65536"]));
    let from = sent(&log);
    fill(&log, "b", 20_000);
    log.trim(log.published()).unwrap();
    assert!(log.begin() > from);
    refused(&place.ship("log", &[]), "--max-unshipped");
    good(&place.ship("log", &["--max-unshipped", "65536"]));
    let got = place.got(0);
    assert_eq!(got[10].header("vellum-gap-from"), Some(from.to_string().as_str()));
    assert_eq!(got[11].header("vellum-gap-from"), None);
    let payloads: Vec<_> = got[10..].iter().map(|got| got.payload.clone()).collect();
    assert_eq!(payloads, records(&log));
}

#[test]
fn topics_partitions_and_records_that_do_not_fit_are_refused() {
    let Some(broker) = shared() else { return };
    let mut place = Place::new(broker, "fits", 1);
    let log = place.open("log");
    fill(&log, "a", 10);
    refused(&place.ship("log", &["--partition", "1"]), "no partition 1");
    log.append(&vec![7; 2 << 20]).unwrap();
    refused(&place.ship("log", &[]), "longer than a message may be");
    let much = ["--kafka-config", "message.max.bytes=8000000"];
    refused(&place.ship("log", &much), "longer than a message may be");
    assert_eq!(place.payloads().len(), 0);
    place.topic = "is-not-there".into();
    refused(&place.ship("log", &[]), "create it");
}

#[test]
fn secrets_are_in_no_error() {
    let Some(broker) = shared() else { return };
    let place = Place::new(broker, "secrets", 1);
    fill(&place.open("log"), "a", 10);
    for option in ["sasl.password=hunter2", "linger.ms=hunter2", "acks=hunter2"] {
        let mut command = place.command("log");
        command.args(["--once", "--kafka-config", option, "--kafka-config"]);
        command.args(["sasl.mechanisms=PLAIN", "--kafka-config", "security.protocol=bad"]);
        let output = command.env("VELLUM_KAFKA_SASL_USERNAME", "hunter2").output().unwrap();
        assert!(
            !output.status.success() && !text(&output).contains("hunter2"),
            "{}",
            text(&output)
        );
    }
}

/// It takes as long as it is patient.
#[test]
fn a_broker_that_is_away_is_an_error_of_once_with_the_reason() {
    let Some(broker) = shared() else { return };
    let mut place = Place::new(broker, "away", 1);
    fill(&place.open("log"), "a", 10);
    place.brokers = "127.0.0.1:1".into();
    refused(&place.ship("log", &[]), "Connection refused");
}

#[test]
fn each_engine_refuses_the_options_of_the_other() {
    for arguments in [
        ["file:///y", "--partition", "1"],
        ["kafka://127.0.0.1:9/y", "--retain", "30d"],
        ["kafka://127.0.0.1:9/y", "--dry-run", "--once"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vellum-ship"));
        let output = command.args(["ship", "x"]).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
