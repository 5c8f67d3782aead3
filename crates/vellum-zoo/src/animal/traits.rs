//! The traits that a disk has from its animals.

use std::ops::Range;
use std::time::Duration;

use crate::pace::{Kind, Operation, Pace};
use crate::store::CacheRule;

#[derive(Debug, Default)]
pub(crate) struct Traits {
    /// Each begins where the one before it is done.
    pub(crate) paces: Vec<Box<dyn Pace>>,
    pub(crate) cache: Option<CacheRule>,
    pub(crate) failing: Vec<Failing>,
    /// The share of writes that are answered and go nowhere.
    pub(crate) dropped: f64,
}

impl Traits {
    /// When a request is done that comes at `at`.
    pub(crate) fn done(&mut self, operation: &Operation, at: Duration) -> Duration {
        self.paces.iter_mut().fold(at, |at, pace| pace.done(operation, at))
    }

    pub(super) fn pace(&mut self, pace: Option<impl Pace + 'static>) {
        if let Some(pace) = pace {
            self.paces.push(Box::new(pace));
        }
    }

    pub(super) fn cache(&mut self, rule: CacheRule) -> Result<(), String> {
        match self.cache.replace(rule) {
            None => Ok(()),
            Some(_) => {
                Err("a disk has one cache: give one of lying, forgets and forgets-flushed"
                    .to_owned())
            }
        }
    }
}

/// Which requests fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailingKind {
    One(Kind),
    Any,
}

impl FailingKind {
    pub(super) fn read(text: &str) -> Result<FailingKind, String> {
        match text {
            "read" => Ok(FailingKind::One(Kind::Read)),
            "write" => Ok(FailingKind::One(Kind::Write)),
            "flush" => Ok(FailingKind::One(Kind::Flush)),
            "any" => Ok(FailingKind::Any),
            _ => Err(format!("\"{text}\" is none of read, write, flush and any")),
        }
    }
}

/// A fault, and how far it is.
#[derive(Debug)]
pub(crate) struct Failing {
    what: FailingKind,
    /// How many more are good.
    good: u64,
    /// How many fail then; none: all.
    bad: Option<u64>,
    range: Range<u64>,
}

impl Failing {
    pub(super) fn new(what: FailingKind, first: u64, count: u64, range: Range<u64>) -> Failing {
        Failing { what, good: first - 1, bad: (count > 0).then_some(count), range }
    }

    /// Whether this request fails. A flush is in no range.
    pub(crate) fn fails(&mut self, operation: &Operation) -> bool {
        let is_there = operation.kind == Kind::Flush
            || operation.offset < self.range.end
                && self.range.start < operation.offset + operation.len;
        let is_meant = match self.what {
            FailingKind::One(kind) => kind == operation.kind,
            FailingKind::Any => true,
        };
        if !is_there || !is_meant {
            return false;
        }
        if self.good > 0 {
            self.good -= 1;
            return false;
        }
        match &mut self.bad {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_fail_from_the_first_one_in_a_range() {
        let mut failing = Failing::new(FailingKind::One(Kind::Write), 2, 2, 4096..8192);
        let mut fails =
            |kind, offset| failing.fails(&Operation { kind, offset, len: 512, is_journal: false });
        assert!(!fails(Kind::Write, 4096), "the first one");
        assert!(!fails(Kind::Write, 0), "elsewhere");
        assert!(!fails(Kind::Read, 4096), "no write");
        assert_eq!([7680, 4000, 5000].map(|at| fails(Kind::Write, at)), [true, true, false]);
    }
}
