//! Numbers as they are read: about three digits, large ones in groups.

use super::super::table;
use crate::stats::Spread;

/// A blank that is narrow and never broken, between groups of digits.
const GROUP: char = '\u{202f}';

/// A number with about three digits that count; `–` for a value that is no number.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return String::from("–");
    }
    if size != 0.0 && !(1e-6..1e10).contains(&size) {
        return format!("{value:.2e}");
    }
    grouped(&table::number(value))
}

/// Puts the digits of a whole number of five or more in groups of three.
fn grouped(digits: &str) -> String {
    let (sign, whole) = digits.split_at(usize::from(digits.starts_with('-')));
    if whole.len() < 5 || whole.contains('.') {
        return digits.to_string();
    }
    let mut text = sign.to_string();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(GROUP);
        }
        text.push(digit);
    }
    text
}

/// A number as it is at an axis: as short as can be.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    let (scaled, suffix) = match size {
        size if size >= 1e15 => return format!("{value:.0e}"),
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        size if size != 0.0 && size < 1e-4 => return format!("{value:.0e}"),
        _ => (value, ""),
    };
    let rounded = (scaled * 1e4).round() / 1e4;
    format!("{rounded}{suffix}")
}

/// From the smallest to the largest, where they differ.
pub(super) fn range(spread: &Spread) -> Option<String> {
    let (min, max) = (number(spread.min), number(spread.max));
    (min != max).then(|| format!("{min} … {max}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_about_three_digits() {
        let numbers = [0.0, 0.0123, 0.921, 9.996, 15.04, 123.4, 9999.0, 65_000.0, -1_234_567.0];
        let texts = [
            "0",
            "0.0123",
            "0.92",
            "10.0",
            "15.0",
            "123",
            "9999",
            "65\u{202f}000",
            "-1\u{202f}234\u{202f}567",
        ];
        assert_eq!(numbers.map(number), texts);
        assert_eq!([1e-7, 1.5e20, f64::NAN].map(number), ["1.00e-7", "1.50e20", "–"]);
    }

    #[test]
    fn axes_are_labelled_shortly() {
        let numbers = [0.0, 0.1 + 0.2, 2.5, 1000.0, 20_000.0, 1.5e6, 2e9, 1e-6, 1e18];
        let texts = ["0", "0.3", "2.5", "1000", "20k", "1.5M", "2G", "1e-6", "1e18"];
        assert_eq!(numbers.map(short), texts);
    }

    #[test]
    fn a_range_of_one_number_is_none() {
        let spread = |min, max| Spread { min, median: min, max };
        assert_eq!(range(&spread(1.0, 2.0)).unwrap(), "1.00 … 2.00");
        assert_eq!(range(&spread(1.001, 1.002)), None);
    }
}
