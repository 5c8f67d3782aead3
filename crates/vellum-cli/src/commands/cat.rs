//! `vellum cat`: the records of a log on standard output.

use std::io;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use vellum::{ErrorKind, Layout, Log, Lsn, Reader, Record};

use super::times::{self, Times};
use super::{cursor, open_to_read};
use crate::lowargs::CatArgs;
use crate::outcome::{Outcome, Result};
use crate::output::{self, Output};

/// How often a reader that waits for records looks whether somebody still reads what it prints.
pub(super) const LOOK_AT_OUTPUT: Duration = Duration::from_secs(1);

/// What to do when records were removed before they were printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AtTrimmed {
    Fail,
    GoOn,
}

/// How long to wait for a record of a process that may have been stopped or killed, but may as well
/// be about to publish it.
const LOOK_TWICE: Duration = Duration::from_millis(200);

pub(super) fn run(args: &CatArgs) -> Result<Outcome> {
    let log = open_to_read(&args.log)?;
    let from = match args.since {
        Some(since) => log.reader_at_time(since)?.position(),
        None => cursor::resolve(&log, args.from)?,
    };
    print(&log, args, from, AtTrimmed::Fail, &|| false)
}

/// Prints the records from `from` on that `args` ask for. Who follows stops when `is_elsewhere`
/// says so, which is asked when nothing has come for a while.
pub(super) fn print(
    log: &Log,
    args: &CatArgs,
    from: Lsn,
    at_trimmed: AtTrimmed,
    is_elsewhere: &dyn Fn() -> bool,
) -> Result<Outcome> {
    let times = Times::of(log, args)?;
    let mut reader = reader(log, args, from)?;
    let mut has_gaps = false;
    let mut printer = Printer::new(args, log.layout());
    let end = args.to.map_or(times.end, |to| to.min(times.end));
    let is_done = |position| position >= end;
    let mut patience = None;
    while !is_done(reader.position()) {
        let found = if patience.is_some() { reader.follow(patience) } else { reader.next() };
        match found {
            // There may be nothing but pads between the last record and `to`.
            Ok(Some(record)) if is_done(record.lsn) => break,
            Ok(Some(record)) => {
                if times.have(record) {
                    printer.print(record)?;
                }
                patience = None;
            }
            Ok(None) => {
                printer.output.flush()?;
                let has_patience = patience.is_some();
                patience = Some(if args.follow { LOOK_AT_OUTPUT } else { LOOK_TWICE });
                let is_over = match args.follow {
                    true => is_output_closed() || has_patience && is_elsewhere(),
                    false => has_patience || reader.obstacle().is_none(),
                };
                if is_over {
                    break;
                }
            }
            Err(error) if at_trimmed == AtTrimmed::GoOn && error.kind() == ErrorKind::Trimmed => {
                let position = reader.position();
                has_gaps |= say_gaps(&mut reader);
                reader = self::reader(log, args, Lsn::ZERO)?;
                say_removed(position, reader.position());
            }
            Err(error) => {
                // What is good before the damage is of use.
                printer.output.flush()?;
                say_gaps(&mut reader);
                return Err(error.into());
            }
        }
        has_gaps |= say_gaps(&mut reader);
    }
    printer.output.flush()?;
    if has_gaps | say_gaps(&mut reader) {
        return Ok(Outcome::Damaged);
    }
    if !args.follow && !is_done(reader.position()) && is_stuck(&reader) {
        return Ok(Outcome::Incomplete);
    }
    Ok(Outcome::Good)
}

/// Says what keeps the reader from records that may stand behind.
fn is_stuck(reader: &Reader) -> bool {
    let Some(obstacle) = reader.obstacle() else { return false };
    output::say(format_args!(
        "records from position {} on may be missing: {obstacle}",
        reader.position()
    ));
    true
}

/// A reader that goes on behind what is missing of a text log; of a framed log, where the user asks
/// for it.
pub(super) fn reader(log: &Log, args: &CatArgs, from: Lsn) -> vellum::Result<Reader> {
    let reader = as_asked(log.reader(from)?, log, args);
    Ok(reader)
}

/// The reader, as far as the user wants to see, and behind what is missing.
pub(super) fn as_asked(reader: Reader, log: &Log, args: &CatArgs) -> Reader {
    let mut reader = if args.durable { reader.durable() } else { reader };
    reader.skip_damage(skips_damage(log, args));
    reader
}

/// Whether reading goes on behind what is missing.
pub(super) fn skips_damage(log: &Log, args: &CatArgs) -> bool {
    args.skip_damage || log.layout() == Layout::Text
}

/// Says what was left out; returns whether anything was.
pub(super) fn say_gaps(reader: &mut Reader) -> bool {
    let gaps = reader.take_gaps();
    gaps.iter().for_each(output::say);
    !gaps.is_empty()
}

fn say_removed(from: Lsn, to: Lsn) {
    output::say(format_args!(
        "what was at positions {from} to {to} was removed before it was read"
    ));
}

/// Whether nobody can read what would be printed. Without this, `cat --follow | head -1` would
/// stay until the next record.
pub(super) fn is_output_closed() -> bool {
    let stdout = io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|_| fds[0].revents().contains(PollFlags::ERR))
}

/// Prints records in the form asked for.
pub(super) struct Printer {
    pub(super) output: Output,
    is_json: bool,
    is_text: bool,
    end: u8,
    /// Where the next line starts that belongs to the one printed last, which has no end.
    open_until: Option<Lsn>,
}

#[derive(Serialize)]
struct JsonRecord<'a> {
    lsn: u64,
    next_lsn: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    /// When it was appended and by whom, where an envelope tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    writer: Option<String>,
}

impl Printer {
    pub(super) fn new(args: &CatArgs, layout: Layout) -> Printer {
        let end = if args.null { 0 } else { b'\n' };
        let is_text = layout == Layout::Text;
        Printer { output: Output::new(), is_json: args.json, is_text, end, open_until: None }
    }

    pub(super) fn print(&mut self, record: Record<'_>) -> Result<()> {
        if self.is_text && !self.is_json && self.end == b'\n' {
            // What follows something that is missing does not go on the line before it.
            if self.open_until.is_some_and(|next| next != record.lsn) {
                self.output.bytes(b"\n")?;
            }
            self.open_until = (!record.payload.ends_with(b"\n")).then_some(record.next_lsn);
            return self.output.bytes(record.payload);
        }
        let line = record.payload.strip_suffix(b"\n").filter(|_| self.is_text);
        let payload = line.unwrap_or(record.payload);
        if self.is_json {
            return self.output.json(&JsonRecord::new(record, payload));
        }
        self.output.bytes(payload)?;
        self.output.bytes(&[self.end])
    }
}

impl<'a> JsonRecord<'a> {
    fn new(record: Record<'_>, payload: &'a [u8]) -> JsonRecord<'a> {
        let text = std::str::from_utf8(payload).ok();
        JsonRecord {
            lsn: record.lsn.get(),
            next_lsn: record.next_lsn.get(),
            payload: text,
            payload_base64: text.is_none().then(|| STANDARD.encode(payload)),
            time: record.time().and_then(times::text),
            writer: record.writer().map(|writer| writer.to_string()),
        }
    }
}
