//! How words of the command line become values.

use vellum::Lsn;

pub(super) use vellum_command::values::{
    bytes, files, fill, layout, on_full, preallocate, span, yes_or_no,
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
