//! Decides on the next step, without input, output, clock or threads.
//!
//! Each part is a state machine. It gives an [`Ask`]; the driver carries it out and returns the
//! [`Answer`]. The driver repeats a request whose reply is lost: the first may have taken effect,
//! so a create may find its own object. Nothing here decides by time.
//!
//! | part | what it is |
//! |---|---|
//! | [`Reader`] | finds what a restore must fetch, and where the log ends |
//! | [`Owner`] | ships: chunks in flight, adopting what is there, what is acknowledged |
//! | [`Resume`] | where a shipper that was restarted goes on |
//! | [`Claim`] | takes a log over by sealing its newest generation |
//! | [`Merger`] | which chunks become one merged object |
//! | [`old`] | which generations are older than what is retained |
//! | [`deletable`] | what may be deleted in a closed generation |
//!
//! `docs/decisions/0023-shipping-rules.md` has the rules and why they hold. The tests drive this
//! very code through every order of events (`model/`).

mod age;
mod claim;
mod delete;
mod merge;
#[cfg(test)]
mod model;
mod owner;
mod reader;
mod resume;
mod rules;

pub use age::{Ended, Retain, old};
pub use claim::{Claim, Claimed, Intent};
pub use delete::{Keep, deletable};
pub use merge::{Merger, Span};
pub use owner::{Flight, Job, Owner, Saved, Stop};
pub use reader::{Piece, Plan, Reader, Trouble};
pub use resume::{Resume, Resumed};

use crate::object::{Hash, Header, Key, Link, Mark};

/// A place on the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    /// The position.
    pub lsn: u64,
    /// The chain before it.
    pub chain: Hash,
}

impl Point {
    /// The name of the chunk, gap or seal that comes next.
    pub fn key(&self, generation: u32) -> Key {
        Key::Link { generation, start: self.lsn, chain: self.chain.prefix() }
    }
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// List all merged objects of the generation. Answer: `Listed`.
    List(u32),
    /// Get the header of an object. Answer: `Saw`.
    Look(Key),
    /// Get header and marks of a merged object. Answer: `Marks`.
    Marks(Key),
    /// Create the object with this header, with the bytes of the log if it is a chunk.
    /// Answer: `Created`.
    Create(Header),
    /// Hash these positions of the local log. Answer: `Local`.
    Local {
        /// The first position.
        start: u64,
        /// The position behind the last.
        end: u64,
    },
    /// Store [`Owner::saved`] durably. Answer: `Saved`.
    Save,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The names of merged objects, in any order.
    Listed(Vec<Key>),
    /// The header, or that no such object exists.
    Saw(Option<Header>),
    /// Header and marks, or that no such object exists.
    Marks(Option<(Header, Vec<Mark>)>),
    /// Whether it was created; if not, an object with this name exists.
    Created(bool),
    /// The link of the local log at this range; nothing if a part of it is gone.
    Local(Option<Link>),
    /// It is durable.
    Saved,
}
