//! Edits to the files of a log, six bytes of input each.

use super::case::Case;
use super::frames::{HEADER_LEN, first_of, name_of, reseal, seal};
use super::golden::CAPACITY;

/// Bytes of input for one edit.
pub(crate) const EDIT_LEN: usize = 6;

const SECTOR: usize = 512;

/// An edit, before it is known what the files look like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edit {
    pub(crate) operation: u8,
    pub(crate) file: u8,
    pub(crate) place: u16,
    pub(crate) one: u8,
    pub(crate) two: u8,
}

impl Edit {
    pub(crate) fn decode(bytes: &[u8]) -> Option<Edit> {
        let [operation, file, low, high, one, two] = *bytes else { return None };
        Some(Edit { operation, file, place: u16::from_le_bytes([low, high]), one, two })
    }

    /// Does to the files of `case` what this edit says.
    pub(crate) fn apply(self, case: &mut Case) {
        let Some(name) = case.segment(self.file) else { return };
        match self.operation % 14 {
            0 => self.overwrite(case, &name, |byte| byte ^ self.one.max(1)),
            1 => self.zero_sector(case, &name),
            2 => {
                let bytes = case.bytes(&name);
                bytes.truncate(usize::from(self.place) % (bytes.len() + 1));
            }
            3 => self.swap(case, &name),
            4 => self.copy(case, &name),
            5 => drop(case.files.remove(&name)),
            6 => self.rename(case, &name),
            7 => self.overwrite_run(case, &name),
            8 => self.repeat(case, &name),
            9 => self.lie_about_length(case, &name),
            10 => {
                let (len, byte) = (usize::from(self.one) * 16, self.two);
                case.bytes(&name).extend(std::iter::repeat_n(byte, len));
            }
            11 => self.forge_segment_header(case, &name),
            12 => self.forge_geometry(case),
            _ => self.forge_seal(case, &name),
        }
    }

    /// A byte of the file that may mean something.
    fn offset(self, case: &Case, len: usize) -> usize {
        let header_len = case.golden.header_len() as usize;
        if len <= header_len || header_len == 0 {
            return usize::from(self.place) % len.max(1);
        }
        let place = usize::from(self.place) % (48 + len - header_len);
        if place < 48 { place } else { header_len + place - 48 }
    }

    /// The position in the log of a number in the input: near the log, mostly.
    fn position(self) -> u64 {
        match self.two {
            255 => u64::MAX - u64::from(self.place),
            254 => (1 << 54) - u64::from(self.place),
            253 => u64::from(self.place) << 40,
            _ => u64::from(self.place) + u64::from(self.two % 4) * CAPACITY,
        }
    }

    fn overwrite(self, case: &mut Case, name: &str, change: impl Fn(u8) -> u8) {
        let offset = self.offset(case, case.files[name].len());
        if let Some(byte) = case.bytes(name).get_mut(offset) {
            *byte = change(*byte);
        }
    }

    fn overwrite_run(self, case: &mut Case, name: &str) {
        let offset = self.offset(case, case.files[name].len());
        let bytes = case.bytes(name);
        let end = bytes.len().min(offset + usize::from(self.one) + 1);
        bytes[offset.min(end)..end].fill(self.two);
    }

    fn zero_sector(self, case: &mut Case, name: &str) {
        let bytes = case.bytes(name);
        let start = usize::from(self.place) % bytes.len().max(1) / SECTOR * SECTOR;
        let end = bytes.len().min(start + SECTOR);
        bytes[start..end].fill(0);
    }

    fn swap(self, case: &mut Case, name: &str) {
        let Some(other) = case.segment(self.one) else { return };
        let (mine, others) = (case.files[name].clone(), case.files[&other].clone());
        case.files.insert(name.to_string(), others);
        case.files.insert(other, mine);
    }

    fn copy(self, case: &mut Case, name: &str) {
        let Some(other) = case.segment(self.one) else { return };
        let mine = case.files[name].clone();
        case.files.insert(other, mine);
    }

    fn rename(self, case: &mut Case, name: &str) {
        let first = match self.two {
            240.. => self.position() / CAPACITY * CAPACITY,
            _ => u64::from(self.two % 16) * CAPACITY,
        };
        if let Some(bytes) = case.files.remove(name) {
            case.files.insert(name_of(first), bytes);
        }
    }

    /// Puts bytes of the file where they do not belong.
    fn repeat(self, case: &mut Case, name: &str) {
        let offset = self.offset(case, case.files[name].len());
        let bytes = case.bytes(name);
        let from = offset / 8 * 8;
        let piece = bytes[from.min(bytes.len())..bytes.len().min(from + 256)].to_vec();
        let to = from + 8 * (usize::from(self.one) + 1);
        if let Some(target) = bytes.get_mut(to..to + piece.len()) {
            target.copy_from_slice(&piece);
        }
    }

    fn lie_about_length(self, case: &mut Case, name: &str) {
        let offset = self.offset(case, case.files[name].len()) / 8 * 8;
        if let Some(length) = case.bytes(name).get_mut(offset..offset + 4) {
            let high = if self.one.is_multiple_of(16) { 0xff } else { 0 };
            length.copy_from_slice(&[self.one, self.two, high, high]);
        }
    }

    fn forge_segment_header(self, case: &mut Case, name: &str) {
        let (value, field) = (self.position(), 16 + 8 * usize::from(self.one % 4));
        let bytes = case.bytes(name);
        if bytes.len() >= 48 && !case.golden.is_text {
            let bytes = case.bytes(name);
            bytes[field..field + 8].copy_from_slice(&value.to_le_bytes());
            reseal(bytes, 48);
            case.is_forged = true;
        }
    }

    fn forge_geometry(self, case: &mut Case) {
        let position = self.position();
        let geometry = case.bytes("geometry");
        match self.one % 8 {
            0 => geometry[16] = self.two % 4,
            1 => geometry[20] = self.two % 8,
            2 => geometry[24] = self.two % 5,
            3 => geometry[28] ^= 1,
            4 => geometry[40] ^= self.two,
            5 => geometry[32..40].copy_from_slice(&(CAPACITY << (self.two % 4)).to_le_bytes()),
            _ => geometry[64..72].copy_from_slice(&position.to_le_bytes()),
        }
        reseal(geometry, 72);
        case.is_forged = true;
    }

    fn forge_seal(self, case: &mut Case, name: &str) {
        let Some(first) = first_of(name).filter(|_| !case.golden.is_text) else { return };
        let at = u64::from(self.one) * 8;
        let near = first.wrapping_add(u64::from(self.place));
        let words = match self.two % 4 {
            0 => [self.position(), 0, 0],
            1 => [near, near, near],
            2 => [0, self.position(), self.position()],
            _ => [near, CAPACITY, self.position()],
        };
        let frame = seal(case.golden.secret, first.wrapping_add(at), words);
        let offset = (HEADER_LEN + at) as usize;
        if let Some(target) = case.bytes(name).get_mut(offset..offset + frame.len()) {
            target.copy_from_slice(&frame);
            case.is_forged = true;
        }
    }
}
