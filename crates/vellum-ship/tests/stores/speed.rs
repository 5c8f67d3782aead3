//! For measuring by hand: shipping beside creating the same objects and nothing else.

use std::fs;

use vellum::Options;

use crate::memory::{Place, fill};
use crate::server::{SECRET, versitygw};

const LOG_MIB: usize = 1024;

/// Interleaved rounds of `ship` and of `put`, each with a new server: how long each took, the
/// processor time of the client, and the rate of the first by the second.
#[test]
#[ignore = "takes a minute and 3 GiB, and is a measurement"]
fn ship_beside_put() {
    let dir = tempfile::tempdir().unwrap();
    let log = Options::default().open(dir.path().join("log")).unwrap();
    fill(&log, LOG_MIB, |_| true);
    drop(log);
    let mut place = Place { dir, url: "s3://bucket/x".to_string(), environment: Vec::new() };
    let mut shares = Vec::new();
    for _ in 0..5 {
        let Some(server) = versitygw() else { return };
        place.environment = server.environment(SECRET);
        let put = place.run(&["put", &place.url]);
        drop(server);
        let Some(server) = versitygw() else { return };
        place.environment = server.environment(SECRET);
        let ship = place.run(&["ship", &place.path("log"), &place.url, "--once"]);
        fs::remove_file(place.path("log/ship")).unwrap();
        println!("put {put:.2?}\nship {ship:.2?}");
        shares.push(put.seconds / ship.seconds);
    }
    shares.sort_by(f64::total_cmp);
    println!("ship by put: {:.2} ({:.2}-{:.2})", shares[2], shares[0], shares[4]);
}
