//! Asking the person at the terminal before records go.

use std::fmt::Display;
use std::io::{BufRead, BufReader, IsTerminal};
use std::os::fd::AsFd;

use anyhow::Context;
use vellum::internal::escaped_lines;
use vellum_command::outcome::Result;
use vellum_command::output;
use vellum_command::stdio;

/// Whether to continue: a user at a terminal has to agree. Where no user could see the question, or
/// answer it, there is none.
pub(super) fn may_go_on(question: impl Display) -> Result<bool> {
    if !(stdio::stdin().as_fd().is_terminal() && stdio::stderr().as_fd().is_terminal()) {
        return Ok(true);
    }
    let _ = stdio::tell(&format!("vellum: {} [y/N] ", escaped_lines(question)));
    let mut answer = String::new();
    let mut input = BufReader::new(stdio::stdin());
    if input.read_line(&mut answer).context("cannot read the answer")? == 0 {
        output::tell("");
    }
    let agrees = ["y", "yes"].contains(&answer.trim().to_lowercase().as_str());
    if !agrees {
        output::say("nothing was changed");
    }
    Ok(agrees)
}
