//! Suite `image`: random writes of 4 KiB into a disk image, direct, many at a time. What does it
//! cost how the space of the image was allocated?
//!
//! The image is a plain file that is treated as QEMU treats a qcow2 image: see the states. All
//! cases take turns in rounds, each with a new image, and write the same blocks
//! in the same order; the first round is short and not counted. After each, the image is read back:
//! each block must hold what was written there last, and zeros if nothing was. What this system
//! can't do is told with the reason.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Arena, Entrant, Plan, Scope, Suite};
use crate::error::{Error, Result};
use crate::report::Case;

mod content;
mod engine;
mod figures;
mod fio;
mod load;
mod qemu;
mod round;
mod rows;
mod sequence;
mod size;
mod state;
#[cfg(test)]
mod tests;

pub use engine::ImageEngine;
pub use state::ImageState;

use content::BLOCK_BYTES;
use figures::Figures;
use load::{CLUSTER_BYTES, Load};
use round::{Tool, Way, measure};
use state::FirstTouch;

/// The warm-up is so many times shorter than a round that counts.
const WARM_UP_SHARE: u32 = 10;
/// What can be done here is found out with an image of this length and so many writes.
const PROBE_BYTES: u64 = 1 << 20;
const PROBE_WRITES: u64 = 64;
const PROBE_DEPTH: usize = 16;
const DEPTH_MAX: usize = 256;

/// What is to be measured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where, and how many rounds; the default is 3.
    pub scope: Scope,
    /// Which states of the image, in the order of their turns; the default is those that we write
    /// ourselves. There are ratios only if [`ImageState::Metadata`] is among them, and for QEMU's
    /// if [`ImageState::Qcow2Metadata`] is.
    pub states: Vec<ImageState>,
    /// By which engines; the default is all.
    pub engines: Vec<ImageEngine>,
    /// The length of an image; the default is 2 GiB. Less where there is no room for it.
    pub bytes: u64,
    /// How many writes are on their way at a time; the default is 32.
    pub depth: usize,
    /// How long each case writes in a round; the default is 10 s. Rates change within a run, so
    /// runs of different length can't be compared.
    pub duration: Duration,
    /// Runs fio beside us, in the states that it can be asked for; the default is no.
    pub check_with_fio: bool,
}

impl Config {
    /// All states, all engines, three rounds, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        Config {
            scope: Scope::new(directory, 3),
            states: ImageState::ours().to_vec(),
            engines: ImageEngine::ALL.to_vec(),
            bytes: 2 << 30,
            depth: 32,
            duration: Duration::from_secs(10),
            check_with_fio: false,
        }
    }

    /// The same with 256 MiB, io_uring, and two rounds of a second.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        let mut config = Config::new(directory);
        config.bytes = 256 << 20;
        config.duration = Duration::from_secs(1);
        config.scope.rounds = 2;
        config.engines = vec![ImageEngine::Uring];
        config
    }

    fn check(&self) -> Result<()> {
        if self.states.is_empty() || self.engines.is_empty() {
            return Err(Error::invalid("at least one state and one engine are needed"));
        }
        let (min, max) = (size::BYTES_MIN, size::BYTES_MAX);
        if !(min..=max).contains(&self.bytes) || !self.bytes.is_multiple_of(CLUSTER_BYTES as u64) {
            return Err(Error::invalid(format!(
                "an image of {} bytes can't be made: it has whole clusters of {} KiB, {} MiB at \
                 least and {} GiB at most",
                self.bytes,
                CLUSTER_BYTES >> 10,
                min >> 20,
                max >> 30
            )));
        }
        if !(1..=DEPTH_MAX).contains(&self.depth) || self.duration.is_zero() {
            return Err(Error::invalid(format!(
                "a depth from 1 to {DEPTH_MAX} is needed, and some time"
            )));
        }
        if self.check_with_fio { fio::check() } else { Ok(()) }
    }

    /// In the order of their turns: the same state together, fio beside us.
    fn ways(&self) -> Vec<Way> {
        let mut ways = Vec::new();
        for &state in &self.states {
            for &engine in &self.engines {
                let tool = if state.is_of_qemu() { Tool::Qemu } else { Tool::Vellum };
                ways.push(Way { state, engine, tool });
                let is_known = state.first_touch() == FirstTouch::Plain && tool == Tool::Vellum;
                if self.check_with_fio && is_known {
                    ways.push(Way { state, engine, tool: Tool::Fio });
                }
            }
        }
        ways
    }

    fn contest(&self, bytes: u64, arena: &mut Arena<'_>) -> Result<Vec<Case>> {
        let mut entrants: Vec<Entrant<Way, Figures>> = Vec::new();
        for way in self.ways() {
            let probed = arena.aside(|dir| self.probe(way, dir))?;
            let Way { state, engine, tool } = way;
            let name = format!("{state} {engine} {}", tool.as_str());
            entrants.push(Entrant::new(name, way, probed));
        }
        arena.rounds(&mut entrants, |way, turn| {
            let share = if turn.round == 0 { WARM_UP_SHARE } else { 1 };
            let load = Load {
                duration: self.duration / share,
                // No block of one turn is like one of another.
                run: u64::from(turn.round) << 32 | turn.index as u64,
                ..self.load(*way, bytes)
            };
            measure(*way, &load, turn.dir)
        })?;
        Ok(rows::of(self, bytes, arena, &entrants))
    }

    fn load(&self, way: Way, bytes: u64) -> Load {
        Load {
            blocks: (bytes / BLOCK_BYTES as u64) as u32,
            depth: self.depth,
            first_touch: way.state.first_touch(),
            duration: self.duration,
            writes_max: u64::MAX,
            run: 0,
        }
    }

    /// Tries the way with a small image; by ourselves for fio too.
    fn probe(&self, way: Way, dir: &Path) -> Result<()> {
        let tool = if way.tool == Tool::Fio { Tool::Vellum } else { way.tool };
        let way = Way { tool, ..way };
        let depth = self.depth.min(PROBE_DEPTH);
        let load = Load { depth, writes_max: PROBE_WRITES, ..self.load(way, PROBE_BYTES) };
        measure(way, &load, dir).map(drop)
    }
}

impl Suite for Config {
    fn name(&self) -> &'static str {
        "image"
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    fn plan(&self) -> Result<Plan<'_>> {
        self.check()?;
        let size = size::fitting(self)?;
        let compete = move |arena: &mut Arena<'_>| self.contest(size.bytes, arena);
        let plan = Plan::new(size.room_bytes, self.ways().len(), compete);
        let is_qemu_asked = self.states.iter().any(|state| state.is_of_qemu());
        let software = Vec::from_iter(is_qemu_asked.then(qemu::software).flatten());
        Ok(Plan { software, warnings: Vec::from_iter(size.warning), ..plan })
    }
}
