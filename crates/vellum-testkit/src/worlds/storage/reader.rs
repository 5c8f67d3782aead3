//! The process that follows a log with a cursor. It prints the faults of its records.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use clap::Args;
use vellum::{Create, Cursor, Error, ErrorKind, Log, Lsn, Options, Reader};

use super::writer::{say, say_error};
use crate::payload::{self, Payload};
use crate::worlds::shape::Shape;
use crate::worlds::sys;

/// The name of its cursor.
const NAME: &str = "follower";
/// It commits the cursor after so many records.
const COMMIT_EVERY: u64 = 100;
/// Milliseconds until it looks again.
const PAUSE_MS: i32 = 2;

/// Its arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReaderArgs {
    #[arg(long)]
    pub(crate) log: PathBuf,
    #[arg(long)]
    pub(crate) shape: Shape,
    /// Whether what it reads has to be whole.
    #[arg(long)]
    pub(crate) strict: bool,
}

impl ReaderArgs {
    /// As they are given to a program.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec!["storage-reader".to_owned(), "--log".to_owned()];
        words.extend([self.log.display().to_string(), "--shape".to_owned()]);
        words.push(self.shape.to_string());
        words.extend(self.strict.then(|| "--strict".to_owned()));
        words
    }
}

/// Follows until its standard input ends.
pub(crate) fn run(args: &ReaderArgs) -> anyhow::Result<()> {
    let is_over = || sys::can_read(io::stdin().as_fd(), PAUSE_MS);
    while !is_over() {
        match follow(args, is_over) {
            Ok(()) => return Ok(()),
            // There is none yet, or it was cut off.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => say_error('!', "read", &error),
        }
    }
    Ok(())
}

fn follow(args: &ReaderArgs, is_over: impl Fn() -> bool) -> vellum::Result<()> {
    let log = Options::default().create(Create::Never).open(&args.log)?;
    let cursor = log.cursor(NAME, Lsn::ZERO)?;
    let mut reader = cursor.reader()?;
    loop {
        let ends = read_all(args, &log, &cursor, &mut reader)?;
        if ends || is_over() {
            return Ok(());
        }
    }
}

/// Reads what there is; true where it has nothing more to do.
fn read_all(
    args: &ReaderArgs,
    log: &Log,
    cursor: &Cursor,
    reader: &mut Reader,
) -> Result<bool, Error> {
    let mut count = 0;
    while let Some(record) = reader.next()? {
        count += 1;
        let (lsn, layout) = (record.lsn, log.layout());
        let is_ours = Payload::of(record.payload, layout).is_some()
            || args.shape.is_text() && payload::is_marker(record.payload);
        if args.strict && !is_ours {
            let start = String::from_utf8_lossy(&record.payload[..record.payload.len().min(60)]);
            say("fault", '!', &format!("at {lsn} stands what nobody appended: {start:?}"));
            return Ok(true);
        }
        if count % COMMIT_EVERY == 0 {
            // On a full disk there may be no room for it.
            let _ = cursor.commit(lsn);
        }
    }
    Ok(false)
}
