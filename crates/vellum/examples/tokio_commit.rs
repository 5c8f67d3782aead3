//! Commits in an asynchronous program: `cargo run --example tokio_commit`.
//!
//! Vellum knows of no runtime. A [`Committer`] commits in a thread of its own, and each commit has
//! a file descriptor that becomes readable when it is done, which any event loop can wait for.

use std::error::Error;
use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinSet;
use vellum::{Committer, Lsn, Options};

/// Waits until the record at `lsn` survives a power cut.
async fn committed(committer: &Committer, lsn: Lsn) -> vellum::Result<()> {
    let completion = committer.submit(lsn)?;
    // SAFETY: a completion has the same descriptor as long as it lives, and keeps it open.
    let event = unsafe { AsyncFd::register_with_interest(completion, Interest::READABLE) };
    let event = event.expect("in a runtime");
    loop {
        // Readable means done; it stays readable, so there is nothing to clear.
        let _ready = event.readable().await.expect("the runtime is there");
        if let Some(outcome) = event.get_ref().outcome() {
            return outcome;
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let log = Options::wal().open(dir.path().join("orders.wal"))?;
    let committer = Arc::new(log.committer()?);
    let mut commits = JoinSet::new();
    for order in 0..100 {
        let lsn = log.append(format!("order {order}").as_bytes())?;
        let committer = Arc::clone(&committer);
        // All of them wait at the same time, and share a few writes of the device.
        commits.spawn(async move { committed(&committer, lsn).await });
    }
    let outcomes = commits.join_all().await;
    let durable = outcomes.into_iter().collect::<vellum::Result<Vec<()>>>()?.len();
    let stat = log.stat()?.commits;
    println!("{durable} orders are durable after {} writes", stat.syncs);
    Ok(())
}
