//! `msg % args` where the outcome is certain: plain `%s` and `%d` for texts and whole numbers.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString, PyTuple};

use super::digits::Digits;

/// Texts up to here are read as UTF-8, which Python keeps with them for as long as they live.
const TEXT_LEN_MAX: usize = 1024;

/// `text % args`; `None` where Python has to do it, or has to raise its error.
///
/// `scratch` is empty, and is again afterwards.
pub(super) fn percent<'py>(
    text: &Bound<'py, PyString>,
    args: &Bound<'py, PyTuple>,
    scratch: &mut Vec<u8>,
) -> Option<Bound<'py, PyString>> {
    if args.is_empty() {
        return Some(text.clone());
    }
    if !text.is_exact_instance_of::<PyString>() {
        return None;
    }
    let message = fill_in(text, args, scratch)
        .and_then(|()| std::str::from_utf8(scratch).ok())
        .map(|message| PyString::new(text.py(), message));
    scratch.clear();
    message
}

fn fill_in(
    text: &Bound<'_, PyString>,
    args: &Bound<'_, PyTuple>,
    line: &mut Vec<u8>,
) -> Option<()> {
    let mut rest = short(text)?.as_bytes();
    let mut args = args.iter_borrowed();
    while let Some(len) = rest.iter().position(|byte| *byte == b'%') {
        line.extend_from_slice(&rest[..len]);
        match rest.get(len + 1)? {
            b'%' => line.push(b'%'),
            b's' => show(&*args.next()?, line)?,
            b'd' => show_number(&*args.next()?, line)?,
            _ => return None,
        }
        rest = &rest[len + 2..];
    }
    line.extend_from_slice(rest);
    // One too many is an error.
    if args.next().is_none() { Some(()) } else { None }
}

fn show(value: &Bound<'_, PyAny>, line: &mut Vec<u8>) -> Option<()> {
    match value.cast_exact::<PyString>() {
        Ok(text) => line.extend_from_slice(short(text)?.as_bytes()),
        Err(_) => show_number(value, line)?,
    }
    Some(())
}

fn show_number(value: &Bound<'_, PyAny>, line: &mut Vec<u8>) -> Option<()> {
    let number: i64 = value.cast_exact::<PyInt>().ok()?.extract().ok()?;
    line.extend_from_slice(Digits::of(number).as_bytes());
    Some(())
}

/// A text of which a copy in UTF-8 is not worth a thought.
fn short<'text>(text: &'text Bound<'_, PyString>) -> Option<&'text str> {
    if text.len().is_ok_and(|len| len <= TEXT_LEN_MAX) { text.to_str().ok() } else { None }
}
