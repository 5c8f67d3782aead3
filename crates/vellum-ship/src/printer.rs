//! Records on standard output, in the forms that `vellum cat` has.

use std::io::{self, BufWriter, Stdout, Write};
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use serde::Serialize;
use vellum::internal::escaped;
use vellum::{Layout, OwnedRecord, Record, WriterId};

use crate::outcome::Result;
use crate::stdio::{self, Waiting};

/// The form of records.
#[derive(Args, Debug)]
pub(crate) struct Form {
    /// Print JSON Lines
    #[arg(long, conflicts_with = "null")]
    json: bool,
    /// End each record with a NUL byte instead of a newline
    #[arg(short = '0', long)]
    null: bool,
    /// Begin each record of many logs with the name of its log and a tab
    #[arg(long)]
    names: bool,
}

/// Prints records in a form.
pub(crate) struct Printer {
    output: BufWriter<Waiting<Stdout>>,
    is_json: bool,
    is_text: bool,
    has_names: bool,
    end: u8,
    /// Where the next line starts that belongs to the one printed last, which has no end.
    open_until: Option<u64>,
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
    /// When it was appended and by whom, where an envelope tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    writer: Option<String>,
}

/// A record that is printed.
struct Line<'a> {
    lsn: u64,
    next_lsn: u64,
    payload: &'a [u8],
    time: Option<SystemTime>,
    writer: Option<WriterId>,
}

impl<'a> From<Record<'a>> for Line<'a> {
    fn from(record: Record<'a>) -> Line<'a> {
        let (lsn, next_lsn) = (record.lsn.get(), record.next_lsn.get());
        let (time, writer) = (record.time(), record.writer());
        Line { lsn, next_lsn, payload: record.payload, time, writer }
    }
}

impl<'a> From<&'a OwnedRecord> for Line<'a> {
    fn from(record: &'a OwnedRecord) -> Line<'a> {
        let (lsn, next_lsn) = (record.lsn.get(), record.next_lsn.get());
        let (time, writer) = (record.time(), record.writer());
        Line { lsn, next_lsn, payload: &record.payload, time, writer }
    }
}

impl Printer {
    pub(crate) fn new(form: &Form, layout: Layout) -> Printer {
        Printer {
            output: BufWriter::with_capacity(256 << 10, stdio::stdout()),
            is_json: form.json,
            is_text: layout == Layout::Text,
            has_names: form.names,
            end: if form.null { 0 } else { b'\n' },
            open_until: None,
        }
    }

    /// Prints a record of the log with this name, if there are many.
    pub(crate) fn print(&mut self, log: Option<&str>, record: Record<'_>) -> Result<()> {
        self.put(log, &record.into())
    }

    /// Prints a record that was kept.
    pub(crate) fn print_owned(&mut self, log: Option<&str>, record: &OwnedRecord) -> Result<()> {
        self.put(log, &record.into())
    }

    /// The records that follow are of a log with this layout.
    pub(crate) fn set_layout(&mut self, layout: Layout) {
        self.is_text = layout == Layout::Text;
    }

    fn put(&mut self, log: Option<&str>, record: &Line<'_>) -> Result<()> {
        let Line { lsn, next_lsn, payload, .. } = *record;
        let line = payload.strip_suffix(b"\n").filter(|_| self.is_text);
        let payload = line.unwrap_or(payload);
        if self.is_json {
            let record = JsonRecord::new(log, record, payload);
            serde_json::to_writer(&mut self.output, &record).map_err(io::Error::from)?;
            return Ok(self.output.write_all(b"\n")?);
        }
        if self.open_until.take().is_some_and(|next| next != lsn) {
            self.output.write_all(&[self.end])?;
        }
        if let (Some(name), true) = (log, self.has_names) {
            write!(self.output, "{}\t", escaped(name))?;
        }
        self.output.write_all(payload)?;
        // A line without an end gets none, unless something else follows.
        self.open_until = (self.is_text && line.is_none() && log.is_none()).then_some(next_lsn);
        if self.open_until.is_none() { Ok(self.output.write_all(&[self.end])?) } else { Ok(()) }
    }

    /// Hands everything to the reader.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl<'a> JsonRecord<'a> {
    fn new(log: Option<&'a str>, record: &Line<'_>, payload: &'a [u8]) -> JsonRecord<'a> {
        let text = std::str::from_utf8(payload).ok();
        JsonRecord {
            log,
            lsn: record.lsn,
            next_lsn: record.next_lsn,
            payload: text,
            payload_base64: text.is_none().then(|| base64(payload)),
            time: record.time.map(|time| {
                DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Nanos, true)
            }),
            writer: record.writer.map(|writer| writer.to_string()),
        }
    }
}

/// The standard alphabet, padded.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = char::from(ALPHABET[(word >> (18 - 6 * at) & 63) as usize]);
            text.push(if at <= three.len() { digit } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_the_standard_one() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }
}
