//! `vellum tail --cursor`: the new records since a named position, which moves with the finished
//! ones.

use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread;

use anyhow::{Context, bail};
use vellum::{Cursor, ErrorKind, Log, Lsn, Reader, Record};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output;
use vellum_command::records::Printer;
use vellum_command::stdio::{self, is_output_closed};

use crate::args::{CatArgs, Position, TailArgs};
use crate::commands::cat::{self, LOOK_AT_OUTPUT};
use crate::commands::open::open_beside;

/// Bytes of log after which the cursor moves although more is there to print.
const MOVE_EVERY_BYTES: u64 = 1 << 20;

/// Prints what is behind the cursor, and follows it if that is asked for.
pub(super) fn run(args: &TailArgs, name: &str) -> Result<Outcome> {
    let log = open_beside(&args.log)?;
    let cursor = Arc::new(log.cursor(name, Lsn::ZERO)?);
    cursor.own()?;
    let position = cursor.position()?;
    let acks = args.ack.then(|| Acks::listen(&cursor, position)).transpose()?;
    let cat = as_cat(args);
    let mut tail = Tail {
        printer: Printer::new(cat.read.form, log.layout()),
        cat,
        has_positions: args.positions,
        moved_to: position,
        printed: position,
        has_gaps: false,
        cursor,
        acks,
    };
    let printed = tail.print(&log, args.follow);
    // The good records before an error are of use.
    tail.printer.flush()?;
    let is_acknowledged = printed.and_then(|()| tail.end())?;
    Ok(match (tail.has_gaps, is_acknowledged) {
        (_, false) => Outcome::Failed,
        (true, true) => Outcome::Damaged,
        (false, true) => Outcome::Good,
    })
}

/// The same options for the code that prints records.
fn as_cat(args: &TailArgs) -> CatArgs {
    let (logs, from) = (vec![args.log.clone()], Position::Begin);
    let (to, since, until) = (None, None, None);
    let TailArgs { follow, read, .. } = *args;
    CatArgs { logs, from, to, since, until, follow, read }
}

struct Tail {
    cursor: Arc<Cursor>,
    printer: Printer,
    cat: CatArgs,
    has_positions: bool,
    /// Where the cursor was moved last, or up to where standard output has taken records.
    moved_to: Lsn,
    /// The position behind the record that was printed last.
    printed: Lsn,
    has_gaps: bool,
    /// Where acknowledgements come from; without, printed records are finished.
    acks: Option<Acks>,
}

impl Tail {
    /// Prints to the end, or until no reader is left.
    fn print(&mut self, log: &Log, follows: bool) -> Result<()> {
        let mut reader = self.reader(log)?;
        let mut waits = false;
        loop {
            let position = reader.position();
            let found = if waits { reader.follow(Some(LOOK_AT_OUTPUT)) } else { reader.next() };
            waits = false;
            match found {
                Ok(Some(record)) => self.print_record(record)?,
                Ok(None) => {
                    self.take(reader.position())?;
                    if !follows || self.is_over()? {
                        return Ok(());
                    }
                    waits = true;
                }
                Err(error) if error.kind() == ErrorKind::Trimmed => {
                    self.take(position.min(log.published()))?;
                    reader = self.reader(log)?;
                }
                Err(error) => {
                    self.take(position)?;
                    cat::say_gaps(&mut reader);
                    return Err(error.into());
                }
            }
            self.has_gaps |= cat::say_gaps(&mut reader);
        }
    }

    fn print_record(&mut self, record: Record<'_>) -> Result<()> {
        let next = record.next_lsn;
        if let Some(acks) = &self.acks {
            // Before it can be read, and acknowledged.
            acks.printed.store(next.get(), Ordering::Release);
        }
        if self.has_positions {
            self.printer.prefix(&format!("{next}\t"))?;
        }
        self.printer.print(record)?;
        self.printed = next;
        // Now and then the cursor moves while there is more to print.
        match next.get().saturating_sub(self.moved_to.get()) < MOVE_EVERY_BYTES {
            true => Ok(()),
            false => self.take(next),
        }
    }

