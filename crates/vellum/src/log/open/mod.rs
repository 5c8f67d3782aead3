//! Opening a log: creating, joining, recovering it.

pub(crate) mod agreement;
pub(crate) mod contradiction;
pub(crate) mod create;
pub(crate) mod enter;
pub(crate) mod leave;
pub(crate) mod parts;
pub(crate) mod plan;
pub(crate) mod reading;
pub(crate) mod recover;
pub(crate) mod reopen;
pub(crate) mod words_check;
pub(crate) mod zero_tail;
