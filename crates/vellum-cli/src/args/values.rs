//! How words of the command line become values.

use std::ffi::OsString;

use vellum::Lsn;

pub(super) use vellum_command::values::{
    bytes, compression, files, fill, layout, millis, on_full, preallocate, short_span, span,
};

/// Reads a share, with or without its sign.
pub(super) fn percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse();
    number
        .ok()
        .filter(|percent| (1..100).contains(percent))
        .ok_or_else(|| String::from("a share is a whole number from 1 to 99, as 95%"))
}

/// Reads a position.
pub(super) fn lsn(text: &str) -> Result<Lsn, String> {
    text.parse().map_err(|_| "a position is a number, as `vellum append --ack` prints it".into())
}

/// Which records `tail` begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// So many before the end.
    Last(usize),
    /// The one with this number, counted from 1.
    From(usize),
}

/// Reads a number of lines as tail(1) does: `5` and `-5` from the end, `+5` from the beginning.
pub(super) fn lines(text: &str) -> Result<Lines, String> {
    let count =
        |text: &str| text.parse().map_err(|_| "write a number of lines, as 10 or +10".into());
    match text.strip_prefix('+') {
        Some(number) => count(number).map(Lines::From),
        None => count(text.strip_prefix('-').unwrap_or(text)).map(Lines::Last),
    }
}

/// The command line with `tail -5` and `tail -5f` as `tail -n5` and `tail -fn5`.
pub(super) fn lines_as_options(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let is_tail = words.get(1).is_some_and(|word| word == "tail");
    // Like tail(1), as the first word only: a word behind another option may be its value.
    if let Some(word) = words.get_mut(2).filter(|_| is_tail)
        && let Some(text) = word.to_str().and_then(|word| word.strip_prefix('-'))
    {
        let (count, n) = match text.strip_suffix('f') {
            Some(count) => (count, "-fn"),
            None => (text, "-n"),
        };
        // `-0` is an option of its own.
        if count.parse().is_ok_and(|count: usize| count > 0) {
            *word = format!("{n}{count}").into();
        }
    }
    words
}

/// Where a cursor can be put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// The oldest record.
    Begin,
    /// Behind the newest record.
    End,
    /// The record at this position.
    At(Lsn),
    /// Behind everything that was handled when this position was stored.
    Stored(vellum::Position),
}

/// Reads the position of a cursor.
pub(super) fn position(text: &str) -> Result<Position, String> {
    match text {
        "begin" => Ok(Position::Begin),
        "end" => Ok(Position::End),
        _ if text.contains('/') => {
            text.parse().map(Position::Stored).map_err(|error: vellum::Error| error.to_string())
        }
        _ => lsn(text)
            .map(Position::At)
            .map_err(|_| "a position is a number, a stored position, `begin` or `end`".into()),
    }
}
