//! `vellum-ship ship`: ships the durable part of a log to a store.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io};

use indicatif::ProgressBar;
use signal_hook::consts::{SIGINT, SIGTERM};
use tokio::signal::unix::{SignalKind, signal};
use vellum::{Log, Lsn, Options};
use vellum_command::outcome::{BadValue, Outcome, Result};
use vellum_command::shipping::{Retained, ShipArgs};
use vellum_ship::decide::Retain;
use vellum_ship::driver::{self, KeepOptions, Report, ShipOptions, start};
use vellum_ship::store::{self, Location, Store};
use vellum_ship_figures::Figures;

use super::minute::Minute;
use crate::output;

/// The signals that have it finish what is in flight.
pub(super) const TAKEN: [i32; 2] = [SIGINT, SIGTERM];
const IN_FLIGHT: usize = 4;
const NAP: Duration = Duration::from_millis(200);
/// About the most bytes of log in an object.
const OBJECT_BYTES: u64 = 8 << 20;
const MINUTE: Duration = Duration::from_secs(60);
/// How often the bar moves.
const RHYTHM: Duration = Duration::from_millis(200);

pub(super) async fn run(args: ShipArgs) -> Result<Outcome> {
    if args.url().starts_with("kafka:") {
        return to_kafka(args).await;
    }
    if args.partition.is_some() || !args.kafka_config.is_empty() {
        return Err(BadValue("--partition and --kafka-config are for kafka://".into()).into());
    }
    let log = vellum::ship::open(&args.log)?;
    if args.detach {
        return detach(&log);
    }
    let mut ends = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = async move {
        tokio::select! { _ = ends.0.recv() => {}, _ = ends.1.recv() => {} }
    };
    if args.dry_run {
        return dry_run(&log, &args).await;
    }
    let before = Figures::of(&log)?.log_bytes;
    let mut stop = std::pin::pin!(stop);
    let shipper = loop {
        match log.ship().elect()? {
            Some(shipper) => break shipper,
            None => tokio::select! {
                () = &mut stop => return Ok(Outcome::Good),
                () = tokio::time::sleep(NAP) => {}
            },
        }
    };
    let (url, dir) = (args.url().to_owned(), log.path().to_path_buf());
    // A directory may be on a filesystem that does not answer.
    let store = tokio::select! {
        () = &mut stop => return Ok(Outcome::Good),
        store = tokio::task::spawn_blocking(move || open_store(&url, &dir)) => store??,
    };
    let options = ShipOptions {
        url: args.url().to_owned(),
        once: args.once,
        interval: args.interval,
        min_interval: args.min_interval,
        take_over: args.take_over,
        max_unshipped: args.max_unshipped,
        in_flight: IN_FLIGHT,
        note: |text| output::say(text),
    };
    let (rotate, retain) = (args.rotate, args.retain.map(kept));
    let keep = KeepOptions { rotate, retain, note: |text| output::say(text) };
    let started = tokio::select! {
        () = &mut stop => return Ok(Outcome::Good),
        started = start(log, shipper, store, options) => started,
    };
    let mut shown = Shown::new(&args.log, before);
    let mut shipping = started?;
    shipping.keep(keep);
    shipping.run(stop, |report| shown.show(report)).await?;
    shown.finish();
    if args.once {
        say_what_was_shipped(&args, before)?;
    }
    Ok(Outcome::Good)
}

/// The store at a URL, which is not in the log's own directory `dir`.
fn open_store(url: &str, dir: &Path) -> Result<Arc<dyn Store>> {
    if let Location::Directory(target) = Location::parse(url)? {
        // Its parent has to be there.
        let above = target.parent().map(fs::canonicalize).and_then(io::Result::ok);
        let real = fs::canonicalize(&target).ok().or(above);
        if real.is_some_and(|real| fs::canonicalize(dir).is_ok_and(|dir| real.starts_with(dir))) {
            let dir = dir.display();
            let text =
                format!("{url} is in the directory of the log itself, {dir}: choose another");
            return Err(BadValue(text).into());
        }
    }
    Ok(store::open_or_create(url)?)
}

