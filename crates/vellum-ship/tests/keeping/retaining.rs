//! Generations and retention.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;

use vellum::{Layout, Options};
use vellum_ship::decide::{Keep, Point, deletable};
use vellum_ship::object::{Header, Key};
use vellum_ship::read::Remote;
use vellum_ship::store;

use crate::place::{
    Place, age, append, commit, days, generations, good, is_link, of, records_of, small, text,
};

#[test]
fn a_generation_ends_after_a_day_in_which_something_was_shipped() {
    let place = Place::new();
    let log = small(&place, Layout::Framed);
    append(&log, 0);
    log.sync().unwrap();
    good(&place.ship(&[]));
    assert_eq!(generations(&place), 1);
    age(&place, 86_400);
    good(&place.ship(&["--rotate", "0s"]));
    assert_eq!(generations(&place), 1, "not if nobody wants it");
    good(&place.ship(&[]));
    assert!(place.path("store/g00000000/t").exists());
    append(&log, 1);
    log.sync().unwrap();
    good(&place.ship(&[]));
    assert_eq!(generations(&place), 2);
    for _ in 0..3 {
        age(&place, 86_400);
        good(&place.ship(&[]));
    }
    append(&log, 2);
    log.sync().unwrap();
    good(&place.ship(&[]));
    assert_eq!(generations(&place), 3, "an idle log begins no generation");
    assert_eq!(place.restored("copy"), records_of(&log));
}

/// Commit records of the log know where it began once.
#[test]
fn a_log_that_begins_with_a_segment_is_restored() {
    let place = Place::new();
    let log = small(&place, Layout::Framed);
    let running = place.run(&[]);
    commit(&log, 0..32);
    drop(running);
    assert!(log.durable().get().is_multiple_of(64 << 10), "a segment is full");
    age(&place, 86_400);
    good(&place.ship(&[]));
    let running = place.run(&[]);
    commit(&log, 32..42);
    drop(running);
    good(&place.ship(&["--retain", "0s"]));
    age(&place, 0);
    good(&place.ship(&["--retain", "0s"]));
    assert_eq!(of(&place.keys(), 0), 2, "seal and marker: {:?}", place.keys());
    assert_eq!(place.restored("copy"), records_of(&log)[32..]);
}

/// A text log can be restored from where a file begins, and from nowhere else.
#[test]
fn a_text_log_begins_a_generation_with_a_file() {
    let place = Place::new();
    let log = small(&place, Layout::Text);
    append(&log, 0);
    log.sync().unwrap();
    good(&place.ship(&[]));
    age(&place, 86_400);
    append(&log, 1);
    log.sync().unwrap();
    good(&place.ship(&[]));
    assert_eq!(generations(&place), 1, "not amid a file");
    log.rotate().unwrap();
    append(&log, 2);
    log.sync().unwrap();
    good(&place.ship(&["--retain", "0s"]));
    append(&log, 3);
    log.sync().unwrap();
    good(&place.ship(&["--retain", "0s"]));
    age(&place, 0);
    good(&place.ship(&["--retain", "0s"]));
    assert_eq!(generations(&place), 2);
    assert_eq!(of(&place.keys(), 0), 2, "seal and marker: {:?}", place.keys());
    assert_eq!(place.restored("copy"), records_of(&log)[2..]);
}

