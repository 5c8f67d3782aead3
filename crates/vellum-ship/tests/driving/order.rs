//! Objects that must be stored before another step is done.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use vellum_ship::object::{Header, Kind, LOG};
use vellum_ship::store::{PutOutcome, StoreError, StoreErrorKind};

use super::place::{Place, answered, broken, is_link, options, ship, state, watched};

/// Each create, with the file `ship` as it was just then.
type Seen = Arc<Mutex<Vec<(Header, serde_json::Value)>>>;

/// Ships, and notes each create of an object of the log.
async fn seen(place: &Place, max_unshipped: Option<u64>, take_over: bool) -> Seen {
    let seen = Seen::default();
    let (notes, dir) = (Arc::clone(&seen), place.path("log"));
    let store = watched(&place.store, move |key, body| {
        if key == LOG || is_link(key) {
            notes.lock().unwrap().push((Header::decode(body).unwrap(), state(&dir)));
        }
        answered(None)
    });
    let options = options(take_over);
    let options = vellum_ship::driver::ShipOptions { max_unshipped, ..options };
    ship(&place.path("log"), store, options).await.unwrap();
    seen
}

fn hex(nonce: u128) -> String {
    format!("{nonce:032x}")
}

#[tokio::test]
async fn a_log_knows_its_own_object_before_it_is_made() {
    let place = Place::new();
    place.fill("log", "a");
    let seen = seen(&place, None, false).await;
    let seen = seen.lock().unwrap();
    let (header, state) = seen.iter().find(|(header, _)| header.kind == Kind::Log).unwrap();
    assert_eq!(state["origin"], hex(header.nonce));
}

#[tokio::test]
async fn a_generation_is_known_before_anything_is_shipped_to_it() {
    let place = Place::new();
    place.fill("log", "a");
    let first = seen(&place, None, false).await;
    place.fill("log", "b");
    let second = seen(&place, None, true).await;
    for (header, state) in first.lock().unwrap().iter().chain(second.lock().unwrap().iter()) {
        match header.kind {
            Kind::Chunk => assert_eq!(state["owned"]["generation"], header.generation),
            Kind::Seal => assert_eq!(state["claim"]["nonce"], hex(header.nonce)),
            _ => {}
        }
    }
    assert!(second.lock().unwrap().iter().any(|(header, _)| header.kind == Kind::Seal));
}

/// Its bytes may be gone when its owner is looked for.
#[tokio::test]
async fn a_chunk_is_noted_before_it_is_sent_where_bytes_may_be_removed() {
    let place = Place::new();
    place.fill_segments("log");
    let seen = seen(&place, Some(1 << 30), false).await;
    let seen = seen.lock().unwrap();
    let chunks = seen.iter().filter(|(header, _)| header.kind == Kind::Chunk);
    let is_noted = |(header, state): &&(Header, serde_json::Value)| {
        let flights = state["owned"]["flights"].as_array().unwrap();
        flights.iter().any(|flight| flight["content"] == header.content.to_string())
    };
    assert!(chunks.clone().count() > 1);
    assert_eq!(chunks.clone().filter(is_noted).count(), chunks.count());
}

/// A chunk with two before it cannot be stored. Those behind it may be, and do not count. It fails
/// when the log has removed the chunks that were stored before it. Chunks are sent in any order, so
/// it is the first that has two before it, and stays that.
#[tokio::test]
async fn only_what_is_stored_without_a_hole_is_shipped_and_let_go() {
    let place = Place::new();
    place.fill_segments("log");
    let (sent, hole) = (Mutex::new(BTreeSet::new()), Arc::new(OnceLock::new()));
    let (broken_at, log) = (Arc::clone(&hole), Arc::new(place.log("log")));
    let store = watched(&place.store, move |key, body| {
        let mut sent = sent.lock().unwrap();
        if !is_link(key) {
            return answered(None);
        }
        let start = Header::decode(body).unwrap().start;
        sent.insert(start);
        if sent.range(..start).count() >= 2 {
            broken_at.get_or_init(|| start);
        }
        let is_broken = broken_at.get() == Some(&start);
        let (log, first) = (Arc::clone(&log), *sent.first().unwrap());
        let has_let_go = move || log.ship().state().unwrap().held_from.unwrap().get() > first;
        Box::pin(async move {
            while is_broken && !has_let_go() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            is_broken.then(broken)
        })
    });
    place.ship_to("log", &store).await.unwrap_err();
    let hole = *hole.get().unwrap();
    let log = place.log("log");
    let shipped = log.ship().state().unwrap();
    assert!(shipped.shipped.get() <= hole);
    assert!(shipped.held_from.unwrap().get() <= hole);
    assert!(place.state("log")["owned"]["lsn"].as_u64().unwrap() <= hole);
    place.ship("log").await.unwrap();
    place.restore("copy").await;
    assert_eq!(place.records("copy"), place.records("log"));
}

/// The disk is full, for example: the shipped position cannot be noted.
#[tokio::test]
async fn nothing_is_let_go_while_the_position_cannot_be_stored() {
    let place = Place::new();
    place.fill_segments("log");
    let dir = place.path("log");
    let store = watched(&place.store, move |key, _| {
        if is_link(key) {
            // In the way of the new file.
            let _ = fs::create_dir(dir.join("ship.new"));
        }
        answered(None)
    });
    place.ship_to("log", &store).await.unwrap_err();
    let stored = place.state("log")["owned"]["lsn"].as_u64().unwrap();
    let held = place.log("log").ship().state().unwrap().held_from.unwrap();
    assert!(held.get() <= stored, "{held:?} is behind {stored}");
    fs::remove_dir(place.path("log/ship.new")).unwrap();
    place.ship("log").await.unwrap();
    place.restore("copy").await;
    assert_eq!(place.records("copy"), place.records("log"));
}

/// The store says that the name is taken, and nothing is there.
#[tokio::test]
async fn a_chunk_whose_create_was_refused_for_nothing_is_created_again() {
    let place = Place::new();
    place.fill_segments("log");
    let is_over = AtomicBool::new(false);
    let store = watched(&place.store, move |key, _| {
        let is_now = is_link(key) && !is_over.swap(true, Ordering::Relaxed);
        answered(is_now.then_some(Ok(PutOutcome::Exists)))
    });
    place.ship_to("log", &store).await.unwrap();
    place.restore("copy").await;
    assert_eq!(place.records("copy"), place.records("log"));
}

#[tokio::test]
async fn a_request_that_fails_for_a_while_is_made_again() {
    let place = Place::new();
    place.fill("log", "a");
    let is_over = AtomicBool::new(false);
    let store = watched(&place.store, move |key, _| {
        let is_now = is_link(key) && !is_over.swap(true, Ordering::Relaxed);
        let busy = || Err(StoreError::new(StoreErrorKind::Transient, "busy"));
        answered(is_now.then(busy))
    });
    place.ship_to("log", &store).await.unwrap();
    place.restore("copy").await;
    assert_eq!(place.records("copy"), place.records("log"));
}
