//! Records whose bytes follow from their names, to the last one.
//!
//! A record begins with its name in words, as `r17/4/1 `; the rest is drawn from the name and the
//! length, at least 8 bytes of it, so that a record that was cut, mixed with another or invented
//! does not pass. In a text log it is printable, and a newline ends it.

use std::fmt;
use std::io::Write;
use std::ops::RangeInclusive;
use std::str::FromStr;

use vellum::Layout;

use crate::random::{Random, mixed};

/// Enough that no other record passes for this one.
const DRAWN_BYTES_MIN: usize = 8;

/// The name of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// A record of the workload.
    Record {
        /// Its number among the records of all writers.
        number: u64,
        /// How many writers there are.
        writers: u64,
        /// The seed of the run.
        seed: u64,
    },
    /// A record that a check appended.
    Marker {
        /// How many checks came before.
        number: u64,
    },
}

impl Name {
    /// Makes `payload` this record: as long as the seed decides, within `bytes`.
    pub(super) fn write(self, bytes: &RangeInclusive<u64>, layout: Layout, payload: &mut Vec<u8>) {
        let choices = bytes.end() - bytes.start() + 1;
        let len = bytes.start() + self.key() % choices;
        self.write_with_len(len as usize, layout, payload);
    }

    /// Makes `payload` this record with `len` bytes, or as few as it can have.
    fn write_with_len(self, len: usize, layout: Layout, payload: &mut Vec<u8>) {
        payload.clear();
        // Cannot fail: it grows.
        let _ = write!(payload, "{self} ");
        let newline_len = usize::from(layout == Layout::Text);
        let len = len.max(payload.len() + DRAWN_BYTES_MIN + newline_len);
        Random::new(self.key() ^ mixed(len as u64)).finish_record(payload, len, layout);
    }

    /// What `payload` is called, if it is that to the last byte.
    pub(super) fn of(payload: &[u8], layout: Layout) -> Result<Name, String> {
        let name = name_of(payload).ok_or("it has no name")?;
        let mut expected = Vec::new();
        name.write_with_len(payload.len(), layout, &mut expected);
        if expected == payload {
            return Ok(name);
        }
        let pairs = payload.iter().zip(&expected);
        let good = pairs.take_while(|(found, expected)| found == expected).count();
        let len = payload.len();
        Err(format!("{name} of {len} bytes is wrong from byte {good} on"))
    }

    fn key(self) -> u64 {
        match self {
            Name::Record { number, writers, seed } => {
                mixed(number ^ mixed(writers ^ mixed(seed ^ 1)))
            }
            Name::Marker { number } => mixed(number ^ mixed(2)),
        }
    }
}

/// What `payload` says it is called.
fn name_of(payload: &[u8]) -> Option<Name> {
    let len = payload.iter().position(|byte| *byte == b' ')?;
    std::str::from_utf8(&payload[..len]).ok()?.parse().ok()
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Record { number, writers, seed } => write!(f, "r{number}/{writers}/{seed}"),
            Name::Marker { number } => write!(f, "m{number}"),
        }
    }
}

impl FromStr for Name {
    type Err = ();

    fn from_str(text: &str) -> Result<Name, ()> {
        if let Some(number) = text.strip_prefix('m') {
            return Ok(Name::Marker { number: number.parse().map_err(drop)? });
        }
        let words: Vec<&str> = text.strip_prefix('r').ok_or(())?.split('/').collect();
        let [number, writers, seed] = words[..] else { return Err(()) };
        let parse = |word: &str| word.parse::<u64>().map_err(drop);
        match (parse(number)?, parse(writers)?, parse(seed)?) {
            (_, 0, _) => Err(()),
            (number, writers, seed) => Ok(Name::Record { number, writers, seed }),
        }
    }
}

/// Whether a line of a text log fills the place of a record that was never finished.
pub(super) fn is_filler(line: &[u8]) -> bool {
    line.starts_with(b"~") || line == b"\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64, bytes: RangeInclusive<u64>, layout: Layout) -> Vec<u8> {
        let mut payload = Vec::new();
        Name::Record { number, writers: 3, seed: 5 }.write(&bytes, layout, &mut payload);
        payload
    }

    #[test]
    fn a_record_knows_its_name_and_has_a_length_in_the_range() {
        let mut lens = Vec::new();
        for layout in [Layout::Framed, Layout::Text] {
            for number in 0..200 {
                let payload = record(number, 30..=130, layout);
                let name = Name::Record { number, writers: 3, seed: 5 };
                assert_eq!(Name::of(&payload, layout), Ok(name));
                assert!((30..=130).contains(&payload.len()), "{}", payload.len());
                lens.push(payload.len());
            }
        }
        lens.sort_unstable();
        lens.dedup();
        assert!(lens.len() > 60, "lengths vary");
        let marker = Name::Marker { number: 2 };
        let mut payload = Vec::new();
        marker.write(&(0..=0), Layout::Framed, &mut payload);
        assert_eq!((Name::of(&payload, Layout::Framed), payload.len()), (Ok(marker), 11));
    }

    #[test]
    fn a_text_record_is_one_printable_line() {
        for number in 0..100 {
            let payload = record(number, 1..=300, Layout::Text);
            let (end, line) = payload.split_last().unwrap();
            assert_eq!(*end, b'\n');
            assert!(line.iter().all(|byte| (b' '..=b'~').contains(byte)));
            assert!(!is_filler(&payload));
        }
    }

    #[test]
    fn every_change_of_a_byte_and_every_cut_is_noticed() {
        for layout in [Layout::Framed, Layout::Text] {
            for payload in [record(7, 1..=1, layout), record(7, 90..=90, layout)] {
                for index in 0..payload.len() {
                    let mut changed = payload.clone();
                    changed[index] ^= 1;
                    assert!(Name::of(&changed, layout).is_err(), "byte {index}");
                    assert!(Name::of(&payload[..index], layout).is_err(), "cut to {index}");
                }
                let longer = [&payload[..], b"\n"].concat();
                assert!(Name::of(&longer, layout).is_err());
            }
        }
        for name in ["r1/0/1", "r1/1", "r/1/1", "m", "x1", ""] {
            assert_eq!(name.parse::<Name>(), Err(()), "{name}");
        }
    }
}
