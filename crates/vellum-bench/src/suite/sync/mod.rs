//! Suite `sync`: 5 MiB in pieces of 4 KiB, each synced. What does the state of the file cost, and
//! what the way of syncing?
//!
//! All ways take turns in rounds (A B C … A B C …); the first round is not counted. After each, the
//! file is read back and compared. What this system can't do is told with the reason.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::write::{Source, stamped};
use super::{Arena, Entrant, Plan, Scope, Suite};
use crate::bytes::size;
use crate::error::{Context, Error, Result};
use crate::process::figures;
use crate::report::{Better, Case};
use crate::stats::ratios;

mod ways;

pub use ways::SyncWay;

/// What is synced at a time: a page, and a block of the usual filesystems.
const PIECE_BYTES: u64 = 4096;
/// For directories, journals and what else a filesystem keeps.
const SPARE_BYTES: u64 = 64 << 20;
/// No single measurement may take longer; it may be of many gigabytes.
const LIMIT: Duration = Duration::from_secs(3600);

/// What is to be measured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where, and how many rounds; the default is 5.
    pub scope: Scope,
    /// How much is written; the default is 5 MiB.
    pub bytes: u64,
    /// How much [`SyncWay::OneSync`] writes once more, beside the others; the default is none.
    pub big_bytes: Option<u64>,
    /// Which ways, in the order of their turns; the default is all. There are ratios only if
    /// [`SyncWay::Growing`] is among them.
    pub ways: Vec<SyncWay>,
}

impl Config {
    /// All ways, five rounds, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        Config {
            scope: Scope::new(directory, 5),
            bytes: 5 << 20,
            big_bytes: None,
            ways: SyncWay::ALL.to_vec(),
        }
    }

    /// The same with 1 MiB and two rounds: seconds.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        let mut config = Config::new(directory);
        config.bytes = 1 << 20;
        config.scope.rounds = 2;
        config
    }

    fn check(&self) -> Result<()> {
        if self.ways.is_empty() {
            return Err(Error::invalid("at least one way is needed"));
        }
        for bytes in [Some(self.bytes), self.big_bytes].into_iter().flatten() {
            if bytes == 0 || !bytes.is_multiple_of(PIECE_BYTES) {
                return Err(Error::invalid(format!(
                    "{bytes} bytes can't be written in pieces of {PIECE_BYTES}"
                )));
            }
        }
        Ok(())
    }

    /// The files that are written: each way's, and a big one.
    fn files(&self) -> Vec<Pieces> {
        let usual =
            self.ways.iter().map(|way| Pieces { way: *way, bytes: self.bytes, is_big: false });
        let big = |bytes| Pieces { way: SyncWay::OneSync, bytes, is_big: true };
        usual.chain(self.big_bytes.map(big)).collect()
    }

    fn contest(&self, arena: &mut Arena<'_>) -> Result<Vec<Case>> {
        let most = arena.place.usable_bytes().max(PIECE_BYTES) / PIECE_BYTES * PIECE_BYTES;
        let mut entrants: Vec<Entrant<Pieces, f64>> = Vec::new();
        for file in self.files() {
            let fitted = Pieces { bytes: file.bytes.min(most), ..file };
            if fitted.bytes < file.bytes {
                let (place, size) = (arena.place.filesystem, size(fitted.bytes));
                arena.warn(format!("{place}: {size} are written, no more have room"));
            }
            let probed = arena.aside(|dir| Pieces { bytes: PIECE_BYTES, ..file }.write(dir, 0))?;
            entrants.push(Entrant::new(
                format!("{} {}", fitted.bytes, file.way),
                fitted,
                probed.map(drop),
            ));
        }
        arena.rounds(&mut entrants, |file, turn| {
            // The warm-up of a big file would take long, and what it warms is small beside it.
            if file.is_big && turn.round == 0 { Ok(0.0) } else { file.write(turn.dir, turn.round) }
        })?;
        let growing = entrants.iter().find(|entrant| entrant.way.way == SyncWay::Growing);
        let growing = growing.map_or(&[][..], |entrant| entrant.samples());
        Ok(entrants.iter().map(|entrant| case(entrant, growing, arena)).collect())
    }
}

impl Suite for Config {
    fn name(&self) -> &'static str {
        "sync"
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    fn plan(&self) -> Result<Plan<'_>> {
        self.check()?;
        let bytes = self.bytes.max(self.big_bytes.unwrap_or(0)) + SPARE_BYTES;
        Ok(Plan::new(bytes, self.files().len(), move |arena: &mut Arena<'_>| self.contest(arena)))
    }
}

/// A file that is written in pieces, in one way.
#[derive(Clone, Copy)]
struct Pieces {
    way: SyncWay,
    bytes: u64,
    is_big: bool,
}

impl Pieces {
    /// Milliseconds of one round, verified. In a process of its own: where a mapped file has no
    /// room, or its filesystem does not come along, that is killed.
    fn write(self, dir: &Path, round: u32) -> Result<f64> {
        let path = dir.join("file");
        let told = figures(LIMIT, 1, || {
            let millis = self.write_to(&path, round)?;
            stamped(&path, 0, self.bytes, round)?;
            Ok(vec![millis])
        });
        told.map(|millis| millis[0])
    }

    /// Writes all pieces and returns how many milliseconds it took.
    fn write_to(self, path: &Path, round: u32) -> Result<f64> {
        let Pieces { way, bytes, .. } = self;
        let what = format!("write pieces, {way}");
        let piece_bytes = if way == SyncWay::OneWrite { bytes } else { PIECE_BYTES } as usize;
        way.prepare(path, bytes).trying(&what)?;
        let mut source = Source::new(piece_bytes, round);
        let mut writer = way.open(path, bytes, piece_bytes).trying(&what)?;
        let begun = Instant::now();
        for offset in (0..bytes).step_by(piece_bytes) {
            writer.write(source.piece(offset, piece_bytes), offset).trying(&what)?;
        }
        if way.syncs_once() {
            writer.sync().trying(&what)?;
        }
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    }

    fn syncs(self) -> u64 {
        if self.way.syncs_once() { 1 } else { self.bytes / PIECE_BYTES }
    }
}

/// `growing` is what that way took, round by round. Another amount can't be compared with it, and
/// stands in a table of its own.
fn case(entrant: &Entrant<Pieces, f64>, growing: &[f64], arena: &Arena<'_>) -> Case {
    let file = entrant.way;
    let growing = if file.is_big { &[] } else { growing };
    let case = arena
        .case(format!("{} in pieces of {}", size(file.bytes), size(PIECE_BYTES)))
        .key("bytes", file.bytes)
        .key("piece bytes", PIECE_BYTES)
        .key("syncs", file.syncs())
        .key("case", file.way)
        .metric("time", "ms", Better::Lower, entrant.samples().to_vec())
        .metric("time against growing", "x", Better::Lower, ratios(entrant.samples(), growing));
    entrant.case(case)
}

#[cfg(test)]
mod tests;
