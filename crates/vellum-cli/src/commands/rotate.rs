//! `vellum rotate`: a text log continues in a new file.

use vellum_command::outcome::{Outcome, Result};

use super::open::open_to_write;
use crate::args::RotateArgs;

pub(super) fn run(args: &RotateArgs) -> Result<Outcome> {
    open_to_write(&args.log)?.rotate()?;
    Ok(Outcome::Good)
}
