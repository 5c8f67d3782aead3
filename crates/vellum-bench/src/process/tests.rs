//! How a race ends.

use rustix::process::{Signal, getpid, kill_process};

use super::*;

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn every_process_runs_and_reports() {
    let race = race(5, LIMIT, &|runner| {
        let standing = runner.stand_ready()?;
        runner.finish(standing, u64::from(runner.index()) * 10)
    });
    assert_eq!(race.unwrap().acknowledged, [0, 10, 20, 30, 40]);
}

#[test]
fn exactly_one_process_is_the_last() {
    let race = race(5, LIMIT, &|runner| {
        let standing = runner.stand_ready()?;
        runner.finish(standing, u64::from(runner.is_last()))
    });
    assert_eq!(race.unwrap().acknowledged.iter().sum::<u64>(), 1);
}

#[test]
fn a_process_that_fails_before_the_start_fails_the_race() {
    let race = race(3, LIMIT, &|runner| {
        if runner.index() == 1 {
            return Err(Error::failed("no bread"));
        }
        runner.stand_ready().map(drop)
    });
    assert_eq!(race.unwrap_err().to_string(), "process 1 failed: no bread");
}

#[test]
fn a_process_that_fails_after_the_start_fails_the_race() {
    let race = race(3, LIMIT, &|runner| {
        let standing = runner.stand_ready()?;
        if runner.index() == 2 {
            return Err(Error::failed("no butter"));
        }
        runner.finish(standing, 1)
    });
    assert_eq!(race.unwrap_err().to_string(), "process 2 failed: no butter");
}

#[test]
fn a_process_that_is_killed_fails_the_race() {
    let race = race(3, LIMIT, &|runner| {
        let standing = runner.stand_ready()?;
        if runner.index() == 0 {
            let _ = kill_process(getpid(), Signal::KILL);
        }
        runner.finish(standing, 1)
    });
    assert_eq!(race.unwrap_err().to_string(), "process 0 was killed by signal 9");
}

#[test]
fn a_process_that_does_not_end_is_killed_at_the_limit() {
    let race = race(2, Duration::from_millis(1), &|runner| {
        let standing = runner.stand_ready()?;
        let never = AtomicU32::new(0);
        let _ = futex::wait(&never, futex::Flags::empty(), 0, None);
        runner.finish(standing, 1)
    });
    assert!(race.unwrap_err().to_string().contains("had not finished"));
}
