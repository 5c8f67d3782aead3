//! The rounds in one place: every case in turn, each in a process of its own, each verified.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use zerocopy::FromZeros;

use super::case::{Case, Job, Sample, Site};
use crate::error::{Context, Error, Result};
use crate::process::alone;
use crate::progress::{Event, Progress};
use crate::shared::Shared;

/// How a case did.
pub(super) struct Entrant<'a> {
    pub(super) case: &'a Case,
    /// One for each counted round, if there is no reason why not.
    pub(super) samples: Vec<Sample>,
    pub(super) ended: Option<Ended>,
}

/// Why a case takes part no more.
#[derive(Clone, Debug)]
pub(super) enum Ended {
    /// It can't be done here.
    Unsupported(String),
    Failed(String),
}

/// What all cases of a place have in common.
pub(super) struct Contest<'a> {
    /// An empty directory.
    pub(super) dir: &'a Path,
    /// The name of the place, for whoever watches.
    pub(super) filesystem: &'a str,
    /// Of each file.
    pub(super) bytes: u64,
    pub(super) rounds: u32,
    pub(super) limit: Duration,
}

/// What a child tells its parent; read after the child has ended, so all accesses are relaxed.
#[derive(FromZeros)]
#[repr(C)]
struct Words {
    preparation: AtomicU64,
    write: AtomicU64,
    sync: AtomicU64,
    cpu: AtomicU64,
    allocated: AtomicU64,
    is_unsupported: AtomicU32,
    reserved: u32,
}

impl Contest<'_> {
    /// Has all cases take their turns.
    ///
    /// # Errors
    ///
    /// The place can't be used: its directory can't be made, removed or synced.
    pub(super) fn run<'c>(
        &self,
        cases: &'c [Case],
        progress: &mut dyn Progress,
    ) -> Result<Vec<Entrant<'c>>> {
        let entrant = |case| Entrant { case, samples: Vec::new(), ended: None };
        let mut entrants: Vec<Entrant<'_>> = cases.iter().map(entrant).collect();
        for round in 0..=self.rounds {
            for entrant in entrants.iter_mut().filter(|entrant| entrant.ended.is_none()) {
                let stage = if round == 0 { "warm-up".into() } else { format!("round {round}") };
                let what = format!("{}, {}, {stage}", self.filesystem, entrant.case.title());
                progress.event(&Event::Measuring { what: &what });
                match self.turn(entrant.case.job.as_ref(), round)? {
                    Ok(sample) if round > 0 => entrant.samples.push(sample),
                    Ok(_) => {}
                    Err(ended) => entrant.ended = Some(ended),
                }
            }
        }
        Ok(entrants)
    }

    /// One case, once: everything it leaves is gone and settled before the next.
    fn turn(&self, job: &dyn Job, round: u32) -> Result<std::result::Result<Sample, Ended>> {
        let dir = self.dir.join("case");
        fs::create_dir(&dir).context(|| format!("make {}", dir.display()))?;
        let site = Site { dir: &dir, bytes: self.bytes, round };
        let measured = measure(job, &site, self.limit)?;
        let verified = measured.and_then(|sample| {
            job.verify(&site).map(|()| sample).map_err(|error| Ended::Failed(error.to_string()))
        });
        fs::remove_dir_all(&dir).context(|| format!("remove {}", dir.display()))?;
        crate::suite::settle(self.dir)?;
        Ok(verified)
    }
}

/// Runs a case in a process of its own.
fn measure(
    job: &dyn Job,
    site: &Site<'_>,
    limit: Duration,
) -> Result<std::result::Result<Sample, Ended>> {
    let words = Shared::<Words>::new(1)?;
    let words = &words[0];
    let result = alone(limit, || match job.run(site) {
        Ok(sample) => {
            words.keep(&sample);
            Ok(())
        }
        Err(trouble) => {
            words.is_unsupported.store(trouble.is_unsupported().into(), Ordering::Relaxed);
            Err(Error::failed(trouble.to_string()))
        }
    });
    Ok(match result {
        Ok(()) => Ok(words.sample()),
        Err(error) if words.is_unsupported.load(Ordering::Relaxed) != 0 => {
            Err(Ended::Unsupported(error.to_string()))
        }
        Err(error) => Err(Ended::Failed(error.to_string())),
    })
}

impl Words {
    fn keep(&self, sample: &Sample) {
        self.preparation.store(sample.preparation, Ordering::Relaxed);
        self.write.store(sample.write, Ordering::Relaxed);
        self.sync.store(sample.sync, Ordering::Relaxed);
        self.cpu.store(sample.cpu, Ordering::Relaxed);
        self.allocated.store(sample.allocated, Ordering::Relaxed);
    }

    fn sample(&self) -> Sample {
        Sample {
            preparation: self.preparation.load(Ordering::Relaxed),
            write: self.write.load(Ordering::Relaxed),
            sync: self.sync.load(Ordering::Relaxed),
            cpu: self.cpu.load(Ordering::Relaxed),
            allocated: self.allocated.load(Ordering::Relaxed),
        }
    }
}
