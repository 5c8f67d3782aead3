//! The methods of [`Log`](super::Log), by what they are for.

mod append;
pub(super) mod commit;
mod keep;
mod read;
pub(super) mod ship;
mod stored;
mod time;
