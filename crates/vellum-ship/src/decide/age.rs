//! Which generations are old, by the times that objects have. No clock of this moment is asked.

use std::time::Duration;

/// The range of a log that is kept besides the current generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retain {
    /// Generations that have ended so long ago at most.
    Age(Duration),
    /// The newest generations, of so many bytes in the store at least.
    Bytes(u64),
}

/// An ended generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The time in its seal, in nanoseconds since 1970: by the clock of the shipper that made it.
    pub told: u64,
    /// When the store says that the seal was made.
    pub stored: u64,
    /// The bytes that its objects take in the store; absent while that is not known.
    pub bytes: Option<u64>,
}

/// The most that the time from one seal to the next counts for, in nanoseconds: a week.
const STEP_MAX: u64 = 7 * 86_400 * 1_000_000_000;

/// How many of the ended generations, from the oldest on, are not kept.
pub fn old(ended: &[Ended], retain: Retain) -> usize {
    let is_old = |index: usize| match retain {
        Retain::Age(age) => u128::from(age_of(&ended[index..])) >= age.as_nanos(),
        Retain::Bytes(bytes) => bytes_of(&ended[index + 1..]).is_some_and(|newer| newer >= bytes),
    };
    (0..ended.len()).take_while(|index| is_old(*index)).count()
}

/// The time from the first one's end to the last one's: the time that has passed at least by both
/// clocks. A clock that is set forward makes one step longer. So no step counts for more than a
/// week, and the longest does not count.
fn age_of(ended: &[Ended]) -> u64 {
    let steps = ended.iter().zip(ended.iter().skip(1)).map(|(before, after)| {
        let told = after.told.saturating_sub(before.told);
        told.min(after.stored.saturating_sub(before.stored)).min(STEP_MAX)
    });
    let (sum, longest) = steps.fold((0, 0), |(sum, longest), step| (sum + step, step.max(longest)));
    sum - longest
}

fn bytes_of(ended: &[Ended]) -> Option<u64> {
    ended.iter().map(|ended| ended.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400 * 1_000_000_000;
    const MONTH: Retain = Retain::Age(Duration::from_secs(30 * 86_400));

    /// Generations that end a day after each other.
    fn days(count: u64) -> Vec<Ended> {
        let ended = |day| Ended { told: day * DAY, stored: day * DAY, bytes: Some(10) };
        (1000..1000 + count).map(ended).collect()
    }

    #[test]
    fn what_ended_longer_ago_is_old() {
        assert_eq!(old(&days(31), MONTH), 0);
        assert_eq!(old(&days(32), MONTH), 1);
        assert_eq!(old(&days(100), MONTH), 69);
        assert_eq!(old(&[], MONTH), 0);
        assert_eq!(old(&days(3), Retain::Age(Duration::ZERO)), 3);
    }

    #[test]
    fn a_clock_that_is_set_forward_makes_nothing_old() {
        for at in 0..32 {
            let mut all = days(32);
            // The store is a directory of the same machine.
            for ended in &mut all[at..] {
                (ended.told, ended.stored) = (ended.told + 4000 * DAY, ended.stored + 4000 * DAY);
            }
            assert!(old(&all, MONTH) <= 1, "set forward before {at}");
            assert_eq!(old(&all[..31], MONTH), 0, "set forward before {at}");
        }
    }

    #[test]
    fn each_further_time_counts_for_a_week_at_most() {
        let mut all = days(19);
        for (index, ended) in all.iter_mut().enumerate() {
            ended.told += index as u64 / 6 * 4000 * DAY;
            ended.stored = ended.told;
        }
        // Three jumps in 19 days.
        assert_eq!(old(&all, MONTH), 0);
    }

    #[test]
    fn the_slower_of_both_clocks_counts() {
        let mut all = days(100);
        all.iter_mut().enumerate().for_each(|(index, ended)| ended.told += index as u64 * DAY);
        assert_eq!(old(&all, MONTH), 69, "the machine's clock runs twice as fast");
        all.iter_mut().for_each(|ended| ended.stored = 0);
        assert_eq!(old(&all, MONTH), 0, "a bucket that was copied today");
    }

    #[test]
    fn a_clock_that_was_put_back_makes_nothing_old() {
        let mut all = days(32);
        all[20..].iter_mut().for_each(|ended| ended.told -= 900 * DAY);
        assert_eq!(old(&all, MONTH), 0);
    }

    #[test]
    fn so_many_bytes_are_kept_and_what_is_not_known_is_kept() {
        assert_eq!(old(&days(10), Retain::Bytes(35)), 6);
        assert_eq!(old(&days(10), Retain::Bytes(1 << 40)), 0);
        let mut all = days(10);
        all[9].bytes = None;
        assert_eq!(old(&all, Retain::Bytes(35)), 0);
    }
}
