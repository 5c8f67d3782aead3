//! A pace that holds for a part of the time.

use std::time::Duration;

use super::{Operation, Pace};

#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) pace: Box<dyn Pace>,
    /// Before this nothing takes time …
    pub(crate) begins: Duration,
    /// … nor after this.
    pub(crate) ends: Option<Duration>,
    /// Only in the last part of each stretch of the first length, as long as the second.
    pub(crate) stretch: Option<(Duration, Duration)>,
}

impl Window {
    fn is_open(&self, at: Duration) -> bool {
        let Some(since) = at.checked_sub(self.begins) else { return false };
        self.ends.is_none_or(|ends| at < ends)
            && self.stretch.is_none_or(|(each, lasts)| {
                since.as_nanos() % each.as_nanos() >= each.saturating_sub(lasts).as_nanos()
            })
    }
}

impl Pace for Window {
    fn done(&mut self, operation: &Operation, at: Duration) -> Duration {
        if self.is_open(at) { self.pace.done(operation, at) } else { at }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{FLUSH, ms};
    use super::super::{Fixed, Kind};
    use super::*;

    fn slow_at(begins: u64, ends: Option<u64>, stretch: Option<(u64, u64)>) -> Vec<u64> {
        let pace = Box::new(Fixed { flush: ms(7), ..Fixed::default() });
        let stretch = stretch.map(|(each, lasts)| (ms(each), ms(lasts)));
        let mut window = Window { pace, begins: ms(begins), ends: ends.map(ms), stretch };
        assert_eq!(FLUSH.kind, Kind::Flush);
        (0..50).step_by(5).filter(|at| window.done(&FLUSH, ms(*at)) == ms(at + 7)).collect()
    }

    #[test]
    fn it_holds_from_its_begin_to_its_end_and_in_the_last_part_of_each_stretch() {
        assert_eq!(slow_at(0, None, None).len(), 10);
        assert_eq!(slow_at(15, Some(30), None), [15, 20, 25]);
        assert_eq!(slow_at(0, None, Some((20, 10))), [10, 15, 30, 35]);
        assert_eq!(slow_at(5, Some(30), Some((20, 10))), [15, 20]);
        assert_eq!(slow_at(0, None, Some((20, 30))).len(), 10, "longer than its stretch");
    }
}
