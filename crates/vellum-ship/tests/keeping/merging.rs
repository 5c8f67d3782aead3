//! Merged objects.

use std::fs;
use std::process::Stdio;

use vellum::Layout;
use vellum_ship::object::Key;

use crate::place::{Place, append, commit, covered, good, records_of, small};

#[test]
fn many_small_chunks_become_merged_objects_that_stand_for_them() {
    for layout in [Layout::Framed, Layout::Text] {
        let place = Place::new();
        let log = small(&place, layout);
        let running = place.run(&[]);
        commit(&log, 0..150);
        drop(running);
        good(&place.ship(&[]));
        let merged = place.merged();
        assert!(merged.len() >= 3, "{layout:?}: {merged:?}");
        let covered = covered(&place.keys(), &merged);
        assert!(covered.len() >= 9 * merged.len());
        place.verify();
        // Nothing is lost without the chunks.
        place.delete(covered);
        assert_eq!(place.restored("copy"), records_of(&log), "{layout:?}");
    }
}

#[test]
fn a_shipper_that_is_killed_again_and_again_merges_the_same_objects() {
    let kills = std::env::var("VELLUM_SHIP_KILLS").ok().and_then(|text| text.parse().ok());
    let place = Place::new();
    let log = small(&place, Layout::Framed);
    let rounds = kills.unwrap_or(10);
    for round in 0..rounds {
        let running = place.run(&[]);
        commit(&log, round * 25..(round + 1) * 25);
        drop(running);
    }
    good(&place.ship(&[]));
    let merged = place.merged();
    let overlaps = merged.iter().zip(merged.iter().skip(1)).filter(|(a, b)| a.1 > b.0);
    assert_eq!(overlaps.count(), 0, "{merged:?}");
    // All but the last segment, or two.
    let end = log.durable().get();
    let holes: u64 = merged.iter().zip(merged.iter().skip(1)).map(|(a, b)| b.0 - a.1).sum();
    assert_eq!(holes, 0, "{merged:?}");
    assert!(merged[0].0 <= 65536 && merged.last().unwrap().1 + 2 * 65536 > end, "{merged:?}");
    place.delete(covered(&place.keys(), &merged));
    assert_eq!(place.restored("copy"), records_of(&log));
}

/// A copy of the log continues from a restored log: it begins behind the merged objects that both
/// have.
#[test]
fn a_take_over_compares_what_merged_objects_hold_chunk_by_chunk() {
    let place = Place::new();
    let log = small(&place, Layout::Framed);
    let running = place.run(&[]);
    commit(&log, 0..100);
    drop(running);
    good(&place.ship(&[]));
    let merged = place.merged();
    assert!(merged.len() >= 2);
    place.delete(covered(&place.keys(), &merged));
    fs::remove_file(place.path("log/ship")).unwrap();
    append(&log, 100);
    log.sync().unwrap();
    good(&place.ship(&["--take-over"]));
    let begins = place.keys().into_iter().filter_map(|key| match key {
        Key::Link { generation: 1, start, .. } => Some(start),
        _ => None,
    });
    let last = merged.last().unwrap().1;
    assert!(begins.min().unwrap() >= last, "the new generation begins behind what is equal");
    assert_eq!(place.restored("copy"), records_of(&log));
}

#[test]
fn a_log_whose_bytes_are_gone_is_not_merged_and_ships_on() {
    let place = Place::new();
    let log = small(&place, Layout::Framed);
    for number in 0..100 {
        append(&log, number);
        log.sync().unwrap();
        good(&place.ship(&[]));
        log.trim(log.ship().end()).unwrap();
    }
    let stored = place.command("cat", &[]).arg(place.url()).stdout(Stdio::piped()).output();
    let stored = stored.unwrap();
    assert_eq!(stored.stdout.iter().filter(|byte| **byte == b'\n').count(), 200);
    assert_eq!(place.merged(), []);
}
