//! One large file: how many bytes a second, from nothing to a file that survives a power cut.
//!
//! The clock runs from before the file is made until it is synced, for that is what a user waits
//! for. Every page carries its place and the round, so that one in a wrong place, or one of an
//! earlier round, is found. The writing is done in a process of its own, for it may be killed by
//! what it maps.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use vellum_advice::Advice;
use vellum_parallel::{FileOptions, Method, ResultFile};

use super::Field;
use crate::advise::Purpose;
use crate::advise::way::{FileWay, Way};
use crate::error::{Context, Error, Result};
use crate::process::figures;
use crate::suite::settle;
use crate::suite::write::{Source, stamped};
use crate::ways::vellum_log::failed;

const PIECES: [u64; 3] = [1 << 20, 256 << 10, 8 << 20];
const METHODS: [Method; 3] = [Method::Buffered, Method::Direct, Method::Mapped];

/// In the first round; each thread has at least a piece of the longest to write.
const FIRST_BYTES: u64 = 16 << 20;
const BYTES_MAX: u64 = 512 << 20;
/// Lengths are multiples of this.
const UNIT_BYTES: u64 = 8 << 20;
const THREADS_MAX: usize = 16;
const LIMIT: Duration = Duration::from_secs(120);

/// The file, and the ways to write it.
pub(in crate::advise) struct FileField {
    dir: PathBuf,
    ways: Vec<FileWay>,
    bytes: u64,
    bytes_max: u64,
}

impl FileField {
    /// In the directory `dir`, which is new. The file takes up to `space` bytes. With `is_quick`
    /// all ways write pieces of the same length.
    pub(in crate::advise) fn new(
        dir: PathBuf,
        space: u64,
        cores: usize,
        is_quick: bool,
    ) -> Result<FileField> {
        let bytes_max = (space / 2).min(BYTES_MAX) / UNIT_BYTES * UNIT_BYTES;
        if bytes_max == 0 {
            return Err(Error::no_space("there is too little space for a large file"));
        }
        let threads = cores.min(THREADS_MAX) as u32;
        let bytes = FIRST_BYTES.min(bytes_max);
        let mut field = FileField { dir, ways: Vec::new(), bytes, bytes_max };
        let known = Advice::known(&field.dir).map_err(|error| failed(&error))?;
        let piece_bytes = known.file.piece_bytes.unwrap_or(PIECES[0]);
        let mut default = FileWay::new(Method::Auto, piece_bytes, threads);
        default.method = field.method_of(default)?;
        let others = all_ways(threads, is_quick).filter(|way| *way != default);
        field.ways = [FileWay { is_default: true, ..default }].into_iter().chain(others).collect();
        Ok(field)
    }

    fn path(&self) -> PathBuf {
        self.dir.join("file")
    }

    /// The method that is used in the end.
    fn method_of(&self, way: FileWay) -> Result<Method> {
        let path = self.path();
        let tried = measure(&path, way, UNIT_BYTES, 0);
        let _ = fs::remove_file(&path);
        tried.map(|(_, method)| method)
    }
}

/// Writes the file at `path`, and looks whether all of it is there. Returns how many seconds it
/// took, and the method that was used.
fn measure(path: &Path, way: FileWay, bytes: u64, round: u32) -> Result<(f64, Method)> {
    let told = figures(LIMIT, 2, || {
        // A program that writes a file has the bytes already.
        let source = |_| Source::new(way.piece_bytes as usize, round);
        let mut sources: Vec<Source> = (0..way.threads).map(source).collect();
        let begun = Instant::now();
        let method = write(path, way, bytes, &mut sources)?;
        let index = METHODS.iter().position(|one| *one == method).unwrap_or(0);
        Ok(vec![begun.elapsed().as_secs_f64(), index as f64])
    })?;
    stamped(path, 0, bytes, round)?;
    Ok((told[0], METHODS[told[1] as usize]))
}

