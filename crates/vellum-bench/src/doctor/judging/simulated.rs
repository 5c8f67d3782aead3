//! A run on a disk that is a function: how long does a call take that begins at a time?

use std::time::Duration;

use crate::doctor::program::{Pattern, Program};
use crate::doctor::schedule::{Schedule, shares, time_needed};
use crate::doctor::series::{Operation, Series};

/// How long a call of a program takes that begins at so many milliseconds of the run.
pub(super) type Disk<'a> = &'a dyn Fn(&Program, f64) -> f64;

/// The measurements of `programs` in a run of `seconds`, or as long as they need.
pub(super) fn measured(programs: &[Program], seconds: Option<u64>, disk: Disk<'_>) -> Vec<Series> {
    let time = seconds.map_or_else(|| time_needed(programs), Duration::from_secs);
    let schedule = Schedule::of(time, programs.len() as u32);
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let (slice, warm_up) = (millis(schedule.slice), millis(schedule.warm_up));
    let (pause, tick) = (millis(schedule.pause), millis(schedule.tick));
    let mut all = vec![Series::default(); programs.len()];
    let mut at = 0.0;
    for round in 0..=schedule.rounds {
        for ((program, series), share) in programs.iter().zip(&mut all).zip(shares(programs)) {
            let length = if round == 0 { warm_up * share } else { slice * share };
            let (operations, end) = turn(program, at, length, disk);
            match round {
                0 => series.add_early(at, tick / 10.0, &operations),
                _ => series.add(at, tick, &operations, &[]),
            }
            at += end + pause;
        }
    }
    all
}

/// A turn that begins at `at`, and how long it was.
fn turn(program: &Program, at: f64, length: f64, disk: Disk<'_>) -> (Vec<Operation>, f64) {
    let Pattern { rate, alone, .. } = program.pattern;
    let step = 1e3 / rate.unwrap();
    let all = (length / step).ceil() as u64;
    let (mut operations, mut now, mut done) = (Vec::new(), 0.0, 0);
    while done < all && now < 2.0 * length {
        let come = ((f64::min(now, length) / step).ceil() as u64).min(all);
        let due = done as f64 * step;
        if come <= done {
            now = due + 1e-6;
            continue;
        }
        let records = if alone { 1 } else { come - done };
        let call = disk(program, at + now);
        now += call;
        let nanos = |millis: f64| (millis * 1e6) as u64;
        operations.push(Operation {
            end_ns: nanos(now),
            whole_ns: nanos(now - due),
            call_ns: nanos(call),
            write_ns: 10_000,
            records: records as u32,
            step_ns: nanos(step),
        });
        done += records;
    }
    (operations, f64::max(now, length))
}
