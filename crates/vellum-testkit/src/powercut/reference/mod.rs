//! A small log whose faults are known, to prove that the harness finds them, and finds no others.
//!
//! A segment is a file of a fixed length that is made of zeros, synced and then renamed into
//! place, so records are torn where a power cut tears them. A record is its number, its length, a
//! checksum of all, and bytes that follow from the number.

use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;

use crate::random::Random;

mod check;
mod work;

pub use check::check;
pub use work::work;

const SEGMENT_LEN: u64 = 128 * 1024;
const SEGMENT_RECORDS: u64 = 8;
const SEGMENT_PREFIX: &str = "segment-";
const HEADER_LEN: usize = 16;

/// How the workload treats its promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkMode {
    /// As it should.
    Good,
    /// Promises each record before it is synced.
    EarlyAck,
    /// Never syncs anything.
    NoSync,
    /// Does not sync the directory after a segment is renamed.
    NoDirectorySync,
    /// Syncs again after a sync has failed, until one succeeds, and believes that.
    RetrySync,
    /// Does not announce what it deletes.
    NoDrop,
}

/// The beliefs of the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckMode {
    /// A record whose checksum fits.
    Good,
    /// A record whose header is there.
    Unchecked,
}

/// A record's bytes as they are in the file.
fn record(number: u64) -> Vec<u8> {
    let mut random = Random::new(number);
    let len = 100 + random.below(9900) as usize;
    let mut record = vec![0; HEADER_LEN];
    record[..8].copy_from_slice(&number.to_le_bytes());
    record[8..12].copy_from_slice(&(len as u32).to_le_bytes());
    random.extend(&mut record, HEADER_LEN + len);
    let sum = checksum(&record);
    record[12..16].copy_from_slice(&sum.to_le_bytes());
    record
}

/// The checksum of a record, which covers everything but itself.
fn checksum(record: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&record[..12]), &record[HEADER_LEN..])
}

/// The numbers of the first records of the segments there are, in order.
fn segments(dir: &Path) -> anyhow::Result<Vec<u64>> {
    let mut segments = Vec::new();
    for entry in dir.read_dir().with_context(|| format!("cannot read {}", dir.display()))? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(SEGMENT_PREFIX));
        segments.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    segments.sort_unstable();
    Ok(segments)
}

/// The name of the segment that begins with a record.
fn segment_name(number: u64) -> String {
    format!("{SEGMENT_PREFIX}{number:08}")
}
