//! `vellum cat URL` and `vellum tail URL`: the records of shipped logs on standard output.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, UNIX_EPOCH};

use clap::Args;
use vellum::{Layout, OwnedRecord};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::records::{Form, Printer};
use vellum_command::stdio::is_output_closed;
use vellum_ship::decide::{Plan, Point};
use vellum_ship::read::{Extent, Part, Parts, ReadError, Records, Remote, Until, find_logs};

use super::ls::url_below;
use crate::output;

/// Objects that are fetched at the same time.
const JOBS: usize = 4;
/// How often the next object is asked for, at first and at last.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// After so many waits the whole plan is made again: objects may have been merged and removed.
const WAITS_TO_PLAN: u32 = 30;

/// Print the records of a shipped log, or of all logs below a URL
///
/// The records of many logs are merged by the times at which they were appended, where they have
/// envelopes; else by the time at which they were shipped, which is as exact as the interval of
/// their shippers.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  vellum cat s3://bucket/app | grep error")]
pub(super) struct CatArgs {
    /// A log, or the common beginning of the URLs of many logs
    url: String,
    /// Start with the first record at this position or beyond it
    #[arg(long, value_name = "LSN", default_value_t = 0, hide_default_value = true)]
    from: u64,
    /// Stop before the record at this position, or at the first one beyond it
    #[arg(long, value_name = "LSN")]
    to: Option<u64>,
    /// At the end, wait for more, until killed
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    form: Form,
    /// Begin each record of many logs with the name of its log and a tab
    #[arg(long, conflicts_with = "raw")]
    names: bool,
}

/// Print the last records of a shipped log
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  vellum tail -n 100 -f s3://bucket/app")]
pub(super) struct TailArgs {
    /// Where the log was shipped to
    url: String,
    /// How many records to print
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 10)]
    lines: usize,
    /// At the end, wait for more, until killed
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    form: Form,
}

pub(super) async fn run(args: CatArgs) -> Result<Outcome> {
    let store = super::open(&args.url)?;
    let logs = find_logs(store.as_ref()).await?;
    match &logs[..] {
        [] => Err(ReadError::NoLog.into()),
        [name] => cat_one(&args, &url_below(&args.url, name)).await,
        names => cat_many(&args, names).await,
    }
}

async fn cat_one(args: &CatArgs, url: &str) -> Result<Outcome> {
    let remote = super::remote(url).await?;
    let plan = remote.plan().await?;
    let extent = wanted(&plan, args, &remote).await?;
    let mut printer = Printer::new(args.form, remote.shape().layout());
    let is_whole = extent.gaps().is_empty();
    let mut records = Records::new(&remote);
    print_parts(&remote, &extent, &mut records, &mut |record| {
        if record.lsn.get() < args.from { Ok(()) } else { printer.print(record) }
    })
    .await?;
    if args.follow {
        printer.flush()?;
        follow(&remote, &plan, &mut records, &mut printer).await?;
    }
    records.finish(|record| printer.print(record))?;
    printer.flush()?;
    Ok(if is_whole { Outcome::Good } else { Outcome::Damaged })
}

/// The range of the log that the options ask for. A record may begin in the piece before `from`, so
/// all of it is decoded.
async fn wanted(plan: &Plan, args: &CatArgs, remote: &Remote) -> Result<Extent> {
    let until = args.to.map_or(Until::End, |to| Until::Position(to.min(plan.end.lsn)));
    let extent = Extent::of(plan, until, remote.store().as_ref()).await?;
    output::say_gaps(&extent.gaps());
    Ok(extent)
}

type Each<'a> = dyn FnMut(vellum::Record<'_>) -> Result<()> + 'a;

async fn print_parts(
    remote: &Remote,
    extent: &Extent,
    records: &mut Records,
    each: &mut Each<'_>,
) -> Result<()> {
    let mut parts = Parts::new(remote, extent, JOBS);
    while let Some(part) = parts.next().await? {
        records.take(&part, &mut *each)?;
    }
    Ok(())
}

/// Prints what comes. Each wait costs one small request; nothing is asked of the shipper.
async fn follow(
    remote: &Remote,
    plan: &Plan,
    records: &mut Records,
    printer: &mut Printer,
) -> Result<()> {
    let (mut generation, mut at) = (plan.generation, plan.end);
    loop {
        wait_for(remote, generation, at).await?;
        let plan = remote.plan_from(generation, at).await?;
        say_jump(&plan, at);
        let extent = Extent::of(&plan, Until::End, remote.store().as_ref()).await?;
        print_parts(remote, &extent, records, &mut |record| printer.print(record)).await?;
        printer.flush()?;
        (generation, at) = (plan.generation, plan.end);
    }
}

/// Returns when there may be more.
async fn wait_for(remote: &Remote, generation: u32, at: Point) -> Result<()> {
    let key = at.key(generation).to_string();
    let mut wait = FIRST_WAIT;
    for _ in 0..WAITS_TO_PLAN {
        match remote.store().head(&key).await {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {}
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error.into()),
        }
        if is_output_closed() {
            return Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into());
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
    Ok(())
}

fn say_jump(plan: &Plan, at: Point) {
    if plan.begin > at.lsn {
        let text =
            format!("what was at {} to {} was removed before it was read", at.lsn, plan.begin);
        output::say(text);
    } else if plan.begin < at.lsn {
        output::say(format_args!("the log was cut at {} and goes on from there", plan.begin));
    }
}