/// Says in a line how much has come to the store since `before`.
fn say_what_was_shipped(args: &ShipArgs, before: u64) -> Result<()> {
    let log = Options::default().read_only(true).open(&args.log)?;
    let after = Figures::of(&log)?.log_bytes;
    output::say(match after.saturating_sub(before) {
        0 => "nothing new to ship".to_string(),
        bytes => format!("shipped {} of the log", output::bytes(bytes)),
    });
    Ok(())
}

fn detach(log: &Log) -> Result<Outcome> {
    output::say(match log.ship().detach()? {
        true => "the log keeps nothing for a shipper any more",
        false => "the log was not shipped",
    });
    Ok(Outcome::Good)
}

#[cfg(feature = "kafka")]
use super::kafka::run as to_kafka;

#[cfg(not(feature = "kafka"))]
async fn to_kafka(_: ShipArgs) -> Result<Outcome> {
    let how =
        "this vellum-ship was built without Kafka: build it with `make ship SHIP_FEATURES=kafka`";
    Err(BadValue(how.into()).into())
}

/// The retained range, in the type of `decide`.
fn kept(retained: Retained) -> Retain {
    match retained {
        Retained::Age(age) => Retain::Age(age),
        Retained::Bytes(bytes) => Retain::Bytes(bytes),
    }
}

/// An estimate from the local log; the store is queried for old generations only.
async fn dry_run(log: &Log, args: &ShipArgs) -> Result<Outcome> {
    let unshipped = unshipped(log)?;
    let month = 30.0 * 86400.0 / args.interval.as_secs_f64().max(0.001);
    output::print(format_args!(
        "{unshipped}.\nA log that is always busy makes at most \
         {month:.0} objects in 30 days, with two requests each: a PUT and a GET. At $0.005 for 1000 PUT \
         and $0.0004 for 1000 GET, the prices of S3 Standard in 2026, that is ${:.2}.\nAn idle log \
         makes no request.",
        month * (0.005 + 0.0004) / 1000.0,
    ))?;
    if let Some(retain) = args.retain {
        let old = driver::would_delete(store::open(args.url())?, kept(retain)).await?;
        output::print(format_args!(
            "{} objects would be deleted, {} generations wholly.",
            old.objects, old.generations
        ))?;
    }
    Ok(Outcome::Good)
}

/// How much of the log is not shipped, and in how many objects it goes. Commits the rest of the log
/// first.
fn unshipped(log: &Log) -> Result<String> {
    let stat = log.stat()?;
    let bytes = match stat.ship.shipped {
        Lsn::ZERO => stat.kept_bytes,
        _ => stat.ship.lag_bytes + stat.unsynced_bytes,
    };
    if bytes == 0 {
        return Ok("0 bytes would be shipped now".into());
    }
    // Each file begins an object.
    let files = stat.segments.iter();
    let files = files.filter(|f| f.end_lsn > stat.ship.shipped && f.first_lsn < stat.published);
    let objects = (files.count() as u64).max(bytes.div_ceil(OBJECT_BYTES));
    let bytes = output::bytes(bytes);
    Ok(format!("{bytes} would be shipped now, in at least {objects} objects"))
}

/// Progress on a terminal; elsewhere a line a minute, where something has changed.
struct Shown {
    /// Has the figures of the shipper.
    log: Option<Log>,
    bar: ProgressBar,
    /// Bytes of log that were shipped before.
    before: u64,
    said: Instant,
    minute: Minute,
}

impl Shown {
    fn new(path: &Path, before: u64) -> Shown {
        let log = Options::default().read_only(true).open(path).ok();
        let minute = Minute::after(before);
        Shown { log, bar: output::bar(), before, said: Instant::now(), minute }
    }

    fn show(&mut self, report: Report) {
        let pause = if self.bar.is_hidden() { MINUTE } else { RHYTHM };
        let is_time = self.said.elapsed() >= pause;
        let look = |log: &Log| {
            Some((Figures::of(log).ok()?.log_bytes, log.ship().state().ok()?.lag_bytes))
        };
        let found = self.log.as_ref().filter(|_| is_time).and_then(look);
        let Some((shipped_bytes, lag_bytes)) = found else { return };
        let done = shipped_bytes.saturating_sub(self.before);
        output::show(&self.bar, done, done + lag_bytes);
        self.said = Instant::now();
        if self.bar.is_hidden()
            && let Some(line) = self.minute.line(shipped_bytes, lag_bytes)
        {
            output::say(format_args!("shipped {line}, generation {}", report.generation));
        }
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
