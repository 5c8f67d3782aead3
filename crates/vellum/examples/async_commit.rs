//! Append and commit in an asynchronous program, without `unsafe` and without a file descriptor
//! for each commit: `cargo run --example async_commit`.
//!
//! One thread commits for all tasks. A task appends, which never waits for the device, asks the
//! thread to commit, and awaits a channel that tells up to where the log is durable. Tasks that
//! wait at the same time share one write of the device.

use std::error::Error;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use vellum::{Log, Lsn, Options};

/// What the tasks share.
#[derive(Clone)]
struct Wal {
    log: Arc<Log>,
    wanted: mpsc::UnboundedSender<Lsn>,
    /// Up to where the log is durable, or why no more of it will be.
    durable: watch::Receiver<vellum::Result<Lsn>>,
}

impl Wal {
    /// The log, and the thread that commits until the last clone is gone.
    fn new(log: Log) -> (Wal, JoinHandle<()>) {
        let log = Arc::new(log);
        let (wanted, requests) = mpsc::unbounded_channel();
        let (news, durable) = watch::channel(Ok(log.durable()));
        let committing = Arc::clone(&log);
        let thread = std::thread::spawn(move || commit_for_all(&committing, requests, &news));
        (Wal { log, wanted, durable }, thread)
    }

    /// Appends a record; returns when it survives a power cut.
    async fn append_durable(&mut self, record: &[u8]) -> vellum::Result<Lsn> {
        let lsn = self.log.append(record)?;
        // After an error nobody listens, and the error is in the channel.
        let _ = self.wanted.send(lsn);
        let is_news = |durable: &vellum::Result<Lsn>| durable.as_ref().map_or(true, |d| *d > lsn);
        let durable = self.durable.wait_for(is_news).await.expect("there is news");
        durable.clone().map(|_| lsn)
    }
}

/// Commits what was asked for last; that covers all that was asked for before. The first error is
/// the last news, for all tasks.
fn commit_for_all(
    log: &Log,
    mut requests: mpsc::UnboundedReceiver<Lsn>,
    news: &watch::Sender<vellum::Result<Lsn>>,
) {
    while let Some(mut newest) = requests.blocking_recv() {
        while let Ok(lsn) = requests.try_recv() {
            newest = newest.max(lsn);
        }
        let durable = log.commit(newest).map(|()| log.durable());
        let has_failed = durable.is_err();
        let _before = news.send_replace(durable);
        if has_failed {
            return;
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let (wal, thread) = Wal::new(Options::wal().open(dir.path().join("orders.wal"))?);
    let log = Arc::clone(&wal.log);
    let mut tasks = JoinSet::new();
    for order in 0..100 {
        let mut wal = wal.clone();
        tasks.spawn(async move { wal.append_durable(format!("order {order}").as_bytes()).await });
    }
    drop(wal);
    let lsns = tasks.join_all().await.into_iter().collect::<vellum::Result<Vec<Lsn>>>()?;
    thread.join().expect("it does not panic");
    assert!(lsns.iter().all(|lsn| *lsn < log.durable()));
    println!("{} orders are durable after {} writes", lsns.len(), log.stat()?.commits.syncs);
    Ok(())
}

#[test]
fn the_example_runs() {
    main().unwrap();
}
