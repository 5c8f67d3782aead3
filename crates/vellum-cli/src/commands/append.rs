//! `vellum append`: records from standard input to the tail of a log.

mod committer;
mod ending;
mod input;
mod records;

use std::fmt::Display;
use std::fs::File;
use std::io::IoSlice;
use std::time::Duration;

use anyhow::Context;
use vellum::internal::log_directory;
use vellum::{ErrorKind, Fill, Layout, Log, Lsn, OnFull};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output::say;

use super::open::{advised, of, open_to_commit, shaped, with_policy};
use crate::args::{AppendArgs, CommitWhen, ShapeArgs};
use committer::Committer;
use ending::Ending;
pub(super) use ending::TAKEN;
use input::Input;
use records::{Record, Records};

/// Lines that go into a text log by one call have no more bytes than a pipe holds.
const TOGETHER_BYTES_MAX: u64 = 64 << 10;
/// And no more than this part of a file.
const TOGETHER_PER_FILE: u64 = 64;

/// The most that a record may have.
const RECORD_BYTES_MAX: u64 = u32::MAX as u64;

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
    let is_new = !log_directory(&args.log).join("control").exists();
    let mut shape = args.shape.clone();
    if is_new && args.policy.is_for_text() {
        shape.layout.get_or_insert(Layout::Text);
    }
    let log = match when {
        CommitWhen::None => {
            let options = shaped(advised(of(shape.layout)), &shape);
            with_policy(options, &args.policy).open(&args.log)?
        }
        CommitWhen::Every | CommitWhen::End => open_to_commit(&args.log, &shape, &args.policy)?,
    };
    say_what_is_kept(&args.shape, &log)?;
    if is_new && !log.stat()?.can_sync_name {
        say(format_args!(
            "the directory above {} may not be read, so the name of the new log may be missing \
             after a power cut",
            args.log.display()
        ));
    }
    let delimiter = if args.null { 0 } else { b'\n' };
    let committer = Committer::new(log, when, args.commit_interval, args.ack);
    let together_bytes_max = together_bytes_max(args, &committer.log())?;
    let record_bytes_max = args.record_bytes_max.clamp(1, RECORD_BYTES_MAX) as usize;
    let input = Input::new(file, &committer, ending);
    let mut records = Records::new(input, delimiter, record_bytes_max);
    let (mut number, mut has_cut): (u64, bool) = (1, false);
    loop {
        let (record, count) = match records.next_many(together_bytes_max) {
            Ok(Some(found)) => found,
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
        // Lines that come together are text, in which every byte has its position.
        committer.appended(if count == 1 { lsn } else { last_line(lsn, record) })?;
        if records.take_cut() && !has_cut {
            has_cut = true;
            say(format_args!(
                "record {number} of the input is longer than {record_bytes_max} bytes and is cut \
                 into several, as others may be (--record-bytes-max)"
            ));
        }
        number += count;
    }
    committer.commit()
}

/// Says what the user asked for a new log, and the log that is there has its own of.
fn say_what_is_kept(shape: &ShapeArgs, log: &Log) -> Result<()> {
    let ShapeArgs { segment_bytes, preallocate, fill, .. } = *shape;
    if (segment_bytes, preallocate, fill) == (None, None, None) {
        return Ok(());
    }
    let stat = log.stat()?;
    let kept = [
        kept("--segment-bytes", segment_bytes, stat.segment_capacity_bytes),
        kept("--preallocate", preallocate, stat.preallocate),
        kept("--fill", fill, stat.fill),
    ];
    kept.into_iter().flatten().for_each(say);
    Ok(())
}

fn kept<T: PartialEq + Display>(option: &str, asked: Option<T>, has: T) -> Option<String> {
    let asked = asked.filter(|asked| *asked != has)?;
    Some(format!("the log keeps {option} {has}; {asked} is for a new log"))
}

/// How many bytes of records may go into the log by one call: none more than the first, unless they
/// are lines of a text log that are not counted or waited for one by one.
fn together_bytes_max(args: &AppendArgs, log: &Log) -> vellum::Result<usize> {
    let is_one_by_one = args.null || args.ack || args.commit_when() == CommitWhen::Every;
    // The log counts what it drops.
    let may_drop = args.policy.on_full == Some(OnFull::Drop);
    if is_one_by_one || may_drop || log.layout() != Layout::Text {
        return Ok(0);
    }
    let stat = log.stat()?;
    if stat.fill != Fill::Pwrite {
        // A line costs no system call.
        return Ok(0);
    }
    let file = stat.policy.rotate_bytes.unwrap_or(u64::MAX).min(stat.segment_capacity_bytes);
    // Files are as long as their limit says but for a small part.
    Ok((file / TOGETHER_PER_FILE).min(TOGETHER_BYTES_MAX) as usize)
}

/// Where the last of the lines starts that went in at `lsn`.
fn last_line(lsn: Lsn, lines: Record<'_>) -> Lsn {
    let before = memchr::memrchr(b'\n', lines.payload()).map_or(0, |newline| newline + 1);
    Lsn::new(lsn.get() + before as u64)
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
