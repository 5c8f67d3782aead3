//! `vellum completions`: the scripts by which a shell completes our command lines.

use vellum_command::help;
use vellum_command::outcome::{Outcome, Result};

use crate::args::{CompletionsArgs, command_line};

pub(super) fn run(args: &CompletionsArgs) -> Result<Outcome> {
    help::print_completions(command_line(), args.shell)
}
