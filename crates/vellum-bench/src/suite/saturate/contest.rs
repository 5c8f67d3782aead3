//! All ways in one place, one after the other.

use std::fs;
use std::path::Path;

use super::round::{KEPT, Load, Sample, measure};
use super::{Config, rows};
use crate::error::{Context, Result};
use crate::place::Place;
use crate::progress::{Event, Progress};
use crate::report::Row;
use crate::setting::Setting;
use crate::suite::settle;
use crate::ways::{Way, WayName};

/// No device nor memory takes more in a second, so more generations than for this are not needed.
const BYTES_PER_SECOND_MAX: u64 = 8 << 30;
/// Files are made ahead for so many generations at most.
const GENERATIONS_MAX: u64 = 4096;
/// The warm-up is so many times shorter than a round.
const WARM_UP_SHARE: u32 = 10;
/// Segments that are prepared ahead, directories, a control file.
const SPARE_BYTES: u64 = 224 << 20;

/// What a log takes of the disk of which so much is kept: the generation that is appended to, one
/// that is about to go, and what is made ready ahead.
pub(super) fn disk_bytes(kept_bytes: u64) -> u64 {
    kept_bytes + kept_bytes / KEPT * 2 + SPARE_BYTES
}

/// How much can be kept in `disk_bytes`.
pub(super) fn kept_bytes(disk_bytes: u64) -> u64 {
    disk_bytes.saturating_sub(SPARE_BYTES) / (KEPT + 2) * KEPT
}

/// A way in one place.
pub(super) struct Entrant {
    pub(super) name: WayName,
    way: Box<dyn Way>,
    pub(super) samples: Vec<Sample>,
    pub(super) skipped: Option<String>,
    pub(super) failed: Option<String>,
}

/// Runs all rounds. Returns the rows, and what their reader should know.
pub(super) fn run(
    config: &Config,
    place: &Place<'_>,
    kept_bytes: u64,
    slowing_bytes: Option<u64>,
    progress: &mut dyn Progress,
) -> Result<(Vec<Row>, Vec<String>)> {
    let mut entrants = Vec::new();
    for name in &config.ways {
        entrants.push(Entrant::probe(*name, config, place.dir, progress)?);
    }
    for round in 0..=config.rounds {
        for entrant in &mut entrants {
            if entrant.skipped.is_some() || entrant.failed.is_some() {
                progress.event(&Event::Omitted { steps: 1 });
                continue;
            }
            let what = format!("{} saturate {} {round}", place.filesystem, entrant.name);
            progress.event(&Event::Measuring { what: &what });
            if let Err(error) = entrant.round(config, place.dir, kept_bytes, round == 0)? {
                progress.event(&Event::Warning(&format!("{what} failed: {error}")));
                entrant.failed = Some(error.to_string());
            }
        }
    }
    let mut warnings = Vec::new();
    warnings.extend(rows::limit_warning(place, &entrants, slowing_bytes));
    Ok((rows::rows(config, place, kept_bytes, &entrants), warnings))
}

impl Entrant {
    fn probe(
        name: WayName,
        config: &Config,
        dir: &Path,
        progress: &mut dyn Progress,
    ) -> Result<Entrant> {
        let way = name.way(&config.vellum);
        let probe = dir.join("probe");
        fs::create_dir(&probe).context(|| format!("make {}", probe.display()))?;
        let skipped = way.probe(&probe).err();
        fs::remove_dir_all(&probe).context(|| format!("remove {}", probe.display()))?;
        if let Some(reason) = &skipped {
            progress.event(&Event::Skipped { way: name.as_str(), reason });
        }
        Ok(Entrant { name, way, samples: Vec::new(), skipped, failed: None })
    }

    /// One round. The inner result is the way's, the outer one that of the place.
    fn round(
        &mut self,
        config: &Config,
        dir: &Path,
        kept_bytes: u64,
        is_warm_up: bool,
    ) -> Result<Result<()>> {
        let dir = dir.join(self.name.as_str());
        fs::create_dir(&dir).context(|| format!("make {}", dir.display()))?;
        let mut load = load(config, self.way.as_ref(), kept_bytes);
        if is_warm_up {
            load.duration /= WARM_UP_SHARE;
        }
        let result = measure(self.way.as_ref(), &dir, &load);
        fs::remove_dir_all(&dir).context(|| format!("remove {}", dir.display()))?;
        // Nor does the next one pay for what this one left to be freed.
        settle(dir.parent().unwrap_or(&dir))?;
        Ok(result.map(|sample| {
            if !is_warm_up {
                self.samples.push(sample);
            }
        }))
    }
}

/// As many records to a generation as leave it the size that is kept of it.
fn load(config: &Config, way: &dyn Way, kept_bytes: u64) -> Load {
    let records = |records| way.disk_bytes(&Setting::new(1, records, config.bytes));
    let record_bytes = ((records(1025) - records(1)) / 1024).max(1);
    let generation_records = (kept_bytes / KEPT / record_bytes).max(1);
    let seconds = config.duration.as_secs_f64();
    let fastest = (seconds * BYTES_PER_SECOND_MAX as f64) as u64;
    let bytes_max = config.bytes_max.unwrap_or(fastest).min(fastest).max(1);
    let generations = bytes_max.div_ceil(generation_records * record_bytes);
    Load {
        processes: config.processes,
        bytes: config.bytes,
        duration: config.duration,
        generation_records,
        generations: generations.clamp(1, GENERATIONS_MAX),
    }
}
