//! The name of a row: the keys that tell it from its neighbours, in words.

use super::super::Case;

/// The keys that say how, and not where or how much: they come first.
pub(super) const WAYS: [&str; 4] = ["way", "case", "method", "name"];

/// `pwrite, 64 KiB, 4 threads, prepared`.
pub(super) fn row_name(row: &Case, keys: &[&str]) -> String {
    let (ways, others): (Vec<&str>, Vec<&str>) = keys.iter().partition(|key| WAYS.contains(key));
    let values = ways.iter().chain(&others).filter_map(|key| Some((*key, row.value(key)?)));
    values.map(|(key, value)| word(key, value)).collect::<Vec<String>>().join(", ")
}

/// A value that says by itself what it is of.
fn word(key: &str, value: &str) -> String {
    match value {
        "yes" => key.to_string(),
        "no" if key.ends_with("ed") => format!("not {key}"),
        "no" => format!("no {key}"),
        "1" if key.ends_with("sses") => format!("1 {}", key.trim_end_matches("es")),
        "1" if key.ends_with('s') => format!("1 {}", key.trim_end_matches('s')),
        number if number.parse::<f64>().is_err() => number.to_string(),
        number if key.ends_with('s') => format!("{number} {key}"),
        number => format!("{key} {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_their_numbers_are_of() {
        let row = Case::new("t").key("chunk", "64 KiB").key("way", "pwrite").key("threads", 1);
        let row = row.key("processes", 4).key("depth", 32).key("prepared", "no");
        let name =
            row_name(&row, &["chunk", "way", "threads", "processes", "depth", "prepared", "x"]);
        assert_eq!(name, "pwrite, 64 KiB, 1 thread, 4 processes, depth 32, not prepared");
    }
}
