//! The ways to read a log, and how each of them does it.
//!
//! | table | way | what is read |
//! |---|---|---|
//! | in order | `framed`, `text` | a Vellum log, record by record |
//! | | `lines` | a file of lines, in pieces of 128 KiB, split at the newlines |
//! | | `bytes` | the same file and pieces, without a look at them: the limit |
//! | at random | `framed-at`, `text-at` | each record of a log once, by its LSN, each on its own |
//! | | `framed-seek`, `text-seek` | the same by one reader, which goes from one to the next |
//! | | `pread` | each record of the file once, by its place |
//! | backwards | `framed-back`, `text-back` | a log from its newest record to its oldest |
//! | recovery | `framed-recover`, `text-recover` | a copied log, which `open` recovers |

use std::hint::black_box;

use super::Load;
use super::stored::{Stored, failed};
use crate::error::Result;
use crate::names::named;

named! {
    /// The name of a way.
    #[non_exhaustive]
    pub enum ReadWay, "is not a way to read" {
        /// A framed log, by a reader, which checks each checksum.
        Framed = "framed",
        /// A text log, by a reader.
        Text = "text",
        /// A file of lines.
        Lines = "lines",
        /// A file.
        Bytes = "bytes",
        /// Records of a framed log, by their positions.
        FramedAt = "framed-at",
        /// Records of a text log, by their positions.
        TextAt = "text-at",
        /// Records of a framed log, by a reader that goes to their positions.
        FramedSeek = "framed-seek",
        /// Records of a text log, by a reader that goes to their positions.
        TextSeek = "text-seek",
        /// Records of a file, by their positions.
        Pread = "pread",
        /// A framed log from its end.
        FramedBack = "framed-back",
        /// A text log from its end.
        TextBack = "text-back",
        /// Opening a framed log that must be recovered.
        FramedRecover = "framed-recover",
        /// Opening a text log that must be recovered.
        TextRecover = "text-recover",
    }
}

named! {
    /// The question.
    pub(super) enum Table, "is not a table" {
        InOrder = "in order",
        AtRandom = "at random",
        Backwards = "backwards",
        Recovery = "recovery",
    }
}

impl Table {
    /// The baseline of the other ways.
    pub(super) fn baseline(self) -> Option<ReadWay> {
        ReadWay::ALL.into_iter().find(|way| way.table() == self && way.is_baseline())
    }
}

impl ReadWay {
    pub(super) fn table(self) -> Table {
        match self {
            ReadWay::Framed | ReadWay::Text | ReadWay::Lines | ReadWay::Bytes => Table::InOrder,
            ReadWay::FramedAt
            | ReadWay::TextAt
            | ReadWay::FramedSeek
            | ReadWay::TextSeek
            | ReadWay::Pread => Table::AtRandom,
            ReadWay::FramedBack | ReadWay::TextBack => Table::Backwards,
            ReadWay::FramedRecover | ReadWay::TextRecover => Table::Recovery,
        }
    }

    pub(super) fn is_baseline(self) -> bool {
        matches!(self, ReadWay::Lines | ReadWay::Pread)
    }

    /// Writes what this way reads into `dir`, and opens it as far as it is not timed.
    pub(super) fn store(self, dir: &std::path::Path, load: Load) -> Result<Stored> {
        use vellum::Layout::{Framed, Text};
        match self {
            ReadWay::Framed | ReadWay::FramedAt | ReadWay::FramedSeek | ReadWay::FramedBack => {
                Stored::log(dir, Framed, load)
            }
            ReadWay::Text | ReadWay::TextAt | ReadWay::TextSeek | ReadWay::TextBack => {
                Stored::log(dir, Text, load)
            }
            ReadWay::FramedRecover => Stored::copy(dir, Framed, load),
            ReadWay::TextRecover => Stored::copy(dir, Text, load),
            ReadWay::Lines | ReadWay::Bytes | ReadWay::Pread => Stored::file(dir, load),
        }
    }

    /// The timed part. Returns how many records there were.
    pub(super) fn read(self, stored: &mut Stored) -> Result<u64> {
        if self.table() == Table::Recovery {
            stored.recover()?;
            return Ok(stored.records());
        }
        let mut seen = 0;
        let mut count = |record: &[u8]| {
            seen += 1;
            black_box(record);
        };
        self.visit(stored, &mut count)?;
        Ok(if self == ReadWay::Bytes { stored.records() } else { seen })
    }

    /// Shows `visit` what it reads: records, or with `bytes` pieces of many of them.
    pub(super) fn visit(self, stored: &mut Stored, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        match self {
            ReadWay::Framed | ReadWay::Text | ReadWay::FramedRecover | ReadWay::TextRecover => {
                let mut reader = stored.opened()?.reader(vellum::Lsn::ZERO).map_err(failed)?;
                while let Some(record) = reader.next().map_err(failed)? {
                    visit(record.payload);
                }
                Ok(())
            }
            ReadWay::FramedAt | ReadWay::TextAt => {
                let log = stored.opened()?;
                for place in stored.places() {
                    visit(&log.read_at(vellum::Lsn::new(*place)).map_err(failed)?.payload);
                }
                Ok(())
            }
            ReadWay::FramedSeek | ReadWay::TextSeek => {
                let mut reader = stored.opened()?.reader(vellum::Lsn::ZERO).map_err(failed)?;
                for place in stored.places() {
                    reader.seek(vellum::Lsn::new(*place)).map_err(failed)?;
                    if let Some(record) = reader.next().map_err(failed)? {
                        visit(record.payload);
                    }
                }
                Ok(())
            }
            ReadWay::FramedBack | ReadWay::TextBack => {
                let log = stored.opened()?;
                for record in log.backwards(log.published()).map_err(failed)? {
                    visit(&record.map_err(failed)?.payload);
                }
                Ok(())
            }
            ReadWay::Lines => stored.lines(visit),
            ReadWay::Bytes => stored.pieces(visit),
            ReadWay::Pread => stored.at_places(visit),
        }
    }

    /// The way that shows the same bytes as records.
    pub(super) fn verifying(self) -> ReadWay {
        if self == ReadWay::Bytes { ReadWay::Lines } else { self }
    }

    /// The order in which the records come.
    pub(super) fn order(self, stored: &Stored, records: u64) -> Vec<u64> {
        match self.table() {
            Table::AtRandom => stored.order().to_vec(),
            Table::Backwards => (0..records).rev().collect(),
            Table::InOrder | Table::Recovery => (0..records).collect(),
        }
    }
}
