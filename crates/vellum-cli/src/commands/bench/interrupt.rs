//! A signal that comes while a suite runs: the results until then are reported.

use std::os::fd::AsFd;

use anyhow::Context;
use vellum_bench::{ErrorKind, Progress, Report, Suite};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output;
use vellum_command::signals::{self, Asked};

/// The signals that end a run early.
pub(super) const TAKEN: [i32; 2] = signals::INTERRUPTING;

/// The signals, and how one of them cut a suite short.
pub(super) struct Interrupt {
    asked: Asked,
    told: Option<String>,
}

impl Interrupt {
    /// Takes the signals from now on.
    pub(super) fn take() -> Result<Interrupt> {
        let asked = Asked::take(&TAKEN).context("cannot take signals")?;
        let news = asked.news().as_fd().try_clone_to_owned().context("cannot take signals")?;
        vellum_bench::end_runs_when_readable(news);
        Ok(Interrupt { asked, told: None })
    }

    /// Has a suite been cut short?
    pub(super) fn has_come(&self) -> bool {
        self.told.is_some()
    }

    /// Runs a suite. There is no report if a signal came before a round was over.
    pub(super) fn measure(
        &mut self,
        suite: &dyn Suite,
        progress: &mut dyn Progress,
    ) -> vellum_bench::Result<Option<Report>> {
        let (report, told) = match suite.run(progress) {
            Err(error) if error.kind() == ErrorKind::Interrupted => (None, Some(error.to_string())),
            Err(error) => return Err(error),
            Ok(report) => {
                let told = report.interruption().map(String::from);
                (Some(report), told)
            }
        };
        self.told = told.map(|told| format!("{}: {told}", suite.name()));
        Ok(report)
    }

    /// How a run ends that was cut short, when its reports are written.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        output::say(self.told.as_ref()?);
        self.asked.signal().map(Outcome::EndedBy)
    }
}
