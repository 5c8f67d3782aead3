//! Numbers of bytes on the command line. `vellum-ship`, a workspace of its own, compiles this file
//! too.

/// Reads a number of bytes: `4096`, `64KiB`, `1MiB`, `10GiB`, or `K`, `M`, `G`, `T` for short; `KB`,
/// `MB`, `GB` and `TB` are powers of ten.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
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
}
