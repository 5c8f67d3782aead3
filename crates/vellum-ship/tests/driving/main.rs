//! The driver in this process: what it stores before what, what it refuses, and what it takes over.

mod claims;
mod order;
mod place;
mod refused;
