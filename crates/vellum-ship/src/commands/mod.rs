//! The commands, a file for each.

mod cat;
mod ls;
mod put;
mod restore;
mod stat;
mod verify;

use std::sync::Arc;

use clap::{Parser, Subcommand};
use vellum_ship::read::Remote;
use vellum_ship::store::{self, Store};

use crate::outcome::{Outcome, Result};

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
    Restore(restore::RestoreArgs),
    Cat(cat::CatArgs),
    Tail(cat::TailArgs),
    Stat(stat::StatArgs),
    Verify(verify::VerifyArgs),
    Ls(ls::LsArgs),
    #[command(hide = true)]
    Put(put::PutArgs),
}

/// Does what the command line asks for.
pub(crate) fn run() -> Result<Outcome> {
    let cli = Cli::parse();
    // One thread runs everything but what blocks: files and hashes.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(run_command(cli.command));
    // What blocks in the background is not waited for.
    runtime.shutdown_background();
    outcome
}

async fn run_command(command: Command) -> Result<Outcome> {
    match command {
        Command::Restore(args) => restore::run(args).await,
        Command::Cat(args) => cat::run(args).await,
        Command::Tail(args) => cat::tail(args).await,
        Command::Stat(args) => stat::run(args).await,
        Command::Verify(args) => verify::run(args).await,
        Command::Ls(args) => ls::run(args).await,
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
