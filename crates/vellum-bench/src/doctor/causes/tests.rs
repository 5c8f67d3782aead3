//! Each cause is seen in a series that was made for it, and none in a sound one.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::made::{shaped, slow, sound, throttled};
use super::*;
use crate::doctor::evidence::FlatOut;
use crate::doctor::machine::{OtherIo, Processors};
use crate::doctor::program::Program;
use crate::doctor::series::{Failure, Series, Tick};
use crate::doctor::trials::Probe;

static ETCD: LazyLock<Program> = LazyLock::new(|| Program::named("etcd").unwrap());

/// A run as fast as it goes, and one at half of that pace.
fn flat_out(fastest: Series, halved: Series) -> FlatOut {
    FlatOut { fastest, halved: Some(halved) }
}

fn single(write_us: f64, flush_us: f64, sector_us: Option<f64>) -> Probe {
    Probe { write_us, flush_us, sector_us, ..Probe::default() }
}

/// What is found for etcd in `series`, with `change` of what else is known.
fn found_with<'a>(series: &'a Series, change: impl Fn(&mut Evidence<'a>)) -> Vec<Cause> {
    let mut evidence = Evidence {
        program: &ETCD,
        series,
        disk: series,
        flat_out: None,
        processors: Processors::default(),
        left_out: (0, 0),
        others: &[],
        probe: Some(single(300.0, 500.0, Some(310.0))),
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
        for tick in series.calls.iter_mut().skip(seed as usize % 50).take(stalls) {
            tick.max_us = 150_000.0;
        }
        let others = [OtherIo { operations: 20.0, bytes: 1e5 }; 9];
        let free = flat_out(sound(seed), sound(seed.wrapping_add(1)));
        prop_assert_eq!(
            found_with(&series, |evidence| {
                evidence.others = &others;
                evidence.flat_out = Some(&free);
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
        let (held, limit) = (throttled(seed), flat_out(throttled(seed), sound(seed)));
        let held = found_with(&held, |evidence| evidence.flat_out = Some(&limit));
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
fn where_processors_are_scarce_only_stalls_by_the_clock_or_of_one_length_are_believed() {
    let stalled = |length_ms: fn(usize) -> Option<f64>| {
        let series = shaped(1, |index, tick| {
            if let Some(millis) = length_ms(index) {
                tick.max_us = millis * 1e3;
            }
        });
        found_with(&series, |evidence| evidence.processors.others = 0.9)
    };
    let by_the_clock = stalled(|index| (index % 7 == 3).then_some(600.0));
    assert_eq!(by_the_clock, [Cause::Stalls, Cause::BusyMachine]);
    let irregular = stalled(|index| matches!(index, 3 | 4 | 30).then_some(400.0));
    assert_eq!(irregular, [Cause::BusyMachine]);
    // Twice the same pause, with a late write or two; and pauses of any length.
    let pauses = stalled(|index| match index {
        10 | 30 => Some(2000.0),
        20 => Some(150.0),
        _ => None,
    });
    assert_eq!(pauses, [Cause::Stalls, Cause::BusyMachine]);
    let starved = stalled(|index| (index % 5 == 1).then_some(110.0 * (1 + index % 12) as f64));
    assert_eq!(starved, [Cause::BusyMachine]);
}

#[test]
fn a_budget_that_ends_before_anything_is_counted_is_seen() {
    let mut series = shaped(1, |_, tick| slow(tick, 8.0));
    let early = sound(2).calls.into_iter().take(5);
    series.early = early.map(|tick| Tick { at_ms: tick.at_ms / 10.0 - 500.0, ..tick }).collect();
    assert_eq!(found(&series), [Cause::BudgetEnds]);
}

#[test]
fn a_slow_flush_is_no_throttle() {
    let series = throttled(1);
    let flush = flat_out(throttled(2), throttled(3));
    let slow = single(300.0, 9500.0, None);
    let seen = found_with(&series, |evidence| {
        evidence.flat_out = Some(&flush);
        evidence.probe = Some(slow);
    });
    assert_eq!(seen, [Cause::SlowFlush]);
    let slow = single(9000.0, 500.0, None);
    let seen = found_with(&series, |evidence| evidence.probe = Some(slow));
    assert_eq!(seen, [Cause::SlowDevice]);
    let fast = sound(1);
    assert_eq!(found_with(&fast, |evidence| evidence.probe = Some(slow)), [], "it was not slow");
    let told = |series: &Series| found_with(series, |evidence| evidence.probe = None);
    assert_eq!(told(&series), [Cause::SlowFlush], "where direct writes do not work");
}

#[test]
fn short_writes_that_take_longer_are_those_of_emulated_sectors() {
    let probe = single(300.0, 500.0, Some(800.0));
    let seen = found_with(&sound(1), |evidence| evidence.probe = Some(probe));
    assert_eq!(seen, [Cause::EmulatedSectors]);
    let slow = single(100.0, 25_000.0, Some(2000.0));
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
    let probe = single(300.0, 500.0, Some(800.0));
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
fn an_experiment_that_fails_tells_of_the_disk_or_of_nothing() {
    let found = |errno| {
        let finding = super::failed_beside(&std::io::Error::from_raw_os_error(errno));
        finding.map(|finding| (finding.cause, finding.weight))
    };
    let errors = Some((Cause::WriteErrors, Weight::Danger));
    assert_eq!([libc::EIO, libc::EROFS].map(found), [errors, errors]);
    // A filesystem may refuse a direct write, and a full one has room for the program.
    assert_eq!([libc::EINVAL, libc::ENOSPC].map(found), [None, None]);
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
        disk: &fast,
        flat_out: None,
        processors: Processors { own: 1.0, ..Processors::default() },
        left_out: (0, 0),
        others: &[],
        probe: None,
    };
    let seen: Vec<Cause> = causes(&evidence, &memory).into_iter().map(|one| one.cause).collect();
    assert_eq!(seen, [Cause::Memory]);
}

#[test]
fn the_experiment_that_decided_is_told_with_both_figures() {
    let told = |name: &str, change: fn(&mut Probe)| {
        let mut probe = single(300.0, 500.0, Some(310.0));
        (probe.overwritten_us, probe.grown_us) = (Some(800.0), Some(1700.0));
        (probe.first_us, probe.again_us) = (Some(400.0), Some(300.0));
        (probe.rested_us, probe.woken_us) = (Some(600.0), Some(300.0));
        change(&mut probe);
        let (program, series) = (Program::named(name).unwrap(), sound(1));
        let evidence = Evidence {
            program: &program,
            series: &series,
            disk: &series,
            flat_out: None,
            processors: Processors::default(),
            left_out: (0, 0),
            others: &[],
            probe: Some(probe),
        };
        causes(&evidence, &[])
    };
    assert_eq!(told("etcd", |_| {}), []);
    let journal = |probe: &mut Probe| probe.grown_us = Some(30_000.0);
    let [grows, overwrites] = ["etcd", "postgres"].map(|name| told(name, journal).remove(0));
    assert_eq!((grows.cause, grows.weight), (Cause::SlowJournal, Weight::Reason));
    assert!(grows.what.ends_with("because overwriting takes 0.80 ms and growing 30.00"));
    assert_eq!(overwrites.weight, Weight::Note, "it does not write the journal");
    let first = told("nats", |probe| probe.first_us = Some(9000.0)).remove(0);
    assert_eq!((first.cause, first.weight), (Cause::FirstWrites, Weight::Reason));
    assert!(first.what.contains("takes 9.00 ms and the second 0.30"), "{}", first.what);
    let sleeping = told("etcd", |probe| probe.rested_us = Some(70_000.0)).remove(0);
    assert_eq!((sleeping.cause, sleeping.weight), (Cause::Sleeps, Weight::Note));
    assert!(sleeping.what.ends_with("takes 70.00 ms and the next one 0.30"), "{}", sleeping.what);
    let large = told("etcd", |probe| {
        (probe.write_us, probe.sector_us, probe.large_us) = (8000.0, None, Some(900.0));
    });
    assert!(
        large[0].what.starts_with("a direct write of 4096 bytes takes 8.00 ms and one of 65536")
    );
}

#[test]
fn a_slow_journal_is_no_neighbour() {
    let shared = shaped(1, |_, tick| {
        (tick.p10_us, tick.p90_us, tick.p99_us) = (600.0, 15_000.0, 16_000.0);
    });
    let seen = |p90_us| {
        found_with(&shared, |evidence| {
            let mut probe = single(300.0, 500.0, None);
            (probe.overwritten_us, probe.grown_us) = (Some(600.0), Some(30_000.0));
            (probe.overwritten_p10_us, probe.overwritten_p90_us) = (Some(500.0), Some(p90_us));
            evidence.probe = Some(probe);
        })
    };
    assert_eq!(seen(700.0), [Cause::SlowJournal]);
    assert_eq!(seen(15_000.0), [Cause::Neighbour], "what is overwritten waits, too");
}
