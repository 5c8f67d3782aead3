//! The choice is held to the measurements, whatever those are.

use proptest::prelude::*;

use super::*;

fn chosen(scores: &[&[f64]]) -> Option<usize> {
    let scores: Vec<Option<&[f64]>> = scores.iter().map(|scores| Some(*scores)).collect();
    choose(&scores).map(|choice| choice.chosen)
}

#[test]
fn a_way_that_is_faster_in_every_round_is_taken() {
    assert_eq!(chosen(&[&[1.0; 7], &[1.5, 1.4, 1.6, 1.5, 1.7, 1.3, 1.5]]), Some(1));
}

#[test]
fn one_round_of_nine_may_go_the_other_way_and_two_may_not() {
    let mut scores = [1.5; 9];
    scores[3] = 0.4;
    assert_eq!(chosen(&[&[1.0; 9], &scores]), Some(1));
    scores[6] = 0.9;
    assert_eq!(chosen(&[&[1.0; 9], &scores]), Some(0));
}

#[test]
fn the_default_stays_where_no_difference_is_seen() {
    let noise = [1.2, 0.9, 1.1, 0.8, 1.3, 1.0, 0.95];
    assert_eq!(chosen(&[&[1.0; 7], &noise]), Some(0));
    // Faster each time, but not worth a change.
    assert_eq!(chosen(&[&[1.0; 7], &[1.03; 7]]), Some(0));
    // A few rounds say nothing, however clear they look.
    assert_eq!(chosen(&[&[1.0; 4], &[3.0; 4]]), Some(0));
}

#[test]
fn of_several_that_are_as_good_the_simplest_is_taken() {
    assert_eq!(chosen(&[&[1.0; 7], &[2.0; 7], &[2.05; 7], &[1.5; 7]]), Some(1));
    assert_eq!(chosen(&[&[1.0; 7], &[1.5; 7], &[2.0; 7]]), Some(2));
}

#[test]
fn ways_without_numbers_are_passed_over() {
    let fast = [2.0; 7];
    let slow = [1.0; 7];
    let choice = choose(&[None, Some(&slow), None, Some(&fast), Some(&[])]);
    assert_eq!(choice, Some(Choice { chosen: 3, next: Some(1) }));
    assert_eq!(choose(&[None, Some(&slow)]), Some(Choice { chosen: 1, next: None }));
    assert_eq!(choose(&[None, None]), None);
}

/// Is the second slower than the first beyond noise? Said again, in other words than the code's.
fn is_clearly_slower(slow: &[f64], fast: &[f64]) -> bool {
    let rounds = slow.len();
    let wins = slow.iter().zip(fast).filter(|(slow, fast)| fast > slow).count();
    // How many rounds may go the other way: so that the chance of a coin stays below 5 %.
    let exceptions = match rounds {
        0..5 => return false,
        5..8 => 0,
        8..11 => 1,
        11..13 => 2,
        _ => unreachable!("so many rounds are not made up here"),
    };
    let middle = |values: Vec<f64>| {
        let mut values = values;
        values.sort_by(f64::total_cmp);
        let half = values.len() / 2;
        if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
    };
    let ratios = slow.iter().zip(fast).map(|(slow, fast)| fast / slow).collect();
    wins + exceptions >= rounds
        && middle(ratios) >= 1.05
        && middle(fast.to_vec()) > middle(slow.to_vec())
}

/// Scores of some ways: each has a speed of its own, and each round its noise.
fn measurements() -> impl Strategy<Value = Vec<Vec<f64>>> {
    (1..8_usize, 1..12_usize, 0.0..0.6_f64).prop_flat_map(|(ways, rounds, noise)| {
        let way = (0.5..2.0_f64, prop::collection::vec(-noise..=noise, rounds));
        prop::collection::vec(way, ways).prop_map(|ways| {
            let scores = |(speed, noise): (f64, Vec<f64>)| {
                noise.into_iter().map(|noise| speed * noise.exp()).collect()
            };
            ways.into_iter().map(scores).collect()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_that_is_clearly_faster_than_the_chosen_is_passed_over(ways in measurements()) {
        let scores: Vec<&[f64]> = ways.iter().map(Vec::as_slice).collect();
        let chosen = chosen(&scores).unwrap();
        for (place, scores) in ways.iter().enumerate() {
            prop_assert!(!is_clearly_slower(&ways[chosen], scores), "{} beats {}", place, chosen);
        }
    }

    #[test]
    fn the_default_is_left_only_for_a_reason(ways in measurements()) {
        let scores: Vec<&[f64]> = ways.iter().map(Vec::as_slice).collect();
        let is_default_beaten = ways.iter().any(|scores| is_clearly_slower(&ways[0], scores));
        prop_assert_eq!(chosen(&scores).unwrap() == 0, !is_default_beaten);
    }
}
