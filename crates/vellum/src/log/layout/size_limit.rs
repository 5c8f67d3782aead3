//! How long the files of this process may be.

use crate::log::layout::limits::{check_size, file_len};
use crate::log::layout::text::TextSpace;
use crate::log::state::writer::Writer;
use crate::{Result, sys};

/// Has a text log continue in files that this process may write. Refuses, before anything is
/// reserved, what it may not write: a whole segment of a framed log, and `len` bytes that would be
/// in one file.
pub(crate) fn heed(writer: Writer<'_>, len: u64) -> Result<()> {
    let core = writer.core;
    let Some(most) = sys::file::size_limit() else { return Ok(()) };
    if core.files.geometry.layout.rotates() && file_len(core) > most {
        let prepare = writer.lock_prepare()?;
        core.check_words()?;
        TextSpace::of(&prepare).shorten();
    }
    check_size(core, file_len(core).max(len.min(core.files.capacity())))
}
