//! The writing side of a log: its core, and the calling process's place in it.
//!
//! What only a participant may do takes a `Writer`. It is two references, made for the length of a
//! call.

use crate::Result;
use crate::format::envelope::Envelope;
use crate::log::state::attachment::Attachment;
use crate::log::state::core::Core;
use crate::shared::participants::LockLiveness;
use crate::sys::clock;

/// A log, and the place that the calling process has in it.
#[derive(Clone, Copy)]
pub(crate) struct Writer<'a> {
    pub(crate) core: &'a Core,
    pub(crate) attachment: &'a Attachment,
}

impl Core {
    /// This process as one who writes; attaches anew after a fork.
    #[inline]
    pub(crate) fn writer(&self) -> Result<Writer<'_>> {
        Ok(Writer { core: self, attachment: self.attachment()? })
    }
}

impl<'a> Writer<'a> {
    /// What this process can find out about the other participants.
    pub(crate) fn liveness(self) -> LockLiveness<'a> {
        let Writer { core, attachment } = self;
        LockLiveness { words: core.words(), lock_file: attachment.lock_file(), me: attachment.me() }
    }

    /// The envelope of a record that is appended now.
    ///
    /// Made when its place is reserved: so who is stopped before that gets the time at which it
    /// goes on, and records before it are no younger.
    #[inline]
    pub(crate) fn envelope(self) -> Envelope {
        Envelope { nanos: clock::nanos(), writer: self.attachment.writer_id() }
    }
}
