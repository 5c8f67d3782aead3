//! The golden logs, in memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use super::expectation::{Expectation, Record};
use super::frames::{self, HEADER_LEN};

/// The names of a log's files and what they hold.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// A log as it was written, and what is known of it.
pub(crate) struct Golden {
    pub(crate) name: String,
    pub(crate) files: Files,
    pub(crate) expected: Expectation,
    /// Every record that was ever appended, in the order of positions.
    pub(crate) appended: Vec<Record>,
    /// Where batches begin and end.
    pub(crate) batches: Vec<(u64, u64)>,
    pub(crate) is_text: bool,
    pub(crate) secret: u64,
}

/// Bytes of log in each segment of every golden log.
pub(crate) const CAPACITY: u64 = 4096;

impl Golden {
    /// Bytes of a segment file before the log's own.
    pub(crate) fn header_len(&self) -> u64 {
        if self.is_text { 0 } else { HEADER_LEN }
    }

    /// Whether the record is part of a batch.
    pub(crate) fn batch_of(&self, record: &Record) -> Option<(u64, u64)> {
        self.batches.iter().copied().find(|(from, to)| (*from..*to).contains(&record.lsn))
    }

    /// End of the bytes without which the record does not count.
    pub(crate) fn needs(&self, record: &Record) -> u64 {
        let own = if self.is_text { record.len } else { frames::HEAD_LEN + record.len };
        self.batch_of(record).map_or(record.lsn + own, |(_, end)| end)
    }
}

/// All golden logs, in the order of their names.
pub(crate) fn all() -> &'static [Golden] {
    static ALL: OnceLock<Vec<Golden>> = OnceLock::new();
    ALL.get_or_init(|| {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vellum/tests/golden/v1");
        let mut names: Vec<String> = names(&dir);
        names.retain(|name| dir.join(name).is_dir());
        names.iter().map(|name| read(&dir, name)).collect()
    })
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("the golden logs are in the repository");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("plain names");
    let mut names: Vec<String> = entries.map(|entry| name(entry.expect("readable"))).collect();
    names.sort();
    names
}

fn read(dir: &Path, name: &str) -> Golden {
    let log = dir.join(name);
    let text = fs::read_to_string(log.with_extension("txt")).expect("an expectation");
    let expected = Expectation::parse(&text);
    let mut appended: Vec<Record> =
        expected.records.iter().chain(&expected.gone).cloned().collect();
    appended.sort_by_key(|record| record.lsn);
    let contents = |name: String| {
        let bytes = fs::read(log.join(&name)).expect("a readable file");
        (name, bytes)
    };
    let files: Files = names(&log).into_iter().map(contents).collect();
    let geometry = &files["geometry"];
    let is_text = geometry[16] == 2;
    let secret = u64::from_le_bytes(geometry[40..48].try_into().expect("eight bytes"));
    let batches = if is_text { Vec::new() } else { frames::batches(&files, secret) };
    Golden { name: name.to_string(), files, expected, appended, batches, is_text, secret }
}
