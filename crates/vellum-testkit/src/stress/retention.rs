//! The files that a text log may remove by its own retention, announced before that can happen.
//!
//! A writer that begins a new file removes old ones, and no append announces that. So each writer
//! announces, before each record, the files that are removed if every writer begins a new file once
//! and two checks do it after them.
//!
//! That suffices: take what was announced from the latest look at the files, of all that was
//! announced before a file goes. No writer has begun a second record since that look, or it would
//! have looked later; so none has gone on more than once.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use vellum::{Log, Lsn};

use super::args::Args;
use super::files;
use super::reports::Reports;
use super::survey::Survey;

/// Checks that append a record to the log of one run: one, and one that finds it cut short.
const CHECKS: u64 = 2;

/// Which files are kept whatever happens next.
pub(super) struct Retention {
    /// Closed files that stay although all others continue.
    kept: usize,
    /// Up to where records were announced.
    announced: Lsn,
}

/// Refuses what could remove a record before it is announced.
pub(super) fn check(args: &Args) -> Result<()> {
    let Some(retained) = args.retain_files else { return Ok(()) };
    let margin = margin(args);
    if retained < margin {
        bail!(
            "--retain-files has to be {margin} or more, which is two more than there are writers"
        );
    }
    let longest = *args.bytes.0.end();
    if [args.rotate_bytes, args.shape.segment_bytes].into_iter().flatten().any(|len| len < longest)
    {
        bail!("with --retain-files, no record may be longer than a file");
    }
    Ok(())
}

fn margin(args: &Args) -> u64 {
    args.writers() + CHECKS
}

impl Retention {
    /// Of a run that removes files.
    pub(super) fn of(args: &Args) -> Option<Retention> {
        let kept = args.retain_files?.checked_sub(margin(args))?;
        Some(Retention { kept: usize::try_from(kept).ok()?, announced: Lsn::ZERO })
    }

    /// Announces what may go before this writer's next record is followed by another.
    pub(super) fn announce(&mut self, log: &Log, reports: &Reports) -> Result<()> {
        let keep_from = keep_from(log.path(), self.kept)?;
        if keep_from <= self.announced {
            return Ok(());
        }
        let going = going(log, keep_from)?;
        reports.announce_drop(&going.sorted_numbers())?;
        self.announced = keep_from;
        Ok(())
    }
}

/// Where the oldest file begins that is kept whatever happens next.
fn keep_from(log: &Path, kept: usize) -> Result<Lsn> {
    let firsts = files::firsts(log)?;
    let index = firsts.len().checked_sub(kept + 1);
    Ok(index.map_or(Lsn::ZERO, |index| firsts[index]))
}

/// The records before `end`. Meanwhile others may remove those that they have announced.
fn going(log: &Log, end: Lsn) -> Result<Survey> {
    loop {
        let begin = log.begin();
        match Survey::before(log, end) {
            Err(_) if log.begin() > begin => {}
            survey => return survey.map_err(|fault| anyhow!("{fault}")),
        }
    }
}
