//! Pauses of all requests, at regular times.

use std::time::Duration;

use super::{Operation, Pace};

#[derive(Debug)]
pub(crate) struct Stalls {
    every: Duration,
    length: Duration,
}

impl Stalls {
    /// The first pause begins at `every`. None if there are no pauses.
    pub(crate) fn new(every: Duration, length: Duration) -> Option<Stalls> {
        (!every.is_zero() && !length.is_zero()).then_some(Stalls { every, length })
    }
}

impl Pace for Stalls {
    fn done(&mut self, _: &Operation, at: Duration) -> Duration {
        let count = at.as_nanos() / self.every.as_nanos();
        let begun = self.every * u32::try_from(count).unwrap_or(u32::MAX);
        if count == 0 { at } else { at.max(begun + self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{FLUSH, ms};
    use super::*;

    #[test]
    fn what_is_asked_in_a_pause_is_done_at_its_end() {
        let mut stalls = Stalls::new(ms(1000), ms(200)).unwrap();
        let done: Vec<_> =
            [0, 999, 1000, 1150, 1200, 3001].map(|at| stalls.done(&FLUSH, ms(at))).into();
        assert_eq!(done, [0, 999, 1200, 1200, 1200, 3200].map(ms));
        assert!(Stalls::new(ms(0), ms(1)).is_none());
    }
}
