//! The shipper itself, over stores that fail by a seed: everything that it reports as shipped can
//! be restored.

use std::sync::Arc;
use std::time::Duration;

use vellum::ship::Shipper;
use vellum::{Layout, Log, Lsn};
use vellum_ship::driver::{ShipOptions, start};
use vellum_ship::read::{Remote, Restore, Until, restore};
use vellum_ship::store::{FaultStore, Faults, MemoryStore, Store};

use crate::hand::{append, log, records};
use crate::server::{SECRET, versitygw};

const ALL: Restore = Restore { until: Until::End, resume: false, jobs: 4, file_link: false };
const ROUNDS: u64 = 3;

fn once(url: &str) -> ShipOptions {
    ShipOptions {
        url: url.to_string(),
        once: true,
        interval: Duration::from_millis(1),
        min_interval: Duration::from_millis(1),
        take_over: false,
        max_unshipped: None,
        in_flight: 4,
        note: |_| {},
    }
}

/// Ships in several lives of a shipper while the log grows; restores from the store without faults.
async fn ship_and_restore(faulty: Arc<dyn Store>, good: Arc<dyn Store>, name: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let log = log(&path, Layout::Framed);
    for _ in 0..ROUNDS {
        append(&log, 100);
        let durable = log.durable();
        // A life may give up: the next one continues.
        for life in 0.. {
            let again = vellum::Options::default().open(&path).unwrap();
            let shipper = elected(&log).await;
            let begun = start(again, shipper, Arc::clone(&faulty), once("s3://b")).await;
            let ended = match begun {
                Ok(mut shipping) => shipping.run(std::future::pending(), |_| {}).await,
                Err(error) => Err(error),
            };
            match ended {
                Ok(()) => break,
                Err(error) => assert!(life < 20, "{name}: {error}"),
            }
        }
        assert!(log.ship().end() >= durable, "{name}");
    }
    let copy = dir.path().join("copy");
    let remote = Remote::open(good).await.unwrap();
    let report = restore(&remote, &copy, ALL, &mut |_, _| {}).await.unwrap();
    assert!(Lsn::new(report.written_end) >= log.ship().end(), "{name}");
    let restored = records(&vellum::Options::default().open(&copy).unwrap());
    assert!(restored == records(&log), "{name}");
}

/// The right to ship, when the threads of the life before have released it.
async fn elected(log: &Log) -> Shipper {
    loop {
        match log.ship().elect().unwrap() {
            Some(shipper) => return shipper,
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

#[tokio::test]
async fn what_is_shipped_through_faults_can_be_restored() {
    for seed in 0..5 {
        let good: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let faults = Faults { seed, rate: 8, ..Default::default() };
        let faulty = Arc::new(FaultStore::new(Arc::clone(&good), faults));
        ship_and_restore(faulty, good, &format!("seed {seed}")).await;
    }
}

#[tokio::test]
async fn what_is_shipped_to_a_server_can_be_restored() {
    let Some(server) = versitygw() else { return };
    let good = server.s3("s3://bucket/app", SECRET);
    let faults = Faults { seed: 3, rate: 5, ..Default::default() };
    let faulty = Arc::new(FaultStore::new(Arc::clone(&good), faults));
    ship_and_restore(faulty, good, "versitygw").await;
}
