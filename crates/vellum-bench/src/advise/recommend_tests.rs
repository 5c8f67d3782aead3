//! Recommendations are held to the measurements, whatever those are.

use proptest::prelude::*;
use vellum::Preallocate;

use super::*;
use crate::Error;

const WAYS: [Way; 4] = [
    Way::Log(LogWay { is_default: true, ..LogWay::new(Fill::Staged, Preallocate::Auto) }),
    Way::Log(LogWay::new(Fill::Pwrite, Preallocate::Off)),
    Way::Log(LogWay::new(Fill::Pwrite, Preallocate::Zeros)),
    Way::Log(LogWay::new(Fill::Mapped, Preallocate::Fallocate)),
];

/// `figures` are the rounds of each figure.
fn entrant(way: Way, figures: Vec<Vec<f64>>) -> Entrant {
    let mut entrant = Entrant::new("", way, Ok(()));
    for round in 0..figures[0].len() {
        let sample = figures.iter().map(|figure| figure[round]).collect();
        entrant.take(Ok(sample), 1);
    }
    entrant
}

fn without_numbers(way: Way, reason: &str) -> Entrant {
    Entrant::new("", way, Err(Error::unsupported(reason)))
}

fn steady(speeds: [[f64; 2]; 4]) -> Vec<Entrant> {
    let entrants = WAYS.into_iter().zip(speeds);
    entrants
        .map(|(way, [one, several])| entrant(way, vec![vec![one; 9], vec![several; 9]]))
        .collect()
}

#[test]
fn a_way_that_is_faster_in_all_is_recommended_with_its_ratios() {
    let measured = steady([[10.0, 20.0], [5.0, 10.0], [20.0, 40.0], [1.0, 1.0]]);
    let it = recommend(Purpose::Wal, &measured);
    assert_eq!(it.way.as_deref(), Some("pwrite, zeros"));
    assert!(it.is_change());
    assert_eq!(it.against_default.as_ref().unwrap().ratio.median, 2.0);
    assert_eq!(it.next_best.as_ref().unwrap().way, "default (staged, auto)");
    assert!(it.reason.starts_with("2.00 × as fast as the default (2.00 … 2.00)"), "{}", it.reason);
    let threads = it.settings.iter().find(|setting| setting.name == "threads").unwrap();
    assert!(threads.value.contains("2.0 × as much"), "{threads:?}");
}

#[test]
fn figures_count_alike() {
    // Twice as fast in one and half as fast in the other: no difference.
    let measured = steady([[10.0, 10.0], [20.0, 5.0], [5.0, 20.0], [9.0, 9.0]]);
    let it = recommend(Purpose::Wal, &measured);
    assert!(it.is_default && it.sureness == Sureness::NoDifference, "{it:?}");
    assert_eq!(
        it.reason,
        "no difference seen: pwrite, zeros was as fast or faster in 9 of 9 rounds"
    );
}

#[test]
fn a_default_that_is_the_fastest_is_clear() {
    let it = recommend(Purpose::Wal, &steady([[9.0, 9.0], [5.0, 5.0], [5.0, 5.0], [5.0, 5.0]]));
    assert!(it.is_default && it.sureness == Sureness::Clear && !it.is_change(), "{it:?}");
    assert!(it.reason.starts_with("1.80 × as fast as"), "{}", it.reason);
}

#[test]
fn a_default_that_does_not_work_is_told_with_the_reason() {
    let mut measured = steady([[9.0, 9.0], [5.0, 5.0], [5.0, 5.0], [5.0, 5.0]]);
    measured[0] = without_numbers(WAYS[0], "no shared memory");
    let it = recommend(Purpose::Wal, &measured);
    assert_eq!(it.way.as_deref(), Some("pwrite, off"));
    assert!(it.is_change() && it.reason.contains("no shared memory"), "{it:?}");
}

#[test]
fn nothing_measured_is_nothing_recommended() {
    let measured = WAYS.map(|way| without_numbers(way, "read-only"));
    let it = recommend(Purpose::Wal, &measured);
    assert!(it.way.is_none() && !it.is_change(), "{it:?}");
    assert!(it.reason.contains("read-only"), "{}", it.reason);
    assert_eq!(recommend(Purpose::Wal, &[]).sureness, Sureness::NotMeasured);
}

#[test]
fn a_way_that_failed_in_the_middle_has_no_say() {
    let mut measured = steady([[1.0, 1.0], [5.0, 5.0], [9.0, 9.0], [5.0, 5.0]]);
    measured[2].take(Err(Error::failed("lost a record")), 9);
    let it = recommend(Purpose::Wal, &measured);
    assert_eq!(it.way.as_deref(), Some("pwrite, off"));
}

/// Measurements of the ways in two figures: some without numbers, each with its noise.
fn measurements() -> impl Strategy<Value = Vec<Entrant>> {
    (5..12_usize, 0.0..0.5_f64).prop_flat_map(|(rounds, noise)| {
        let figure = (100.0..10_000.0_f64, prop::collection::vec(-noise..=noise, rounds))
            .prop_map(|(speed, noise)| noise.into_iter().map(|x| speed * x.exp()).collect());
        let way = prop::option::weighted(0.9, prop::collection::vec(figure, 2));
        prop::collection::vec(way, WAYS.len()).prop_map(|ways| {
            let ways = WAYS.into_iter().zip(ways);
            ways.map(|(way, figures)| match figures {
                Some(figures) => entrant(way, figures),
                None => without_numbers(way, "not here"),
            })
            .collect()
        })
    })
}

/// How often, and how many times as fast in the middle, `fast` was faster than `slow`: from the
/// figures themselves.
fn advantage(fast: &Entrant, slow: &Entrant) -> (usize, usize, f64) {
    let rounds = fast.samples().len();
    let mut ratios: Vec<f64> = (0..rounds)
        .map(|round| {
            let gain =
                |figure: usize| fast.samples()[round][figure] / slow.samples()[round][figure];
            (gain(0) * gain(1)).sqrt()
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let wins = ratios.iter().filter(|ratio| **ratio > 1.0).count();
    (wins, rounds, f64::midpoint(ratios[(rounds - 1) / 2], ratios[rounds / 2]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_recommended_is_not_slower_than_another_in_every_round(measured in measurements()) {
        let it = recommend(Purpose::Wal, &measured);
        let Some(way) = &it.way else {
            prop_assert!(measured.iter().all(|entrant| !entrant.is_good()));
            return Ok(());
        };
        let chosen = measured.iter().find(|entrant| entrant.way.to_string() == *way).unwrap();
        prop_assert!(chosen.is_good());
        for other in measured.iter().filter(|other| other.is_good()) {
            let (wins, rounds, ratio) = advantage(other, chosen);
            prop_assert!(wins < rounds || ratio < 1.05, "{} beats {}", other.way, chosen.way);
        }
    }

    #[test]
    fn a_change_is_only_made_for_a_clear_gain(measured in measurements()) {
        let it = recommend(Purpose::Wal, &measured);
        if it.is_change() && measured[0].is_good() {
            let chosen = measured.iter().find(|one| Some(one.way.to_string()) == it.way).unwrap();
            let (wins, rounds, ratio) = advantage(chosen, &measured[0]);
            prop_assert!(ratio >= 1.05 && wins * 10 >= rounds * 8, "{wins} of {rounds}, {ratio}");
        }
    }
}
