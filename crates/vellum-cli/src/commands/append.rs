//! `vellum append`: records from standard input to the tail of a log.

mod committer;
mod ending;
mod input;
mod records;

use std::fs::File;
use std::io::IoSlice;
use std::time::Duration;

use anyhow::Context;
use vellum::{ErrorKind, Layout, Log, Lsn};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output::say;

use super::open::{advised, of, open_to_commit, shaped, with_policy};
use crate::args::{AppendArgs, CommitWhen};
use committer::Committer;
use ending::Ending;
pub(super) use ending::TAKEN;
use input::Input;
use records::{Record, Records};

pub(super) fn run(args: &AppendArgs) -> Result<Outcome> {
    let file = input::open().context("cannot read standard input")?;
    let timeout = if input::has_writer(&file) { args.stop_timeout } else { Duration::ZERO };
    let ending = Ending::watch(timeout)?;
    append_all(args, file, &ending)?;
    // The log is closed.
    Ok(ending.signal().map_or(Outcome::Good, Outcome::EndedBy))
}

fn append_all(args: &AppendArgs, file: File, ending: &Ending) -> Result<()> {
    let when = args.commit_when();
    let is_new = !args.log.join("control").exists();
    let log = match when {
        CommitWhen::None => {
            let options = shaped(advised(of(args.shape.layout)), &args.shape);
            with_policy(options, &args.policy).open(&args.log)?
        }
        CommitWhen::Every | CommitWhen::End => {
            open_to_commit(&args.log, &args.shape, &args.policy)?
        }
    };
    if is_new && !log.stat()?.can_sync_name {
        say(format_args!(
            "the directory above {} may not be read, so the name of the new log may be missing \
             after a power cut",
            args.log.display()
        ));
    }
    let delimiter = if args.null { 0 } else { b'\n' };
    let committer = Committer::new(log, when, args.commit_interval, args.ack);
    let mut records = Records::new(Input::new(file, &committer, ending), delimiter);
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
        let lsn = loop {
            let appended = append(&committer.log(), record, delimiter);
            match appended {
                Err(error) if error.kind() == ErrorKind::Removed => committer.reopen()?,
                answer => break answer.with_context(|| not_appended(number))?,
            }
        };
        committer.appended(lsn)?;
        number += 1;
    }
    committer.commit()
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
