//! The meaning of an input: a golden log, the changes to its files, and how it is opened.

use super::edit::{EDIT_LEN, Edit};
use super::frames::{self, first_of, reseal};
use super::golden::{self, Files, Golden};

/// More edits than this are not looked at.
const EDITS_MAX: usize = 12;

/// A log whose files have been tampered with.
pub(crate) struct Case {
    pub(crate) golden: &'static Golden,
    pub(crate) files: Files,
    /// Whether checksums were made right for bytes that Vellum did not write: then nothing can be
    /// expected but that it does not panic and shows no record that was never there.
    pub(crate) is_forged: bool,
    /// Whether a header is damaged that nothing can be read without.
    pub(crate) must_be_refused: bool,
    /// Whether the control file is there; in another boot.
    pub(crate) has_control: bool,
    /// Whether the log is of this boot and has only lost its control file.
    pub(crate) is_same_boot: bool,
    /// Whether it is opened for reading first.
    pub(crate) reads_first: bool,
    /// Whether the control file goes before it is opened again.
    pub(crate) loses_control: bool,
}

/// How the files differ from those of the golden log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The first position at which a byte is another, or missing.
    pub(crate) from: u64,
    /// Whether files are missing, too short or too many, or headers are damaged.
    pub(crate) is_beyond_bytes: bool,
}

impl Case {
    /// The first two bytes choose the log and the circumstances, the others are edits.
    pub(crate) fn of_edits(input: &[u8]) -> Case {
        let (head, edits) = input.split_at(input.len().min(2));
        let mut case = Case::new(head);
        for edit in edits.chunks_exact(EDIT_LEN).take(EDITS_MAX).filter_map(Edit::decode) {
            edit.apply(&mut case);
        }
        case
    }

    /// The third byte chooses a header, and the others are put over it from where the fourth says.
    pub(crate) fn of_headers(input: &[u8]) -> Case {
        let (head, rest) = input.split_at(input.len().min(2));
        let mut case = Case::new(head);
        let [choice, start, bytes @ ..] = rest else { return case };
        let segment = case.segment(choice / 8).expect("golden logs have segments");
        let (name, len) = match choice % 4 {
            0 if !case.golden.is_text => (segment, 48),
            _ => ("geometry".to_string(), 72),
        };
        let header = case.bytes(&name);
        let start = usize::from(*start) % len;
        let count = bytes.len().min(len - start);
        header[start..start + count].copy_from_slice(&bytes[..count]);
        if choice & 4 != 0 {
            // Segments of a gigabyte are right, and take a gigabyte of memory here.
            header[34..40].fill(0);
            reseal(header, len);
            case.is_forged = true;
        } else {
            let oldest = case.segment(0);
            let is_needed = name == "geometry" || Some(&name) == oldest.as_ref();
            let good = &case.golden.files[&name][..len];
            // To make it one of this boot would make its checksum right.
            case.is_same_boot = false;
            case.must_be_refused = is_needed && case.files[&name][..len] != *good;
        }
        case
    }

    fn new(head: &[u8]) -> Case {
        let [log, how] = [0, 1].map(|index| head.get(index).copied().unwrap_or(0));
        let golden = golden::chosen(log);
        let has_control = how & 1 != 0;
        Case {
            golden,
            files: golden.files.clone(),
            is_forged: false,
            must_be_refused: false,
            has_control,
            is_same_boot: how & 2 != 0 && !has_control,
            reads_first: how & 4 != 0,
            loses_control: how & 8 != 0,
        }
    }

    /// The name of one of the segments that are left.
    pub(crate) fn segment(&self, choice: u8) -> Option<String> {
        let names: Vec<&String> =
            self.files.keys().filter(|name| first_of(name).is_some()).collect();
        names.get(usize::from(choice) % names.len().max(1)).map(|name| (*name).clone())
    }

    /// The bytes of a file that is there.
    pub(crate) fn bytes(&mut self, name: &str) -> &mut Vec<u8> {
        self.files.get_mut(name).expect("a file that is there")
    }

    /// The segments that are left, oldest first.
    pub(crate) fn segments(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.files.iter().filter_map(|(name, bytes)| Some((first_of(name)?, bytes.as_slice())))
    }

    /// Up to where the seals that are left say that everything was durable.
    pub(crate) fn durable(&self) -> u64 {
        if self.golden.is_text || self.files["geometry"][28] & 1 == 0 {
            return 0;
        }
        frames::newest_durable(&self.files, self.golden.secret)
    }

    /// How the segments differ from the golden ones.
    pub(crate) fn change(&self) -> Change {
        let mut change = Change { from: u64::MAX, is_beyond_bytes: false };
        let golden = &self.golden.files;
        for name in golden.keys().chain(self.files.keys()) {
            let Some(first) = first_of(name) else { continue };
            let (Some(good), Some(now)) = (golden.get(name), self.files.get(name)) else {
                change.is_beyond_bytes = true;
                change.from = change.from.min(first);
                continue;
            };
            let same = good.iter().zip(now).take_while(|(a, b)| a == b).count();
            if same < good.len().max(now.len()) {
                let header_len = self.golden.header_len();
                let lsn = first + (same as u64).saturating_sub(header_len);
                change.from = change.from.min(lsn);
                let is_header = header_len > 0 && good.get(..48) != now.get(..48);
                change.is_beyond_bytes |= is_header || now.len() < good.len();
            }
        }
        change
    }
}
