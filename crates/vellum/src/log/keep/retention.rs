//! Doing to closed files what the policy of a log says.
//!
//! **If the process dies here**: the next one does it again.

use crate::log::append::Appender;
use crate::log::layout::framed::FrameWriter;
use crate::log::layout::text::TextWriter;
use crate::log::state::writer::Writer;
use crate::{Compression, Layout};

/// Removes and compresses closed files as the policy says. The next call tries failed steps again.
#[cold]
pub(crate) fn tidy(writer: Writer<'_>) {
    apply(writer);
    let policy = writer.core.words().files.policy.load().unwrap_or_default();
    if policy.compression != Compression::None {
        let _ = TextWriter::of(writer).compress_closed(policy.compression);
    }
}

/// Removes the files that the policy does not keep. The next call tries failed steps again.
#[cold]
pub(crate) fn apply(writer: Writer<'_>) {
    let words = writer.core.words();
    let policy = words.files.policy.load().unwrap_or_default();
    let has_removed = policy.removes()
        && match writer.core.files.geometry.layout {
            Layout::Text => TextWriter::of(writer).remove_old(&policy).is_ok_and(|count| count > 0),
            _ => FrameWriter::of(writer).remove_old_segments(&policy).is_ok_and(|count| count > 0),
        };
    if has_removed {
        words.full.made_space();
    }
    Appender::of(writer).forget_gone();
}
