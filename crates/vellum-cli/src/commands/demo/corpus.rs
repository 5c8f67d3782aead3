//! A real text, and the records made of it.
//!
//! Record `sequence` of a writer is `<writer> <sequence> <line>`, so that a reader knows its
//! content to the last byte.

use std::io::Write;

use vellum::Layout;

use crate::commands::open::is_filler;

/// Our own sources: there wherever this program is built, also from its package alone.
const SOURCES: [&str; 6] = [
    include_str!("../mod.rs"),
    include_str!("../cat.rs"),
    include_str!("../cursor.rs"),
    include_str!("../demo.rs"),
    include_str!("../stat.rs"),
    include_str!("../../args.rs"),
];

/// The record that the parent appends when all writers are done.
const END: &str = "end";

/// The lines that writers append, over and over.
pub(super) struct Corpus {
    lines: Vec<&'static str>,
    /// The end of a record in this layout.
    end_of_record: &'static [u8],
}

impl Corpus {
    /// The lines as records of a log of this layout.
    pub(super) fn new(layout: Layout) -> Corpus {
        let lines = SOURCES.iter().flat_map(|source| source.lines());
        let end_of_record: &[u8] = if layout == Layout::Text { b"\n" } else { b"" };
        Corpus { lines: lines.filter(|line| !line.is_empty()).collect(), end_of_record }
    }

    /// How many lines there are.
    pub(super) fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// Makes `record` the record of this writer and number.
    pub(super) fn write_record(&self, writer: u32, sequence: u64, record: &mut Vec<u8>) {
        // Far apart for each writer, so that a mix-up would show.
        let start = u64::from(writer) * 977;
        let line = self.lines[((start + sequence) % self.lines.len() as u64) as usize];
        record.clear();
        // Cannot fail: it grows.
        let _ = write!(record, "{writer} {sequence} {line}");
        record.extend_from_slice(self.end_of_record);
    }

    /// The record that is appended at the very end.
    pub(super) fn end(&self) -> Vec<u8> {
        [END.as_bytes(), self.end_of_record].concat()
    }

    /// Whether this fills the place of a record that was never finished.
    pub(super) fn is_filler(&self, record: &[u8]) -> bool {
        !self.end_of_record.is_empty() && is_filler(record)
    }
}

/// Writer and number of a record, as far as they can be read.
pub(super) fn parse(record: &[u8]) -> Option<(u32, u64)> {
    let mut words = record.splitn(3, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok();
    Some((word()?.parse().ok()?, word()?.parse().ok()?))
}
