//! All contenders against each other in one cell: A B C … A B C …, so that whatever changes on the
//! machine meanwhile meets all of them.

use std::fs;
use std::path::PathBuf;

use super::contender::{Cell, Contender, Prepared};
use super::round::{Sample, Times, measure};
use crate::error::{Context, Result};
use crate::footprint::{self, Footprint};
use crate::latency::Latency;
use crate::place::Place;
use crate::progress::{Event, Progress};
use crate::report::commit::Case;
use crate::stats::Spread;
use crate::suite::settle;

/// What the ratios are to.
pub(super) const LIMIT: &str = "direct-dsync";

/// A contender in one cell.
struct Entrant<'a> {
    contender: &'a dyn Contender,
    dir: PathBuf,
    log: Option<Box<dyn Prepared>>,
    samples: Vec<Sample>,
    footprint: Option<Footprint>,
    skipped: Option<String>,
    failed: Option<String>,
}

/// Runs a warm-up, which is not counted, and so many rounds.
pub(super) fn run(
    place: &Place<'_>,
    cell: &Cell,
    contenders: &[&dyn Contender],
    rounds: u32,
    times: Times,
    progress: &mut dyn Progress,
) -> Result<Vec<Case>> {
    let mut entrants = Vec::new();
    for (index, contender) in contenders.iter().enumerate() {
        let dir = place.dir.join(format!("{}-{index}", contender.name()));
        let mut entrant = Entrant::probe(*contender, dir, cell)?;
        if cell.commits_max == 0 {
            entrant.skipped = Some("not even a few commits of each thread fit the disk".into());
        }
        entrants.push(entrant);
    }
    for round in 0..=rounds {
        for entrant in &mut entrants {
            if !entrant.is_good() {
                progress.event(&Event::Omitted { steps: 1 });
                continue;
            }
            let name = entrant.contender.name();
            let filesystem = place.filesystem;
            let Cell { bytes, threads, processes, .. } = cell;
            let what = format!("{filesystem} {bytes} B {processes}x{threads} {name} {round}");
            progress.event(&Event::Measuring { what: &what });
            let is_last = round == rounds;
            let result = entrant.round(cell, round, is_last, times);
            settle(place.dir)?;
            if let Err(error) = result {
                progress.event(&Event::Warning(&format!("{what} failed: {error}")));
                entrant.failed = Some(error.to_string());
            }
        }
    }
    for entrant in &mut entrants {
        entrant.clear()?;
    }
    Ok(cases(place, cell, &mut entrants))
}

impl<'a> Entrant<'a> {
    fn probe(contender: &'a dyn Contender, dir: PathBuf, cell: &Cell) -> Result<Entrant<'a>> {
        fs::create_dir(&dir).context(|| format!("make {}", dir.display()))?;
        let skipped = contender.probe(&dir, cell).err();
        let mut entrant = Entrant {
            contender,
            dir,
            log: None,
            samples: Vec::new(),
            footprint: None,
            skipped,
            failed: None,
        };
        entrant.clear()?;
        Ok(entrant)
    }

    fn is_good(&self) -> bool {
        self.skipped.is_none() && self.failed.is_none()
    }

    /// One round; what it leaves is looked at after the last.
    fn round(&mut self, cell: &Cell, round: u32, is_last: bool, times: Times) -> Result<()> {
        let is_kept = match &mut self.log {
            Some(log) => log.renew()?,
            None => false,
        };
        if !is_kept {
            self.clear()?;
            fs::create_dir(&self.dir).context(|| format!("make {}", self.dir.display()))?;
            self.log = Some(self.contender.prepare(&self.dir, cell)?);
        }
        settle(&self.dir)?;
        let Some(log) = &self.log else { return Ok(()) };
        let sample = measure(log.as_ref(), cell, round, times)?;
        // The first one warms up.
        if round > 0 {
            self.samples.push(sample);
        }
        if is_last {
            settle(&self.dir)?;
            self.footprint = Some(footprint::of(&self.dir)?);
        }
        Ok(())
    }

    /// Removes the log.
    fn clear(&mut self) -> Result<()> {
        self.log = None;
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).context(|| format!("remove {}", self.dir.display()))
            }
            _ => Ok(()),
        }
    }

    /// Commits a second, round by round; nothing unless all rounds were good.
    fn speeds(&self) -> Vec<f64> {
        let samples = if self.is_good() { self.samples.as_slice() } else { &[] };
        samples.iter().map(|sample| sample.commits_per_second).collect()
    }
}

fn cases(place: &Place<'_>, cell: &Cell, entrants: &mut [Entrant<'_>]) -> Vec<Case> {
    let speeds = |entrant: &Entrant<'_>| entrant.speeds();
    let limit = entrants.iter().find(|entrant| entrant.contender.name() == LIMIT).map(speeds);
    let peers = entrants.iter().filter(|entrant| entrant.contender.is_peer());
    let median = |speeds: &Vec<f64>| Spread::of(speeds).map_or(0.0, |speeds| speeds.median);
    let best = peers.map(speeds).max_by(|one, two| median(one).total_cmp(&median(two)));
    let (limit, best) = (limit.unwrap_or_default(), best.unwrap_or_default());
    entrants.iter_mut().map(|entrant| case(place, cell, entrant, &limit, &best)).collect()
}

fn case(
    place: &Place<'_>,
    cell: &Cell,
    entrant: &mut Entrant<'_>,
    limit: &[f64],
    best_peer: &[f64],
) -> Case {
    let is_good = entrant.is_good();
    let speeds = entrant.speeds();
    let ratios = |to: &[f64]| speeds.iter().zip(to).map(|(speed, to)| speed / to).collect();
    let footprint = entrant.footprint.filter(|_| is_good);
    let mut samples = std::mem::take(&mut entrant.samples);
    if !is_good {
        samples.clear();
    }
    let syncs_per_commit = samples.iter().filter_map(|sample| sample.syncs_per_commit).collect();
    let rounds = samples.iter_mut().filter_map(|sample| Latency::of(&mut sample.nanos)).collect();
    let mut nanos: Vec<u64> = samples.into_iter().flat_map(|sample| sample.nanos).collect();
    Case {
        case: entrant.contender.name().to_string(),
        prepared: entrant.contender.is_prepared(),
        peer: entrant.contender.is_peer(),
        filesystem: place.filesystem.to_string(),
        scratch: place.is_scratch,
        bytes: cell.bytes,
        threads: cell.threads,
        processes: cell.processes,
        commits: nanos.len() as u64,
        ratio_to_limit: ratios(limit),
        ratio_to_best_peer: ratios(best_peer),
        commits_per_second: speeds,
        latency_us: Latency::of(&mut nanos),
        round_latencies_us: rounds,
        syncs_per_commit,
        files: footprint.map(|footprint| footprint.files),
        file_bytes: footprint.map(|footprint| footprint.file_bytes),
        extents: footprint.and_then(|footprint| footprint.extents),
        cold_read_mib_per_second: footprint.and_then(|files| files.cold_read_mib_per_second),
        verified: is_good,
        skipped: entrant.skipped.clone(),
        failed: entrant.failed.clone(),
    }
}