#[test]
fn old_generations_are_deleted_by_their_bytes_and_chunks_that_were_merged() {
    let place = Place::new();
    let log = small(&place, Layout::Framed);
    days(&place, &log, 6, &[]);
    assert_eq!(generations(&place), 7);
    let all = records_of(&log);
    let one = |generation| {
        let dir = place.path(&format!("store/g{generation:08x}/t"));
        let sizes = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
        sizes.map(|meta| meta.len()).sum::<u64>()
    };
    let before = place.keys();
    let mut dry = place.command("ship", &["--dry-run", "--retain", "1B"]);
    let dry = dry.arg(place.path("log")).arg(place.url()).stdout(Stdio::piped()).output().unwrap();
    assert!(String::from_utf8_lossy(&dry.stdout).contains("would be deleted, 5 generations"));
    assert_eq!(place.keys(), before);
    // The newest two are more than this.
    let retain = format!("{}B", one(5) / 4 + 1);
    age(&place, 0);
    good(&place.ship(&["--retain", "1GiB"]));
    let kept = place.keys();
    assert!(before.iter().any(|key| !kept.contains(key)), "merged chunks are deleted");
    assert_eq!(place.restored("copy"), all);
    age(&place, 0);
    good(&place.ship(&["--retain", &retain]));
    let left = place.keys();
    assert_eq!(of(&left, 0), 2, "{left:?}");
    assert!(of(&left, 5) > 2);
    let kept = place.restored("copy");
    assert_eq!(kept, all[all.len() - kept.len()..]);
    assert!(kept.len() >= 41 && kept.len() < all.len());
}

/// Unknown objects are not touched: Kafka's tiering deleted objects that it did not know
/// (KAFKA-20732).
#[test]
fn nothing_is_deleted_from_a_store_that_is_not_understood() {
    let place = Place::new();
    let log = small(&place, Layout::Framed);
    days(&place, &log, 4, &[]);
    let store = place.path("store");
    let keys = place.keys();
    let seal = *keys.iter().rfind(|key| key.generation() == 2 && is_link(key)).unwrap();
    let first = *keys.iter().find(|key| key.generation() == 1 && is_link(key)).unwrap();
    let bytes_of = |key: Key| fs::read(store.join(key.to_string())).unwrap();
    let closed = |generation| store.join(Key::Closed(generation).to_string());
    let spoil: [(&str, &dyn Fn()); 6] = [
        ("a seal is missing", &|| place.delete([seal])),
        ("chunks are missing", &|| {
            let of_first = |key: &&Key| key.generation() == 1 && key != &&first;
            place.delete(keys.iter().filter(of_first).copied());
        }),
        ("a marker is a seal", &|| fs::write(closed(1), bytes_of(seal)).unwrap()),
        ("a marker is cut short", &|| fs::write(closed(0), b"VELLUMSH").unwrap()),
        ("a marker is empty", &|| fs::write(closed(2), b"").unwrap()),
        ("the object `log` is missing", &|| fs::remove_file(store.join("log")).unwrap()),
    ];
    for (what, spoil) in spoil {
        place.copy("store", "good");
        spoil();
        let before = place.keys();
        age(&place, 0);
        // Shipping itself continues, but without the object `log`.
        let shipped = place.ship(&["--retain", "0s"]);
        let said = text(&shipped);
        assert!(said.contains("stay for now") || !shipped.status.success(), "{what}: {said}");
        let trimmed = place.command("trim", &["--retain", "0s"]).arg(place.url()).output().unwrap();
        assert!(!trimmed.status.success(), "{what}");
        let after = place.keys();
        assert!(before.is_subset(&after), "{what}: {:?}", before.difference(&after));
        fs::remove_dir_all(&store).unwrap();
        fs::rename(place.path("good"), &store).unwrap();
    }
    age(&place, 0);
    good(&place.ship(&["--retain", "0s"]));
    assert!(place.keys().len() < keys.len(), "and it is deleted where all is well");
    place.verify();
}

