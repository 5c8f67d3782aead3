//! The text of `vellum.toml`.

use std::fmt::{Display, Write};
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};
use vellum::advice::Method;
use vellum::internal::{check_prefault, check_segment_capacity, check_sparse};
use vellum::{Fill, Preallocate};

use crate::{Advice, FileAdvice, LogAdvice};

/// The version of the file that this crate writes, and the only one it reads.
const VERSION: u64 = 1;
const PIECE_BYTES_MAX: u64 = 1 << 30;
const PIECE_UNIT_BYTES: u64 = 4096;
const THREADS_MAX: u32 = 1024;
/// TOML promises no more than this.
const NUMBER_MAX: u64 = i64::MAX as u64;

/// Reads a text; the error names the wrong line.
pub(super) fn parse(text: &str) -> Result<Advice, String> {
    let content: Content = toml::from_str(text).map_err(|error| told(&error, text))?;
    Ok(Advice { wal: content.wal, log: content.log, file: content.file })
}

fn told(error: &toml::de::Error, text: &str) -> String {
    let Some(span) = error.span() else { return error.message().into() };
    let before = &text[..span.start.min(text.len())];
    let index = before.matches('\n').count();
    let line = text.lines().nth(index).unwrap_or_default().trim();
    let message = error.message().replace('\n', ", ");
    format!("line {}, `{line}`: {message}", index + 1)
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    #[serde(default, rename = "version", deserialize_with = "version")]
    _version: (),
    #[serde(default, deserialize_with = "wal")]
    wal: LogAdvice,
    #[serde(default, deserialize_with = "log")]
    log: LogAdvice,
    #[serde(default, deserialize_with = "FileKeys::deserialize")]
    file: FileAdvice,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, remote = "LogAdvice")]
struct LogKeys {
    #[serde(default, deserialize_with = "named")]
    preallocate: Option<Preallocate>,
    #[serde(default, deserialize_with = "named")]
    fill: Option<Fill>,
    #[serde(default, deserialize_with = "segment_capacity")]
    segment_capacity_bytes: Option<u64>,
    #[serde(default, deserialize_with = "prefault")]
    prefault_bytes: Option<u64>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, remote = "FileAdvice")]
struct FileKeys {
    #[serde(default, deserialize_with = "named")]
    method: Option<Method>,
    #[serde(default, deserialize_with = "piece")]
    piece_bytes: Option<u64>,
    #[serde(default, deserialize_with = "threads")]
    threads: Option<u32>,
}

fn version<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error> {
    match u64::deserialize(from)? {
        VERSION => Ok(()),
        version => Err(D::Error::custom(format!(
            "the file has version {version}; this program reads version {VERSION}, so let `vellum \
             advise --write` of the same version make it again"
        ))),
    }
}

fn wal<'de, D: Deserializer<'de>>(from: D) -> Result<LogAdvice, D::Error> {
    let advice = LogKeys::deserialize(from)?;
    check_sparse(advice.preallocate, advice.fill).map_err(D::Error::custom)?;
    Ok(advice)
}

fn log<'de, D: Deserializer<'de>>(from: D) -> Result<LogAdvice, D::Error> {
    let advice = wal(from)?;
    if advice.fill == Some(Fill::Staged) {
        return Err(D::Error::custom(
            "fill: only a program decides to stage its records; choose \"mapped\" or \"pwrite\", or \
             put it under [wal]",
        ));
    }
    Ok(advice)
}

/// A value that has a name.
fn named<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = vellum::Error>,
{
    let name = String::deserialize(from)?;
    name.parse().map(Some).map_err(D::Error::custom)
}

fn segment_capacity<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let bytes = u64::deserialize(from)?;
    check_segment_capacity(bytes).map(|()| Some(bytes)).map_err(D::Error::custom)
}

fn prefault<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let bytes = u64::deserialize(from)?;
    check_prefault(bytes).map(|()| Some(bytes)).map_err(D::Error::custom)
}

fn piece<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let bytes = u64::deserialize(from)?;
    if bytes == 0 || bytes > PIECE_BYTES_MAX || bytes % PIECE_UNIT_BYTES != 0 {
        return Err(D::Error::custom(format!(
            "{bytes} is not a multiple of {PIECE_UNIT_BYTES} up to {PIECE_BYTES_MAX}"
        )));
    }
    Ok(Some(bytes))
}

fn threads<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let threads = u32::deserialize(from)?;
    if !(1..=THREADS_MAX).contains(&threads) {
        return Err(D::Error::custom(format!("{threads} is not from 1 to {THREADS_MAX}")));
    }
    Ok(Some(threads))
}

pub(super) fn write(advice: &Advice, comment: &str) -> String {
    let mut text = String::new();
    for line in comment.lines() {
        let line = line.replace(|c: char| c.is_control() && c != '\t', " ");
        let _ = writeln!(text, "{}", format!("# {line}").trim_end());
    }
    let _ = writeln!(text, "version = {VERSION}");
    write_section(&mut text, "wal", &log_keys(&advice.wal));
    write_section(&mut text, "log", &log_keys(&advice.log));
    let file = &advice.file;
    write_section(
        &mut text,
        "file",
        &[
            ("method", file.method.map(quoted)),
            ("piece_bytes", file.piece_bytes.map(size)),
            ("threads", file.threads.map(|threads| threads.to_string())),
        ],
    );
    text
}

fn log_keys(log: &LogAdvice) -> [(&'static str, Option<String>); 4] {
    [
        ("fill", log.fill.map(quoted)),
        ("preallocate", log.preallocate.map(quoted)),
        ("segment_capacity_bytes", log.segment_capacity_bytes.map(size)),
        ("prefault_bytes", log.prefault_bytes.map(size)),
    ]
}

fn write_section(text: &mut String, name: &str, keys: &[(&str, Option<String>)]) {
    if keys.iter().all(|(_, value)| value.is_none()) {
        return;
    }
    let _ = writeln!(text, "\n[{name}]");
    for (key, value) in keys {
        if let Some(value) = value {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
}

fn quoted(name: impl Display) -> String {
    format!("\"{name}\"")
}

/// A number of bytes, with a comment for people.
fn size(bytes: u64) -> String {
    let bytes = bytes.min(NUMBER_MAX);
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(bits, _)| bytes != 0 && bytes.is_multiple_of(1 << bits));
    match unit {
        Some((bits, unit)) => format!("{bytes} # {} {unit}", bytes >> bits),
        None => bytes.to_string(),
    }
}
