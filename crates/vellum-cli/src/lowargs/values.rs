//! How words of the command line become values.

use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use vellum::{Fill, Layout, Lsn, OnFull, Preallocate};

pub(super) use super::size::bytes;

/// Reads a layout.
pub(super) fn layout() -> impl TypedValueParser<Value = Layout> {
    named(&["framed", "text"])
}

/// Reads a way to preallocate.
pub(super) fn preallocate() -> impl TypedValueParser<Value = Preallocate> {
    named(&["auto", "off", "sparse", "fallocate", "zeros", "recycle"])
}

/// Reads a way to fill.
pub(super) fn fill() -> impl TypedValueParser<Value = Fill> {
    named(&["mapped", "pwrite", "staged"])
}

/// Reads `yes` or `no`.
pub(super) fn yes_or_no() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["yes", "no"]).map(|word| word == "yes")
}

/// Reads a share, with or without its sign.
pub(super) fn percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse();
    number
        .ok()
        .filter(|percent| (1..100).contains(percent))
        .ok_or_else(|| String::from("a share is a whole number from 1 to 99, as 95%"))
}

/// Reads an answer to a full disk.
pub(super) fn on_full() -> impl TypedValueParser<Value = OnFull> {
    named(&["error", "block", "drop"])
}

/// Reads a value that has one of `names`, so that help and completions can tell them.
fn named<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = vellum::Error> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse())
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

/// Reads a time span in whole seconds: `90s`, `15m`, `12h`, `1d`, `2w`, or `0`.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let seconds = match unit.trim_start() {
        "" if number == "0" => 1,
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err("write a time span, as 90s, 15m, 12h, 1d or 2w".into()),
    };
    let number: u64 = number.parse().map_err(|_| "it does not start with a number".to_string())?;
    let seconds = number.checked_mul(seconds).ok_or("it is too long")?;
    Ok(Duration::from_secs(seconds))
}

/// Reads a number of files, or `all` of them.
pub(super) fn files(text: &str) -> Result<u64, String> {
    if text == "all" {
        return Ok(u64::MAX);
    }
    text.parse().map_err(|_| "write a number of files, or all".into())
}

/// Reads a time: `10`, `0.5`.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=86_400.0).contains(seconds));
    let seconds = seconds.ok_or("write a number of seconds, as 10 or 0.5")?;
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_spans_take_the_units_of_clock_and_calendar() {
        for (text, seconds) in [
            ("0", 0),
            ("90s", 90),
            ("15m", 900),
            ("12 h", 43_200),
            ("1d", 86_400),
            ("2w", 1_209_600),
        ] {
            assert_eq!(span(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "d", "10", "1.5h", "-1d", "99999999999999999w", "1 month"] {
            assert!(span(text).is_err(), "{text}");
        }
        assert_eq!((files("0"), files("all")), (Ok(0), Ok(u64::MAX)));
        assert!(files("some").is_err());
    }

    #[test]
    fn every_name_that_help_offers_is_understood() {
        use clap::builder::TypedValueParser as _;
        assert_eq!(layout().possible_values().map(Iterator::count), Some(2));
        for name in ["auto", "off", "sparse", "fallocate", "zeros", "recycle"] {
            assert!(name.parse::<Preallocate>().is_ok(), "{name}");
        }
        for name in ["mapped", "pwrite", "staged"] {
            assert!(name.parse::<Fill>().is_ok(), "{name}");
        }
        for name in ["error", "block", "drop"] {
            assert!(name.parse::<OnFull>().is_ok(), "{name}");
        }
    }
}
