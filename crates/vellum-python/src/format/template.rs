//! A `%` format string, taken apart.

use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyString};

use super::digits::Digits;

/// A piece of a format string.
pub(crate) enum Piece {
    /// To be copied.
    Text(String),
    /// The message, and the time: attributes that the formatter itself gives the record.
    Message(Spec),
    Time(Spec),
    /// Any other attribute of the record.
    Field {
        name: Py<PyString>,
        spec: Spec,
    },
}

/// How an attribute is shown: `%(name)-8s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spec {
    is_number: bool,
    is_left: bool,
    fills_with_zeros: bool,
    width: usize,
}

/// Floats up to here are whole numbers in an `i64` without doubt.
const WHOLE_MAX: f64 = 1e15;

/// The pieces of `format`; `None` where it has something unusual in it.
pub(crate) fn parse(py: Python<'_>, format: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while let Some((text, after)) = rest.split_once('%') {
        pieces.push(Piece::Text(text.to_owned()));
        rest = match after.strip_prefix('%') {
            Some(after) => {
                pieces.push(Piece::Text("%".to_owned()));
                after
            }
            None => {
                let (name, after) = after.strip_prefix('(')?.split_once(')')?;
                let (spec, after) = Spec::parse(after)?;
                let is_plain =
                    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                if !is_plain || name.starts_with("__") || name == "getMessage" {
                    return None;
                }
                pieces.push(match name {
                    "message" => Piece::Message(spec),
                    "asctime" => Piece::Time(spec),
                    _ => Piece::Field { name: PyString::intern(py, name).unbind(), spec },
                });
                after
            }
        };
    }
    pieces.push(Piece::Text(rest.to_owned()));
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    Some(pieces)
}

impl Spec {
    /// Reads flags, width and the letter `s` or `d`.
    fn parse(text: &str) -> Option<(Spec, &str)> {
        let flags_len = text.bytes().take_while(|byte| b"-0".contains(byte)).count();
        let (flags, rest) = text.split_at(flags_len);
        let width_len = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (width, rest) = rest.split_at(width_len);
        let is_number = rest.starts_with('d');
        if !is_number && !rest.starts_with('s') {
            return None;
        }
        let is_left = flags.contains('-');
        let fills_with_zeros = is_number && !is_left && flags.contains('0');
        let width = if width.is_empty() { 0 } else { width.parse().ok()? };
        (width <= 4096)
            .then_some((Spec { is_number, is_left, fills_with_zeros, width }, &rest[1..]))
    }

    /// Writes `value` as the letter says; `false` where only Python knows how.
    pub(crate) fn write(self, value: &Bound<'_, PyAny>, line: &mut Vec<u8>) -> PyResult<bool> {
        if value.is_exact_instance_of::<PyInt>() {
            self.write_number(value, line)?;
        } else if !self.is_number {
            return match value.cast_exact::<PyString>() {
                Ok(text) => self.write_string(text, line),
                Err(_) => self.write_string(&value.str()?, line),
            };
        } else if value.is_exact_instance_of::<PyFloat>() {
            let number: f64 = value.extract()?;
            if number.is_nan() || number.abs() > WHOLE_MAX {
                return Ok(false);
            }
            self.write_text(Digits::of(number as i64).as_str(), line);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Writes what the record has; `false` where it has nothing of that name.
    pub(crate) fn write_if_any(
        self,
        value: Option<&Bound<'_, PyAny>>,
        line: &mut Vec<u8>,
    ) -> PyResult<bool> {
        value.map_or(Ok(false), |value| self.write(value, line))
    }

    /// Writes `text` as the letter `s` says; `false` for the letter `d`, and for text that is no
    /// UTF-8.
    fn write_string(self, text: &Bound<'_, PyString>, line: &mut Vec<u8>) -> PyResult<bool> {
        let Ok(text) = text.to_str() else { return Ok(false) };
        if !self.is_number {
            self.write_text(text, line);
        }
        Ok(!self.is_number)
    }

    /// Writes a whole number: the letters `s` and `d` show it alike.
    fn write_number(self, number: &Bound<'_, PyAny>, line: &mut Vec<u8>) -> PyResult<()> {
        match number.extract::<i64>() {
            Ok(number) => self.write_text(Digits::of(number).as_str(), line),
            Err(_) => self.write_text(number.str()?.to_str()?, line),
        }
        Ok(())
    }

    fn write_text(self, text: &str, line: &mut Vec<u8>) {
        if self.width == 0 {
            return line.extend_from_slice(text.as_bytes());
        }
        let missing = self.width.saturating_sub(text.chars().count());
        let fill = |line: &mut Vec<u8>, with| line.resize(line.len() + missing, with);
        if self.is_left {
            line.extend_from_slice(text.as_bytes());
            return fill(line, b' ');
        }
        let mut text = text;
        if self.fills_with_zeros {
            if let Some(digits) = text.strip_prefix('-') {
                line.push(b'-');
                text = digits;
            }
            fill(line, b'0');
        } else {
            fill(line, b' ');
        }
        line.extend_from_slice(text.as_bytes());
    }
}
