//! The golden logs, in memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use super::expectation::{Expectation, Record};
use super::frames::{self, HEADER_LEN};

/// The names of a log's files and their content.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// A log as it was written, and its known content.
pub(crate) struct Golden {
    pub(crate) name: String,
    pub(crate) files: Files,
    pub(crate) expected: Expectation,
    /// Every record that was ever appended, in the order of positions.
    pub(crate) appended: Vec<Record>,
    /// Where batches begin and end.
    pub(crate) batches: Vec<(u64, u64)>,
    pub(crate) is_text: bool,
    /// Bytes before each payload, behind the head of its frame.
    pub(crate) envelope_len: u64,
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
        let own = if self.is_text {
            record.len
        } else {
            frames::HEAD_LEN + self.envelope_len + record.len
        };
        self.batch_of(record).map_or(record.lsn + own, |(_, end)| end)
    }
}

/// The first byte of inputs that mean a log of version 2. Others mean one of version 1, so that
/// kept inputs mean what they did.
const MARKED_FROM: u8 = 240;

/// The golden log that an input means by its first byte.
pub(crate) fn chosen(choice: u8) -> &'static Golden {
    static ALL: [OnceLock<Vec<Golden>>; 2] = [OnceLock::new(), OnceLock::new()];
    let version = usize::from(choice >= MARKED_FROM);
    let logs = ALL[version].get_or_init(|| of_version(["v1", "v2"][version]));
    &logs[usize::from(choice) % logs.len()]
}

/// The golden logs in a directory, in the order of their names.
fn of_version(name: &str) -> Vec<Golden> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vellum/tests/golden").join(name);
    let mut names: Vec<String> = names(&dir);
    names.retain(|name| dir.join(name).is_dir());
    names.iter().map(|name| read(&dir, name)).collect()
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
    let envelope_len = if geometry[8] == 2 && geometry[28] & 2 != 0 { 16 } else { 0 };
    let secret = u64::from_le_bytes(geometry[40..48].try_into().expect("eight bytes"));
    let batches = if is_text { Vec::new() } else { frames::batches(&files, secret) };
    let name = name.to_string();
    Golden { name, files, expected, appended, batches, is_text, envelope_len, secret }
}
