//! Numbers of bytes, as they are written and read.

/// The units and their powers of two, the largest first.
const UNITS: [(&str, u32); 5] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

/// A size in the largest binary unit of which it is a whole number: `4 KiB`, `1000 B`.
pub(crate) fn size(bytes: u64) -> String {
    let is_whole = |(_, power): &&(&str, u32)| bytes > 0 && bytes.trailing_zeros() >= *power;
    let (unit, power) = UNITS.iter().find(is_whole).unwrap_or(&("B", 0));
    format!("{} {unit}", bytes >> power)
}

/// A size in whole mebibytes, rounded up.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// The number of a word: `4`, `1.5`, `64 KiB`, `512B`.
pub(crate) fn quantity(word: &str) -> Option<f64> {
    let word = word.trim();
    let with_unit = |(unit, power): (&str, u32)| Some((word.strip_suffix(unit)?, power));
    let (digits, power) = UNITS.into_iter().find_map(with_unit).unwrap_or((word, 0));
    let digits = digits.trim_end();
    let starts_well = digits.starts_with(|first: char| first.is_ascii_digit());
    let number: f64 = digits.parse().ok().filter(|_| starts_well)?;
    Some(number * (1_u64 << power) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_numbers_of_their_unit() {
        let sizes = [0, 128, 4095, 4096, 5 << 20, 10 << 30, (1 << 20) + 1024];
        let texts = ["0 B", "128 B", "4095 B", "4 KiB", "5 MiB", "10 GiB", "1025 KiB"];
        assert_eq!(sizes.map(size), texts);
        assert_eq!([0, 1, 3 << 20].map(mebibytes), ["0 MiB", "1 MiB", "3 MiB"]);
    }

    #[test]
    fn words_stand_for_numbers() {
        let words = ["4", "64 KiB", "1.5MiB", "512 B", "infinite", "nan", "KiB", "-1", "4 KiB, 2"];
        let numbers = [Some(4.0), Some(65_536.0), Some(1_572_864.0), Some(512.0)];
        let numbers = numbers.into_iter().chain([None; 5]).collect::<Vec<_>>();
        assert_eq!(words.map(quantity).to_vec(), numbers);
    }
}