    /// A reader at the finished position, or behind records that were removed meanwhile.
    fn reader(&mut self, log: &Log) -> Result<Reader> {
        loop {
            match self.cursor.reader() {
                Ok(reader) => return Ok(cat::as_asked(reader, log, &self.cat)),
                Err(error) if error.kind() == ErrorKind::Trimmed => {
                    if let Some(gap) = self.cursor.skip_overrun()? {
                        output::say(&gap);
                        self.has_gaps = true;
                        (self.moved_to, self.printed) = (gap.to, gap.to);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Has standard output take the printed records, up to `position`, and moves the cursor there,
    /// unless that is to be acknowledged.
    fn take(&mut self, position: Lsn) -> Result<()> {
        self.printer.flush()?;
        if position <= self.moved_to {
            return Ok(());
        }
        if self.acks.is_none() {
            self.cursor.commit(position)?;
        }
        self.moved_to = position;
        Ok(())
    }

    /// Whether the output has no reader, or its records no acknowledger, any more.
    fn is_over(&mut self) -> Result<bool> {
        let is_deaf = self.acks.as_mut().map_or(Ok(false), Acks::is_over)?;
        Ok(is_deaf || is_output_closed())
    }

    /// The end of all; whether everything was acknowledged.
    fn end(&mut self) -> Result<bool> {
        let Some(acks) = &mut self.acks else { return Ok(true) };
        while acks.finished < self.printed && !acks.is_deaf && !is_output_closed() {
            acks.wait()?;
        }
        if acks.finished >= self.printed {
            return Ok(true);
        }
        output::say(format_args!(
            "printed up to {} and acknowledged up to {}; the rest is printed again next time",
            self.printed, acks.finished
        ));
        Ok(false)
    }
}

/// Acknowledgements that come on standard input, and move the cursor as they come.
struct Acks {
    /// Up to where records were printed.
    printed: Arc<AtomicU64>,
    moved: Receiver<Result<Lsn>>,
    /// Up to where they were acknowledged.
    finished: Lsn,
    is_deaf: bool,
}

impl Acks {
    fn listen(cursor: &Arc<Cursor>, position: Lsn) -> Result<Acks> {
        let (sender, moved) = mpsc::channel();
        let printed = Arc::new(AtomicU64::new(position.get()));
        let (of_listener, cursor) = (Arc::clone(&printed), Arc::clone(cursor));
        // Ends with the process: nothing wakes up a thread that reads.
        let work = move || {
            if let Err(error) = listen(&cursor, &of_listener, &sender) {
                let _ = sender.send(Err(error));
            }
        };
        let thread = thread::Builder::new().name("vellum-acks".into()).spawn(work);
        thread.context("cannot start the thread that reads acknowledgements: raise `ulimit -u`")?;
        Ok(Acks { printed, moved, finished: position, is_deaf: false })
    }

    /// Takes what has come; whether nothing more will.
    fn is_over(&mut self) -> Result<bool> {
        loop {
            match self.moved.try_recv() {
                Ok(moved) => self.finished = moved?,
                Err(TryRecvError::Empty) => return Ok(self.is_deaf),
                Err(TryRecvError::Disconnected) => {
                    self.is_deaf = true;
                    return Ok(true);
                }
            }
        }
    }

    /// Waits for the next one, or a moment.
    fn wait(&mut self) -> Result<()> {
        match self.moved.recv_timeout(LOOK_AT_OUTPUT) {
            Ok(moved) => self.finished = moved?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.is_deaf = true,
        }
        Ok(())
    }
}

/// Moves the cursor to each position that is read; to the last of those that have come together.
fn listen(cursor: &Cursor, printed: &AtomicU64, moved: &Sender<Result<Lsn>>) -> Result<()> {
    let mut input = BufReader::new(stdio::stdin());
    let mut line = String::new();
    let mut finished = cursor.position()?;
    while input.read_line(&mut line).context("cannot read acknowledgements")? > 0 {
        finished = finished.max(acknowledged(&line, printed)?);
        line.clear();
        if input.buffer().contains(&b'\n') {
            continue;
        }
        // It may have continued behind records that were removed in front of it.
        if finished > cursor.position()? {
            cursor.commit(finished)?;
        }
        let _ = moved.send(Ok(finished));
    }
    Ok(())
}

/// The position that a line acknowledges.
fn acknowledged(line: &str, printed: &AtomicU64) -> Result<Lsn> {
    let line = line.trim();
    let lsn: Lsn = line.parse().with_context(|| {
        format!("{line:?} is no acknowledgement: write a position, as 67108864")
    })?;
    if lsn.get() > printed.load(Ordering::Acquire) {
        bail!("{lsn} was acknowledged before it was printed");
    }
    Ok(lsn)
}
