//! Pieces that are fetched during a deletion.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use vellum::Layout;
use vellum_ship::decide::Point;
use vellum_ship::object::{Header, Key};
use vellum_ship::read::{Extent, Pieces, ReadError, Remote, Until};

use super::hand::{Hand, append, log};

/// Where a generation ended, and its chunks.
type Ended = (Point, Vec<(Header, Vec<u8>)>);

/// A log of two generations, and the chunks of the first one.
async fn two_generations(dir: &Path) -> (Hand, Ended) {
    let log = log(dir, Layout::Framed);
    append(&log, 600);
    let mut hand = Hand::begin(&log).await;
    hand.ship(8 << 10).await;
    let (chunks, at) = (hand.chunks.clone(), hand.at);
    assert!(chunks.len() > 3);
    hand.seal(at.lsn).await;
    append(&log, 100);
    hand.ship(8 << 10).await;
    (hand, (at, chunks))
}

#[tokio::test]
async fn what_is_removed_while_it_is_read_is_an_error_and_no_hole() {
    let dir = tempfile::tempdir().unwrap();
    let (mut hand, (end, chunks)) = two_generations(dir.path()).await;
    let remote = Remote::open(Arc::clone(&hand.store)).await.unwrap();
    let plan = remote.plan().await.unwrap();
    let extent = Extent::of(&plan, Until::End, hand.store.as_ref()).await.unwrap();
    let mut pieces = Pieces::new(&remote, &extent, extent.begin, 1);
    let mut at = pieces.next().await.unwrap().unwrap().piece.until;
    hand.close(0, end).await;
    hand.delete(&chunks).await;
    let error = loop {
        match pieces.next().await {
            Ok(Some(fetched)) => {
                assert_eq!(fetched.piece.header.start, at, "a hole");
                at = fetched.piece.until;
            }
            Ok(None) => panic!("it ends as if all were there"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ReadError::Position(_)), "{error}");
}

#[tokio::test]
async fn a_plan_with_a_hole_is_refused_before_anything_is_fetched() {
    let dir = tempfile::tempdir().unwrap();
    let (hand, _) = two_generations(dir.path()).await;
    let remote = Remote::open(Arc::clone(&hand.store)).await.unwrap();
    let mut plan = remote.plan().await.unwrap();
    plan.pieces.remove(1);
    let extent = Extent::of(&plan, Until::End, hand.store.as_ref()).await;
    assert!(matches!(extent, Err(ReadError::Position(_))), "{extent:?}");
    plan.pieces.pop();
    let extent = Extent::of(&plan, Until::End, hand.store.as_ref()).await;
    assert!(matches!(extent, Err(ReadError::Position(_))), "{extent:?}");
}

/// Beside the chain, where any shipper may have left it.
#[tokio::test]
async fn a_damaged_object_that_is_not_of_the_log_is_nobodys_trouble() {
    let dir = tempfile::tempdir().unwrap();
    let (hand, _) = two_generations(dir.path()).await;
    let stray = Key::Link { generation: 0, start: 1 << 20, chain: 7 }.to_string();
    hand.store.create(&stray, Bytes::from_static(b"nothing")).await.unwrap();
    let remote = Remote::open(Arc::clone(&hand.store)).await.unwrap();
    assert_eq!(remote.plan().await.unwrap().end, hand.at);
}
