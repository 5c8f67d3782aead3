//! The acknowledged records, and whether they are there: each record once and in order.

use std::collections::BTreeMap;

/// How many records of each writer were acknowledged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(BTreeMap<String, u64>);

impl Ledger {
    /// The writer's records below `count` are acknowledged.
    pub(crate) fn acknowledge(&mut self, writer: &str, count: u64) {
        let known = self.0.entry(writer.to_string()).or_default();
        *known = count.max(*known);
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Asserts that these records hold the acknowledged ones, and nothing twice or out of order.
    #[track_caller]
    pub(crate) fn check(&self, records: &[Vec<u8>]) {
        let mut found: BTreeMap<&str, u64> = BTreeMap::new();
        for (writer, number) in records.iter().filter_map(|record| parse(record)) {
            let expected = found.entry(writer).or_default();
            assert_eq!(number, *expected, "the next record of {writer}");
            *expected += 1;
        }
        for (writer, count) in &self.0 {
            let there = found.get(writer.as_str()).copied().unwrap_or(0);
            assert!(there >= *count, "{writer}: {there} records of {count} acknowledged ones");
        }
    }
}

/// A record as a writer makes it: the line has its name, its number and its length.
pub(crate) fn record(writer: &str, number: u64) -> String {
    let padding = "x".repeat((number * 37 % 301) as usize);
    format!("{writer} {number} {padding}.\n")
}

/// Writer and number, if it is a record of a writer; text logs also have marker lines.
fn parse(record: &[u8]) -> Option<(&str, u64)> {
    let line = std::str::from_utf8(record).ok()?;
    let (writer, rest) = line.split_once(' ')?;
    let number = rest.split_once(' ')?.0.parse().ok()?;
    assert_eq!(line, self::record(writer, number), "a torn record");
    Some((writer, number))
}

#[test]
fn a_record_that_is_missing_doubled_or_out_of_order_is_seen() {
    let mut ledger = Ledger::default();
    ledger.acknowledge("a", 2);
    let all = |numbers: &[u64]| -> Vec<Vec<u8>> {
        numbers.iter().map(|number| record("a", *number).into_bytes()).collect()
    };
    ledger.check(&all(&[0, 1, 2]));
    for bad in [&[0][..], &[0, 0, 1], &[1, 0], &[0, 2]] {
        let records = all(bad);
        let seen = std::panic::catch_unwind(|| ledger.check(&records));
        assert!(seen.is_err(), "{bad:?}");
    }
}
