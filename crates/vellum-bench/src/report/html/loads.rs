//! Which rows of a table are rivals: those under the same load.

use super::super::Case;
use super::super::group::Group;
use super::names::row_name;

/// The keys that say how much was to be done. How many threads commit is no choice, and more of
/// them always come to more commits. What `write` is given is a choice.
fn keys(suite: &str) -> &'static [&'static str] {
    match suite {
        "commit" => &["processes", "threads"],
        "latency" => &["threads", "rate", "reader"],
        "sync" => &["threads"],
        "scale" => &["logs", "processes", "segments", "cores"],
        _ => &[],
    }
}

/// The rows of the least and of the greatest load, each with its load; all, if they do not differ
/// in it.
pub(super) fn rivals<'a>(suite: &str, group: &Group<'a>) -> Vec<(String, Group<'a>)> {
    let load = |row: &Case| row_name(row, keys(suite));
    let ends = [group.rows.first(), group.rows.last()].into_iter().flatten();
    let mut loads: Vec<String> = ends.map(|row| load(row)).collect();
    loads.dedup();
    let rows = |name: &str| group.rows.iter().copied().filter(|row| load(row) == name).collect();
    loads.into_iter().map(|name| (name.clone(), Group { rows: rows(&name) })).collect()
}
