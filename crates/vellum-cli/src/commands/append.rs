//! `vellum append`: records from standard input to the tail of a log.

mod records;

use std::io::{self, IoSlice, Write};

use anyhow::Context;
use vellum::{Layout, Log, Lsn, Options};

use super::shaped;
use crate::lowargs::AppendArgs;
use crate::outcome::{Outcome, Result};
use records::{Record, Records};

pub(super) fn run(args: &AppendArgs) -> Result<Outcome> {
    let log = shaped(Options::new(), &args.shape).open(&args.log)?;
    let delimiter = if args.null { 0 } else { b'\n' };
    let mut records = Records::new(io::stdin().lock(), delimiter);
    let mut acknowledged = io::stdout().lock();
    let mut number: u64 = 1;
    while let Some(record) = records.next().with_context(|| not_appended(number))? {
        let lsn = append(&log, record, delimiter).with_context(|| not_appended(number))?;
        if args.ack {
            // Standard output is flushed after each line, terminal or not.
            writeln!(acknowledged, "{lsn}").context("cannot write to standard output")?;
        }
        number += 1;
    }
    Ok(Outcome::Good)
}

fn not_appended(number: u64) -> String {
    format!("record {number} of the input was not appended")
}

/// In a text log the newline is part of the record, and has to be added where the input has none.
fn append(log: &Log, record: Record<'_>, delimiter: u8) -> vellum::Result<Lsn> {
    if log.layout() != Layout::Text {
        return log.append(record.payload());
    }
    match record.delimited() {
        Some(line) if delimiter == b'\n' => log.append(line),
        _ => log.append_vectored(&[IoSlice::new(record.payload()), IoSlice::new(b"\n")]),
    }
}
