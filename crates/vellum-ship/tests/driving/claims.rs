//! Taking a log over while something else happens at the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vellum::Lsn;
use vellum_ship::driver::ShipError;

use super::place::{Place, answered, broken, is_link, options, ship, watched};

/// Its last request was on its way when the other machine looked.
#[tokio::test]
async fn what_lands_after_the_comparison_is_cut_off() {
    let place = Place::new();
    place.fill("old", "common");
    place.ship("old").await.unwrap();
    place.restore("new").await;
    place.fill("new", "new");
    place.fill("old", "late");
    let (old, inner) = (place.path("old"), Arc::clone(&place.store));
    let is_over = AtomicBool::new(false);
    let lands = watched(&place.store, move |key, _| {
        let (old, inner) = (old.clone(), Arc::clone(&inner));
        let is_now = is_link(key) && !is_over.swap(true, Ordering::Relaxed);
        Box::pin(async move {
            if is_now {
                ship(&old, inner, options(false)).await.unwrap();
            }
            None
        })
    });
    place.take_over("new", &lands).await.unwrap();
    place.restore("copy").await;
    assert_eq!(place.records("copy"), place.records("new"));
    let fenced = place.ship("old").await;
    assert!(matches!(fenced, Err(ShipError::Stopped(_))), "{fenced:?}");
}

/// It dies before its seal. When it continues, the log belongs to another shipper, with whose
/// records it was never compared.
#[tokio::test]
async fn a_take_over_that_died_does_not_win_against_a_later_one() {
    let place = Place::new();
    place.fill("old", "common");
    place.ship("old").await.unwrap();
    place.restore("first").await;
    place.restore("second").await;
    place.fill("first", "first");
    place.fill("second", "second");
    let dies = watched(&place.store, |key, _| answered(is_link(key).then(broken)));
    place.take_over("first", &dies).await.unwrap_err();
    let store = Arc::clone(&place.store);
    place.take_over("second", &store).await.unwrap();
    let lost = place.ship("first").await;
    assert!(matches!(lost, Err(ShipError::Lost)), "{lost:?}");
    place.restore("copy").await;
    assert_eq!(place.records("copy"), place.records("second"));
}

/// The rest of the chunk here is compared too, although its begin is gone.
#[tokio::test]
async fn a_log_that_was_trimmed_and_cut_inside_of_one_chunk_begins_a_generation() {
    let place = Place::new();
    let log = place.log("log");
    let positions: Vec<Lsn> =
        (0..50).map(|number| log.append(format!("old {number}").as_bytes()).unwrap()).collect();
    log.sync().unwrap();
    drop(log);
    place.ship("log").await.unwrap();
    place.log("log").trim(positions[10]).unwrap();
    place.truncate("log", positions[30]).await;
    place.fill("log", "new");
    place.ship("log").await.unwrap();
    place.restore("copy").await;
    let (local, restored) = (place.records("log"), place.records("copy"));
    assert_eq!(local.len(), 20 + 50);
    assert_eq!(restored[restored.len() - local.len()..], local);
}

/// A log whose begin is inside of a chunk, and has nothing else, is not shipped again.
#[tokio::test]
async fn a_log_that_was_trimmed_inside_of_a_chunk_takes_over_without_a_cut() {
    let place = Place::new();
    let log = place.log("log");
    let positions: Vec<Lsn> =
        (0..50).map(|number| log.append(format!("old {number}").as_bytes()).unwrap()).collect();
    log.sync().unwrap();
    drop(log);
    place.ship("log").await.unwrap();
    place.log("log").trim(positions[10]).unwrap();
    let store = Arc::clone(&place.store);
    place.take_over("log", &store).await.unwrap();
    let names = place.names().await;
    assert!(!names.iter().any(|name| name.starts_with("g00000001/t/")), "{names:?}");
}
