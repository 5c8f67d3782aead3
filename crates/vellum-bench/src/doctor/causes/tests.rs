//! Each cause is seen in a series that was made for it, and none in a sound one.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::made::{shaped, slow, sound, throttled};
use super::*;
use crate::doctor::machine::{OtherIo, Processors};
use crate::doctor::probe::Probe;
use crate::doctor::program::Program;
use crate::doctor::series::{Failure, Series, Tick};

static ETCD: LazyLock<Program> = LazyLock::new(|| Program::named("etcd").unwrap());

/// What is found for etcd in `series`, with `change` of what else is known.
fn found_with<'a>(series: &'a Series, change: impl Fn(&mut Evidence<'a>)) -> Vec<Cause> {
    let mut evidence = Evidence {
        program: &ETCD,
        series,
        paced: None,
        processors: Processors::default(),
        others: &[],
        probe: Some(Probe { write_us: 300.0, flush_us: 500.0, sector_us: Some(310.0) }),
    };
    change(&mut evidence);
    causes(&evidence, &[]).into_iter().map(|finding| finding.cause).collect()
}

fn found(series: &Series) -> Vec<Cause> {
    found_with(series, |_| {})
}

proptest! {
    #[test]
    fn a_sound_disk_with_noise_has_no_cause(seed in any::<u64>(), stalls in 0..2_usize) {
        let mut series = sound(seed);
        // One write that was late once is no fault.
        for tick in series.ticks.iter_mut().skip(seed as usize % 50).take(stalls) {
            tick.max_us = 150_000.0;
        }
        let others = [OtherIo { operations: 20.0, bytes: 1e5 }; 9];
        let paced = sound(seed.wrapping_add(1));
        prop_assert_eq!(
            found_with(&series, |evidence| {
                evidence.others = &others;
                evidence.paced = Some(&paced);
            }),
            []
        );
    }

    #[test]
    fn each_fault_is_seen_whatever_the_noise(seed in any::<u64>()) {
        let budget = shaped(seed, |index, tick| {
            if index >= 20 {
                slow(tick, 8.0);
            }
        });
        prop_assert_eq!(found(&budget), [Cause::BudgetEnds]);
        let stalling = shaped(seed, |index, tick| {
            if index % 7 == 3 {
                tick.max_us = 400_000.0;
            }
        });
        prop_assert_eq!(found(&stalling), [Cause::Stalls]);
        let shared = shaped(seed, |index, tick| {
            if index % 12 > 7 {
                slow(tick, 5.0);
            }
        });
        prop_assert_eq!(found(&shared), [Cause::Neighbour]);
        let jittery = shaped(seed, |_, tick| {
            slow(tick, 6.0);
            (tick.p10_us, tick.p90_us) = (tick.p10_us / 3.0, tick.p90_us * 2.0);
            tick.p99_us *= 5.0;
        });
        prop_assert_eq!(found(&jittery), [Cause::Jitter]);
        let paced = sound(seed);
        let held = throttled(seed);
        let held = found_with(&held, |evidence| evidence.paced = Some(&paced));
        prop_assert_eq!(held, [Cause::Throttle]);
    }
}

#[test]
fn writes_that_find_the_disk_free_or_busy_have_a_neighbour() {
    let shared = shaped(1, |_, tick| {
        (tick.p10_us, tick.p90_us, tick.p99_us) = (100.0, 6000.0, 9000.0);
    });
    assert_eq!(found(&shared), [Cause::Neighbour]);
    let irregular = shaped(1, |_, tick| {
        (tick.p10_us, tick.p90_us, tick.p99_us) = (600.0, 6000.0, 40_000.0);
    });
    assert_eq!(found(&irregular), [Cause::Jitter]);
}

#[test]
fn a_neighbour_is_seen_by_the_time_that_writes_wait_and_not_by_their_number() {
    // Nine writes go into each gap that the neighbour leaves, and the tenth waits.
    let with_mean = |mean_us| {
        shaped(1, |_, tick| {
            (tick.p10_us, tick.p50_us, tick.p90_us) = (90.0, 100.0, 150.0);
            (tick.p99_us, tick.mean_us) = (2700.0, mean_us);
        })
    };
    assert_eq!(found(&with_mean(330.0)), [Cause::Neighbour]);
    assert_eq!(found(&with_mean(140.0)), [], "a few late ones");
    let waiting = with_mean(330.0);
    let seen = found_with(&waiting, |evidence| evidence.processors.waiting = 0.4);
    assert_eq!(seen, [Cause::BusyMachine]);
}

