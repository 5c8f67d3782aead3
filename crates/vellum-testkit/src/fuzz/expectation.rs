//! The record of a golden log, as far as it matters here. The tests of `vellum` that make golden
//! logs say what each line means (`tests/it/golden/expectation.rs`).

/// A record that was appended to a golden log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) lsn: u64,
    pub(crate) crc: u32,
    pub(crate) len: u64,
}

/// The known content of one golden log.
#[derive(Debug, Default)]
pub(crate) struct Expectation {
    pub(crate) control_len: u64,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Records that must be read, in this order.
    pub(crate) records: Vec<Record>,
    /// Records that must not be read any more.
    pub(crate) gone: Vec<Record>,
}

impl Expectation {
    pub(crate) fn parse(text: &str) -> Expectation {
        let mut all = Expectation::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["control", len] => all.control_len = decimal(len),
                ["begin", lsn] => all.begin = decimal(lsn),
                ["end", lsn] => all.end = decimal(lsn),
                ["record", lsn, crc, len, _] => all.records.push(record(lsn, crc, len)),
                ["gone", lsn, crc, len, _] => all.gone.push(record(lsn, crc, len)),
                ["file" | "durable" | "checkpoint" | "cut" | "stamp", ..] => {}
                _ => panic!("what is meant by {line:?}?"),
            }
        }
        all
    }
}

fn record(lsn: &str, crc: &str, len: &str) -> Record {
    let crc = u32::from_str_radix(crc, 16).unwrap_or_else(|_| panic!("{crc:?} is not a CRC"));
    Record { lsn: decimal(lsn), crc, len: decimal(len) }
}

fn decimal(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word:?} is not a number"))
}
