//! One large file: how many bytes a second, from nothing to a file that survives a power cut.
//!
//! The clock runs from before the file is made until it is synced, for that is what a user waits
//! for. Every page carries its number and the round's, so that one in a wrong place, or one of an
//! earlier round, is found. The writing is done in a process of its own, for it may be killed by
//! what it maps.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use vellum::Advice;
use vellum_parallel::{FileOptions, Method, ResultFile};

use super::Field;
use crate::advise::Purpose;
use crate::advise::detect::in_short;
use crate::advise::way::{FileWay, Way};
use crate::error::{Context, Error, Result};
use crate::process::race;
use crate::suite::settle;
use crate::ways::direct::AlignedBuffer;
use crate::ways::vellum_log::failed;

const PAGE_BYTES: usize = 4096;
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
        let used = AtomicMethod::new()?;
        let tried = race(1, LIMIT, &|runner| {
            let mut pieces = pieces(way);
            let standing = runner.stand_ready()?;
            used.set(write(&path, way, UNIT_BYTES, 0, &mut pieces)?);
            runner.finish(standing, 0)
        });
        let checked = tried.and_then(|_| check(&path, UNIT_BYTES, 0));
        let _ = fs::remove_file(&path);
        checked.map_err(|error| Error::failed(in_short(&error.to_string())))?;
        Ok(used.get())
    }

    fn measure(&self, way: FileWay, round: u32) -> Result<f64> {
        let path = self.path();
        settle(&self.dir)?;
        let race = race(1, LIMIT, &|runner| {
            let mut pieces = pieces(way);
            let standing = runner.stand_ready()?;
            write(&path, way, self.bytes, round, &mut pieces)?;
            runner.finish(standing, 0)
        })?;
        check(&path, self.bytes, round)?;
        Ok(self.bytes as f64 / race.wall_ns.max(1) as f64)
    }
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
        let speed = self.measure(self.ways[way], round);
        let path = self.path();
        if path.exists() {
            fs::remove_file(&path).context(|| format!("remove {}", path.display()))?;
        }
        settle(&self.dir)?;
        Ok(vec![speed?])
    }

    fn fit(&mut self, spent: Duration, budget: Duration) {
        let factor = budget.as_secs_f64() / spent.as_secs_f64().max(1e-6);
        let bytes = (self.bytes as f64 * factor) as u64 / UNIT_BYTES * UNIT_BYTES;
        self.bytes = bytes.clamp(UNIT_BYTES, self.bytes_max);
    }
}

/// A method that a child tells its parent.
struct AtomicMethod(crate::shared::Shared<AtomicU64>);

impl AtomicMethod {
    fn new() -> Result<AtomicMethod> {
        Ok(AtomicMethod(crate::shared::Shared::new(1)?))
    }

    fn set(&self, method: Method) {
        let index = METHODS.iter().position(|one| *one == method).unwrap_or(0);
        self.0[0].store(index as u64, Ordering::Relaxed);
    }

    fn get(&self) -> Method {
        METHODS[self.0[0].load(Ordering::Relaxed) as usize]
    }
}

/// Memory for a piece of each thread, as a direct write takes it. Made before the clock starts:
/// whoever writes a file has the bytes already.
fn pieces(way: FileWay) -> Vec<AlignedBuffer> {
    let piece = |_| {
        let mut piece = AlignedBuffer::new(way.piece_bytes as usize);
        piece.as_mut_slice().fill(b'v');
        piece
    };
    (0..way.threads).map(piece).collect()
}

/// Makes the file at `path`, has each thread write pieces, and syncs it.
fn write(
    path: &Path,
    way: FileWay,
    bytes: u64,
    round: u32,
    pieces: &mut [AlignedBuffer],
) -> Result<Method> {
    let method = if way.is_default { Method::Auto } else { way.method };
    let options = FileOptions::new().len(bytes).method(method).sync(true);
    let file = options.create(path).map_err(|error| failed(&error))?;
    file.prepare().map_err(|error| failed(&error))?;
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        let (file, next) = (&file, &next);
        let threads: Vec<_> = pieces
            .iter_mut()
            .map(|piece| {
                scope.spawn(move || write_pieces(file, next, piece.as_mut_slice(), bytes, round))
            })
            .collect();
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
    piece: &mut [u8],
    bytes: u64,
    round: u32,
) -> Result<()> {
    let piece_bytes = piece.len() as u64;
    loop {
        let offset = next.fetch_add(piece_bytes, Ordering::Relaxed);
        if offset >= bytes {
            return Ok(());
        }
        let len = piece_bytes.min(bytes - offset) as usize;
        stamp(&mut piece[..len], offset, round);
        file.write_at(offset, &piece[..len]).map_err(|error| failed(&error))?;
    }
}

/// Marks each page with its number in the file and in the run.
fn stamp(piece: &mut [u8], offset: u64, round: u32) {
    for (index, page) in piece.chunks_mut(PAGE_BYTES).enumerate() {
        let number = offset / PAGE_BYTES as u64 + index as u64;
        page[..8].copy_from_slice(&number.to_le_bytes());
        page[8..12].copy_from_slice(&round.to_le_bytes());
    }
}

/// Is all of it there, and nothing else?
fn check(path: &Path, bytes: u64, round: u32) -> Result<()> {
    const READ_BYTES: usize = 1 << 20;
    let cannot = || format!("read {}", path.display());
    let mut file = File::open(path).context(cannot)?;
    let len = file.metadata().context(cannot)?.len();
    if len != bytes {
        return Err(Error::failed(format!("the file has {len} bytes instead of {bytes}")));
    }
    let mut expected = vec![b'v'; READ_BYTES];
    let mut found = vec![0; READ_BYTES];
    for offset in (0..bytes).step_by(READ_BYTES) {
        let len = (bytes - offset).min(READ_BYTES as u64) as usize;
        file.read_exact(&mut found[..len]).context(cannot)?;
        stamp(&mut expected[..len], offset, round);
        if found[..len] != expected[..len] {
            return Err(Error::failed(format!("what was written at {offset} is not there")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_found_and_everything_else_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let way = FileWay::new(Method::Auto, 256 << 10, 3);
        write(&path, way, 2 << 20, 7, &mut pieces(way)).unwrap();
        check(&path, 2 << 20, 7).unwrap();
        assert!(check(&path, 2 << 20, 8).unwrap_err().to_string().contains("written at 0"));
        assert!(check(&path, 1 << 20, 7).unwrap_err().to_string().contains("bytes instead"));
        let mut bytes = fs::read(&path).unwrap();
        bytes[(1 << 20) + 5000] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert!(check(&path, 2 << 20, 7).unwrap_err().to_string().contains("1048576"));
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