#[test]
fn waiting_for_a_processor_is_neither_jitter_nor_a_budget() {
    let waiting = shaped(1, |_, tick| {
        (tick.p10_us, tick.p90_us, tick.p99_us) = (140.0, 4000.0, 8000.0);
    });
    let seen = |series| found_with(series, |evidence| evidence.processors.waiting = 0.4);
    assert_eq!(seen(&waiting), [Cause::BusyMachine]);
    // Whoever answers for the disk waits for a whole slice of time.
    let starved = shaped(1, |_, tick| {
        (tick.p10_us, tick.p90_us, tick.p99_us) = (140.0, 14_000.0, 28_000.0);
    });
    assert_eq!(seen(&starved), [Cause::BusyMachine]);
    // Others came in the middle.
    let joined = shaped(1, |index, tick| slow(tick, if index < 20 { 1.0 } else { 5.0 }));
    assert_eq!(seen(&joined), [Cause::BusyMachine]);
}

#[test]
fn where_processors_are_scarce_only_stalls_by_the_clock_are_believed() {
    let stalled = |every: fn(usize) -> bool| {
        let series = shaped(1, |index, tick| {
            if every(index) {
                tick.max_us = 400_000.0;
            }
        });
        found_with(&series, |evidence| evidence.processors.others = 0.9)
    };
    assert_eq!(stalled(|index| index % 7 == 3), [Cause::Stalls, Cause::BusyMachine]);
    assert_eq!(stalled(|index| matches!(index, 3 | 4 | 30)), [Cause::BusyMachine]);
}

#[test]
fn a_budget_that_ends_before_anything_is_counted_is_seen() {
    let mut series = shaped(1, |_, tick| slow(tick, 8.0));
    let early = sound(2).ticks.into_iter().take(5);
    series.early = early.map(|tick| Tick { at_ms: tick.at_ms / 10.0 - 500.0, ..tick }).collect();
    assert_eq!(found(&series), [Cause::BudgetEnds]);
}

#[test]
fn a_slow_flush_is_no_throttle() {
    let series = throttled(1);
    let paced = throttled(2);
    let slow = Probe { write_us: 300.0, flush_us: 9500.0, sector_us: None };
    let seen = found_with(&series, |evidence| {
        evidence.paced = Some(&paced);
        evidence.probe = Some(slow);
    });
    assert_eq!(seen, [Cause::SlowFlush]);
    let slow = Probe { write_us: 9000.0, flush_us: 500.0, sector_us: None };
    let seen = found_with(&series, |evidence| evidence.probe = Some(slow));
    assert_eq!(seen, [Cause::SlowDevice]);
    let fast = sound(1);
    assert_eq!(found_with(&fast, |evidence| evidence.probe = Some(slow)), [], "it was not slow");
    let told = |series: &Series| found_with(series, |evidence| evidence.probe = None);
    assert_eq!(told(&series), [Cause::SlowFlush], "where direct writes do not work");
}

#[test]
fn short_writes_that_take_longer_are_those_of_emulated_sectors() {
    let probe = Probe { write_us: 300.0, flush_us: 500.0, sector_us: Some(800.0) };
    let seen = found_with(&sound(1), |evidence| evidence.probe = Some(probe));
    assert_eq!(seen, [Cause::EmulatedSectors]);
    let slow = Probe { write_us: 100.0, flush_us: 25_000.0, sector_us: Some(2000.0) };
    let seen = found_with(&sound(1), |evidence| evidence.probe = Some(slow));
    assert_eq!(seen, [], "beside the flush they are no reason");
    // A call that waits for a processor takes longer, too.
    let scarce = |probe| {
        let series = sound(1);
        found_with(&series, |evidence| {
            (evidence.probe, evidence.processors.waiting) = (Some(probe), 0.4);
        })
    };
    assert_eq!(scarce(probe), [Cause::BusyMachine]);
    let slow = Probe { sector_us: Some(8000.0), ..probe };
    assert_eq!(scarce(slow), [Cause::EmulatedSectors, Cause::BusyMachine]);
}

