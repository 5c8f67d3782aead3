//! The log of a Raft node: `cargo run --release --example raft_log -- DIR`.
//!
//! The store is in `raft_log/store.rs`, to be copied. This program plays a follower whose leader
//! changes: entries, a vote, a conflicting suffix, a compaction. `examples/openraft` has the
//! same store behind the traits of openraft.

use std::io::Result;

use vellum::Options;

#[path = "raft_log/store.rs"]
#[allow(dead_code, reason = "this program does not need all of it")]
mod store;

use store::{Entry, LogId, RaftLog, Vote};

fn entry(term: u64, index: u64) -> Entry {
    let id = LogId { term, leader: 0, index };
    Entry { id, payload: format!("command {index} of term {term}").into_bytes() }
}

fn main() -> Result<()> {
    let dir = std::env::args_os().nth(1).expect("usage: raft_log DIR");
    let log = RaftLog::open(dir.as_ref(), &Options::wal())?;
    let term = log.state().vote.map_or(0, |vote| vote.term) + 1;
    let start = log.last().map_or(0, |last| last.index) + 1;

    // A candidate asks for the vote: it is durable before the answer.
    log.save_vote(Vote { term, candidate: 2, is_granted: false })?;
    // The new leader sends entries: they are durable before they are acknowledged.
    let entries: Vec<Entry> = (start..start + 10).map(|index| entry(term, index)).collect();
    log.commit(log.append(&entries)?)?;
    // The leader of the next term disagrees from the sixth on.
    log.save_vote(Vote { term: term + 1, candidate: 3, is_granted: false })?;
    log.commit(log.append(&[entry(term + 1, start + 5)])?)?;
    // A snapshot holds everything up to the third.
    log.purge(entry(term, start + 2).id)?;

    println!("vote: {:?}", log.state().vote);
    for Entry { id, payload } in log.read(0..u64::MAX)? {
        println!("{} of term {}: {}", id.index, id.term, String::from_utf8_lossy(&payload));
    }
    Ok(())
}
