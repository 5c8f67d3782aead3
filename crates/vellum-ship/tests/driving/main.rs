//! The driver in this process: the order of its stores, its refusals, and its take-overs.

mod claims;
mod order;
mod place;
mod refused;
