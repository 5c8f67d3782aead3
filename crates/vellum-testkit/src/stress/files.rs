//! The files of a text log, as other programs see them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use vellum::{Layout, Log, Lsn};

/// A file of text.
struct TextFile {
    name: String,
    first: Lsn,
    is_compressed: bool,
}

/// The faults of the files of a log that no other process has open.
pub(super) fn faults(log: &Log) -> Vec<String> {
    if log.layout() != Layout::Text {
        return Vec::new();
    }
    let faults = list(log.path()).and_then(|files| {
        let capacity = log.stat()?.segment_capacity_bytes;
        let mut faults = order_faults(capacity, &files);
        faults.extend(link_fault(log, &files));
        faults.extend(content_faults(log, capacity, &files)?);
        Ok(faults)
    });
    faults.unwrap_or_else(|error| vec![format!("the files cannot be looked at: {error:#}")])
}

/// First positions of the files of the log in `dir`, oldest first.
pub(super) fn firsts(dir: &Path) -> Result<Vec<Lsn>> {
    let mut firsts: Vec<Lsn> = list(dir)?.iter().map(|file| file.first).collect();
    firsts.dedup();
    Ok(firsts)
}

/// Sorted by name.
fn list(dir: &Path) -> Result<Vec<TextFile>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).context("cannot list the log")? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names.into_iter().filter_map(parse).collect())
}

/// The name of the file before it was compressed.
fn plain_name(name: &str) -> Option<&str> {
    [".zst", ".gz"].into_iter().find_map(|suffix| name.strip_suffix(suffix))
}

/// Reads `20261122T015723Z-0000000004000000.log` or the same with `.zst` or `.gz`.
fn parse(name: String) -> Option<TextFile> {
    let (plain, is_compressed) = match plain_name(&name) {
        Some(plain) => (plain, true),
        None => (name.as_str(), false),
    };
    let (_, digits) = plain.strip_suffix(".log")?.split_once("Z-")?;
    let digits = digits.strip_suffix("-more").unwrap_or(digits);
    let first = Lsn::new(u64::from_str_radix(digits, 16).ok()?);
    Some(TextFile { name, first, is_compressed })
}

/// Names sort by position, and each position has one place.
fn order_faults(capacity: u64, files: &[TextFile]) -> Vec<String> {
    let mut faults = Vec::new();
    for pair in files.windows(2) {
        let is_same = pair[0].first == pair[1].first
            && !pair[0].is_compressed
            && plain_name(&pair[1].name) == Some(&pair[0].name);
        if !is_same && pair[0].first.get() + capacity != pair[1].first.get() {
            faults.push(format!("the file {} follows {}", pair[1].name, pair[0].name));
        }
    }
    faults
}

/// The link leads to the newest file, and that is where the last record went or the next one goes.
fn link_fault(log: &Log, files: &[TextFile]) -> Option<String> {
    let target = fs::read_link(log.path().join("current")).ok();
    let target = target.as_deref().and_then(Path::to_str);
    let newest = files.last();
    if target != newest.map(|file| file.name.as_str()) {
        return Some(format!("the link leads to {target:?}, not to the newest file"));
    }
    let newest = newest.filter(|newest| newest.first > log.tail())?;
    Some(format!("the log ends at {}, before the file {}", log.tail(), newest.name))
}

/// Closed files are whole lines, but for one that is longer than a file; the newest holds text as
/// far as it is written.
fn content_faults(log: &Log, capacity: u64, files: &[TextFile]) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for (index, file) in files.iter().enumerate().filter(|(_, file)| !file.is_compressed) {
        let bytes = fs::read(log.path().join(&file.name))?;
        let is_closed = files[index + 1..].iter().any(|later| later.first > file.first);
        let written = (log.published().get().saturating_sub(file.first.get())) as usize;
        let text = if is_closed { &bytes[..] } else { &bytes[..written.min(bytes.len())] };
        if let Some(offset) = text.iter().position(|byte| *byte == 0) {
            faults.push(format!("the file {} holds a NUL at {offset}", file.name));
        }
        let is_full = text.len() as u64 == capacity;
        if is_closed && !is_full && text.last().is_some_and(|byte| *byte != b'\n') {
            faults.push(format!("the file {} ends within a line", file.name));
        }
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(names: &[&str]) -> usize {
        let files: Vec<_> = names.iter().filter_map(|name| parse((*name).into())).collect();
        assert_eq!(files.len(), names.len(), "{names:?}");
        order_faults(0x1000, &files).len()
    }

    #[test]
    fn compressed_files_have_their_places_whichever_way_they_are_compressed() {
        let [first, second, third] =
            [0x1000, 0x2000, 0x3000].map(|at| format!("20261122T015723Z-{at:016x}.log"));
        for suffix in ["zst", "gz"] {
            let packed = format!("{first}.{suffix}");
            assert_eq!(faults_of(&[&packed, &second, &third]), 0);
            assert_eq!(faults_of(&[&first, &packed, &second]), 0, "it is being compressed");
            assert_eq!(faults_of(&[&packed, &third]), 1, "one is missing");
        }
        assert!(parse(format!("{first}.xz")).is_none());
    }
}
