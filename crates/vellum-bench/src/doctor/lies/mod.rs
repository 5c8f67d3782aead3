//! Does durable mean durable? Numbered blocks are written and flushed, and each number is told to a
//! witness after its flush. After a power cut the witness knows what was promised.
//!
//! ```text
//! place     where the block of each number lies, and what is in it: both follow from the number
//! write     writes block after block, until somebody pulls the plug
//! witness   who is told: a file on another disk, another machine, a terminal
//! serve     the other machine
//! promises  what a witness knows
//! check     what is there, against what was promised
//! ```

mod check;
mod place;
mod promises;
mod serve;
mod witness;
mod write;

#[cfg(test)]
mod tests;

pub use check::{Checked, Conclusion, Loss, Lost, check};
pub use place::whole;
pub use promises::Promises;
pub use serve::Server;
pub use witness::{Terminal, Witness, file_witness, tcp_witness};
pub use write::{Limits, write};

/// The directory that the blocks are in, below the one that is tested.
pub const DIR_NAME: &str = "vellum-lies";
