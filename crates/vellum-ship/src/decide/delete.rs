//! The objects of a closed generation that may be deleted.
//!
//! The closed marker is created first, by the owner of a later generation. Without it nothing is
//! deleted: a generation whose state is not known is open.

use std::cmp::Reverse;

use super::Point;
use super::rules::{Broken, breaks};
use crate::object::Key;

/// The part of a closed generation that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// Everything from the newest start of a merged object on that is at or before this position.
    From(u64),
    /// Nothing is kept: everything is older than the retained range.
    Nothing,
}

/// The objects of a closed generation that are not needed to read the kept range. `end` is the end
/// in the closed marker; `names` are all names of the generation, in any order. Deleting them in
/// any order, partly, or twice leaves a log that can be read. In the order in which they are
/// returned, the newest first, a log that is deleted wholly ends at once: a concurrent reader
/// begins with the next generation, and not amid a file or a record of this one.
///
/// Never among them: the seal, the marker, and a chunk that no merged object covers behind the
/// begin of the kept range.
pub fn deletable(generation: u32, end: Point, names: &[Key], keep: Keep) -> Vec<Key> {
    let own = || names.iter().filter(|key| key.generation() == generation);
    let merged = || own().filter_map(range_of_merged);
    let kept_from = match keep {
        Keep::Nothing => u64::MAX,
        Keep::From(lsn) if breaks(Broken::RetainAnywhere) => lsn,
        Keep::From(lsn) => {
            merged().map(|(start, _)| start).filter(|start| *start <= lsn).max().unwrap_or(0)
        }
    };
    let is_covered = |lsn: u64| merged().any(|(start, after)| start <= lsn && lsn < after);
    let is_free = |key: &Key| match *key {
        Key::Closed(_) => false,
        Key::Link { start, chain, .. } => {
            let is_seal = start == end.lsn && chain == end.chain.prefix();
            let is_beyond = start >= end.lsn;
            (!is_seal || breaks(Broken::DeleteSeals))
                && (is_covered(start) || start < kept_from || is_beyond)
        }
        Key::Merged { end, .. } => end <= kept_from,
    };
    let mut free: Vec<Key> = own().copied().filter(is_free).collect();
    free.sort_by_key(|key| Reverse(order(key)));
    free
}

/// Merged objects replace the chunks that they cover, so they are deleted first.
fn order(key: &Key) -> (bool, u64) {
    match *key {
        Key::Merged { start, .. } => (true, start),
        Key::Link { start, .. } => (false, start),
        Key::Closed(_) => (false, 0),
    }
}

fn range_of_merged(key: &Key) -> Option<(u64, u64)> {
    match *key {
        Key::Merged { start, end, .. } => Some((start, end)),
        _ => None,
    }
}
