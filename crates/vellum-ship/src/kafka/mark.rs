//! The state that Kafka keeps of a log beside its records: how far they are there.

use std::fmt;
use std::str::FromStr;

use vellum::{Lsn, Position};

use crate::object::hash;

const VERSION: &str = "1";
/// In the place of a last record where there is none.
const NONE: &str = "-";

/// How far a log is in a topic: the metadata of the offset of its consumer group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Behind the last record that was sent.
    pub(super) position: Position,
    /// The process that committed it.
    pub(super) owner: u128,
    /// The last record that was sent.
    pub(super) last: Option<Last>,
}

/// A record that was sent, to be known again: two copies with the same epoch may have others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) lsn: Lsn,
    digest: u64,
}

impl Last {
    pub(super) fn of(lsn: Lsn, payload: &[u8]) -> Last {
        let digest = hash(payload).0;
        let first = digest.first_chunk().expect("a digest has 32 bytes");
        Last { lsn, digest: u64::from_be_bytes(*first) }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION} {} {:032x} ", self.position, self.owner)?;
        match self.last {
            Some(Last { lsn, digest }) => write!(f, "{lsn} {digest:016x}"),
            None => write!(f, "{NONE} {NONE}"),
        }
    }
}

impl FromStr for Mark {
    type Err = String;

    fn from_str(text: &str) -> Result<Mark, String> {
        parse(text).ok_or_else(|| format!("the position {text:?} was not written by this version"))
    }
}

fn parse(text: &str) -> Option<Mark> {
    let words: Vec<&str> = text.split(' ').collect();
    let &[VERSION, position, owner, lsn, digest] = words.as_slice() else { return None };
    let last = match (lsn, digest) {
        (NONE, NONE) => None,
        _ => {
            let digest = u64::from_str_radix(digest, 16).ok()?;
            Some(Last { lsn: Lsn::new(lsn.parse().ok()?), digest })
        }
    };
    let owner = u128::from_str_radix(owner, 16).ok()?;
    Some(Mark { position: position.parse().ok()?, owner, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let position = "00112233445566778899aabbccddeeff/3/4096".parse().unwrap();
        let last = Some(Last::of(Lsn::new(4000), b"a record"));
        for last in [last, None] {
            let mark = Mark { position, owner: 7, last };
            assert_eq!(mark.to_string().parse(), Ok(mark));
        }
    }

    #[test]
    fn another_text_is_refused() {
        let good = "1 00112233445566778899aabbccddeeff/3/4096 07 - -";
        assert!(good.parse::<Mark>().is_ok());
        for bad in ["", "2 a/1/2 0 - -", &good[..good.len() - 2], &format!("{good} more")] {
            assert!(bad.parse::<Mark>().is_err(), "{bad}");
        }
    }
}
