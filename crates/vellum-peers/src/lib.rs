//! Other engines as cases of the suite `commit`, other [`loggers`], and systems in [`java`].
//!
//! Each engine makes a record durable in its own way, with the settings under which it does that
//! best and still keeps its promise.
//!
//! | case | a commit | prepared | not prepared |
//! |---|---|---|---|
//! | `okaywal` | an entry of one chunk | a file of zeros, as large as needed | it grows |
//! | `raft-engine` | a batch of one key, `sync` | `prefill_for_recycle`, files of 16 MiB | allocates |
//! | `walrus` | an append, `FsyncSchedule::SyncEach` | – | a sparse file |
//! | `sqlite` | an insert, WAL, `synchronous=FULL` | – | it grows, and is used again |
//! | `redb` | an insert, `Durability::Immediate` | – | it grows |
//!
//! All threads share one handle, as the engines want it; where an engine takes one writer at a time
//! they wait for each other.

pub mod java;
pub mod loggers;

mod adapter;
mod okay;
mod raft;
mod redb_table;
mod sqlite;
mod walrus;

use vellum_bench::commit::Contender;

/// All of them, in the order in which they take their turns.
pub fn all() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(adapter::Peer::new(okay::Okay { is_prepared: true })),
        Box::new(adapter::Peer::new(okay::Okay { is_prepared: false })),
        Box::new(adapter::Peer::new(raft::Raft { is_prepared: true })),
        Box::new(adapter::Peer::new(raft::Raft { is_prepared: false })),
        Box::new(adapter::Peer::new(walrus::WalrusTopic)),
        Box::new(adapter::Peer::new(sqlite::Sqlite)),
        Box::new(adapter::Peer::new(redb_table::Redb)),
    ]
}

#[cfg(test)]
mod tests;
