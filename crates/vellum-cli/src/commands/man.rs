//! `vellum man`: the help as man pages.

use std::fs;

use anyhow::Context;
use clap::Command;
use clap_mangen::Man;
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output::Output;

use crate::args::{ManArgs, command_line};

pub(super) fn run(args: &ManArgs) -> Result<Outcome> {
    let mut command = without_help(command_line());
    let Some(dir) = &args.dir else {
        command.build();
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        let mut output = Output::default();
        output.bytes(&page)?;
        output.flush()?;
        return Ok(Outcome::Good);
    };
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    clap_mangen::generate_to(command, dir)
        .with_context(|| format!("cannot write man pages to {}", dir.display()))?;
    Ok(Outcome::Good)
}

/// `vellum help` explains every command; a page for each of its words would be the same once more.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}
