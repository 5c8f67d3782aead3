//! `vellum append`: records from standard input to the tail of a log.

mod committer;
mod records;

use std::io::IoSlice;
use std::path::Path;

use anyhow::Context;
use vellum::{ErrorKind, Layout, Log, Lsn, Options};

use super::{for_commits, shaped};
use crate::lowargs::{AppendArgs, CommitWhen, ShapeArgs};
use crate::outcome::{Outcome, Result};
use committer::{Committer, Input};
use records::{Record, Records};

pub(super) fn run(args: &AppendArgs) -> Result<Outcome> {
    let when = args.commit_when();
    let log = open(&args.log, &args.shape, when)?;
    let delimiter = if args.null { 0 } else { b'\n' };
    let committer = Committer::new(&log, when, args.commit_interval, args.ack);
    let mut records = Records::new(Input::new(&committer)?, delimiter);
    let mut number: u64 = 1;
    loop {
        let record = match records.next() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(error) => {
                let failure = committer.take_failure();
                return Err(failure.unwrap_or_else(|| error.context(not_appended(number))));
            }
        };
        let lsn = append(&log, record, delimiter).with_context(|| not_appended(number))?;
        committer.appended(lsn)?;
        number += 1;
    }
    committer.commit()?;
    Ok(Outcome::Good)
}

fn not_appended(number: u64) -> String {
    format!("record {number} of the input was not appended")
}

/// Opens the log as it is, or a new one that suits what is done with it.
fn open(path: &Path, shape: &ShapeArgs, when: CommitWhen) -> vellum::Result<Log> {
    let as_it_is = shaped(Options::new(), shape);
    if when == CommitWhen::None {
        return as_it_is.open(path);
    }
    // What a new log is made of is not to be asked of one that is there.
    match as_it_is.clone().create(false).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        answer => return answer,
    }
    match for_commits(shape).create_new(true).open(path) {
        // Somebody was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => as_it_is.open(path),
        answer => answer,
    }
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
