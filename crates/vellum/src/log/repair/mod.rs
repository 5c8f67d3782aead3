//! What the dead left: padding it, reading up to it, noticing who is there.

pub(crate) mod pad;
pub(crate) mod presence;
pub(crate) mod read_limit;
pub(crate) mod shrink;
