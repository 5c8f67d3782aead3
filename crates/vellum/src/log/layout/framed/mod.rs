//! The parts of framed logs alone: walking over frames, commit records, recovery by them, and
//! retention.

pub(crate) mod ahead;
pub(crate) mod retain;
pub(crate) mod times;

use crate::files::starts;
use crate::files::window::Window;
use crate::log::state::core::Core;
use crate::log::state::writer::Writer;
use crate::shared::commit;
use crate::{Lsn, Result};

/// A framed log, for every process that has it open.
#[derive(Clone, Copy)]
pub(crate) struct Frames<'a> {
    pub(crate) core: &'a Core,
}

/// A framed log, for a participant.
#[derive(Clone, Copy)]
pub(crate) struct FrameWriter<'a> {
    pub(crate) writer: Writer<'a>,
}

impl<'a> Frames<'a> {
    #[inline]
    pub(crate) fn of(core: &'a Core) -> Frames<'a> {
        Frames { core }
    }

    /// A position before `end` at which a frame starts, or where the log begins. Everything before
    /// `end` is published.
    pub(crate) fn start_before(self, window: &mut Window, end: Lsn) -> Result<Lsn> {
        let durable = commit::durable(&self.core.words().commits);
        starts::start_before(&self.core.files, window, self.core.begin(), end, durable)
    }
}

impl<'a> FrameWriter<'a> {
    #[inline]
    pub(crate) fn of(writer: Writer<'a>) -> FrameWriter<'a> {
        FrameWriter { writer }
    }
}
