//! What is particular to framed logs: walking over frames, commit records, recovery by them, and
//! retention.

pub(crate) mod ahead;
pub(crate) mod frames;
pub(crate) mod recover;
pub(crate) mod retain;
pub(crate) mod staged;
pub(crate) mod starts;
pub(crate) mod times;

use crate::log::state::core::Core;
use crate::log::state::writer::Writer;

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
}

impl<'a> FrameWriter<'a> {
    #[inline]
    pub(crate) fn of(writer: Writer<'a>) -> FrameWriter<'a> {
        FrameWriter { writer }
    }
}
