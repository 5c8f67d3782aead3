//! The methods of [`Log`](super::Log), by what they are for.

mod append;
mod commit;
mod keep;
mod read;
mod ship;
