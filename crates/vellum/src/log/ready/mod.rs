//! Making room before it is needed: segments, zeros, stages.

pub(crate) mod prepared;
pub(crate) mod preparing;
pub(crate) mod space;
pub(crate) mod stage;
