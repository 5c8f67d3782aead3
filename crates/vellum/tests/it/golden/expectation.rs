//! The expectation beside a golden log: its files, and the records of opening it.
//!
//! A text of one fact per line, `#` for comments:
//!
//! ```text
//! file NAME CRC32C LENGTH          a file of the log, byte by byte
//! control LENGTH                   length of the control file, which is left out
//! begin|end|durable|checkpoint|cut NUMBER
//! record LSN CRC32C LENGTH FIRST   a record that must be read, and its first bytes
//! gone LSN CRC32C LENGTH FIRST     one that was trimmed away, torn or never written out
//! stamp LSN NANOSECONDS WRITER     what the envelope of a record says
//! ```

use std::fmt::Write;

/// A file of a golden log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) crc: u32,
    pub(crate) len: u64,
}

/// A record that was appended to a golden log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) lsn: u64,
    pub(crate) crc: u32,
    pub(crate) len: u64,
    /// Its first bytes, for human eyes.
    pub(crate) first: String,
}

impl Record {
    pub(crate) fn new(lsn: u64, crc: u32, bytes: &[u8]) -> Record {
        let first: String = bytes.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        let first = if first.is_empty() { "-".to_string() } else { first };
        Record { lsn, crc, len: bytes.len() as u64, first }
    }
}

/// All that is written down about one golden log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expectation {
    pub(crate) files: Vec<File>,
    pub(crate) control_len: u64,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) durable: u64,
    pub(crate) checkpoint: u64,
    pub(crate) cut: u64,
    /// Records that must be read, in this order.
    pub(crate) records: Vec<Record>,
    /// Records that must not be read any more.
    pub(crate) gone: Vec<Record>,
    /// Values of envelopes: position, nanoseconds since 1970, the number of the writer.
    pub(crate) stamps: Vec<[u64; 3]>,
}

impl Expectation {
    pub(crate) fn parse(text: &str) -> Expectation {
        let mut all = Expectation::default();
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["file", name, crc, len] => {
                    let (name, crc, len) = (name.to_string(), hexadecimal(crc), decimal(len));
                    all.files.push(File { name, crc, len });
                }
                ["control", len] => all.control_len = decimal(len),
                ["begin", lsn] => all.begin = decimal(lsn),
                ["end", lsn] => all.end = decimal(lsn),
                ["durable", lsn] => all.durable = decimal(lsn),
                ["checkpoint", lsn] => all.checkpoint = decimal(lsn),
                ["cut", bytes] => all.cut = decimal(bytes),
                ["record", ref words @ ..] => all.records.push(record(words)),
                ["gone", ref words @ ..] => all.gone.push(record(words)),
                ["stamp", lsn, nanos, writer] => {
                    all.stamps.push([lsn, nanos, writer].map(decimal));
                }
                _ => panic!("what is meant by {line:?}?"),
            }
        }
        all
    }

    /// The text that `parse` reads; only the maker of golden logs needs it.
    #[allow(dead_code)]
    pub(crate) fn to_text(&self, what: &str) -> String {
        let mut text = format!("# {what}\n");
        for File { name, crc, len } in &self.files {
            let _ = writeln!(text, "file {name} {crc:08x} {len}");
        }
        let _ = writeln!(text, "control {}", self.control_len);
        let _ = writeln!(text, "begin {}\nend {}", self.begin, self.end);
        let _ = writeln!(text, "durable {}\ncheckpoint {}", self.durable, self.checkpoint);
        let _ = writeln!(text, "cut {}", self.cut);
        for (word, records) in [("record", &self.records), ("gone", &self.gone)] {
            for Record { lsn, crc, len, first } in records {
                let _ = writeln!(text, "{word} {lsn} {crc:08x} {len} {first}");
            }
        }
        for [lsn, nanos, writer] in &self.stamps {
            let _ = writeln!(text, "stamp {lsn} {nanos} {writer}");
        }
        text
    }
}

fn record(words: &[&str]) -> Record {
    let [lsn, crc, len, first] = words else { panic!("what is meant by {words:?}?") };
    let first = (*first).to_string();
    Record { lsn: decimal(lsn), crc: hexadecimal(crc), len: decimal(len), first }
}

fn decimal(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word:?} is not a number"))
}

fn hexadecimal(word: &str) -> u32 {
    u32::from_str_radix(word, 16).unwrap_or_else(|_| panic!("{word:?} is not a CRC"))
}
