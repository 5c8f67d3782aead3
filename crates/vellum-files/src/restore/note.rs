//! The file `restoring`: which log is being restored, from where on, and the range left out so far.

use crate::error::OsResult;
use crate::files::names::{RESTORING_NAME, SMALL_LEN_MAX};
use crate::restore::shape::{self, LogShape};
use crate::segment::names;
use crate::sys::Dir;
use crate::{Error, ErrorKind, Lsn, Result};

/// Where in the note the range is that was left out: in one sector, so that it is there whole or
/// not at all.
pub(crate) const LOST_OFFSET: u64 = shape::LEN as u64 + 8;

pub(crate) fn to_bytes(shape: &LogShape, begin: Lsn) -> Vec<u8> {
    let lost = lost_bytes(Lsn::ZERO, Lsn::ZERO);
    [shape.to_bytes(), begin.get().to_le_bytes().to_vec(), lost].concat()
}

/// A range that was left out, as it is in the note.
pub(crate) fn lost_bytes(from: Lsn, end: Lsn) -> Vec<u8> {
    [from, end].iter().flat_map(|lsn| lsn.get().to_le_bytes()).collect()
}

/// The content of a note beside the shape.
#[derive(Clone, Copy)]
pub(crate) struct Note {
    /// Where the log begins that is being restored.
    pub(crate) begin: Lsn,
    /// Between which positions records were left out so far.
    pub(crate) lost: Option<(Lsn, Lsn)>,
}

/// The content of the note on the log that is being restored, which must be this one.
pub(crate) fn of(note: &[u8], shape: &LogShape) -> Result<Note> {
    let (noted, note) = parse(note)?;
    if noted.log_id() != shape.log_id() || noted.geometry != shape.geometry {
        let message = "the restore that was begun here is of another log";
        return Err(Error::new(ErrorKind::OtherLog, message));
    }
    Ok(note)
}

fn parse(note: &[u8]) -> Result<(LogShape, Note)> {
    let cut = || Error::new(ErrorKind::Corrupt, "the note is cut short");
    let (shape, rest) = note.split_at_checked(shape::LEN).ok_or_else(cut)?;
    let shape = LogShape::from_bytes(shape)?;
    let mut words = rest.as_chunks().0.iter().map(|word| Lsn::new(u64::from_le_bytes(*word)));
    let begin = words.next().ok_or_else(cut)?;
    // Earlier versions did not note it.
    let lost = words.next().zip(words.next()).filter(|(_, end)| *end > Lsn::ZERO);
    Ok((shape, Note { begin, lost }))
}

/// Whether a note is the only file, and is incomplete: a restore died while it wrote it, before
/// anything else. So nothing was restored.
pub(crate) fn is_half(dir: &Dir) -> Result<bool> {
    let path = dir.join(RESTORING_NAME);
    let names = names(dir)?;
    let is_alone = names.len() == 1 && names[0] == RESTORING_NAME;
    Ok(is_alone && parse(&dir.read(&path, SMALL_LEN_MAX).or_os("read", &path)?).is_err())
}
