//! The work of an owner beside shipping, with real processes over a directory: merged objects,
//! generations, retention.

mod merging;
mod place;
mod retaining;
#[path = "../support/mod.rs"]
mod support;
