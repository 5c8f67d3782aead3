//! `vellum cat`: the records of logs on standard output.

use std::path::Path;
use std::time::Duration;

use vellum::{ErrorKind, Layout, Log, Lsn, Reader};
use vellum_command::outcome::{BadValue, Outcome, Result, as_typed};
use vellum_command::output;
use vellum_command::records::Printer;
use vellum_command::stdio::is_output_closed;

use super::cursor;
use super::open::open_to_read;
use super::times::Times;
use crate::args::{CatArgs, Position};

/// How often a reader that waits for records checks whether its output still has a reader.
pub(super) const LOOK_AT_OUTPUT: Duration = Duration::from_secs(1);

/// What to do when records were removed before they were printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AtTrimmed {
    Fail,
    GoOn,
}

/// How long to wait for a record of a process that may have been stopped or killed, but may as well
/// be about to publish it.
const LOOK_TWICE: Duration = Duration::from_millis(200);

pub(super) fn run(args: &CatArgs) -> Result<Outcome> {
    if let [log] = &args.logs[..] {
        return print_one(log, args);
    }
    if args.follow || args.to.is_some() || args.from != Position::Begin {
        let message = "--follow, --from and --to are for one log; name one";
        return Err(BadValue(message.into()).into());
    }
    let mut all = Outcome::Good;
    for log in &args.logs {
        all = all.and(match print_one(log, args) {
            // The other logs are of use.
            Err(error) if error.is::<vellum::Error>() => {
                output::say(as_typed(&error));
                Outcome::of(&error)
            }
            answer => answer?,
        });
    }
    Ok(all)
}

fn print_one(path: &Path, args: &CatArgs) -> Result<Outcome> {
    let log = open_to_read(path)?;
    let from = match args.since {
        Some(since) => log.reader_at_time(since)?.position(),
        None => cursor::resolve(&log, args.from)?,
    };
    let mut printing = Printing::new(&log, args, from, AtTrimmed::Fail, &|| false)?;
    printing.name = (args.logs.len() > 1).then(|| path.display().to_string());
    printing.run()
}

/// Prints the records from `from` on that `args` ask for. Following stops when `is_elsewhere` says
/// so, which is checked when no record has come for a while.
pub(super) fn print(
    log: &Log,
    args: &CatArgs,
    from: Lsn,
    at_trimmed: AtTrimmed,
    is_elsewhere: &dyn Fn() -> bool,
) -> Result<Outcome> {
    Printing::new(log, args, from, at_trimmed, is_elsewhere)?.run()
}

/// Printing the records of one log, on its way.
struct Printing<'a> {
    log: &'a Log,
    args: &'a CatArgs,
    at_trimmed: AtTrimmed,
    is_elsewhere: &'a dyn Fn() -> bool,
    times: Times,
    end: Lsn,
    reader: Reader,
    printer: Printer,
    /// The name of the log, where others are printed too.
    name: Option<String>,
    /// How long the next record is waited for; `None` while records come.
    patience: Option<Duration>,
    has_gaps: bool,
}

