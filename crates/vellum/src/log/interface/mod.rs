//! The methods of [`Log`](super::Log), by their purpose.

mod append;
pub(super) mod commit;
mod keep;
mod read;
pub(super) mod ship;
mod stored;
mod time;
