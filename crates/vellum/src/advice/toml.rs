//! The text of `vellum.toml`: a flat part of TOML, read strictly.
//!
//! Every text that is taken here is TOML with the same meaning; most of TOML is not taken. So any
//! tool can read and write these files, and the library needs no parser that is larger than it.

use std::fmt::Write;
use std::str::FromStr;

use super::{Advice, LogAdvice};
use crate::options::limits::{check_prefault, check_segment_capacity, check_sparse};
use crate::{Fill, Result};

/// The version of the file that this library writes, and the only one it reads.
const VERSION: u64 = 1;
const PIECE_BYTES_MAX: u64 = 1 << 30;
const PIECE_UNIT_BYTES: u64 = 4096;
const THREADS_MAX: u64 = 1024;
/// TOML promises no more than this.
const NUMBER_MAX: u64 = i64::MAX as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Top,
    Wal,
    Log,
    File,
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Name(&'a str),
    Number(u64),
}

/// Reads a text; what is wrong is told with its line.
pub(super) fn parse(text: &str) -> Result<Advice, String> {
    let mut parser = Parser::default();
    let mut lines = text.split('\n').enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        // Only what ends a line belongs to its end.
        let is_ended = lines.peek().is_some();
        let line = if is_ended { line.strip_suffix('\r').unwrap_or(line) } else { line };
        parser.line(line).map_err(|fault| format!("line {}: {fault}", index + 1))?;
    }
    Ok(parser.advice)
}

struct Parser<'a> {
    advice: Advice,
    section: Section,
    sections: Vec<Section>,
    keys: Vec<(Section, &'a str)>,
}

impl Default for Parser<'_> {
    fn default() -> Self {
        let (sections, keys) = (Vec::new(), Vec::new());
        Parser { advice: Advice::default(), section: Section::Top, sections, keys }
    }
}

impl<'a> Parser<'a> {
    fn line(&mut self, line: &'a str) -> Result<(), String> {
        if let Some(control) = line.chars().find(|c| c.is_control() && *c != '\t') {
            return Err(format!("the control character {control:?} is not allowed"));
        }
        let line = trim(line);
        if is_end(line) {
            return Ok(());
        }
        match line.strip_prefix('[') {
            Some(rest) => self.begin_section(rest),
            None => self.take_key(line),
        }
    }

    fn begin_section(&mut self, rest: &str) -> Result<(), String> {
        let (name, rest) = rest.split_once(']').ok_or("the name of a section ends with ']'")?;
        check_end(rest)?;
        let section = match name {
            "wal" => Section::Wal,
            "log" => Section::Log,
            "file" => Section::File,
            _ => {
                return Err(format!(
                    "there is no section {name:?}; there are \"wal\", \"log\" and \"file\""
                ));
            }
        };
        if self.sections.contains(&section) {
            return Err(format!("the section {name:?} is there twice"));
        }
        self.sections.push(section);
        self.section = section;
        Ok(())
    }

    fn take_key(&mut self, line: &'a str) -> Result<(), String> {
        let (key, value) = line
            .split_once('=')
            .ok_or_else(|| format!("{line:?} is neither a section nor `key = value`"))?;
        let key = trim(key);
        let value = parse_value(trim(value)).map_err(|fault| format!("{key}: {fault}"))?;
        if self.keys.contains(&(self.section, key)) {
            return Err(format!("{key:?} is there twice"));
        }
        self.keys.push((self.section, key));
        self.set(key, value)
    }

    fn set(&mut self, key: &str, value: Value<'_>) -> Result<(), String> {
        match self.section {
            Section::Top => set_top(key, value),
            Section::Wal => set_log(&mut self.advice.wal, key, value),
            Section::Log => {
                set_log(&mut self.advice.log, key, value)?;
                if self.advice.log.fill == Some(Fill::Staged) {
                    return Err("fill: only a program decides to stage its records; choose \
                                \"mapped\" or \"pwrite\", or put it under [wal]"
                        .into());
                }
                Ok(())
            }
            Section::File => self.set_file(key, value),
        }
    }