impl<'a> Printing<'a> {
    fn new(
        log: &'a Log,
        args: &'a CatArgs,
        from: Lsn,
        at_trimmed: AtTrimmed,
        is_elsewhere: &'a dyn Fn() -> bool,
    ) -> Result<Printing<'a>> {
        let times = Times::of(log, args)?;
        let end = args.to.map_or(times.end, |to| to.min(times.end));
        let reader = reader(log, args, from)?;
        let printer = Printer::new(args.read.form, log.layout());
        let (name, patience, has_gaps) = (None, None, false);
        Ok(Printing {
            log,
            args,
            at_trimmed,
            is_elsewhere,
            times,
            end,
            reader,
            printer,
            name,
            patience,
            has_gaps,
        })
    }

    fn run(mut self) -> Result<Outcome> {
        while !self.is_done(self.reader.position()) && self.step()? {
            self.has_gaps |= say_gaps(&mut self.reader);
        }
        self.finish()
    }

    fn is_done(&self, position: Lsn) -> bool {
        position >= self.end
    }

    /// Prints one record, or waits for it; returns whether there may be more.
    fn step(&mut self) -> Result<bool> {
        let found = match self.patience {
            Some(_) => self.reader.follow(self.patience),
            None => self.reader.next(),
        };
        match found {
            // There may be nothing but pads between the last record and `to`.
            Ok(Some(record)) if record.lsn >= self.end => Ok(false),
            Ok(Some(record)) => {
                if self.times.have(record) {
                    match &self.name {
                        Some(name) => self.printer.print_of(name, self.log.layout(), record)?,
                        None => self.printer.print(record)?,
                    }
                }
                self.patience = None;
                Ok(true)
            }
            Ok(None) => self.wait_longer(),
            Err(error) if error.kind() == ErrorKind::Trimmed => self.go_on_behind_removed(error),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Nothing has come: returns whether it is worth waiting.
    fn wait_longer(&mut self) -> Result<bool> {
        self.printer.flush()?;
        let had_patience = self.patience.is_some();
        self.patience = Some(if self.args.follow { LOOK_AT_OUTPUT } else { LOOK_TWICE });
        Ok(match self.args.follow {
            true => !(is_output_closed() || had_patience && (self.is_elsewhere)()),
            false => !had_patience && self.reader.obstacle().is_some(),
        })
    }

    fn go_on_behind_removed(&mut self, error: vellum::Error) -> Result<bool> {
        if self.at_trimmed == AtTrimmed::Fail {
            return Err(self.fail(error));
        }
        let position = self.reader.position();
        self.has_gaps |= say_gaps(&mut self.reader);
        self.reader = reader(self.log, self.args, Lsn::ZERO)?;
        say_removed(position, self.reader.position());
        Ok(true)
    }

    /// The good records before the damage are of use.
    fn fail(&mut self, error: vellum::Error) -> anyhow::Error {
        if let Err(failure) = self.printer.flush() {
            return failure;
        }
        say_gaps(&mut self.reader);
        error.into()
    }

    fn finish(mut self) -> Result<Outcome> {
        self.printer.flush()?;
        if let Some(done) = self.times.are_unknown() {
            let log = self.log.path().display();
            let found = "no line begins with a time that can be read";
            output::say(format_args!("{log}: {found}: {done}"));
        }
        if self.has_gaps | say_gaps(&mut self.reader) {
            return Ok(Outcome::Damaged);
        }
        let is_whole = self.args.follow || self.is_done(self.reader.position());
        let is_complete = is_whole || !is_stuck(&self.reader);
        Ok(if is_complete { Outcome::Good } else { Outcome::Incomplete })
    }
}

/// Reports the obstacle before later records.
fn is_stuck(reader: &Reader) -> bool {
    let Some(obstacle) = reader.obstacle() else { return false };
    output::say(format_args!(
        "records from position {} on may be missing: {obstacle}",
        reader.position()
    ));
    true
}

/// A reader that continues behind missing parts of a text log; of a framed log, where the user asks
/// for it.
pub(super) fn reader(log: &Log, args: &CatArgs, from: Lsn) -> vellum::Result<Reader> {
    let reader = as_asked(log.reader(from)?, log, args);
    Ok(reader)
}

/// The reader up to the wanted end, which continues behind missing parts.
pub(super) fn as_asked(reader: Reader, log: &Log, args: &CatArgs) -> Reader {
    let reader = vellum::internal::leave_no_trace(reader);
    let mut reader = if args.read.durable { reader.durable() } else { reader };
    reader.skip_damage(skips_damage(log, args));
    reader
}

/// Whether reading continues behind missing parts.
pub(super) fn skips_damage(log: &Log, args: &CatArgs) -> bool {
    args.read.skip_damage || log.layout() == Layout::Text
}

/// Says what was left out; returns whether anything was.
pub(super) fn say_gaps(reader: &mut Reader) -> bool {
    let gaps = reader.take_gaps();
    gaps.iter().for_each(output::say);
    !gaps.is_empty()
}

fn say_removed(from: Lsn, to: Lsn) {
    output::say(format_args!(
        "what was at positions {from} to {to} was removed before it was read"
    ));
}
