//! Reading: in order, backwards, from a time, and following the writers.

pub(crate) mod backwards;
pub(crate) mod follow;
pub(crate) mod pollable;
pub(crate) mod reader;
pub(crate) mod records;
pub(crate) mod stored;
pub(crate) mod time_index;
