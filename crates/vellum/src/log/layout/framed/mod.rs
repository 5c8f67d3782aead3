//! What is particular to framed logs: walking over frames, commit records, recovery by them, and
//! retention.

pub(crate) mod frames;
pub(crate) mod recover;
pub(crate) mod retain;
pub(crate) mod seal;
pub(crate) mod staged;
pub(crate) mod starts;
