//! Following a log in an asynchronous program: `cargo run --example tokio_follow`.
//!
//! A [`PollableReader`] has one file descriptor, which becomes readable when there may be more
//! records. It has no thread: the process that commits wakes the one that follows.

use std::error::Error;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use vellum::{Log, Lsn, Options, OwnedRecord, PollableReader};

/// A reader that a task can await.
struct Follower(AsyncFd<PollableReader>);

impl Follower {
    fn new(reader: PollableReader) -> Follower {
        // SAFETY: a pollable reader has the same descriptor as long as it lives, and keeps it open.
        let event = unsafe { AsyncFd::register_with_interest(reader, Interest::READABLE) };
        Follower(event.expect("in a runtime"))
    }

    /// The next record, waiting for one.
    async fn next(&mut self) -> vellum::Result<OwnedRecord> {
        loop {
            let mut ready = self.0.readable_mut().await.expect("the runtime is there");
            match ready.get_inner_mut().next()? {
                Some(record) => return Ok(record.into_owned()),
                // It is readable again when it is time to ask again.
                None => ready.clear_ready(),
            }
        }
    }
}

/// Prints records that survive a power cut, as they are committed.
async fn ship(log: &Log, count: u32) -> vellum::Result<Lsn> {
    let mut follower = Follower::new(log.reader(Lsn::ZERO)?.durable().pollable()?);
    let mut shipped = Lsn::ZERO;
    for _ in 0..count {
        let record = follower.next().await?;
        println!("{}: {}", record.lsn, String::from_utf8_lossy(&record.payload));
        shipped = record.next_lsn;
    }
    Ok(shipped)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let log = Options::wal().exclusive(false).open(dir.path().join("orders.wal"))?;
    let writer = log.reopen()?;
    let committing = std::thread::spawn(move || {
        (0..10).try_for_each(|n| writer.append_durable(format!("order {n}").as_bytes()).map(drop))
    });
    let shipped = ship(&log, 10).await?;
    committing.join().expect("it does not panic")?;
    assert!(shipped <= log.durable());
    Ok(())
}

#[test]
fn the_example_runs() {
    main().unwrap();
}