/// The shipper ended in the middle of a record that is longer than a chunk, and its file is lost.
#[test]
fn a_generation_that_begins_amid_a_record_keeps_the_one_before() {
    let place = Place::new();
    let log = Options::default().open(place.path("log")).unwrap();
    log.append(b"before").unwrap();
    let long: Vec<u8> = (0..20_u32 << 20).map(|index| ((index * 7) >> 3) as u8).collect();
    log.append(&long).unwrap();
    log.sync().unwrap();
    good(&place.ship(&[]));
    let keys = place.keys();
    let links: Vec<Key> = keys.iter().filter(is_link).copied().collect();
    assert!(links.len() >= 3, "{links:?}");
    place.delete(links[2..].iter().copied());
    fs::remove_file(place.path("log/ship")).unwrap();
    good(&place.ship(&["--take-over"]));
    log.append(b"after").unwrap();
    log.sync().unwrap();
    good(&place.ship(&[]));
    let trim = || {
        good(&place.command("trim", &["--retain", "0s"]).arg(place.url()).output().unwrap());
        place.restored("copy")
    };
    assert!(trim() == records_of(&log), "nothing can go before the long record is whole");
    age(&place, 86_400);
    good(&place.ship(&[]));
    log.append(b"next").unwrap();
    log.sync().unwrap();
    good(&place.ship(&[]));
    assert_eq!(generations(&place), 3);
    assert_eq!(trim(), [b"next"], "both go with the next one");
}

/// Until so many objects have come or gone; or nothing more happens.
fn wait_for_changes(place: &Place, before: &BTreeSet<Key>, changes: usize) {
    let differ = || place.keys().symmetric_difference(before).count() >= changes;
    (0..300).find(|_| differ());
}

#[test]
fn a_shipper_that_is_killed_while_it_merges_rotates_and_deletes_leaves_a_log() {
    let kills = std::env::var("VELLUM_SHIP_KILLS").ok().and_then(|text| text.parse().ok());
    for layout in [Layout::Framed, Layout::Text] {
        let place = Place::new();
        let log = small(&place, layout);
        let mut done = 0;
        for kill in 0..kills.unwrap_or(12) {
            let before = place.keys();
            let running = place.run(&["--retain", "3000B"]);
            match kill % 3 {
                // A generation begins, and others are deleted.
                2 => wait_for_changes(&place, &before, kill / 3 * 5 % 23 + 1),
                _ => {
                    let more = kill * 7 % 40 + 1;
                    commit(&log, done..done + more);
                    done += more;
                }
            }
            drop(running);
            let all = records_of(&log);
            let kept = place.restored("copy");
            assert!(!kept.is_empty() && kept == all[all.len() - kept.len()..], "kill {kill}");
            if kill % 3 == 1 {
                age(&place, 86_400);
                let _ = log.rotate();
            }
        }
        assert!(generations(&place) > 2, "{layout:?}");
        assert!(place.restored("copy").len() < done, "{layout:?}: old ones were deleted");
        place.verify();
    }
}

/// A reader during the deletion of a generation begins with the old begin, or with the next
/// generation.
#[tokio::test]
async fn a_generation_that_is_deleted_goes_out_of_sight_at_once() {
    let place = Place::new();
    let log = small(&place, Layout::Framed);
    days(&place, &log, 1, &[]);
    let running = place.run(&[]);
    commit(&log, 100..260);
    drop(running);
    age(&place, 86_400);
    good(&place.ship(&[]));
    append(&log, 300);
    log.sync().unwrap();
    good(&place.ship(&[]));
    assert!(place.merged().len() > 4);
    let open = || Remote::open(store::open(&place.url()).unwrap());
    let whole = open().await.unwrap().plan().await.unwrap();
    age(&place, 0);
    good(&place.ship(&["--retain", "1GiB"]));
    let marker = fs::read(place.path("store").join(Key::Closed(1).to_string())).unwrap();
    let marker = Header::decode(&marker).unwrap();
    let end = Point { lsn: marker.start, chain: marker.before };
    let keys: Vec<Key> = place.keys().into_iter().collect();
    let mut begins = vec![whole.begin];
    for key in deletable(1, end, &keys, Keep::Nothing) {
        place.delete([key]);
        begins.push(open().await.unwrap().plan().await.unwrap().begin);
    }
    assert!(begins.len() > 5, "{begins:?}");
    begins.dedup();
    assert_eq!(begins, [whole.begin, whole.seals[1].fork]);
}
