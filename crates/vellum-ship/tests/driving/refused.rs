//! The refusals of the driver, and the objects that it leaves alone.

use std::sync::Arc;
use std::time::Duration;

use vellum_ship::decide::Stop;
use vellum_ship::driver::{ShipError, ShipOptions, trim};
use vellum_ship::object::{HEADER_BYTES, Header};
use vellum_ship::store::PutOutcome;

use super::place::{Place, answered, is_link, options, ship, watched};

#[tokio::test]
async fn another_log_is_not_shipped_to_the_same_store() {
    let place = Place::new();
    place.fill("log", "a");
    place.fill("other", "b");
    place.ship("log").await.unwrap();
    for take_over in [false, true] {
        let store = Arc::clone(&place.store);
        let refused = ship(&place.path("other"), store, options(take_over)).await;
        assert!(matches!(refused, Err(ShipError::AnotherLog(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn a_log_is_not_shipped_to_another_url_unasked() {
    let place = Place::new();
    place.fill("log", "a");
    place.ship("log").await.unwrap();
    let options = ShipOptions { url: "elsewhere".to_string(), ..options(false) };
    let refused = ship(&place.path("log"), Arc::clone(&place.store), options).await;
    assert!(matches!(refused, Err(ShipError::AnotherUrl(_))), "{refused:?}");
}

/// A file that came with a copy of another directory.
#[tokio::test]
async fn the_state_of_another_log_says_nothing() {
    let place = Place::new();
    place.fill("other", "b");
    place.ship("other").await.unwrap();
    let mut place = place;
    place.store = Arc::new(vellum_ship::store::MemoryStore::new());
    place.fill("log", "a");
    std::fs::copy(place.path("other/ship"), place.path("log/ship")).unwrap();
    place.ship("log").await.unwrap();
    place.restore("copy").await;
    assert_eq!(place.records("copy"), place.records("log"));
}

#[tokio::test]
async fn a_store_in_which_two_win_is_refused_before_anything_is_stored() {
    let place = Place::new();
    place.fill("log", "a");
    let store = watched(&place.store, |key, _| {
        answered(key.starts_with("probe/").then_some(Ok(PutOutcome::Created)))
    });
    let refused = place.ship_to("log", &store).await;
    assert!(matches!(refused, Err(ShipError::Store(_))), "{refused:?}");
    assert!(place.names().await.is_empty());
}

#[tokio::test]
async fn a_state_of_a_later_version_is_refused() {
    let place = Place::new();
    place.fill("log", "a");
    place.ship("log").await.unwrap();
    let mut state = place.state("log");
    state["version"] = 2.into();
    std::fs::write(place.path("log/ship"), state.to_string()).unwrap();
    let refused = place.ship("log").await;
    assert!(matches!(refused, Err(ShipError::State { .. })), "{refused:?}");
}

/// Another log's object is at the next name, whatever it holds.
#[tokio::test]
async fn an_object_of_another_log_is_not_taken_for_ones_own() {
    let place = Place::new();
    place.fill("log", "a");
    let inner = Arc::clone(&place.store);
    let store = watched(&place.store, move |key, body| {
        if !is_link(key) {
            return answered(None);
        }
        let header = Header { log_id: [9; 16], ..Header::decode(body).unwrap() };
        let other = [&header.encode()[..], &body[HEADER_BYTES..]].concat();
        let (inner, key) = (Arc::clone(&inner), key.to_string());
        Box::pin(async move {
            inner.create(&key, other.into()).await.unwrap();
            None
        })
    });
    let refused = place.ship_to("log", &store).await;
    assert!(matches!(refused, Err(ShipError::Object { .. })), "{refused:?}");
}

/// The log was truncated after another machine had taken over: that does not win it back.
#[tokio::test]
async fn an_owner_that_was_fenced_stays_so_when_its_log_is_truncated() {
    let place = Place::new();
    place.fill("old", "common");
    place.ship("old").await.unwrap();
    place.restore("new").await;
    let store = Arc::clone(&place.store);
    place.take_over("new", &store).await.unwrap();
    let begin = place.log("old").begin();
    place.truncate("old", begin).await;
    place.fill("old", "other");
    let fenced = place.ship("old").await;
    assert!(matches!(fenced, Err(ShipError::Stopped(Stop::Fenced { .. }))), "{fenced:?}");
}

#[tokio::test]
async fn only_generations_that_ended_long_ago_are_deleted_and_none_in_a_dry_run() {
    let place = Place::new();
    place.fill("log", "a");
    place.ship("log").await.unwrap();
    let store = Arc::clone(&place.store);
    place.take_over("log", &store).await.unwrap();
    assert_eq!(trim(Arc::clone(&store), Duration::ZERO, true).await.unwrap().objects, 0);
    // It is unknown whether a log can begin where nothing is.
    place.fill("log", "b");
    place.ship("log").await.unwrap();
    let before = place.names().await;
    let day = Duration::from_secs(86400);
    assert_eq!(trim(Arc::clone(&store), day, false).await.unwrap().objects, 0);
    assert!(trim(Arc::clone(&store), Duration::ZERO, true).await.unwrap().objects > 0);
    assert_eq!(place.names().await, before);
    assert!(trim(Arc::clone(&store), Duration::ZERO, false).await.unwrap().objects > 0);
    assert!(place.names().await.iter().any(|name| name.ends_with("/closed")));
}
