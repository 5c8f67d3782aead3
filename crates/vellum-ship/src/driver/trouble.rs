//! What a shipper says of a store that takes no requests for a while.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// From the first line to the second. Each later pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause between two lines, while requests fail.
const MINUTE: Duration = Duration::from_secs(60);
/// As long without a failure, and the next one is a first one. Tries are up to a minute apart.
const QUIET: Duration = Duration::from_secs(300);

/// What was said last.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    since: Instant,
    /// The newest failure.
    failed: Instant,
    said: Instant,
    pause: Duration,
}

impl Trouble {
    /// What there is to say of a request that has failed and is repeated, if there is something.
    pub(super) fn line(&mut self, now: Instant, error: &impl Display) -> Option<String> {
        let current = self.current.as_mut();
        let Some(current) = current.filter(|it| now.duration_since(it.failed) < QUIET) else {
            let (since, failed, said, pause) = (now, now, now, FIRST_PAUSE);
            self.current = Some(Current { since, failed, said, pause });
            return Some(format!("{error}; it is tried again"));
        };
        current.failed = now;
        if now.duration_since(current.said) < current.pause {
            return None;
        }
        current.said = now;
        current.pause = (2 * current.pause).min(MINUTE);
        let seconds = now.duration_since(current.since).as_secs();
        Some(format!("{error}; it is tried again, for {seconds} s so far"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_told_and_then_one_a_minute_at_most() {
        let (mut trouble, start) = (Trouble::default(), Instant::now());
        let mut told = Vec::new();
        for second in 0..400 {
            let line = trouble.line(start + Duration::from_secs(second), &"503 SlowDown");
            told.extend(line.map(|line| (second, line)));
        }
        assert_eq!(told[0].1, "503 SlowDown; it is tried again");
        assert_eq!(told[2].1, "503 SlowDown; it is tried again, for 6 s so far");
        let seconds: Vec<u64> = told.into_iter().map(|(second, _)| second).collect();
        assert_eq!(seconds, [0, 2, 6, 14, 30, 62, 122, 182, 242, 302, 362]);
    }

    #[test]
    fn a_failure_after_a_quiet_time_is_a_first_one() {
        let (mut trouble, start) = (Trouble::default(), Instant::now());
        let mut at = |second| trouble.line(start + Duration::from_secs(second), &"x").is_some();
        let told = [0, 1, 3, 60, 61, 361, 362].map(&mut at);
        assert_eq!(told, [true, false, true, true, false, true, false]);
    }
}
