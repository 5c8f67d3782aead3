//! Man pages and completions of a command line.

use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::Command;
use clap_mangen::Man;

pub use clap_complete::Shell;

use crate::outcome::{Outcome, Result};
use crate::output::Output;

/// Prints the man page of a program.
pub fn print_man(program: Command) -> Result<Outcome> {
    let mut program = without_help(program);
    program.build();
    let mut page = Vec::new();
    Man::new(program).render(&mut page)?;
    print(&page)
}

/// Writes a man page for a program and for each of its commands.
pub fn write_man(program: Command, dir: &Path) -> Result<Outcome> {
    write_page(without_help(program), dir)
}

/// Writes a man page for each command of a program, and none for the program itself.
pub fn write_man_of_commands(program: Command, dir: &Path) -> Result<Outcome> {
    let mut program = without_help(program);
    program.build();
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
        write_page(command.clone(), dir)?;
    }
    Ok(Outcome::Good)
}

fn write_page(command: Command, dir: &Path) -> Result<Outcome> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    clap_mangen::generate_to(command, dir)
        .with_context(|| format!("cannot write man pages to {}", dir.display()))?;
    Ok(Outcome::Good)
}

/// `help` explains every command; a page for each of its words would be the same once more.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

/// Prints the completion script of a program for a shell.
pub fn print_completions(mut program: Command, shell: Shell) -> Result<Outcome> {
    let name = program.get_name().to_owned();
    // Into memory first: the generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, name, &mut script);
    print(&script)
}

fn print(bytes: &[u8]) -> Result<Outcome> {
    let mut output = Output::default();
    output.bytes(bytes)?;
    output.flush()?;
    Ok(Outcome::Good)
}
