//! Opening a log: creating, joining, recovering it.

pub(crate) mod agreement;
pub(crate) mod behind_newest;
pub(crate) mod contradiction;
pub(crate) mod create;
pub(crate) mod enter;
pub(crate) mod leave;
pub(crate) mod parts;
pub(crate) mod reading;
#[cfg(all(test, not(any(loom, shuttle))))]
mod recovery_tests;
pub(crate) mod reopen;
pub(crate) mod words_check;
