//! The commands, a file for each.

mod bench;
mod cat;
#[cfg(feature = "kafka")]
mod kafka;
mod ls;
mod put;
mod restore;
mod ship;
#[path = "../../../vellum-cli/src/lowargs/size.rs"]
mod size;
mod stat;
mod trim;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use vellum_ship::read::Remote;
use vellum_ship::store::{self, Store};

use crate::outcome::{Outcome, Result};
use crate::{signals, stdio};

/// Ships a log to object storage, restores it, and reads it from afar
///
/// URL is s3://BUCKET/PREFIX, az://CONTAINER/PREFIX, gs://BUCKET/PREFIX or file:///DIRECTORY. The
/// credentials come from the environment: AWS_*, AZURE_*, GOOGLE_*.
#[derive(Parser, Debug)]
#[command(name = "vellum-ship", version, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Ship(ship::ShipArgs),
    Trim(trim::TrimArgs),
    Restore(restore::RestoreArgs),
    Cat(cat::CatArgs),
    Tail(cat::TailArgs),
    Stat(stat::StatArgs),
    Verify(verify::VerifyArgs),
    Ls(ls::LsArgs),
    Bench(bench::BenchArgs),
    #[command(hide = true)]
    Put(put::PutArgs),
}

/// Does what the command line asks for.
pub(crate) fn run() -> Result<Outcome> {
    let cli = Cli::try_parse().unwrap_or_else(|error| stdio::answer(&error));
    let taken = if matches!(cli.command, Command::Ship(_)) { &ship::TAKEN[..] } else { &[] };
    signals::end_first_process(taken)?;
    find_thread()?;
    // One thread runs everything but what blocks: files and hashes.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(run_command(cli.command));
    // What blocks in the background is not waited for.
    runtime.shutdown_background();
    outcome
}

/// Files are read by threads of the runtime, which panics where it gets none.
fn find_thread() -> Result<()> {
    let thread = std::thread::Builder::new().spawn(|| ());
    let text = "cannot start a thread, which this needs; raise `ulimit -u`";
    Ok(thread.map(drop).map_err(|error| format!("{text}: {error}"))?)
}

async fn run_command(command: Command) -> Result<Outcome> {
    match command {
        Command::Ship(args) => ship::run(args).await,
        Command::Trim(args) => trim::run(args).await,
        Command::Restore(args) => restore::run(args).await,
        Command::Cat(args) => cat::run(args).await,
        Command::Tail(args) => cat::tail(args).await,
        Command::Stat(args) => stat::run(args).await,
        Command::Verify(args) => verify::run(args).await,
        Command::Ls(args) => ls::run(args).await,
        Command::Bench(args) => bench::run(&args),
        Command::Put(args) => put::run(args).await,
    }
}

/// The store at a URL, to read.
fn open(url: &str) -> Result<Arc<dyn Store>> {
    Ok(store::open(url)?)
}

/// The log at a URL.
async fn remote(url: &str) -> Result<Remote> {
    Ok(Remote::open(open(url)?).await?)
}

/// A span of time as it is typed: `250ms`, `1s`, `10m`, `12h`, `30d`.
fn span(text: &str) -> std::result::Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 =
        digits.parse().map_err(|_| "a number and a unit are wanted: 1s".to_string())?;
    let unit_ms: u64 = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err("the units are ms, s, m, h and d".to_string()),
    };
    number.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(|| "too long".to_string())
}