/// All ways, the simplest first.
fn all_ways(threads: u32, is_quick: bool) -> impl Iterator<Item = FileWay> {
    let pieces = if is_quick { &PIECES[..1] } else { &PIECES };
    let counts = if threads > 1 { vec![threads, 1] } else { vec![1] };
    counts.into_iter().flat_map(move |threads| {
        METHODS.into_iter().flat_map(move |method| {
            pieces.iter().map(move |piece| FileWay::new(method, *piece, threads))
        })
    })
}

impl Field for FileField {
    fn purpose(&self) -> Purpose {
        Purpose::File
    }

    fn ways(&self) -> Vec<Way> {
        self.ways.iter().copied().map(Way::File).collect()
    }

    fn figures(&self) -> Vec<(String, &'static str)> {
        vec![("with sync".into(), "GB/s")]
    }

    fn probe(&mut self, way: usize) -> std::result::Result<(), String> {
        let way = self.ways[way];
        let used = self.method_of(way).map_err(|error| error.to_string())?;
        if used == way.method {
            return Ok(());
        }
        Err(format!("not possible here: {used} takes its place"))
    }

    fn turn(&mut self, way: usize, round: u32) -> Result<Vec<f64>> {
        let path = self.path();
        settle(&self.dir)?;
        let measured = measure(&path, self.ways[way], self.bytes, round);
        if path.exists() {
            fs::remove_file(&path).context(|| format!("remove {}", path.display()))?;
        }
        settle(&self.dir)?;
        let (seconds, _) = measured?;
        Ok(vec![self.bytes as f64 / 1e9 / seconds])
    }

    fn fit(&mut self, spent: Duration, budget: Duration) {
        let factor = budget.as_secs_f64() / spent.as_secs_f64().max(1e-6);
        let bytes = (self.bytes as f64 * factor) as u64 / UNIT_BYTES * UNIT_BYTES;
        self.bytes = bytes.clamp(UNIT_BYTES, self.bytes_max);
    }
}

/// Makes the file at `path`, has each thread write pieces, and syncs it.
fn write(path: &Path, way: FileWay, bytes: u64, sources: &mut [Source]) -> Result<Method> {
    let method = if way.is_default { Method::Auto } else { way.method };
    let options = FileOptions::new().len(bytes).method(method).sync(true);
    let file = options.create(path).map_err(|error| failed(&error))?;
    file.prepare().map_err(|error| failed(&error))?;
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        let (file, next) = (&file, &next);
        let spawn = |source| scope.spawn(move || write_pieces(file, next, source, way, bytes));
        let threads: Vec<_> = sources.iter_mut().map(spawn).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(Error::failed("a thread panicked")))
        })
    })?;
    let finished = file.finish().map_err(|error| failed(&error))?;
    Ok(finished.method)
}

/// What each thread does: takes the next piece that nobody has taken, until there is none.
fn write_pieces(
    file: &ResultFile,
    next: &AtomicU64,
    source: &mut Source,
    way: FileWay,
    bytes: u64,
) -> Result<()> {
    loop {
        let offset = next.fetch_add(way.piece_bytes, Ordering::Relaxed);
        if offset >= bytes {
            return Ok(());
        }
        let len = way.piece_bytes.min(bytes - offset) as usize;
        file.write_at(offset, source.piece(offset, len)).map_err(|error| failed(&error))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_found_and_everything_else_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let way = FileWay::new(Method::Auto, 256 << 10, 3);
        measure(&path, way, 2 << 20, 7).unwrap();
        let said = |bytes, round| stamped(&path, 0, bytes, round).unwrap_err().to_string();
        assert!(said(2 << 20, 8).contains("at byte 0 is not there"));
        assert!(said(1 << 20, 7).contains("bytes and not"));
        let mut bytes = fs::read(&path).unwrap();
        bytes[(1 << 20) + 5000] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert!(said(2 << 20, 7).contains("at byte 1052672 is not there"));
    }

    #[test]
    fn no_way_is_listed_twice() {
        let ways: Vec<FileWay> = all_ways(4, false).collect();
        assert_eq!(ways.len(), METHODS.len() * PIECES.len() * 2);
        assert_eq!(all_ways(1, true).count(), METHODS.len());
        for (index, way) in ways.iter().enumerate() {
            assert!(!ways[..index].contains(way));
        }
    }
}
