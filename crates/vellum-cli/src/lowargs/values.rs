//! How words of the command line become values.

use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use vellum::{Fill, Layout, Lsn, Preallocate};

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

/// Reads a number of bytes: `4096`, `64KiB`, `1MiB`, `1GiB`, or `K`, `M`, `G` for short.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        _ => return Err("write a number of bytes, as 4096, 64KiB, 1MiB or 1GiB".into()),
    };
    let number: u64 = number.parse().map_err(|_| "it does not start with a number".to_string())?;
    number.checked_mul(1 << shift).ok_or_else(|| "it is too large".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts_take_binary_units() {
        for (text, value) in [
            ("4096", 4096),
            ("64KiB", 64 << 10),
            ("64 kib", 64 << 10),
            ("1MiB", 1 << 20),
            ("2G", 2 << 30),
        ] {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
        for text in ["", "KiB", "1KB", "1.5MiB", "-1", "99999999999999GiB", "x"] {
            assert!(bytes(text).is_err(), "{text}");
        }
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
    }
}
