//! Records found in shipped bytes are those that a reader of the log finds.

use std::sync::Arc;

use vellum::Layout;
use vellum_ship::read::{Extent, Parts, ReadError, Records, Remote, Until};

use crate::hand::{Hand, append, log, records};

async fn decoded(hand: &Hand) -> Vec<(u64, Vec<u8>)> {
    let remote = Remote::open(Arc::clone(&hand.store)).await.unwrap();
    let plan = remote.plan().await.unwrap();
    let extent = Extent::of(&plan, Until::End, hand.store.as_ref()).await.unwrap();
    let (mut parts, mut found) = (Parts::new(&remote, &extent, 2), Records::new(&remote));
    let mut all = Vec::new();
    let mut keep = |record: vellum::Record<'_>| {
        all.push((record.lsn.get(), record.payload.to_vec()));
        Ok::<(), ReadError>(())
    };
    while let Some(part) = parts.next().await.unwrap() {
        found.take(&part, &mut keep).unwrap();
    }
    found.finish(&mut keep).unwrap();
    all
}

#[tokio::test]
async fn records_are_those_of_the_log() {
    let dir = tempfile::tempdir().unwrap();
    for (layout, bytes) in [
        (Layout::Framed, 700),
        (Layout::Framed, 30_000),
        (Layout::Text, 700),
        (Layout::Text, 30_000),
    ] {
        let log = log(&dir.path().join(format!("{layout:?}{bytes}")), layout);
        append(&log, 500);
        if layout == Layout::Text {
            log.rotate().unwrap();
        }
        // Longer than a chunk, and across segments.
        log.append(&[b'y'; 100_000]).unwrap();
        drop(log.reserve(500).unwrap());
        append(&log, 300);
        let mut hand = Hand::begin(&log).await;
        hand.ship(bytes).await;
        let expected = records(&log);
        let found = decoded(&hand).await;
        assert_eq!(found.len(), expected.len(), "{layout:?} {bytes}");
        assert!(found == expected, "{layout:?} {bytes}");
    }
}
