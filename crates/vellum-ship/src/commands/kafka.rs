//! `vellum-ship ship LOG kafka://BROKER/TOPIC`.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use vellum_command::outcome::{BadValue, Outcome, Result};
use vellum_command::shipping::ShipArgs;
use vellum_ship::kafka::{self, Config, Event, SendError, SendOptions, Target};

use super::minute::Minute;
use crate::output;

const MINUTE: Duration = Duration::from_secs(60);

pub(super) async fn run(args: ShipArgs) -> Result<Outcome> {
    if args.dry_run || args.retain.is_some() {
        return Err(BadValue("--dry-run and --retain are for object storage".into()).into());
    }
    let target = Target::parse(args.url(), args.partition.unwrap_or(0)).map_err(usage)?;
    let variables = std::env::vars_os();
    let variables = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let config = Config::new(variables, &args.kafka_config).map_err(usage)?;
    let log = vellum::ship::open(&args.log)?;
    let options = SendOptions {
        once: args.once,
        interval: args.interval,
        take_over: args.take_over,
        max_unshipped: args.max_unshipped,
    };
    let (stop, stopped) = mpsc::channel();
    let mut ends = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        tokio::select! { _ = ends.0.recv() => {}, _ = ends.1.recv() => {} }
        drop(stop);
    });
    let mut shown = Shown::default();
    let work = move || {
        kafka::send(&log, target, config, &options, &stopped, &mut |event| shown.show(event))
    };
    match tokio::task::spawn_blocking(work).await? {
        Ok(()) => Ok(Outcome::Good),
        Err(error @ SendError::Option(_)) => Err(usage(error).into()),
        Err(error) => Err(error.into()),
    }
}

fn usage(error: SendError) -> BadValue {
    BadValue(error.to_string())
}

/// A line a minute where something has changed, and one for each new trouble.
#[derive(Default)]
struct Shown {
    said: Option<Instant>,
    sent_bytes: u64,
    minute: Minute,
    trouble: Option<String>,
}

impl Shown {
    fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Sent { bytes, behind } => {
                self.trouble = None;
                self.sent_bytes += bytes;
                let said = *self.said.get_or_insert_with(Instant::now);
                if said.elapsed() >= MINUTE {
                    self.said = Some(Instant::now());
                    if let Some(line) = self.minute.line(self.sent_bytes, behind) {
                        output::say(format_args!("sent {line}"));
                    }
                }
            }
            Event::Trouble(error) => {
                let text = error.to_string();
                if self.trouble.as_ref() != Some(&text) {
                    output::say(format_args!("retrying: {text}"));
                }
                self.trouble = Some(text);
            }
        }
    }
}
