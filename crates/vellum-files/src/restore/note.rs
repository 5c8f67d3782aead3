//! The file `restoring`: what is being restored, and from where on.

use crate::error::OsResult;
use crate::files::names::{RESTORING_NAME, SMALL_LEN_MAX};
use crate::restore::shape::LogShape;
use crate::segment::names;
use crate::sys::Dir;
use crate::{Error, ErrorKind, Lsn, Result};

pub(crate) fn to_bytes(shape: &LogShape, begin: Lsn) -> Vec<u8> {
    [shape.to_bytes(), begin.get().to_le_bytes().to_vec()].concat()
}

/// Where the log begins that is being restored, which must be this one.
pub(crate) fn begin(note: &[u8], shape: &LogShape) -> Result<Lsn> {
    let (noted, begin) = parse(note)?;
    if noted.log_id() != shape.log_id() || noted.geometry != shape.geometry {
        let message = "the restore that was begun here is of another log";
        return Err(Error::new(ErrorKind::OtherLog, message));
    }
    Ok(begin)
}

fn parse(note: &[u8]) -> Result<(LogShape, Lsn)> {
    let (shape, begin) = note.split_at(note.len().saturating_sub(8));
    let shape = LogShape::from_bytes(shape)?;
    let begin = begin.try_into().map(u64::from_le_bytes);
    let cut = |_| Error::new(ErrorKind::Corrupt, "the note is cut short");
    Ok((shape, begin.map(Lsn::new).map_err(cut)?))
}

/// Whether a note is all there is, and does not say what it should: a restore died while it wrote
/// it, before anything else. So nothing was restored.
pub(crate) fn is_half(dir: &Dir) -> Result<bool> {
    let path = dir.join(RESTORING_NAME);
    let names = names(dir)?;
    let is_alone = names.len() == 1 && names[0] == RESTORING_NAME;
    Ok(is_alone && parse(&dir.read(&path, SMALL_LEN_MAX).or_os("read", &path)?).is_err())
}
