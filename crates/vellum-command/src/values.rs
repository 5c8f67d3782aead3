//! How words of the command line become values.

use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use jiff::{Span, SpanRelativeTo};
use vellum::{Compression, Fill, Layout, OnFull, Preallocate};

/// Reads a number of bytes: `4096`, `64KiB`, `1.5GiB`, or `K`, `M`, `G`, `T` for short; `KB`, `MB`,
/// `GB` and `TB` are powers of ten.
pub fn bytes(text: &str) -> Result<u64, String> {
    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let (number, unit) = text.split_at(text.bytes().take_while(is_number).count());
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
        _ => return Err("write a number of bytes, as 4096, 64KiB, 1.5G or 500MB".into()),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let bad = || "it does not start with a number".to_string();
    let whole: u64 = whole.parse().map_err(|_| bad())?;
    let part = format!("0.{part}").parse::<f64>().map_err(|_| bad())? * unit as f64;
    let whole = whole.checked_mul(unit).and_then(|whole| whole.checked_add(part as u64));
    whole.ok_or_else(|| "it is too large".into())
}

/// Reads a span of time in whole seconds: what [`short_span`] reads, and `hourly`, `daily` or
/// `weekly`.
pub fn span(text: &str) -> Result<Duration, String> {
    let word = match text {
        "hourly" => "1h",
        "daily" => "1d",
        "weekly" => "1w",
        _ => text,
    };
    let span = short_span(word)?;
    match span.subsec_nanos() {
        0 => Ok(span),
        _ => Err("write whole seconds, as 90s".into()),
    }
}

/// Reads a span of time: `100ms`, `5s`, `15m`, `1.5h`, `14d`, `14days`, `2w`, `1h30m`, or `0`.
pub fn short_span(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let span: Option<Span> = text.parse().ok();
    let days = SpanRelativeTo::days_are_24_hours();
    let span = span.and_then(|span| span.to_duration(days).ok()?.try_into().ok());
    span.ok_or_else(|| "write a time span, as 250ms, 90s, 15m, 1.5h, 14d or 2w".into())
}

/// Reads a span of time of which milliseconds are the unit where there is none: from 1 ms to a day.
pub fn millis(text: &str) -> Result<Duration, String> {
    let span = text.parse().map(Duration::from_millis).or_else(|_| short_span(text))?;
    match span.as_millis() {
        1..=86_400_000 => Ok(span),
        _ => Err("from 1ms to 1d".into()),
    }
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

/// Reads how closed files are compressed; `yes` is as good as `zstd`.
pub fn compression() -> impl TypedValueParser<Value = Compression> {
    let zstd = PossibleValue::new("zstd").alias("yes");
    let no = PossibleValue::new("no").alias("none");
    PossibleValuesParser::new([zstd, PossibleValue::new("gzip"), no]).map(|word| {
        match word.as_str() {
            "gzip" => Compression::Gzip,
            "no" | "none" => Compression::None,
            _ => Compression::Zstd,
        }
    })
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
            ("1.5G", 3 << 29),
            ("0.5k", 512),
            ("500MB", 500_000_000),
            ("1tb", 1_000_000_000_000),
        ] {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
        for text in ["", "KiB", "1XB", "1.5.5MiB", ".", "-1", "99999999999999GiB", "x"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn time_spans_take_the_units_of_clock_and_calendar() {
        for (text, seconds) in [
            ("0", 0),
            ("90s", 90),
            ("15m", 900),
            ("1.5h", 5400),
            ("1h30m", 5400),
            ("12 h", 43_200),
            ("1d", 86_400),
            ("14days", 14 * 86_400),
            ("2w", 1_209_600),
        ] {
            assert_eq!(span(text), Ok(Duration::from_secs(seconds)), "{text}");
            assert_eq!(short_span(text), span(text), "{text}");
        }
        assert_eq!(span("daily"), span("1d"));
        assert_eq!(short_span("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(millis("250"), short_span("250ms"));
        assert_eq!(millis("5s"), short_span("5s"));
        for text in ["", "d", "10", "-1d", "99999999999999999w", "1 month", "5ms"] {
            assert!(span(text).is_err(), "{text}");
        }
        for text in ["0", "2d", "x"] {
            assert!(millis(text).is_err(), "{text}");
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
