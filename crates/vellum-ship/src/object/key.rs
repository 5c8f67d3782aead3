//! The names of objects below the URL.
//!
//! Numbers have a fixed width, so names sort by position.

use std::fmt;

/// The name of the object that says which log this is.
pub const LOG: &str = "log";

/// The name of an object of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A chunk, a gap or a seal: the place where the chain continues.
    Link {
        /// The generation.
        generation: u32,
        /// The position at which the object begins.
        start: u64,
        /// The first bytes of the chain before it.
        chain: u64,
    },
    /// A merged object.
    Merged {
        /// The generation.
        generation: u32,
        /// The position at which the object begins.
        start: u64,
        /// The position behind it.
        end: u64,
        /// The first bytes of the chain before it.
        chain: u64,
    },
    /// The closed marker of a generation.
    Closed(u32),
}

/// The prefix of a generation's merged objects.
pub fn merged_prefix(generation: u32) -> String {
    format!("g{generation:08x}/m/")
}

/// The name of a generation's closed marker.
pub fn closed_name(generation: u32) -> String {
    Key::Closed(generation).to_string()
}

impl Key {
    /// The generation that the object belongs to.
    pub fn generation(&self) -> u32 {
        match *self {
            Key::Link { generation, .. }
            | Key::Merged { generation, .. }
            | Key::Closed(generation) => generation,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Key::Link { generation, start, chain } => {
                write!(f, "g{generation:08x}/t/{start:016x}-{chain:016x}")
            }
            Key::Merged { generation, start, end, chain } => {
                write!(f, "g{generation:08x}/m/{start:016x}-{end:016x}-{chain:016x}")
            }
            Key::Closed(generation) => write!(f, "g{generation:08x}/closed"),
        }
    }
}

/// The key of a name below the URL; nothing if Vellum gives no such name.
pub fn parse(name: &str) -> Option<Key> {
    let (generation, rest) = name.strip_prefix('g')?.split_once('/')?;
    let generation = u32::try_from(number(generation, 8)?).ok()?;
    if rest == "closed" {
        return Some(Key::Closed(generation));
    }
    let (kind, rest) = rest.split_once('/')?;
    let mut numbers = rest.split('-').map(|text| number(text, 16));
    let mut next = || numbers.next().flatten();
    let key = match kind {
        "t" => Key::Link { generation, start: next()?, chain: next()? },
        "m" => Key::Merged { generation, start: next()?, end: next()?, chain: next()? },
        _ => return None,
    };
    // Any other spelling of the same numbers is another name.
    (key.to_string() == name).then_some(key)
}

fn number(text: &str, width: usize) -> Option<u64> {
    let is_hex = text.len() == width && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let keys = [
            Key::Link { generation: 1, start: 4096, chain: 0xfeed },
            Key::Merged { generation: 7, start: 0, end: 1 << 40, chain: u64::MAX },
            Key::Closed(u32::MAX),
        ];
        for key in keys {
            assert_eq!(parse(&key.to_string()), Some(key));
        }
    }

    #[test]
    fn names_that_are_not_ours_are_nothing() {
        let own = Key::Link { generation: 1, start: 10, chain: 11 }.to_string();
        assert!(parse(&own.to_uppercase()).is_none());
        assert!(parse(&format!("{own}-")).is_none());
        assert!(parse(&own.replace("/t/", "/../")).is_none());
        assert!(parse(&own.replace("00000001", "1")).is_none());
        assert!(parse("g00000001/t/+000000000000010-0000000000000011").is_none());
    }
}
