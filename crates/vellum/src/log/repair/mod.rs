//! The ranges of the dead: padding them, reading up to them, noticing living processes.

pub(crate) mod pad;
pub(crate) mod presence;
pub(crate) mod read_limit;
pub(crate) mod shrink;
