//! Making room before it is needed: segments, zeros, stages.

pub(crate) mod segment_keeper;
pub(crate) mod space;
pub(crate) mod spare_segments;
pub(crate) mod stage;

use crate::log::state::writer::Prepare;

/// A participant that makes room, while it holds the prepare lock.
#[derive(Clone, Copy)]
pub(crate) struct RoomMaker<'a> {
    pub(crate) prepare: &'a Prepare<'a>,
}

impl<'a> RoomMaker<'a> {
    #[inline]
    pub(crate) fn of(prepare: &'a Prepare<'a>) -> RoomMaker<'a> {
        RoomMaker { prepare }
    }
}
