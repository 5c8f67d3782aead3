//! An append: a slot, a reservation, its bytes, and its behaviour on a full disk.

pub(crate) mod batch;
pub(crate) mod disk_full;
pub(crate) mod fill;
pub(crate) mod general;
pub(crate) mod open_segments;
pub(crate) mod record_writer;
pub(crate) mod reservation;
pub(crate) mod reserve;
pub(crate) mod slots;
pub(crate) mod usual;

use crate::log::state::core::Core;
use crate::log::state::writer::Writer;

/// An append, before this process has looked for its place in the log.
#[derive(Clone, Copy)]
pub(crate) struct Append<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Append<'a> {
    #[inline]
    pub(crate) fn of(core: &'a Core) -> Append<'a> {
        Append { core }
    }
}

/// A participant that appends.
#[derive(Clone, Copy)]
pub(crate) struct Appender<'a> {
    pub(crate) writer: Writer<'a>,
}

impl<'a> Appender<'a> {
    #[inline]
    pub(crate) fn of(writer: Writer<'a>) -> Appender<'a> {
        Appender { writer }
    }
}
