//! The parts of text logs alone: their files, when they rotate, which of them are kept, and
//! recovery.

pub(crate) mod compress;
pub(crate) mod file_names;
pub(crate) mod limits;
pub(crate) mod policy;
pub(crate) mod retain;
pub(crate) mod rotate;
pub(crate) mod write_lock;

use crate::log::state::core::Core;
use crate::log::state::writer::{Prepare, Writer};

/// A text log, for every process that has it open.
#[derive(Clone, Copy)]
pub(crate) struct TextLog<'a> {
    pub(crate) core: &'a Core,
}

/// A text log, for a participant.
#[derive(Clone, Copy)]
pub(crate) struct TextWriter<'a> {
    pub(crate) writer: Writer<'a>,
}

/// A text log, while the prepare lock is held.
#[derive(Clone, Copy)]
pub(crate) struct TextSpace<'a> {
    pub(crate) prepare: &'a Prepare<'a>,
}

impl<'a> TextLog<'a> {
    #[inline]
    pub(crate) fn of(core: &'a Core) -> TextLog<'a> {
        TextLog { core }
    }
}

impl<'a> TextWriter<'a> {
    #[inline]
    pub(crate) fn of(writer: Writer<'a>) -> TextWriter<'a> {
        TextWriter { writer }
    }
}

impl<'a> TextSpace<'a> {
    #[inline]
    pub(crate) fn of(prepare: &'a Prepare<'a>) -> TextSpace<'a> {
        TextSpace { prepare }
    }
}