    fn set_file(&mut self, key: &str, value: Value<'_>) -> Result<(), String> {
        let file = &mut self.advice.file;
        match key {
            "method" => file.method = Some(named(key, value)?),
            "piece_bytes" => {
                let bytes = number(key, value)?;
                if bytes == 0 || bytes > PIECE_BYTES_MAX || bytes % PIECE_UNIT_BYTES != 0 {
                    return Err(format!(
                        "piece_bytes: {bytes} is not a multiple of {PIECE_UNIT_BYTES} up to \
                         {PIECE_BYTES_MAX}"
                    ));
                }
                file.piece_bytes = Some(bytes);
            }
            "threads" => {
                let threads = number(key, value)?;
                let count = u32::try_from(threads).ok();
                let count = count.filter(|_| (1..=THREADS_MAX).contains(&threads));
                file.threads = Some(
                    count.ok_or(format!("threads: {threads} is not from 1 to {THREADS_MAX}"))?,
                );
            }
            _ => return Err(unknown(key, "\"method\", \"piece_bytes\" and \"threads\"")),
        }
        Ok(())
    }
}

fn set_top(key: &str, value: Value<'_>) -> Result<(), String> {
    match (key, value) {
        ("version", Value::Number(VERSION)) => Ok(()),
        ("version", Value::Number(version)) => Err(format!(
            "the file has version {version}; this library reads version {VERSION}, so let `vellum \
             advise --write` of the same version make it again"
        )),
        ("version", Value::Name(_)) => Err("version: it is a number, without quotes".into()),
        _ => Err(unknown(key, "\"version\" before the sections")),
    }
}

fn set_log(log: &mut LogAdvice, key: &str, value: Value<'_>) -> Result<(), String> {
    match key {
        "preallocate" => log.preallocate = Some(named(key, value)?),
        "fill" => log.fill = Some(named(key, value)?),
        "segment_capacity_bytes" => {
            let bytes = number(key, value)?;
            check_segment_capacity(bytes).map_err(|error| error.to_string())?;
            log.segment_capacity_bytes = Some(bytes);
        }
        "prefault_bytes" => {
            let bytes = number(key, value)?;
            check_prefault(bytes).map_err(|error| error.to_string())?;
            log.prefault_bytes = Some(bytes);
        }
        _ => {
            let known = "\"preallocate\", \"fill\", \"segment_capacity_bytes\" and \
                         \"prefault_bytes\"";
            return Err(unknown(key, known));
        }
    }
    check_sparse(log.preallocate, log.fill).map_err(|error| error.to_string())
}

fn parse_value(text: &str) -> Result<Value<'_>, String> {
    if let Some(rest) = text.strip_prefix('"') {
        let (name, rest) = rest.split_once('"').ok_or("the string has no closing quote")?;
        if name.contains('\\') {
            return Err(format!("{text} has an escape, and no value needs one"));
        }
        check_end(rest)?;
        return Ok(Value::Name(name));
    }
    let (digits, _) = text.split_once('#').unwrap_or((text, ""));
    let digits = trim(digits);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || (digits.len() > 1 && digits.starts_with('0')) {
        return Err(format!(
            "{digits:?} is neither a name in double quotes nor a number of plain digits"
        ));
    }
    let number = digits.parse().ok().filter(|number| *number <= NUMBER_MAX);
    number.map(Value::Number).ok_or_else(|| format!("{digits} is more than {NUMBER_MAX}"))
}

fn named<T: FromStr<Err = crate::Error>>(key: &str, value: Value<'_>) -> Result<T, String> {
    match value {
        Value::Name(name) => name.parse().map_err(|error| format!("{key}: {error}")),
        Value::Number(number) => Err(format!("{key}: {number} is a number, and a name is needed")),
    }
}

fn number(key: &str, value: Value<'_>) -> Result<u64, String> {
    match value {
        Value::Number(number) => Ok(number),
        Value::Name(name) => {
            Err(format!("{key}: {name:?} is in quotes, and a plain number is needed"))
        }
    }
}

fn unknown(key: &str, known: &str) -> String {
    format!("there is no key {key:?} here; there are {known}")
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// Whether nothing but a comment is left of a line.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('#')
}

fn check_end(rest: &str) -> Result<(), String> {
    let rest = trim(rest);
    if is_end(rest) { Ok(()) } else { Err(format!("{rest:?} is one thing too many")) }
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

fn quoted(name: impl std::fmt::Display) -> String {
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
