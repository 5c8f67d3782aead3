//! The objects: their names, their bytes, and the chain that ties them together.
//!
//! An object is created if its name is free, and never changed. It is a header of 256 bytes
//! ([`Header`]) and a body. Bytes from a store are not trusted: lengths are bounded before anything
//! is allocated, unknown flags and versions are refused, and names never become paths.

mod body;
mod chain;
mod header;
mod identity;
mod key;

pub use body::{
    BadObject, Built, CHUNK_BYTES_MAX, MERGED_BYTES_MAX, Mark, build, build_in, closed, gap, marks,
    merged, open, seal, table_end,
};
pub use chain::{FileMark, Hash, Link, hash};
pub use header::{HEADER_BYTES, Header, Kind};
pub use identity::Identity;
pub use key::{Key, LOG, closed_name, merged_prefix, parse};
