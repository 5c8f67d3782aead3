//! A budget: so much at once, and more only as it comes back.

use std::time::Duration;

use super::{Kind, Operation, Pace, time_of};

#[derive(Debug)]
pub(crate) struct Bucket {
    unit: Unit,
    /// The budget that comes back in a second.
    rate: u64,
    /// The time in which a full budget comes back.
    depth: Duration,
    /// When the budget is full again, if nothing more is asked.
    full: Duration,
}

/// The unit of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    /// Reads, writes and flushes.
    Operations,
}

impl Bucket {
    /// A full budget of `burst`. None if nothing is limited.
    pub(crate) fn new(unit: Unit, burst: u64, rate: u64) -> Option<Bucket> {
        let depth = time_of(burst, rate);
        (rate > 0).then_some(Bucket { unit, rate, depth, full: Duration::ZERO })
    }
}

impl Pace for Bucket {
    fn done(&mut self, operation: &Operation, at: Duration) -> Duration {
        let amount = match self.unit {
            Unit::Operations => 1,
            Unit::Bytes if operation.kind == Kind::Flush => return at,
            Unit::Bytes => operation.len,
        };
        self.full = self.full.max(at) + time_of(amount, self.rate);
        at.max(self.full.saturating_sub(self.depth))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{FLUSH, ms, write};
    use super::*;

    #[test]
    fn a_budget_is_fast_until_it_ends_and_comes_back_at_its_rate() {
        // 100 operations at once, then 1000 in a second.
        let mut bucket = Bucket::new(Unit::Operations, 100, 1000).unwrap();
        let fast = (0..1000).take_while(|_| bucket.done(&write(1), ms(5)) == ms(5)).count();
        assert_eq!(fast, 100);
        // The one that was refused at once had its time too.
        assert_eq!(bucket.done(&FLUSH, ms(5)), ms(7));
        // Half of it is back after 50 ms.
        let fast = (0..1000).take_while(|_| bucket.done(&write(1), ms(57)) == ms(57)).count();
        assert_eq!(fast, 50);
        // Idle for long, and no more than all of it.
        let fast = (0..1000).take_while(|_| bucket.done(&write(1), ms(9000)) == ms(9000)).count();
        assert_eq!(fast, 100);
    }

    #[test]
    fn bytes_are_counted_as_they_are_and_flushes_have_none() {
        let mut bucket = Bucket::new(Unit::Bytes, 0, 1_000_000).unwrap();
        assert_eq!(bucket.done(&write(4000), ms(0)), ms(4));
        assert_eq!(bucket.done(&write(1000), ms(0)), ms(5));
        assert_eq!(bucket.done(&FLUSH, ms(0)), ms(0));
        assert!(Bucket::new(Unit::Bytes, 1, 0).is_none());
    }
}
