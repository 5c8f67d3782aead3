//! How words of the command line become values.

use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use vellum::{Fill, Layout, OnFull, Preallocate};

/// Reads a number of bytes: `4096`, `64KiB`, `1MiB`, `10GiB`, or `K`, `M`, `G`, `T` for short;
/// `KB`, `MB`, `GB` and `TB` are powers of ten.
pub fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit: u64 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err("write a number of bytes, as 4096, 64KiB, 500MB or 1GiB".into()),
    };
    let number: u64 = number.parse().map_err(|_| "it does not start with a number".to_string())?;
    number.checked_mul(unit).ok_or_else(|| "it is too large".into())
}

const SPANS: [(&str, u64); 6] = [
    ("s", 1000),
    ("m", 60_000),
    ("min", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("w", 7 * 86_400_000),
];

/// Reads a span of time in whole seconds: `90s`, `15m`, `12h`, `1d`, `2w`, or `0`.
pub fn span(text: &str) -> Result<Duration, String> {
    let form = "write a time span, as 90s, 15m, 12h, 1d or 2w";
    read_span(text, |unit| SPANS.iter().find(|(name, _)| *name == unit), form)
}

/// Reads a span of time that may be short: `250ms`, or as [`span`] does.
pub fn short_span(text: &str) -> Result<Duration, String> {
    let form = "write a time span, as 250ms, 90s, 15m, 12h, 1d or 2w";
    let find = |unit: &str| [("ms", 1)].iter().chain(&SPANS).find(|(name, _)| *name == unit);
    read_span(text, find, form)
}

fn read_span<'a>(
    text: &str,
    find: impl Fn(&str) -> Option<&'a (&'a str, u64)>,
    form: &str,
) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit.trim_start() {
        "" if number == "0" => 1,
        unit => find(unit).ok_or(form)?.1,
    };
    let number: u64 = number.parse().map_err(|_| "it does not start with a number".to_string())?;
    number.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(|| "it is too long".into())
}

/// Reads a number of files, or `all` of them.
pub fn files(text: &str) -> Result<u64, String> {
    match text {
        "all" => Ok(u64::MAX),
        _ => text.parse().map_err(|_| "write a number of files, or all".into()),
    }
}

/// Reads `yes` or `no`.
pub fn yes_or_no() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["yes", "no"]).map(|word| word == "yes")
}

/// Reads a layout.
pub fn layout() -> impl TypedValueParser<Value = Layout> {
    named(&["framed", "text"])
}

/// Reads a way to preallocate.
pub fn preallocate() -> impl TypedValueParser<Value = Preallocate> {
    named(&["auto", "off", "sparse", "fallocate", "zeros", "recycle"])
}

/// Reads a way to fill.
pub fn fill() -> impl TypedValueParser<Value = Fill> {
    named(&["mapped", "pwrite", "staged"])
}

/// Reads an answer to a full disk.
pub fn on_full() -> impl TypedValueParser<Value = OnFull> {
    named(&["error", "block", "drop"])
}

/// Reads a value that has one of `names`, so that help and completions can tell them.
fn named<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = vellum::Error> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts_take_units() {
        for (text, value) in [
            ("4096", 4096),
            ("64KiB", 64 << 10),
            ("64 kib", 64 << 10),
            ("1MiB", 1 << 20),
            ("2G", 2 << 30),
            ("500MB", 500_000_000),
            ("1tb", 1_000_000_000_000),
        ] {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
        for text in ["", "KiB", "1XB", "1.5MiB", "-1", "99999999999999GiB", "x"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

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
            assert_eq!(short_span(text), span(text), "{text}");
        }
        assert_eq!(short_span("250ms"), Ok(Duration::from_millis(250)));
        for text in ["", "d", "10", "1.5h", "-1d", "99999999999999999w", "1 month", "5ms"] {
            assert!(span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn files_are_a_number_or_all() {
        assert_eq!((files("0"), files("all")), (Ok(0), Ok(u64::MAX)));
        assert!(files("some").is_err());
    }

    #[test]
    fn every_name_that_help_offers_is_understood() {
        fn understood<T>(parser: impl TypedValueParser<Value = T>) -> usize
        where
            T: FromStr<Err = vellum::Error>,
        {
            let names: Vec<_> = parser.possible_values().unwrap().collect();
            for name in &names {
                assert!(name.get_name().parse::<T>().is_ok(), "{name:?}");
            }
            names.len()
        }
        assert_eq!(understood(layout()), 2);
        assert_eq!(understood(preallocate()), 6);
        assert_eq!(understood(fill()), 3);
        assert_eq!(understood(on_full()), 3);
    }
}
