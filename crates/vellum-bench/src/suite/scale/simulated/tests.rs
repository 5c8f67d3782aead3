//! The counts of the machine where they are known beforehand, and the purpose of the back-off.

use super::*;

const COUNTED: usize = 40_000;

fn run(cores: usize, costs: Costs, back_off: BackOff) -> Outcome {
    Machine::new(cores, costs, back_off, 1).append(COUNTED)
}

#[test]
fn one_core_alone_takes_the_time_of_its_steps_and_no_transfer() {
    for (name, costs) in KINDS {
        let alone = run(1, costs, BackOff::Learning);
        assert_eq!((alone.transfers, alone.exchanges), (0.0, 1.0), "{name}");
        // Five more for the exchange.
        let steps = (costs.reserve + costs.fill + 5) as f64;
        let mapping = costs.mapping as f64 / costs.mapped_records as f64;
        let difference = (alone.ns / (steps + mapping) - 1.0).abs();
        assert!(difference < 0.05, "{name}: {} ns", alone.ns);
    }
}

#[test]
fn the_same_seed_has_the_same_outcome() {
    let of_seed = |seed| Machine::new(8, TEXT_1, BackOff::Learning, seed).append(COUNTED);
    assert_eq!(of_seed(1), of_seed(1));
    assert_ne!(of_seed(1), of_seed(2));
}

/// A change costs the tail word twice, the proof of the winner twice, the record's line, and once
/// more for each attempt that was in vain.
#[test]
fn what_a_change_of_the_winner_costs_is_counted() {
    let two = run(2, FRAMED_128, BackOff::Learning);
    let for_each_change = two.transfers * two.in_a_row;
    assert!((4.0..8.0).contains(&for_each_change), "{for_each_change} transfers");
    let tries = (two.exchanges - 1.0) * two.in_a_row;
    assert!(tries <= 2.0, "{tries} exchanges in vain for each change");
}

#[test]
fn two_cores_take_no_longer_for_a_record_than_one() {
    for (name, costs) in KINDS {
        let [one, two] = [1, 2].map(|cores| run(cores, costs, BackOff::Learning).ns);
        assert!(two < one * 1.15, "{name}: {two} ns, and {one} on one core");
    }
}

/// The formula: no transfer takes longer than alone, and some pass while others append.
#[test]
fn an_append_takes_no_longer_than_on_one_core_and_its_transfers() {
    for (name, costs) in KINDS {
        let alone = run(1, costs, BackOff::Learning).ns;
        for cores in [2, 8, 64] {
            let many = run(cores, costs, BackOff::Learning);
            let most = alone + many.transfers * costs.transfer as f64;
            assert!(many.ns < most * 1.1, "{name}, {cores} cores: {} ns of {most}", many.ns);
        }
    }
}

/// Goal: 75 ns on 64 cores of one processor.
#[test]
fn many_cores_take_turns_that_are_worth_their_transfers() {
    for (name, costs) in KINDS.into_iter().filter(|(_, costs)| costs.transfer <= FAR) {
        for cores in [4, 16, 64] {
            let many = run(cores, costs, BackOff::Learning);
            assert!(many.ns <= 75.0, "{name}: {} ns on {cores} cores", many.ns);
            assert!(many.transfers < 0.75 && many.exchanges < 1.07, "{name}, {cores}: {many:?}");
        }
    }
    let further = |back_off| run(64, KINDS[3].1, back_off).ns;
    assert!(further(BackOff::Learning) < further(BackOff::Fixed) / 2.0);
}

/// Goal: no core waits for much longer than the others. A core that only looks after a pause hardly
/// ever wins against one that appends short records.
#[test]
fn everybody_has_a_turn() {
    for (name, costs) in KINDS {
        for cores in [2, 16, 64] {
            let many = run(cores, costs, BackOff::Learning);
            assert!(many.longest < 1_500_000, "{name}, {cores} cores: {many:?}");
            assert!(many.least_share > 0.0, "{name}, {cores} cores: {many:?}");
        }
    }
    let fixed = run(16, TEXT_1, BackOff::Fixed);
    assert!(fixed.least_share < 0.01, "{fixed:?}");
}
