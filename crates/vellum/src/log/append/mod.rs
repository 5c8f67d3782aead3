//! An append: a slot, a reservation, its bytes, and what happens on a full disk.

pub(crate) mod batch;
pub(crate) mod fill;
pub(crate) mod full;
pub(crate) mod open_segments;
pub(crate) mod record_writer;
pub(crate) mod reservation;
pub(crate) mod reserve;
pub(crate) mod slots;
pub(crate) mod steps;
