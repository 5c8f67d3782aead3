//! Sets of record numbers, kept as ranges, and the text they are announced in.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// A set of record numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// First and last number of each range; no two of them touch.
    ranges: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds a range, which may overlap what is there.
    pub fn insert(&mut self, range: &RangeInclusive<u64>) {
        let (mut first, mut last) = (*range.start(), *range.end());
        if first > last {
            return;
        }
        while let Some((&start, &end)) = self.ranges.range(..=last.saturating_add(1)).next_back() {
            if end < first.saturating_sub(1) {
                break;
            }
            first = first.min(start);
            last = last.max(end);
            self.ranges.remove(&start);
        }
        self.ranges.insert(first, last);
    }

    /// The ranges of this set that are not in `other`.
    pub fn without(&self, other: &Ranges) -> Ranges {
        let mut rest = Ranges::default();
        for (&start, &end) in &self.ranges {
            let mut next = Some(start);
            for (&gone_start, &gone_end) in other.ranges.range(..=end) {
                let Some(from) = next.filter(|from| gone_end >= *from) else { continue };
                if gone_start > from {
                    rest.ranges.insert(from, gone_start - 1);
                }
                next = gone_end.checked_add(1).filter(|from| *from <= end);
            }
            if let Some(from) = next {
                rest.ranges.insert(from, end);
            }
        }
        rest
    }

    /// The numbers from `origin` to the last in the set.
    pub fn span_from(&self, origin: u64) -> Ranges {
        let mut span = Ranges::default();
        if let Some(last) = self.ranges.values().next_back() {
            span.insert(&(origin..=*last));
        }
        span
    }

    /// The smallest number.
    pub fn first(&self) -> Option<u64> {
        self.ranges.keys().next().copied()
    }

    /// Whether there is no number in it.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many numbers are in it.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|(start, end)| end - start + 1).sum()
    }
}

impl fmt::Display for Ranges {
    /// The first few ranges, for a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (start, end)) in self.ranges.iter().enumerate() {
            match index {
                0 => {}
                5 => return write!(f, ", … ({} in all)", self.count()),
                _ => f.write_str(", ")?,
            }
            if start == end { write!(f, "{start}")? } else { write!(f, "{start}-{end}")? }
        }
        Ok(())
    }
}

/// Reads `n` or `a-b`.
pub fn parse(text: &str) -> Option<RangeInclusive<u64>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = first.parse().ok()?..=last.parse().ok()?;
    (!range.is_empty()).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Ranges {
        let mut set = Ranges::default();
        text.split_whitespace().for_each(|range| set.insert(&parse(range).unwrap()));
        set
    }

    #[test]
    fn ranges_that_touch_or_overlap_become_one() {
        assert_eq!(set("5 1-3 4 9-12 10").to_string(), "1-5, 9-12");
        assert_eq!(set("1-2 6-7 4 3-5").to_string(), "1-7");
        assert_eq!(set("0 18446744073709551615").count(), 2);
    }

    #[test]
    fn a_difference_leaves_what_only_one_has() {
        assert_eq!(
            set("1-10 20-30").without(&set("0-2 5 9-21 30-40")).to_string(),
            "3-4, 6-8, 22-29"
        );
        assert_eq!(set("1-10").without(&set("1-10")).to_string(), "");
        assert_eq!(set("1-10").without(&Ranges::default()).to_string(), "1-10");
    }

    #[test]
    fn agrees_with_a_plain_set_of_numbers() {
        let mut random = crate::random::Random::new(1);
        for _ in 0..2000 {
            let (mut plain, mut ranges) =
                ([[false; 20]; 2], [Ranges::default(), Ranges::default()]);
            for (plain, ranges) in plain.iter_mut().zip(&mut ranges) {
                for _ in 0..random.below(5) {
                    let (start, len) = (random.below(20) as usize, random.below(6) as usize);
                    let end = (start + len).min(19);
                    plain[start..=end].fill(true);
                    ranges.insert(&(start as u64..=end as u64));
                }
            }
            let rest = ranges[0].without(&ranges[1]);
            for (number, (first, second)) in (0..).zip(plain[0].iter().zip(&plain[1])) {
                let mut one = Ranges::default();
                one.insert(&(number..=number));
                assert_eq!(one.without(&rest).is_empty(), *first && !second);
            }
        }
    }

    #[test]
    fn only_numbers_and_ascending_ranges_are_read() {
        assert_eq!(parse("7"), Some(7..=7));
        assert_eq!(parse("7-9"), Some(7..=9));
        assert_eq!(
            [parse("9-7"), parse("x"), parse("-3"), parse("1-2-3")],
            [None, None, None, None]
        );
    }
}
