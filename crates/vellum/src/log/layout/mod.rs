//! The two layouts of a log: frames, and text.

pub(crate) mod framed;
pub(crate) mod text;
