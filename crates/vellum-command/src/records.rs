//! Records on standard output.

use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use vellum::internal::escaped;
use vellum::{Layout, OwnedRecord, Record, WriterId};

use crate::outcome::Result;
use crate::output::Output;

/// The form in which records are printed.
#[derive(Args, Clone, Copy, Debug)]
pub struct Form {
    /// Print JSON Lines
    #[arg(long, conflicts_with = "null")]
    pub json: bool,
    /// End each record with a NUL byte instead of a newline
    #[arg(short = '0', long)]
    pub null: bool,
    /// Print the bytes of each record and nothing between them, as for a program that takes them as
    /// a stream
    #[arg(long, conflicts_with_all = ["json", "null"])]
    pub raw: bool,
}

/// Prints records in a form.
#[derive(Debug)]
pub struct Printer {
    output: Output,
    is_json: bool,
    is_text: bool,
    has_names: bool,
    is_raw: bool,
    end: u8,
    /// Where the next line starts that belongs to the one printed last, which has no end.
    open_until: Option<u64>,
}

/// A record that is printed.
#[derive(Clone, Copy, Debug)]
pub struct Printed<'a> {
    lsn: u64,
    next_lsn: u64,
    payload: &'a [u8],
    time: Option<SystemTime>,
    writer: Option<WriterId>,
}

#[derive(Serialize)]
struct JsonRecord<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<&'a str>,
    lsn: u64,
    next_lsn: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    /// Its time and its writer, where it has an envelope.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    writer: Option<String>,
}

impl<'a> From<Record<'a>> for Printed<'a> {
    fn from(record: Record<'a>) -> Printed<'a> {
        let (lsn, next_lsn) = (record.lsn.get(), record.next_lsn.get());
        let (time, writer) = (record.time(), record.writer());
        Printed { lsn, next_lsn, payload: record.payload, time, writer }
    }
}

impl<'a> From<&'a OwnedRecord> for Printed<'a> {
    fn from(record: &'a OwnedRecord) -> Printed<'a> {
        let (lsn, next_lsn) = (record.lsn.get(), record.next_lsn.get());
        let (time, writer) = (record.time(), record.writer());
        Printed { lsn, next_lsn, payload: &record.payload, time, writer }
    }
}

impl Printer {
    /// Prints records of a log with this layout.
    pub fn new(form: Form, layout: Layout) -> Printer {
        Printer {
            output: Output::default(),
            is_json: form.json,
            is_text: layout == Layout::Text,
            has_names: false,
            is_raw: form.raw,
            end: if form.null { 0 } else { b'\n' },
            open_until: None,
        }
    }

    /// The same, where each record of many logs begins with the name of its log, if `is_named`.
    pub fn with_names(mut self, is_named: bool) -> Printer {
        self.has_names = is_named;
        self
    }

    /// Prints a record.
    pub fn print<'a>(&mut self, record: impl Into<Printed<'a>>) -> Result<()> {
        self.put(None, record.into())
    }

    /// Prints a record of one of many logs, the one with this name and layout.
    pub fn print_of<'a>(
        &mut self,
        name: &str,
        layout: Layout,
        record: impl Into<Printed<'a>>,
    ) -> Result<()> {
        self.is_text = layout == Layout::Text;
        self.put(Some(name), record.into())
    }

    /// Writes the text before a record.
    pub fn prefix(&mut self, text: &str) -> Result<()> {
        self.output.bytes(text.as_bytes())
    }

    /// Hands everything to the reader.
    pub fn flush(&mut self) -> Result<()> {
        self.output.flush()
    }

    #[inline]
    fn put(&mut self, log: Option<&str>, record: Printed<'_>) -> Result<()> {
        if self.is_raw {
            return self.output.bytes(record.payload);
        }
        let line = record.payload.strip_suffix(b"\n").filter(|_| self.is_text);
        let payload = line.unwrap_or(record.payload);
        if self.is_json {
            return self.output.json(&JsonRecord::new(log, record, payload));
        }
        // A record behind a gap does not continue the line before it.
        if self.open_until.take().is_some_and(|next| next != record.lsn) {
            self.output.bytes(b"\n")?;
        }
        if let (Some(name), true) = (log, self.has_names) {
            self.output.bytes(format!("{}\t", escaped(name)).as_bytes())?;
        }
        self.output.bytes(payload)?;
        // The last line of a text may lack its end, and is printed as it is.
        if self.is_text && line.is_none() && log.is_none() && self.end == b'\n' {
            self.open_until = Some(record.next_lsn);
            return Ok(());
        }
        self.output.bytes(&[self.end])
    }
}

impl<'a> JsonRecord<'a> {
    fn new(log: Option<&'a str>, record: Printed<'_>, payload: &'a [u8]) -> JsonRecord<'a> {
        let text = std::str::from_utf8(payload).ok();
        JsonRecord {
            log,
            lsn: record.lsn,
            next_lsn: record.next_lsn,
            payload: text,
            payload_base64: text.is_none().then(|| STANDARD.encode(payload)),
            time: record.time.and_then(time_text),
            writer: record.writer.map(|writer| writer.to_string()),
        }
    }
}

/// A time as it is in JSON, to the nanosecond. `None` beyond the year 9999, where it would have no
/// readable form.
pub fn time_text(time: SystemTime) -> Option<String> {
    Timestamp::try_from(time).ok().map(|time| format!("{time:.9}"))
}
