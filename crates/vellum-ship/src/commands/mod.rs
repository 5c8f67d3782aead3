//! The commands, a file for each.

mod bench;
mod cat;
#[cfg(feature = "kafka")]
mod kafka;
mod ls;
mod minute;
mod put;
mod restore;
mod ship;
mod stat;
mod trim;
mod verify;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};
use vellum_command::help::{self, Shell};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::shipping::{LsArgs, RestoreArgs, ShipArgs};
use vellum_command::{signals, stdio};
use vellum_ship::read::Remote;
use vellum_ship::store::{self, Store};

/// Ships a log to object storage, restores it, and reads it from afar
///
/// URL is s3://BUCKET/PREFIX, az://CONTAINER/PREFIX, gs://BUCKET/PREFIX or file:///DIRECTORY. The
/// credentials come from the environment: AWS_*, AZURE_*, GOOGLE_*.
#[derive(Parser, Debug)]
#[command(name = "vellum-ship", version, disable_help_subcommand = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Ship(ShipArgs),
    Trim(trim::TrimArgs),
    Restore(RestoreArgs),
    Cat(cat::CatArgs),
    Tail(cat::TailArgs),
    Stat(stat::StatArgs),
    Verify(verify::VerifyArgs),
    Ls(LsArgs),
    Bench(bench::BenchArgs),
    #[command(hide = true)]
    Put(put::PutArgs),
    /// Print a completion script for a shell
    #[command(hide = true)]
    Completions {
        shell: Shell,
    },
    /// Print the man page, or write one for each command to a directory
    ///
    /// The page of the program itself is not written: `vellum-ship.1` is that of `vellum ship`.
    #[command(hide = true)]
    Man {
        dir: Option<PathBuf>,
    },
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
    // Tasks that block in the background are not waited for.
    runtime.shutdown_background();
    outcome
}

/// Files are read by threads of the runtime, which panics where it gets none.
fn find_thread() -> Result<()> {
    let thread = std::thread::Builder::new().spawn(|| ());
    let text = "cannot start a thread, which this needs; raise `ulimit -u`";
    thread.map(drop).context(text)
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
        Command::Completions { shell } => help::print_completions(Cli::command(), shell),
        Command::Man { dir: Some(dir) } => help::write_man_of_commands(Cli::command(), &dir),
        Command::Man { dir: None } => help::print_man(Cli::command()),
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
