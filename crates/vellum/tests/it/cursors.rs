//! Named cursors: their positions, holds, owners, and remains.

mod file;
mod holding;
mod moving;
mod owning;

use vellum::{Layout, Log, Lsn};

use crate::support::child::Role;
use crate::support::{Read, payload};

pub(crate) const ROLES: &[Role] = &[
    ("own a cursor", owning::own_a_cursor),
    ("commit a cursor all the time", owning::commit_all_the_time),
    ("fork a child beside an owned cursor", owning::fork_beside_an_owned_cursor),
];

/// Appends records of about 80 bytes.
fn append(log: &Log, count: u64, seed: u64) -> Vec<Read> {
    let append = |index| {
        let bytes = payload(log.layout(), seed + index, 60 + (index % 50) as usize);
        (log.append(&bytes).unwrap(), bytes)
    };
    (0..count).map(append).collect()
}

/// The records from the cursor on.
fn rest(cursor: &vellum::Cursor) -> Vec<Lsn> {
    let mut reader = cursor.reader().unwrap();
    let mut all = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        all.push(record.lsn);
    }
    all
}

/// The state of the only cursor.
fn only(log: &Log) -> vellum::stat::CursorStat {
    let [cursor] = <[_; 1]>::try_from(log.cursors().unwrap()).unwrap();
    cursor
}

fn is_text(log: &Log) -> bool {
    log.layout() == Layout::Text
}
