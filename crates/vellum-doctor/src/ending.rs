//! Ending a run in good order when a signal asks for it.

use std::os::fd::AsFd;

use anyhow::Context;
use vellum_command::outcome::Result;
use vellum_command::signals::{Asked, INTERRUPTING};

/// From now on a signal ends the run.
pub(crate) fn ended_by_signals() -> Result<Asked> {
    let asked = Asked::take(&INTERRUPTING).context("cannot take signals")?;
    let news = asked.news().as_fd().try_clone_to_owned().context("cannot take signals")?;
    vellum_bench::end_runs_when_readable(news);
    Ok(asked)
}
