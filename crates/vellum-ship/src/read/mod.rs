//! Reading a shipped log: doing what `decide` asks, fetching objects, and writing a log from them.
//!
//! Nothing that a store returns is trusted: lengths are bounded, hashes are compared, and names of
//! objects never become names of files.

mod error;
mod extent;
mod fetch;
mod headers;
mod logs;
mod pieces;
mod records;
mod remote;
mod restore;
mod retry;

pub use error::ReadError;
pub use extent::{Extent, Until, gaps};
pub use fetch::{Fetched, fetch_all};
pub use logs::find_logs;
pub use pieces::Pieces;
pub use records::{Part, Parts, Records};
pub use remote::Remote;
pub use restore::{Progress, Restore, Restored, restore};
