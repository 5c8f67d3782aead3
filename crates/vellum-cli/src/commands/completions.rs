//! `vellum completions`: what a shell needs to complete our command lines.

use vellum_command::outcome::{Outcome, Result};
use vellum_command::output::Output;

use crate::args::{CompletionsArgs, command_line};

pub(super) fn run(args: &CompletionsArgs) -> Result<Outcome> {
    // Into memory first: the generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command_line(), "vellum", &mut script);
    let mut output = Output::default();
    output.bytes(&script)?;
    output.flush()?;
    Ok(Outcome::Good)
}
