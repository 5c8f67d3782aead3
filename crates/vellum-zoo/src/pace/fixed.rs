//! The same time for each request of a kind.

use std::time::Duration;

use super::{Kind, Operation, Pace};

#[derive(Debug, Default)]
pub(crate) struct Fixed {
    pub(crate) read: Duration,
    pub(crate) write: Duration,
    pub(crate) flush: Duration,
    /// A write of the journal takes so much more.
    pub(crate) journal: Duration,
    /// From here on nothing takes time.
    pub(crate) until: Option<Duration>,
}

impl Pace for Fixed {
    fn done(&mut self, operation: &Operation, at: Duration) -> Duration {
        if self.until.is_some_and(|until| at >= until) {
            return at;
        }
        let journal = if operation.is_journal { self.journal } else { Duration::ZERO };
        let own = match operation.kind {
            Kind::Read => self.read,
            Kind::Write => self.write,
            Kind::Flush => self.flush,
        };
        at + own + journal
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{FLUSH, ms, write};
    use super::*;

    #[test]
    fn requests_of_a_kind_take_their_time_and_do_not_wait_for_each_other() {
        let mut fixed = Fixed { flush: ms(10), ..Fixed::default() };
        assert_eq!(fixed.done(&FLUSH, ms(1)), ms(11));
        assert_eq!(fixed.done(&FLUSH, ms(2)), ms(12));
        assert_eq!(fixed.done(&write(4096), ms(2)), ms(2));
        let mut cold = Fixed { flush: ms(10), until: Some(ms(50)), ..Fixed::default() };
        assert_eq!([49, 50].map(|at| cold.done(&FLUSH, ms(at))), [ms(59), ms(50)]);
        let mut journal = Fixed { journal: ms(15), ..Fixed::default() };
        let block = Operation { is_journal: true, ..write(4096) };
        assert_eq!([block, write(4096)].map(|one| journal.done(&one, ms(1))), [ms(16), ms(1)]);
    }
}
