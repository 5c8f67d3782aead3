//! A store that refuses: some answers end the shipper, and it outlives the others.

use std::time::Instant;

use vellum_testing::PATIENCE;

use crate::http::{append, place};
use crate::place::{Place, good, records_in, text};
use crate::writers::Kind;
use crate::wrong::{Fault, WrongServer};

/// Answers that a store may give for a while.
const OUTLIVED: [(u16, &str); 14] = [
    (400, "ExpiredToken"),
    (400, "InvalidToken"),
    (400, "RequestTimeout"),
    (400, "BadDigest"),
    (403, "AccessDenied"),
    (403, "InvalidAccessKeyId"),
    (403, "RequestTimeTooSkewed"),
    (403, "AuthenticationFailed"),
    (404, "NoSuchKey"),
    (409, "ConditionalRequestConflict"),
    (412, "PreconditionFailed"),
    (429, "TooManyRequests"),
    (500, "OperationTimedOut"),
    (503, "ServerBusy"),
];

/// Answers that only a new start mends, and a part of the message.
const FINAL: [(u16, &str, &str); 5] = [
    (404, "NoSuchBucket", "the bucket bucket does not exist"),
    (400, "InvalidBucketName", "InvalidBucketName: by the test"),
    (400, "AuthorizationHeaderMalformed", "AuthorizationHeaderMalformed: by the test"),
    (405, "MethodNotAllowed", "MethodNotAllowed: by the test"),
    (501, "NotImplemented", "NotImplemented: by the test"),
];

/// A log that is shipped already, so that the store is known to be good.
fn shipped(server: &WrongServer) -> Place {
    let place = place(server);
    append(&place, Kind::Text, "first", 10);
    good(&place.ship("log", &[]));
    place
}

#[test]
fn a_shipper_outlives_what_may_be_over_later() {
    let server = WrongServer::start(23, 0);
    let place = shipped(&server);
    let log = Kind::Text.open(&place.path("log"));
    let mut shipper = place.spawn("log", &[]);
    for refusal in OUTLIVED {
        let before = server.requests();
        server.refuse(Some(refusal));
        append(&place, Kind::Text, refusal.1, 10);
        let start = Instant::now();
        // A request that failed, and another one.
        while server.requests() < before + 2 {
            assert_eq!(shipper.ended(), None, "{refusal:?}");
            assert!(start.elapsed() < PATIENCE, "{refusal:?}: it does not try again");
            std::thread::yield_now();
        }
        server.refuse(None);
        while log.ship().end() < log.durable() {
            assert_eq!(shipper.ended(), None, "{refusal:?}");
            assert!(start.elapsed() < PATIENCE, "{refusal:?}: nothing is shipped afterwards");
            std::thread::yield_now();
        }
    }
    shipper.kill();
    assert!(place.restored() == records_in(&place.path("log")));
}

// A shipper that tried again for hours said nothing.
#[test]
fn a_shipper_says_that_it_tries_again() {
    let server = WrongServer::start(37, 0);
    let place = shipped(&server);
    let log = Kind::Text.open(&place.path("log"));
    let mut shipper = place.spawn("log", &[]);
    server.refuse(Some((503, "SlowDown")));
    append(&place, Kind::Text, "while it refuses", 10);
    let start = Instant::now();
    while !shipper.said().contains("SlowDown: by the test; it is tried again") {
        assert_eq!(shipper.ended(), None);
        assert!(start.elapsed() < PATIENCE, "{}", shipper.said());
        std::thread::yield_now();
    }
    server.refuse(None);
    while log.ship().end() < log.durable() {
        assert!(start.elapsed() < PATIENCE, "nothing is shipped afterwards");
        std::thread::yield_now();
    }
    shipper.kill();
}

#[test]
fn a_shipper_ends_where_only_a_new_start_mends_it() {
    let server = WrongServer::start(29, 0);
    let place = shipped(&server);
    for (status, code, said) in FINAL {
        server.refuse(Some((status, code)));
        append(&place, Kind::Text, code, 10);
        let mut shipper = place.spawn("log", &[]);
        assert_eq!(shipper.wait().code(), Some(1), "{code}");
        let all = shipper.said();
        assert!(all.contains(said) && !all.contains('<') && all.lines().count() == 1, "{all}");
        server.refuse(None);
    }
}

#[test]
fn readers_say_in_one_line_what_is_refused() {
    let server = WrongServer::start(31, 0);
    let place = shipped(&server);
    let copy = place.path("refused").display().to_string();
    let url = place.url();
    let (restore, above) = (["restore", url, &copy], ["ls", "s3://bucket"]);
    let commands: [&[&str]; 5] = [&["ls", url], &["stat", url], &["verify", url], &restore, &above];
    let refusals = FINAL.into_iter().take(2).chain([
        (400, "ExpiredToken", "400 Bad Request: ExpiredToken: by the test"),
        (403, "AccessDenied", "403 Forbidden: AccessDenied: by the test"),
    ]);
    for (status, code, said) in refusals {
        server.refuse(Some((status, code)));
        for words in commands {
            let output = place.command(words).output().unwrap();
            let said_all = text(&output);
            assert_eq!(output.status.code(), Some(1), "{code} {words:?}: {said_all}");
            let is_clear = !said_all.contains(['<', '>']) && !said_all.contains(": :");
            // A question that is answered without a body says its status alone.
            let is_told = said_all.contains(said) || said_all.contains(&status.to_string());
            assert!(is_clear && is_told && said_all.lines().count() == 1, "{words:?}: {said_all}");
        }
    }
}

#[test]
fn readers_ask_again_where_it_may_be_over_soon() {
    let server = WrongServer::start(37, 0);
    let place = shipped(&server);
    for (status, code) in OUTLIVED.into_iter().filter(|(status, _)| ![403, 404].contains(status)) {
        if code.ends_with("Token") {
            continue;
        }
        server.go_wrong(Fault::Refused(status, code));
        assert!(place.restored() == records_in(&place.path("log")), "{code}");
        assert!(server.went_wrong(), "{code} did not happen");
        for word in ["ls", "verify"] {
            server.go_wrong(Fault::Refused(status, code));
            good(&place.command(&[word, place.url()]).output().unwrap());
        }
    }
}
