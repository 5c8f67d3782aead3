//! `vellum man`: the help as man pages.

use vellum_command::help;
use vellum_command::outcome::{Outcome, Result};

use crate::args::{ManArgs, command_line};

pub(super) fn run(args: &ManArgs) -> Result<Outcome> {
    match &args.dir {
        Some(dir) => help::write_man(command_line(), dir),
        None => help::print_man(command_line()),
    }
}
