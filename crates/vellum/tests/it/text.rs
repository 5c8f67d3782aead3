//! The files of text logs: their names, when the next one begins, and by which rule.

mod clocks;
#[cfg(all(feature = "zstd", feature = "gzip"))]
mod compression;
mod follow;
mod gaps;
mod link;
mod lost;
mod many;
mod names;
mod nuls;
mod policy;
mod power;
mod retention;
mod rotation;
mod tail;

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use vellum::{Log, Options};

use crate::support::child::Role;
use crate::support::segment_files;

pub(crate) const ROLES: &[Role] = &[
    ("append short lines", follow::append_short_lines),
    ("append as user", retention::append_as_user),
    ("append numbered lines", many::append_numbered_lines),
    ("follow the policy of another", policy::follow_the_policy_of_another),
];

/// Options of a text log that continues in a new file after so many bytes.
fn rotating(bytes: u64) -> Options {
    Options::mapped_text().rotate_bytes(bytes)
}

/// A line of `len` bytes with its newline, that tells its number.
fn line(number: usize, len: usize) -> Vec<u8> {
    format!("{:x<width$}\n", format!("{number} "), width = len - 1).into_bytes()
}

/// Appends lines of `len` bytes with these numbers; returns them.
fn append_lines(log: &Log, numbers: std::ops::Range<usize>, len: usize) -> Vec<Vec<u8>> {
    let lines: Vec<_> = numbers.map(|number| line(number, len)).collect();
    for line in &lines {
        log.append(line).unwrap();
    }
    lines
}

/// Time and first position as the name of a text segment tells them.
fn parts(path: &Path) -> (String, u64) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let (time, first) = name.strip_suffix(".log").unwrap().split_once('-').unwrap();
    let first = first.strip_suffix("-more").unwrap_or(first);
    (time.to_string(), u64::from_str_radix(first, 16).unwrap())
}

/// Asserts what always holds: names sort as positions do, no position has two files, no closed
/// file holds a NUL, and `current` leads to the newest.
#[track_caller]
fn assert_orderly(log: &Path) {
    let files = segment_files(log);
    let firsts: Vec<u64> = files.iter().map(|file| parts(file).1).collect();
    assert!(firsts.is_sorted(), "{files:?}");
    assert_eq!(firsts.iter().collect::<HashSet<_>>().len(), files.len(), "{files:?}");
    let Some((newest, closed)) = files.split_last() else { return };
    assert_eq!(
        fs::read_link(log.join("current")).unwrap().as_os_str(),
        newest.file_name().unwrap()
    );
    for file in closed {
        assert!(!fs::read(file).unwrap().contains(&0), "a NUL in {file:?}");
    }
}

/// Lengths of the files, oldest first.
fn lens(log: &Path) -> Vec<usize> {
    segment_files(log).iter().map(|file| fs::read(file).unwrap().len()).collect()
}
