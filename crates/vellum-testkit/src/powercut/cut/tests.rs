use super::*;

/// Two writes that are flushed, then two that are not, of four sectors each.
fn recording() -> Recording {
    let mut recording = Recording::new(Image::new(1 << 16));
    let write = |index: u64| Event::Write(index * 2048, vec![index as u8 + 1; 2048]);
    recording.events = vec![
        write(0),
        write(1),
        Event::Flush,
        Event::Acknowledged(1..=2),
        write(2),
        write(3),
        Event::Acknowledged(3..=3),
        Event::Dropped(1..=1),
    ];
    recording
}

/// The first byte of each of the sixteen sectors after a cut.
fn sectors(recording: &Recording, position: usize, unflushed: Unflushed, seed: u64) -> Vec<u8> {
    let mut walk = Walk::new(recording, &[]);
    walk.advance_to(position);
    let image = walk.image(&Cut { position, unflushed, seed });
    let mut bytes = [0; 16 * SECTOR_LEN];
    image.read(0, &mut bytes);
    bytes.iter().step_by(SECTOR_LEN).copied().collect()
}

#[test]
fn what_was_flushed_is_there_and_the_rest_may_be() {
    let recording = recording();
    let end = recording.events.len();
    let flushed = [1, 1, 1, 1, 2, 2, 2, 2];
    for unflushed in UNFLUSHED {
        for seed in 0..50 {
            assert_eq!(sectors(&recording, end, unflushed, seed)[..8], flushed);
        }
    }
    assert_eq!(sectors(&recording, end, Unflushed::Dropped, 0)[8..], [0; 8]);
    assert_eq!(sectors(&recording, end, Unflushed::Kept, 0)[8..], [3, 3, 3, 3, 4, 4, 4, 4]);
    assert_eq!(sectors(&recording, 2, Unflushed::Dropped, 0), [0; 16]);
}

#[test]
fn the_cache_comes_apart_in_every_way() {
    let recording = recording();
    let end = recording.events.len();
    let outcomes = |unflushed| {
        let of_seed = |seed| sectors(&recording, end, unflushed, seed)[8..].to_vec();
        (0..3000).map(of_seed).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(outcomes(Unflushed::Writes).len(), 4);
    assert!(outcomes(Unflushed::Writes).contains(&vec![0, 0, 0, 0, 4, 4, 4, 4]));
    assert!(outcomes(Unflushed::Sectors).len() > 200);
    assert_eq!(outcomes(Unflushed::Torn).len(), 8);
    assert!(outcomes(Unflushed::Torn).contains(&vec![3, 3, 3, 3, 4, 4, 0, 0]));
}

#[test]
fn a_block_that_is_undivided_is_never_torn() {
    let mut recording = Recording::new(Image::new(1 << 16));
    recording.events = vec![Event::Write(0, vec![1; 8192])];
    let mut walk = Walk::new(&recording, &[4096]);
    walk.advance_to(1);
    for seed in 0..500 {
        for unflushed in UNFLUSHED {
            let image = walk.image(&Cut { position: 1, unflushed, seed });
            let mut bytes = [0; BLOCK_LEN];
            image.read(4096, &mut bytes);
            assert!(bytes == [0; BLOCK_LEN] || bytes == [1; BLOCK_LEN]);
        }
    }
}

#[test]
fn a_part_of_a_physical_sector_that_is_interrupted_takes_the_rest_with_it() {
    let mut recording = Recording::new(Image::new(1 << 16));
    recording.events = vec![
        Event::Write(0, vec![1; 12288]),
        Event::Flush,
        Event::Write(3584, vec![2; 4096 + 1024]),
    ];
    let mut walk = Walk::new(&recording, &[]).by_physical_sectors();
    walk.advance_to(3);
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..500 {
        let cut = Cut { position: 3, unflushed: Unflushed::Torn, seed };
        let image = walk.image(&cut);
        let sectors: Vec<u8> = (0..24)
            .map(|index| {
                let mut byte = [0];
                image.read(index * 512, &mut byte);
                byte[0]
            })
            .collect();
        outcomes.insert(sectors);
    }
    let of = |runs: &[(u8, usize)]| runs.iter().flat_map(|(byte, len)| vec![*byte; *len]).collect();
    let expected: [Vec<u8>; 3] = [
        of(&[(LOST, 8), (1, 16)]),
        of(&[(1, 7), (2, 1), (1, 16)]),
        of(&[(1, 7), (2, 9), (LOST, 8)]),
    ];
    assert_eq!(outcomes, expected.into_iter().collect());
}

#[test]
fn a_failed_flush_that_loses_the_cache_takes_the_writes_with_it() {
    let mut recording = recording();
    recording.events.extend([Event::Lost, Event::Flush]);
    let end = recording.events.len();
    assert_eq!(sectors(&recording, end, Unflushed::Kept, 0)[8..], [0; 8]);
    assert_eq!(sectors(&recording, end - 2, Unflushed::Kept, 0)[8..12], [3; 4]);
}

#[test]
fn promises_are_counted_up_to_the_cut() {
    let recording = recording();
    let mut walk = Walk::new(&recording, &[]);
    walk.advance_to(6);
    assert_eq!((walk.acknowledged.to_string(), walk.dropped.is_empty()), ("1-2".to_owned(), true));
    walk.advance_to(8);
    assert_eq!(walk.acknowledged.without(&walk.dropped).to_string(), "2-3");
}

#[test]
fn exhaustive_cuts_stand_where_most_is_asked() {
    let positions: Vec<usize> =
        exhaustive_cuts(&recording()).iter().map(|cut| cut.position).collect();
    assert_eq!(positions, [2, 7, 8]);
}

#[test]
fn a_seed_decides_the_cuts() {
    let recording = recording();
    let cuts = |seed| random_cuts(&recording, 500, &mut Random::new(seed));
    assert_eq!(cuts(5), cuts(5));
    assert_ne!(cuts(5), cuts(6));
    assert!(cuts(5).is_sorted_by_key(|cut| cut.position));
    let behind = cuts(5).iter().filter(|cut| [4, 7].contains(&cut.position)).count();
    assert!((200..350).contains(&behind), "{behind}");
}
