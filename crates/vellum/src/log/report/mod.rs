//! Looking at a log: its state, its figures, its damage.

pub(crate) mod copy_frames;
pub(crate) mod copy_out;
pub(crate) mod metrics;
pub(crate) mod stat;
pub(crate) mod verify;
