//! Runs on disks that are functions, with the faults of disks that were once misjudged: each has
//! the right verdict for each program, and sound disks have no fault.

use std::cell::RefCell;
use std::path::Path;

use super::simulated::{Disk, measured};
use super::*;
use crate::advise::Surroundings;
use crate::doctor::evidence::Weight;
use crate::doctor::program::Figure;
use crate::doctor::series::Failure;
use crate::doctor::sureness::Sureness;
use crate::doctor::verdict::Verdict;

const FOUR: [&str; 4] = ["etcd", "postgres", "sqlite", "vellum"];

/// Single calls on a disk whose journal is as fast as the rest.
fn calls() -> Probe {
    Probe {
        write_us: 300.0,
        flush_us: 500.0,
        overwritten_us: Some(800.0),
        overwritten_p10_us: Some(700.0),
        overwritten_p90_us: Some(1000.0),
        grown_us: Some(1600.0),
        ..Probe::default()
    }
}

/// The verdicts on `names` after a run of `seconds`, or as long as they need, with `change` of what
/// was measured.
fn judged_with(
    names: &[&str],
    seconds: Option<u64>,
    probe: Probe,
    disk: Disk<'_>,
    change: impl Fn(&mut Vec<Series>),
) -> Vec<Judged> {
    let programs: Vec<Program> = names.iter().map(|name| Program::named(name).unwrap()).collect();
    let mut series = measured(&programs, seconds, disk);
    change(&mut series);
    let seen = programs.iter().zip(&series).map(|(program, series)| Seen {
        program,
        series,
        processors: Processors::default(),
        left_out: (0, 0),
    });
    let places = Places::of(Path::new("/data"), &Surroundings::default());
    let known = Known {
        around: &[],
        probe: Some(probe),
        flat_out: None,
        others: &[],
        accepted: &[],
        places: &places,
    };
    all(&seen.collect::<Vec<Seen<'_>>>(), &known)
}

fn judged(names: &[&str], seconds: Option<u64>, disk: Disk<'_>) -> Vec<Judged> {
    judged_with(names, seconds, calls(), disk, |_| {})
}

/// A call of a sound disk of so many milliseconds.
fn noise(millis: f64, seed: u64) -> impl Fn() -> f64 {
    let rng = RefCell::new(fastrand::Rng::with_seed(seed));
    move || {
        let mut rng = rng.borrow_mut();
        let tail = if rng.u32(..500) == 0 { 3.0 } else { 1.0 };
        millis * (0.8 + 0.5 * rng.f64()) * tail
    }
}

fn faults(judged: &Judged) -> Vec<Cause> {
    let is_fault = |one: &&Finding| matches!(one.weight, Weight::Danger | Weight::Reason);
    judged.causes.iter().filter(is_fault).map(|one| one.cause).collect()
}

fn verdicts(judged: &[Judged]) -> Vec<Verdict> {
    judged.iter().map(|one| one.verdict).collect()
}

#[test]
fn a_sound_disk_is_good_for_all_and_has_no_fault() {
    for seed in 0..20 {
        for millis in [0.1, 0.8, 4.0] {
            let call = noise(millis, seed);
            for told in judged(&FOUR, None, &|_, _| call()) {
                assert_eq!((told.verdict, faults(&told)), (Verdict::Good, vec![]), "{told:?}");
                assert_eq!(told.sureness, Sureness::Sure, "{}", told.line());
            }
            let quick = judged(&["etcd"], Some(10), &|_, _| call());
            assert_eq!(verdicts(&quick), [Verdict::Good], "{}", quick[0].line());
        }
    }
}

#[test]
fn one_late_write_in_a_long_run_is_no_fault() {
    for seed in 0..20 {
        let (call, late) = (noise(0.8, seed), 20_000.0 + 3000.0 * seed as f64);
        let is_late = RefCell::new(false);
        let disk = |_: &Program, at: f64| {
            let was_late = at < late || is_late.replace(true);
            if was_late { call() } else { 150.0 }
        };
        for told in judged(&FOUR, None, &disk) {
            assert_eq!(faults(&told), [], "{told:?}");
            assert!(matches!(told.verdict, Verdict::Good), "{}", told.line());
        }
    }
}

#[test]
fn a_disk_that_stands_still_for_two_seconds_of_twenty_is_good_for_none() {
    let call = noise(0.8, 1);
    let disk = |_: &Program, at: f64| {
        let into = (at + 7000.0) % 20_000.0;
        if into < 2000.0 { 2000.0 - into + call() } else { call() }
    };
    for (names, seconds) in [(&FOUR[..], Some(45)), (&FOUR[..], None), (&["etcd"], None)] {
        let told = judged(names, seconds, &disk);
        assert_eq!(told[0].verdict, Verdict::NotGoodEnough, "{}", told[0].line());
        for one in &told {
            assert_ne!(one.verdict, Verdict::Good, "{}", one.line());
            assert_eq!(faults(one), [Cause::Stalls], "{}", one.line());
        }
        assert!(told[0].change.as_ref().unwrap().contains("--election-timeout="));
    }
}

#[test]
fn a_neighbour_that_takes_a_fifth_of_the_time_is_seen_by_all() {
    let call = noise(0.8, 1);
    // Each commit is two requests.
    let disk = |_: &Program, at: f64| if at % 10_000.0 < 2000.0 { 50.0 + call() } else { call() };
    for (names, seconds) in [(&FOUR[..], Some(45)), (&FOUR[..], None), (&["etcd"], None)] {
        for one in judged(names, seconds, &disk) {
            assert!(one.verdict > Verdict::Marginal || one.name == "sqlite", "{}", one.line());
            assert_ne!(one.verdict, Verdict::Good, "{}", one.line());
            assert_eq!(faults(&one), [Cause::Neighbour], "{}", one.line());
            let share = one.slow_share.unwrap();
            assert!((0.1..0.35).contains(&share), "{share} of {}", one.name);
        }
    }
}

#[test]
fn a_slow_journal_hurts_those_that_write_it_and_is_no_neighbour() {
    let call = noise(0.6, 1);
    let disk = |program: &Program, _: f64| match program.name.as_str() {
        "etcd" | "nats" => 30.0 + call(),
        _ => call(),
    };
    let probe = Probe { grown_us: Some(30_600.0), overwritten_us: Some(600.0), ..calls() };
    let told = judged_with(&["etcd", "nats", "postgres", "vellum"], None, probe, &disk, |_| {});
    let (bad, good) = told.split_at(2);
    for one in bad {
        assert_ne!(one.verdict, Verdict::Good, "{}", one.line());
        assert_eq!(faults(one), [Cause::SlowJournal]);
        assert!(one.reason.ends_with("because overwriting takes 0.60 ms and growing 30.60"));
    }
    for one in good {
        assert_eq!((one.verdict, faults(one)), (Verdict::Good, vec![]), "{}", one.line());
    }
}

#[test]
fn one_lost_write_is_a_danger_for_all() {
    let call = noise(0.8, 1);
    let lost = |all: &mut Vec<Series>| {
        let what = "write 17, at byte 4096, is not there".into();
        all[2].failures.push(Failure { what, errno: None, after_operations: 60 });
    };
    let told = judged_with(&FOUR, Some(45), calls(), &|_, _| call(), lost);
    for one in told {
        assert_eq!((one.verdict, one.sureness), (Verdict::NotGoodEnough, Sureness::Sure));
        assert_eq!(faults(&one), [Cause::LostWrites]);
        assert!(one.change.unwrap().starts_with("dmesg"));
    }
}

#[test]
fn a_disk_that_grows_slower_is_said_to_do_so() {
    let call = noise(1.0, 1);
    let disk = |_: &Program, at: f64| call() * (1.0 + 14.0 * at / 150_000.0);
    let told = judged(&FOUR, None, &disk);
    assert_eq!(faults(&told[0]), [Cause::SlowsDown], "{}", told[0].line());
    assert_ne!(told[0].verdict, Verdict::Good, "{}", told[0].line());
    // SQLite waits for that: it is good to know.
    let sqlite = &told[2];
    assert_eq!((sqlite.verdict, faults(sqlite)), (Verdict::Good, vec![]), "{}", sqlite.line());
    assert!(sqlite.causes.iter().any(|one| one.cause == Cause::SlowsDown));
}

#[test]
fn a_program_that_is_slow_by_its_nature_says_nothing_of_others() {
    // One at a time, SQLite gets behind on a disk that takes 60 ms for it alone.
    let call = noise(0.8, 1);
    let disk = |program: &Program, _: f64| {
        if program.name == "sqlite" { 60.0 } else { call() }
    };
    let told = judged(&FOUR, None, &disk);
    assert_eq!(verdicts(&told)[..2], [Verdict::Good, Verdict::Good]);
    assert_eq!(told[2].verdict, Verdict::NotGoodEnough);
    let longest = told[0].limits.iter().find(|one| one.limit.figure == Figure::Max).unwrap();
    assert!(longest.value_ms < 100.0, "{longest:?}");
}

#[test]
fn a_budget_that_ends_in_the_turn_of_any_program_is_told_to_all_without_a_line_of_a_cloud() {
    let call = noise(0.8, 1);
    let disk = |_: &Program, at: f64| if at > 60_000.0 { 25.0 + call() } else { call() };
    for one in judged(&FOUR, None, &disk) {
        assert_ne!(one.verdict, Verdict::Good, "{}", one.line());
        assert_eq!(faults(&one), [Cause::BudgetEnds], "{}", one.line());
        assert!(one.reason.contains("at the same pace a write took 0."), "{}", one.reason);
        let change = one.change.unwrap();
        assert!(!change.contains("aws") && !change.contains("gcloud"), "{change}");
    }
}
