//! What is particular to framed logs: walking over frames, commit records, and recovery by them.

pub(crate) mod frames;
pub(crate) mod recover;
pub(crate) mod seal;
pub(crate) mod starts;
