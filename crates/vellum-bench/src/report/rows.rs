//! The rows of a report in JSON, each by a name that follows from its keys.

use std::collections::HashSet;

use serde::{Deserializer, Serializer};

use super::by_name::read_as;
use super::case::Case;

/// For `serialize_with`.
pub(super) fn write<S: Serializer>(rows: &[Case], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(names(rows).into_iter().zip(rows))
}

/// For `deserialize_with`.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Case>, D::Error> {
    read_as(deserializer, |_, _| ())
}

/// A name for each row: its way, and as many of its other keys as tell all rows apart.
fn names(rows: &[Case]) -> Vec<String> {
    let mut names: Vec<String> =
        rows.iter().map(|row| row.way().unwrap_or_default().to_string()).collect();
    let mut keys: Vec<&str> = Vec::new();
    for key in rows.iter().flat_map(|row| &row.keys) {
        if !keys.contains(&key.name.as_str()) {
            keys.push(&key.name);
        }
    }
    let keys = keys.iter().map(|key| {
        let part = |row: &Case| row.value(key).map(|value| format!("{key} {value}"));
        rows.iter().map(part).collect()
    });
    let tables = rows.iter().map(|row| Some(row.table.clone())).collect();
    // Should a suite have the same row twice, both are there.
    let numbers = (1..=rows.len()).map(|number| Some(number.to_string())).collect();
    for parts in keys.chain([tables, numbers]) {
        let parts: Vec<Option<String>> = parts;
        let longer: Vec<String> = names.iter().zip(parts).map(joined).collect();
        if distinct(&longer) > distinct(&names) {
            names = longer;
        }
    }
    names
}

fn joined((name, part): (&String, Option<String>)) -> String {
    let parts = [Some(name.clone()), part].into_iter().flatten();
    parts.filter(|part| !part.is_empty()).collect::<Vec<String>>().join(", ")
}

fn distinct(names: &[String]) -> usize {
    names.iter().collect::<HashSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::report::Report;

    fn row(table: &str, keys: &[(&str, &str)]) -> Case {
        keys.iter().fold(Case::new(table), |row, (name, value)| row.key(name, value))
    }

    #[test]
    fn a_row_is_called_by_no_more_than_tells_it_apart() {
        let ext4 = ("filesystem", "ext4");
        let alone = |way| row("t", &[ext4, ("threads", "1"), ("way", way)]);
        assert_eq!(names(&[alone("write"), alone("stdio")]), ["write", "stdio"]);
        let several = |threads, way| row("t", &[ext4, ("threads", threads), ("way", way)]);
        let rows = [several("1", "write"), several("2", "write"), several("2", "stdio")];
        assert_eq!(names(&rows), ["write, threads 1", "write, threads 2", "stdio, threads 2"]);
        let without_way = [row("t", &[("logs", "1")]), row("t", &[("logs", "9")])];
        assert_eq!(names(&without_way), ["logs 1", "logs 9"]);
        let tables = [row("one", &[ext4]), row("two", &[ext4])];
        assert_eq!(names(&tables), ["one", "two"]);
        let same = [row("t", &[("way", "write")]), row("t", &[("way", "write")])];
        assert_eq!(names(&same), ["write, 1", "write, 2"]);
    }

    #[test]
    fn results_of_form_1_are_read_and_are_the_same_in_form_2() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
        let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
        let files = files.filter(|file| file.extension().is_some_and(|end| end == "json"));
        let mut old = 0;
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            old += u32::from(text.contains("\"format\": 1"));
            let reports = Report::from_json(&text).unwrap();
            let again = Report::from_json(&Report::all_to_json(&reports).unwrap()).unwrap();
            for (report, again) in reports.iter().zip(&again) {
                assert_eq!(report.format, 2);
                assert!(!report.cases.is_empty());
                assert_eq!(report.cases, again.cases, "{}", file.display());
            }
        }
        assert!(old > 10);
    }
}