#[test]
fn single_calls_on_a_disk_that_is_now_fast_and_now_slow_tell_of_no_sectors() {
    let probe = Probe { write_us: 300.0, flush_us: 500.0, sector_us: Some(800.0) };
    let seen = |series: &Series| found_with(series, |evidence| evidence.probe = Some(probe));
    let budget = shaped(1, |index, tick| slow(tick, if index < 20 { 1.0 } else { 8.0 }));
    assert_eq!(seen(&budget), [Cause::BudgetEnds]);
    let shared = shaped(1, |index, tick| slow(tick, if index % 12 > 7 { 5.0 } else { 1.0 }));
    assert_eq!(seen(&shared), [Cause::Neighbour]);
    let jittery = shaped(1, |_, tick| {
        slow(tick, 6.0);
        (tick.p10_us, tick.p90_us) = (tick.p10_us / 3.0, tick.p90_us * 2.0);
    });
    assert_eq!(seen(&jittery), [Cause::Jitter]);
}

#[test]
fn a_neighbour_that_is_seen_explains_what_follows() {
    let others = [OtherIo { operations: 900.0, bytes: 30e6 }; 9];
    let jittery = shaped(1, |index, tick| {
        slow(tick, if index % 12 > 7 { 20.0 } else { 5.0 });
        tick.p10_us /= 8.0;
    });
    let seen = found_with(&jittery, |evidence| evidence.others = &others);
    assert_eq!(seen, [Cause::Neighbour]);
}

#[test]
fn one_long_stall_is_told_and_one_short_one_is_not() {
    let once = |max_us| {
        found(&shaped(1, |index, tick: &mut Tick| {
            if index == 30 {
                tick.max_us = max_us;
            }
        }))
    };
    assert_eq!(once(1_500_000.0), [Cause::Stalls]);
    assert_eq!(once(500_000.0), []);
}

#[test]
fn failures_are_told_by_the_number_of_the_error() {
    let failed = |errno| {
        let mut series = sound(1);
        let failure = Failure { what: "fdatasync".into(), errno, after_operations: 7 };
        series.failures.push(failure);
        found(&series)
    };
    assert_eq!(failed(Some(libc::EIO)), [Cause::WriteErrors]);
    assert_eq!(failed(Some(libc::ENOSPC)), [Cause::NoSpace]);
    assert_eq!(failed(Some(libc::EDQUOT)), [Cause::Quota]);
    assert_eq!(failed(None), [Cause::LostWrites]);
}

#[test]
fn the_tester_looks_at_itself() {
    let used = |own, others, stolen| {
        found_with(&sound(1), |evidence| {
            evidence.processors = Processors { own, others, stolen, waiting: 0.0 };
        })
    };
    assert_eq!(used(0.95, 0.0, 0.0), [Cause::TesterBound]);
    assert_eq!(used(0.2, 0.9, 0.0), [Cause::BusyMachine]);
    assert_eq!(used(0.2, 0.1, 0.2), [Cause::Steal]);
    assert_eq!(used(0.2, 0.3, 0.01), []);
}

#[test]
fn halves_that_contradict_each_other_are_told_unless_the_reason_is_known() {
    // Slow first, and fast then: no budget, and two verdicts.
    let differing = shaped(1, |index, tick| {
        if index < 27 {
            slow(tick, 20.0);
        }
    });
    assert_eq!(found(&differing), [Cause::HalvesDiffer]);
    let budget = shaped(1, |index, tick| {
        if index >= 27 {
            slow(tick, 20.0);
        }
    });
    assert_eq!(found(&budget), [Cause::BudgetEnds]);
}

#[test]
fn a_flush_faster_than_any_device_is_not_believed() {
    let fast = shaped(1, |_, tick| slow(tick, 0.002));
    assert_eq!(found(&fast), [Cause::TooFast]);
    let memory = [Finding::new(Cause::Memory, Weight::Danger, "tmpfs is memory")];
    let evidence = Evidence {
        program: &ETCD,
        series: &fast,
        paced: None,
        processors: Processors { own: 1.0, ..Processors::default() },
        others: &[],
        probe: None,
    };
    let seen: Vec<Cause> = causes(&evidence, &memory).into_iter().map(|one| one.cause).collect();
    assert_eq!(seen, [Cause::Memory]);
}
