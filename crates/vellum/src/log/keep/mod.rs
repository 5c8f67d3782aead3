//! Keeping and removing records: trimming, truncating, cursors.

pub(crate) mod beginning;
pub(crate) mod cursors;
pub(crate) mod retention;
pub(crate) mod trim;
pub(crate) mod truncate;
