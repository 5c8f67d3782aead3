//! How sure a percentile is. The turns of a program are its independent parts: writes that follow
//! one another are slow together, so that a thousand of them in one slow moment are one witness.

use serde::Serialize;

use super::series::Series;

/// How sure a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sureness {
    /// Another run would hardly say something else.
    Sure,
    /// It probably would not.
    Likely,
    /// It might.
    CannotTell,
}

/// Where a percentile is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Up to what is good.
    Good,
    /// Beyond that, or not.
    Unknown,
    /// Beyond what is good, and up to what is bad.
    Between,
    /// Beyond what is bad.
    Bad,
}

/// So many standard errors from a limit are likely no chance …
const LIKELY: f64 = 1.0;
/// … and so many are none.
const SURE: f64 = 2.0;
/// The rule of three: of so many writes, none of which was slow, fewer than one in a third of them
/// are. Two standard errors are this.
const NONE_SEEN: f64 = 1.5;

/// How far the share of writes that are longer than a limit is beyond what a percentile allows, in
/// standard errors; `None` where nothing was measured.
fn distance(series: &Series, limit_ms: f64, allowed: f64) -> Option<f64> {
    let parts = series.beyond(limit_ms);
    let all: f64 = parts.iter().map(|(all, _)| all).sum();
    if all == 0.0 {
        return None;
    }
    let share = parts.iter().map(|(_, beyond)| beyond).sum::<f64>() / all;
    let squares: f64 = parts.iter().map(|(all, beyond)| (beyond - share * all).powi(2)).sum();
    let count = parts.len() as f64;
    let error = squares.sqrt() / all * (count / (count - 1.0).max(1.0)).sqrt();
    Some((share - allowed) / error.max(NONE_SEEN / all))
}

/// Where the percentile `quantile` of `series` is, and how sure that is; `None` where nothing was
/// measured.
pub(super) fn of_percentile(
    series: &Series,
    quantile: f64,
    good_ms: f64,
    bad_ms: f64,
) -> Option<(Place, Sureness)> {
    let beyond = |limit_ms| distance(series, limit_ms, 1.0 - quantile);
    let (good, bad) = (beyond(good_ms)?, beyond(bad_ms)?);
    let if_sure = |is_sure| if is_sure { Sureness::Sure } else { Sureness::Likely };
    Some(if bad >= LIKELY {
        (Place::Bad, if_sure(bad >= SURE))
    } else if good >= LIKELY {
        (Place::Between, if_sure(good >= SURE && bad <= -SURE))
    } else if good > 0.0 {
        (Place::Unknown, Sureness::CannotTell)
    } else {
        (Place::Good, if_sure(good <= -SURE))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::series::Operation;

    /// Turns of so many writes each, of which so many take 50 ms.
    fn turns(turns: &[(usize, usize)]) -> Series {
        let mut series = Series::default();
        for (all, slow) in turns {
            let operation = |index: usize| {
                let call_ns = if index < *slow { 50_000_000 } else { 1_000_000 };
                let end_ns = index as u64 * 10_000_000;
                Operation { end_ns, whole_ns: call_ns, call_ns, records: 1, ..Operation::default() }
            };
            let operations: Vec<Operation> = (0..*all).map(operation).collect();
            series.add(0.0, 500.0, &operations, &[]);
        }
        series
    }

    fn told(of: &[(usize, usize)]) -> (Place, Sureness) {
        of_percentile(&turns(of), 0.99, 10.0, 20.0).unwrap()
    }

    #[test]
    fn a_percentile_of_few_writes_is_not_sure() {
        assert_eq!(told(&[(500, 0); 8]), (Place::Good, Sureness::Sure));
        assert_eq!(told(&[(30, 0); 8]), (Place::Good, Sureness::Likely));
        assert_eq!(told(&[(500, 1); 8]), (Place::Good, Sureness::Sure));
        assert!(of_percentile(&Series::default(), 0.99, 10.0, 20.0).is_none());
    }

    #[test]
    fn one_slow_moment_decides_nothing_and_several_do() {
        let mut all = [(200, 0); 8];
        all[3].1 = 40;
        assert_eq!(told(&all), (Place::Unknown, Sureness::CannotTell));
        all[5].1 = 40;
        all[6].1 = 40;
        assert_eq!(told(&all), (Place::Bad, Sureness::Likely));
        assert_eq!(told(&[(200, 10); 8]), (Place::Bad, Sureness::Sure));
        let between = of_percentile(&turns(&[(200, 10); 8]), 0.99, 10.0, 100.0).unwrap();
        assert_eq!(between, (Place::Between, Sureness::Sure));
    }
}
