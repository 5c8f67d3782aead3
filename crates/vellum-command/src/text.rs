//! Figures for people, as all programs write them.

/// A number of bytes as people read it: exact while short, else three digits and a binary unit.
/// Written by hand: what `indicatif` has is longer, as `64.00 MiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = usize::from(value < 9.95);
    let number = format!("{value:.decimals$}");
    format!("{} {}", number.strip_suffix(".0").unwrap_or(&number), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts_are_short_and_never_a_thousand_of_a_unit() {
        let counts = [0, 1023, 1024, 4096, 12_700, 1_048_575, 1 << 20, 3 << 19, 64 << 20, 1 << 40];
        let texts = [
            "0 B", "1023 B", "1 KiB", "4 KiB", "12 KiB", "1 MiB", "1 MiB", "1.5 MiB", "64 MiB",
            "1 TiB",
        ];
        assert_eq!(counts.map(bytes), texts);
    }
}
