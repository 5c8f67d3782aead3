//! The stored records: a log, a copy of one, or a file with the same records.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use memchr::memchr;
use vellum::{Create, Layout, Log, Options};

use super::Load;
use crate::error::{Context, Error, Result};
use crate::record::Records;
use crate::ways::vellum_log;

/// What `read` is asked for at a time.
const PIECE_BYTES: usize = 128 << 10;
/// Every run has the same order.
const SEED: u64 = 1;

/// Records that were written, and where they are.
pub(super) struct Stored {
    path: PathBuf,
    /// `None` in a file, and before the log is recovered.
    log: Option<Log>,
    record_bytes: usize,
    records: u64,
    /// The records in the order in which they are read at random, and where each of them is.
    order: Vec<u64>,
    places: Vec<u64>,
}

impl Stored {
    /// A log in `dir`, open for reading.
    pub(super) fn log(dir: &Path, layout: Layout, load: Load) -> Result<Stored> {
        let path = dir.join("log");
        let places = write_log(&path, layout, load)?;
        let log = options(layout).read_only(true).open(&path).map_err(failed)?;
        Ok(Stored { log: Some(log), ..Stored::shuffled(path, load, &places) })
    }

    /// A copy of a log, which no process has opened.
    pub(super) fn copy(dir: &Path, layout: Layout, load: Load) -> Result<Stored> {
        let (original, path) = (dir.join("log"), dir.join("copy"));
        let places = write_log(&original, layout, load)?;
        copy_files(&original, &path).context(|| format!("copy {}", original.display()))?;
        Ok(Stored::shuffled(path, load, &places))
    }

    /// A file with the records of the log, and nothing else.
    pub(super) fn file(dir: &Path, load: Load) -> Result<Stored> {
        let path = dir.join("file");
        let file = File::create_new(&path).context(|| format!("make {}", path.display()))?;
        let mut writer = std::io::BufWriter::with_capacity(PIECE_BYTES, file);
        let mut records = Records::new(0, load.bytes);
        for _ in 0..load.records() {
            writer.write_all(records.next_record()).context(|| "write a file")?;
        }
        writer.flush().context(|| "write a file")?;
        let places: Vec<u64> = (0..load.records()).map(|at| at * load.bytes as u64).collect();
        Ok(Stored::shuffled(path, load, &places))
    }

    fn shuffled(path: PathBuf, load: Load, places: &[u64]) -> Stored {
        let mut order: Vec<u64> = (0..load.records()).collect();
        fastrand::Rng::with_seed(SEED).shuffle(&mut order);
        let places = order.iter().map(|at| places[*at as usize]).collect();
        let (record_bytes, records) = (load.bytes, load.records());
        Stored { path, log: None, record_bytes, records, order, places }
    }

    pub(super) fn records(&self) -> u64 {
        self.records
    }

    pub(super) fn order(&self) -> &[u64] {
        &self.order
    }

    pub(super) fn places(&self) -> &[u64] {
        &self.places
    }

    pub(super) fn opened(&self) -> Result<&Log> {
        self.log.as_ref().ok_or_else(|| Error::failed("the log is not open"))
    }

    /// Opens the copy for writing, which recovers it.
    pub(super) fn recover(&mut self) -> Result<()> {
        let log = Options::default().create(Create::Never).open(&self.path).map_err(failed)?;
        if log.recovery().is_none() {
            return Err(Error::failed("the log was opened without recovery"));
        }
        self.log = Some(log);
        Ok(())
    }

    /// Shows the file in pieces as `read` returns them.
    pub(super) fn pieces(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        let mut file = self.open_file()?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match file.read(&mut piece).context(|| "read a file")? {
                0 => return Ok(()),
                len => visit(&piece[..len]),
            }
        }
    }

    /// Shows the lines of the file, each with its newline.
    pub(super) fn lines(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        let mut file = self.open_file()?;
        let mut buffer = vec![0; PIECE_BYTES.max(2 * self.record_bytes)];
        let mut held = 0;
        loop {
            let len = file.read(&mut buffer[held..]).context(|| "read a file")?;
            let end = held + len;
            let mut start = 0;
            while let Some(at) = memchr(b'\n', &buffer[start..end]) {
                visit(&buffer[start..=start + at]);
                start += at + 1;
            }
            if len == 0 {
                return Ok(());
            }
            buffer.copy_within(start..end, 0);
            held = end - start;
        }
    }

    /// Shows each record of the file once.
    pub(super) fn at_places(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        let file = self.open_file()?;
        let mut record = vec![0; self.record_bytes];
        for place in &self.places {
            file.read_exact_at(&mut record, *place).context(|| "pread")?;
            visit(&record);
        }
        Ok(())
    }

    fn open_file(&self) -> Result<File> {
        File::open(&self.path).context(|| format!("open {}", self.path.display()))
    }
}

/// For `map_err`.
#[cold]
#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over")]
pub(super) fn failed(error: vellum::Error) -> Error {
    vellum_log::failed(&error)
}

fn options(layout: Layout) -> Options {
    vellum::internal::options(layout)
}

/// Writes the records and returns where each of them is.
fn write_log(path: &Path, layout: Layout, load: Load) -> Result<Vec<u64>> {
    let log = options(layout).open(path).map_err(failed)?;
    let mut records = Records::new(0, load.bytes);
    let append = |_| log.append(records.next_record()).map(|lsn| lsn.get()).map_err(failed);
    (0..load.records()).map(append).collect()
}

fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
