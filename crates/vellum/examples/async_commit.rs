//! Append and commit in an asynchronous program: `cargo run --example async_commit`.
//!
//! A [`Committer`] is one thread that commits for all tasks. A commit is a future of the standard
//! library: it needs no runtime of a certain kind, and no file descriptor. Tasks that wait at the
//! same time share one write of the device.

use std::error::Error;
use std::sync::Arc;

use tokio::task::JoinSet;
use vellum::{Committer, Lsn, Options};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let log = Options::wal().open(dir.path().join("orders.wal"))?;
    let committer: Arc<Committer> = Arc::new(log.committer()?);
    let mut tasks = JoinSet::new();
    for order in 0..100 {
        let committer = Arc::clone(&committer);
        let record = format!("order {order}");
        tasks.spawn(async move { committer.append_durable(record.as_bytes()).await });
    }
    let lsns = tasks.join_all().await.into_iter().collect::<vellum::Result<Vec<Lsn>>>()?;
    assert!(lsns.iter().all(|lsn| *lsn < log.durable()));

    // Many records and one wait: each commit covers all that was appended before.
    log.append(b"an order that nobody waits for")?;
    let newest = log.append(b"one more")?;
    committer.submit(newest)?.await?;
    println!("{} orders are durable after {} writes", lsns.len() + 2, log.stat()?.commits.syncs);
    Ok(())
}

#[test]
fn the_example_runs() {
    main().unwrap();
}
