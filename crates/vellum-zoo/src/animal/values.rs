//! Words for the values of parameters: times, sizes, shares.

use std::time::Duration;

/// A time: `10ms`, `1.5s`, `200us`; `0` needs no unit.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "" if number == 0.0 => 1.0,
        _ => return Err(format!("\"{text}\" is no time; write 10ms, 200us or 2s")),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|error| format!("\"{text}\": {error}"))
}

/// A number, perhaps of bytes: `4096`, `64M`, `1G`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "" => 1u64,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return Err(format!("\"{text}\" is no size; write 4096, 64M or 1G")),
    };
    Ok((number * factor as f64) as u64)
}

/// A number from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| format!("\"{text}\" is no share; write a number from 0 to 1"))
}

/// Any number that is not negative.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("\"{text}\" is no number"))
}

/// `yes` or `no`.
pub(crate) fn is(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(format!("\"{text}\" is neither yes nor no")),
    }
}

fn split(text: &str) -> Result<(f64, &str), String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end].parse().map_err(|_| format!("\"{text}\" begins with no number"))?;
    Ok((number, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_strictly() {
        assert_eq!(time("1.5ms"), Ok(Duration::from_micros(1500)));
        assert_eq!((time("0"), size("64M"), size("7")), (Ok(Duration::ZERO), Ok(64 << 20), Ok(7)));
        assert_eq!((share("0.5"), is("yes")), (Ok(0.5), Ok(true)));
        assert!(time("5").is_err() && time("-1s").is_err() && size("5X").is_err());
        assert!(share("2").is_err() && number("-1").is_err() && is("1").is_err());
    }
}
