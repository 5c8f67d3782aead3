//! The tests see differences that are there, and seldom others.

use super::*;

/// So many rounds around `middle`, with a heavy tail upwards, as times have.
fn rounds(random: &mut Rng, count: usize, middle: f64, spread: f64) -> Vec<f64> {
    let mut sample = || {
        let unit = random.f64();
        middle * (1.0 + spread * (unit + unit.powi(20) * 5.0))
    };
    (0..count).map(|_| sample()).collect()
}

fn figures(seed: u64, count: usize, per_side: usize, factor: f64) -> Vec<Figure> {
    let mut random = Rng::with_seed(seed);
    let figure = |index: usize| Figure {
        run: 0,
        before: rounds(&mut random, per_side, 100.0, 0.04),
        after: rounds(&mut random, per_side, if index == 0 { 100.0 * factor } else { 100.0 }, 0.04),
    };
    (0..count).map(figure).collect()
}

#[test]
fn the_distribution_of_u_is_the_known_one() {
    let distribution = distribution(4, 4);
    assert_eq!(distribution.len(), 17);
    assert!((distribution.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    for (u, ways) in [1.0, 1.0, 2.0, 3.0, 5.0].into_iter().enumerate() {
        assert!((distribution[u] * 70.0 - ways).abs() < 1e-9, "{u}");
    }
    // From the published tables, two-sided, 5 %.
    let table = [(3, 3, None), (3, 5, Some(0)), (4, 4, Some(0)), (5, 5, Some(2)), (7, 7, Some(8))];
    for (before, after, expected) in table {
        assert_eq!(left_out(before, after), expected, "{before} {after}");
        assert_eq!(left_out(after, before), expected, "{after} {before}");
    }
    assert_eq!(left_out(20, 20), Some(127));
    let exact = left_out(50, 50).unwrap() as i64;
    assert!((left_out(51, 50).unwrap() as i64 - exact).abs() < 50, "the normal one is as good");
}

#[test]
fn the_interval_holds_the_true_factor_as_often_as_promised() {
    for per_side in [4, 5, 7] {
        let trials = 2000;
        let missed = (0..trials).filter(|trial| {
            let figures = figures(*trial, 1, per_side, 1.2);
            let [low, high] = interval(&figures[0].before, &figures[0].after).unwrap();
            low > 1.2 || high < 1.2
        });
        let missed = missed.count() as f64 / trials as f64;
        assert!(missed < 0.06, "{per_side}: {missed}");
    }
    assert_eq!(interval(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]), None);
}

#[test]
fn of_many_figures_that_did_not_change_hardly_ever_one_is_taken_for_changed() {
    let trials = 100;
    let alarms = (0..trials).filter(|trial| {
        let chances = chances(&figures(1000 + trial, 12, 5, 1.0));
        chances.iter().any(|chance| *chance <= ALPHA)
    });
    let alarms = alarms.count();
    // 5 are expected; 12 or more would come up once in 250 times.
    assert!(alarms < 12, "{alarms}");
}

#[test]
fn a_change_of_a_fifth_is_found_among_many_figures() {
    let trials = 20;
    let found = (0..trials).filter(|trial| {
        let figures = figures(2000 + trial, 40, 7, 1.2);
        let [low, _] = interval(&figures[0].before, &figures[0].after).unwrap();
        chances(&figures)[0] <= ALPHA && low > 1.0
    });
    let found = found.count();
    assert!(found >= 18, "{found}");
}

#[test]
fn what_is_the_same_twice_is_no_difference() {
    let mut figures = figures(7, 3, 5, 1.0);
    for figure in &mut figures {
        figure.after.clone_from(&figure.before);
    }
    figures.push(Figure { run: 1, before: vec![1.0; 5], after: vec![1.0; 5] });
    assert!(chances(&figures).iter().all(|chance| *chance == 1.0));
}
