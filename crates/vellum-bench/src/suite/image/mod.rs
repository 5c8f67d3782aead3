//! Suite `image`: random writes of 4 KiB into a disk image, direct, many at a time. The effect of
//! the allocation of the image's space.
//!
//! The image is a plain file that is treated as QEMU treats a qcow2 image: see the states. All
//! cases take turns in rounds, each with a new image, and write the same blocks
//! in the same order; the first round is short and not counted. After each, the image is read back:
//! each block must hold its last write, or zeros if it had none. Cases that this system can't run
//! are reported with the reason.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::ArgPredicate;
use clap::{Args, ValueEnum};
use vellum_command::values;

use super::options::{from_words, seconds, usual};
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
/// An image of this length, with so many writes, shows which cases can run here.
const PROBE_BYTES: u64 = 1 << 20;
const PROBE_WRITES: u64 = 64;
const PROBE_DEPTH: usize = 16;
const DEPTH_MAX: usize = 256;

/// Programs that can write the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckWith {
    /// fio, which must be installed
    Fio,
}

const EXAMPLES: &str = "\
Examples:
  vellum bench image --quick
  vellum bench image --dir /mnt/data --bytes 25G --seconds 60 --json result.json
  vellum bench image --fs xfs,ext4 --engines io_uring
  vellum bench image --states metadata,falloc,full --check-with fio
  vellum bench image --states qcow2-off,qcow2-metadata,qcow2-falloc,qcow2-full,qemu-raw
  vellum bench image --fs xfs,ext4 --fill 95% --mkfs-options 'xfs=-l size=64m'
  vellum bench image --fs xfs --states metadata,off --seconds 60 --rounds 1 --html burst.html";

/// Random writes into a disk image: the effect of how its space was allocated
///
/// Writes of 4 KiB, past the page cache, 32 at a time, into a file treated as QEMU treats a qcow2
/// image with preallocation off, metadata, falloc or full, or with a hint to XFS to allocate in
/// larger pieces. --states qcow2-... has QEMU make real qcow2 images, and writes them through its
/// NBD server. Shown are writes per second over the whole run, in its first second, first minute,
/// first tenth and last tenth, for rates change during a run; latencies; the number of the image's
/// extents in the end; and the time that making it took. Each case gets a new image in each round;
/// the first round is short and not counted. After each, every block is compared with its last
/// write.
///
/// The full run takes about fifteen minutes on each filesystem, --quick half of one.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("rounds", |option| usual(option, "3", "2")),
    mut_arg("quick", |option| option.help(
        "256 MiB, two rounds of a second, and only with io_uring, as far as nothing else is asked for",
    )),
)]
#[non_exhaustive]
pub struct Config {
    /// How the image was allocated: off, off-without-zero-range, metadata, falloc, full,
    /// extsize-64k, extsize-1m [default: all of these], and by QEMU (package qemu-utils):
    /// qcow2-off, qcow2-metadata, qcow2-falloc, qcow2-full, qemu-raw
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_values_t = ImageState::ours().to_vec(), hide_default_value = true)]
    pub states: Vec<ImageState>,
    /// The engine that carries the writes to the kernel: aio, io_uring, threads [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_values_t = ImageEngine::ALL, hide_default_value = true)]
    #[arg(default_value_if("quick", ArgPredicate::IsPresent, "io_uring"))]
    pub engines: Vec<ImageEngine>,
    /// How long an image is; less where there is no room
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    #[arg(default_value = "2GiB", default_value_if("quick", ArgPredicate::IsPresent, "256MiB"))]
    pub bytes: u64,
    /// How long each case writes in a round: rates change within it, so runs of different length
    /// cannot be compared
    #[arg(id = "seconds", long, value_name = "SECONDS", value_parser = seconds)]
    #[arg(default_value = "10", default_value_if("quick", ArgPredicate::IsPresent, "1"))]
    pub duration: Duration,
    /// How many writes are on their way at a time
    #[arg(long, value_name = "COUNT", default_value = "32")]
    pub depth: usize,
    /// Have another program write the same, taking turns with us, in all states but the first two
    /// and QEMU's, which it does not know; its writes are not read back
    #[arg(long, value_name = "PROGRAM")]
    pub check_with: Option<CheckWith>,
    /// Where, and how many rounds.
    #[command(flatten)]
    pub scope: Scope,
}

impl Config {
    /// All states, all engines, three rounds, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        from_words(&[], directory)
    }

    /// The same with 256 MiB, io_uring, and two rounds of a second.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        from_words(&["--quick"], directory)
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
        if self.check_with.is_some() { fio::check() } else { Ok(()) }
    }

    /// In the order of their turns: the same state together, fio beside us.
    fn ways(&self) -> Vec<Way> {
        let mut ways = Vec::new();
        for &state in &self.states {
            for &engine in &self.engines {
                let tool = if state.is_of_qemu() { Tool::Qemu } else { Tool::Vellum };
                ways.push(Way { state, engine, tool });
                let is_known = state.first_touch() == FirstTouch::Plain && tool == Tool::Vellum;
                if self.check_with.is_some() && is_known {
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