pub(super) async fn tail(args: TailArgs) -> Result<Outcome> {
    let remote = super::remote(&args.url).await?;
    let plan = remote.plan().await?;
    let mut printer = Printer::new(args.form, remote.shape().layout());
    let (mut records, last) = last_records(&remote, &plan, args.lines).await?;
    for record in &last {
        printer.print(record)?;
    }
    printer.flush()?;
    if args.follow {
        follow(&remote, &plan, &mut records, &mut printer).await?;
    }
    Ok(Outcome::Good)
}

/// The last records, from as few objects as have them. An object may begin inside of a record: then
/// one more is needed.
async fn last_records(
    remote: &Remote,
    plan: &Plan,
    count: usize,
) -> Result<(Records, Vec<vellum::OwnedRecord>)> {
    let all = Extent::of(plan, Until::End, remote.store().as_ref()).await?;
    let mut used = 1;
    loop {
        let pieces = all.pieces[all.pieces.len().saturating_sub(used)..].to_vec();
        let begin = pieces.first().map_or(all.end, |piece| piece.header.start);
        let extent = Extent { pieces, begin, ..all.clone() };
        let is_all = used >= all.pieces.len();
        match decode(remote, &extent, count).await {
            Ok((records, last)) if is_all || last.len() > count => {
                return Ok((records, last[last.len().saturating_sub(count)..].to_vec()));
            }
            Err(error) if is_all => return Err(error),
            _ => used *= 4,
        }
    }
}

/// The last records of an extent, some more than wanted.
async fn decode(
    remote: &Remote,
    extent: &Extent,
    count: usize,
) -> Result<(Records, Vec<vellum::OwnedRecord>)> {
    let mut records = Records::new(remote);
    let mut last = Vec::new();
    print_parts(remote, extent, &mut records, &mut |record| {
        if last.len() > 2 * count + 1 {
            last.drain(..count);
        }
        last.push(record.into_owned());
        Ok(())
    })
    .await?;
    Ok((records, last))
}

/// Prints the records of many logs in the order of their times.
async fn cat_many(args: &CatArgs, names: &[String]) -> Result<Outcome> {
    let mut remotes = Vec::new();
    for name in names {
        remotes.push(super::remote(&url_below(&args.url, name)).await?);
    }
    let (mut logs, mut outcome) = (Vec::new(), Outcome::Good);
    for (name, remote) in names.iter().zip(&remotes) {
        let extent = wanted(&remote.plan().await?, args, remote).await?;
        if !extent.gaps().is_empty() {
            outcome = Outcome::Damaged;
        }
        let parts = Parts::new(remote, &extent, 1);
        logs.push(Merging::begin(name, remote, parts).await?);
    }
    let first = |log: &Merging<'_>, index| log.head.is_some().then_some(Reverse((log.time, index)));
    let mut next: BinaryHeap<_> =
        logs.iter().enumerate().filter_map(|(index, log)| first(log, index)).collect();
    let mut printer = Printer::new(args.form, Layout::Framed).with_names(args.names);
    while let Some(Reverse((_, index))) = next.pop() {
        logs[index].step(&mut printer).await?;
        next.extend(first(&logs[index], index));
    }
    printer.flush()?;
    Ok(outcome)
}

/// One of many logs.
struct Merging<'a> {
    name: &'a str,
    layout: Layout,
    parts: Parts<'a>,
    /// The part that follows once `records` is empty.
    part: Option<Part>,
    records: Records,
    /// The next record, and its time, in nanoseconds since 1970: never before the one before it.
    head: Option<OwnedRecord>,
    time: u64,
    /// When the newest part was shipped.
    shipped: u64,
}

impl<'a> Merging<'a> {
    async fn begin(name: &'a str, remote: &'a Remote, parts: Parts<'a>) -> Result<Merging<'a>> {
        let (layout, records) = (remote.shape().layout(), Records::new(remote));
        let mut log =
            Merging { name, layout, parts, part: None, records, head: None, time: 0, shipped: 0 };
        log.advance().await?;
        Ok(log)
    }

    /// Prints the next record, and finds the one after it.
    async fn step(&mut self, printer: &mut Printer) -> Result<()> {
        if let Some(record) = self.head.take() {
            printer.print_of(self.name, self.layout, &record)?;
        }
        self.advance().await
    }

    async fn advance(&mut self) -> Result<()> {
        self.head = self.find_next().await?;
        let time = self.head.as_ref().and_then(OwnedRecord::time);
        let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let own = since.map_or(self.shipped, |since| u64::try_from(since.as_nanos()).unwrap_or(0));
        self.time = self.time.max(own);
        Ok(())
    }

    async fn find_next(&mut self) -> Result<Option<OwnedRecord>> {
        loop {
            if let Some(record) = self.records.next()? {
                return Ok(Some(record.into_owned()));
            }
            if self.part.is_none() {
                self.part = self.parts.next().await?;
            }
            let goes_on = self.part.as_ref().is_some_and(|part| self.records.goes_on(part));
            if !goes_on && let Some(record) = self.records.rest() {
                return Ok(Some(record.into_owned()));
            }
            let Some(part) = self.part.take() else { return Ok(None) };
            self.shipped = part.time;
            self.records.push(&part);
        }
    }
}
