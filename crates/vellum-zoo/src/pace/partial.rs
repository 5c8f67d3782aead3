//! Writes of parts of physical sectors: each is read, changed and written.

use std::time::Duration;

use super::{Kind, Operation, Pace};

#[derive(Debug)]
pub(crate) struct Partial {
    /// Bytes of a physical sector.
    pub(crate) sector: u64,
    /// The cost of a write that begins or ends within one.
    pub(crate) cost: Duration,
}

impl Pace for Partial {
    fn done(&mut self, operation: &Operation, at: Duration) -> Duration {
        let end = operation.offset + operation.len;
        let is_whole =
            operation.offset.is_multiple_of(self.sector) && end.is_multiple_of(self.sector);
        if operation.kind == Kind::Write && !is_whole { at + self.cost } else { at }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{FLUSH, ms, write};
    use super::*;

    #[test]
    fn only_writes_of_parts_cost_more() {
        let mut partial = Partial { sector: 4096, cost: ms(8) };
        assert_eq!(partial.done(&write(512), ms(0)), ms(8));
        assert_eq!(partial.done(&write(8192), ms(0)), ms(0));
        let shifted = Operation { offset: 512, ..write(4096) };
        assert_eq!(partial.done(&shifted, ms(0)), ms(8));
        assert_eq!(partial.done(&FLUSH, ms(0)), ms(0));
    }
}
