//! What is particular to text logs: their files, when they rotate, which of them are kept, and
//! recovery.

#[cfg(feature = "zstd")]
pub(crate) mod compress;
pub(crate) mod file_names;
pub(crate) mod policy;
pub(crate) mod recover;
pub(crate) mod retain;
pub(crate) mod rotate;
pub(crate) mod write_lock;
