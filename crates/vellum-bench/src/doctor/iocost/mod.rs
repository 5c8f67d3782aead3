//! Lines for the kernel, under which a log keeps its p99 beside a neighbour that writes.
//!
//! ```text
//! device   which disk the lines are for: a partition's whole disk
//! rates    six rates of the disk alone, as the kernel's `iocost_coef_gen.py` means them
//! beside   p99 of a log beside a neighbour: at some rates, and in bursts of some lengths
//! lines    from those figures to lines to paste: arithmetic alone
//! ```

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use vellum::internal::escaped_lines;
use vellum_command::private_dir::PrivateDir;
use vellum_sys::Dir;

use super::program::Program;
use super::target::Target;
use crate::advise::Surroundings;
use crate::conditions::free_bytes;
use crate::error::{Context, Error, Result};
use crate::interrupt::is_asked;
use crate::progress::{Event, Progress};
use crate::ways::direct::AlignedBuffer;

mod beside;
mod device;
mod lines;
mod rates;

use beside::{Burst, Log, Paced};
use device::Device;
use lines::{Beside, Figures};

/// All files together never take more of the free space than one part of so many …
const FREE_SHARE: u64 = 10;
/// … nor more than this.
const FILE_MAX: u64 = 1 << 30;
/// With less there is no rate to be had.
const FILE_MIN: u64 = 16 << 20;
/// Making the file takes no more of the time than one part of so many.
const MAKING_SHARE: u32 = 8;
/// So many measurements share the time.
const PARTS: u32 = 20;
/// A neighbour writes about so much in one of them, and no more.
const BESIDE_MAX: u64 = 2 << 30;
/// The log of this program is measured.
const LOG: &str = "etcd";
/// A neighbour may write so many parts of what the disk can do.
const RATES: [u64; 5] = [2, 4, 8, 16, 32];
/// So many bytes wait in memory before they are written at once.
const BURSTS: [u64; 4] = [256 << 20, 64 << 20, 16 << 20, 4 << 20];

/// What is to be found out.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where: a directory that exists. Files are made in a new directory inside it, which is
    /// removed in the end.
    pub directory: PathBuf,
    /// About how long it may take, in all.
    pub time: Duration,
    /// 99 of a hundred commits of the log are to take no longer.
    pub goal: Duration,
}

/// Measures in `config.directory`, and returns the lines for people.
///
/// # Errors
///
/// The directory is on no block device, the disk can't be used, or the run was to end.
///
/// # Cost
///
/// About `config.time`. A tenth of the free space, 1 GiB at most; all that is written comes to
/// about 30 GiB at most.
pub fn run(config: &Config, progress: &mut dyn Progress) -> Result<String> {
    let home = PrivateDir::new(&config.directory, "vellum-doctor-")
        .context(|| format!("make a directory in {}", config.directory.display()))?;
    let found = Surroundings::of(home.path())?;
    let device = Device::of(&found, Path::new("/sys"))?;
    progress.event(&Event::Started { steps: u64::from(PARTS) });
    progress.event(&Event::Measuring { what: "making a file" });
    let mut trial = Trial::new(config, &home, progress)?;
    trial.progress.event(&Event::Passed { steps: u64::from(PARTS / MAKING_SHARE) - 1 });
    let figures = trial.figures()?;
    progress.event(&Event::Finished);
    home.close().context(|| "remove the directory of the run")?;
    Ok(escaped_lines(lines::text(&device, &figures)).to_string())
}

/// A file that is written and read, a log beside it, and what is measured of both.
struct Trial<'a> {
    goal_ms: f64,
    slice: Duration,
    /// Past the page cache, and through it.
    file: File,
    cached: File,
    bytes: u64,
    log: Log,
    progress: &'a mut dyn Progress,
}

impl<'a> Trial<'a> {
    fn new(
        config: &Config,
        home: &PrivateDir,
        progress: &'a mut dyn Progress,
    ) -> Result<Trial<'a>> {
        let room = (free_bytes(home.path())? / FREE_SHARE).min(FILE_MAX);
        if room < FILE_MIN {
            let text = "a tenth of the free space is less than 16 MiB: too little to measure in";
            return Err(Error::no_space(text));
        }
        let (cached, file) = files(home.dir(), Path::new("neighbour"))?;
        let bytes = made(&file, room, config.time / MAKING_SHARE)?;
        let program = Program::named(LOG)?;
        let target = Target::make(home.dir(), "log", &program.pattern, room, Duration::ZERO)
            .map_err(|failure| Error::failed(failure.what))?;
        let (slice, log) = (config.time / PARTS, Log::of(target));
        let goal_ms = config.goal.as_secs_f64() * 1e3;
        Ok(Trial { goal_ms, slice, file, cached, bytes, log, progress })
    }

    fn figures(&mut self) -> Result<Figures> {
        let model = rates::measured(&self.file, self.bytes, self.slice, &mut |what| {
            begun(&mut *self.progress, what)
        })?;
        begun(&mut *self.progress, "a log alone")?;
        let alone_ms = self.log.alone(self.slice)?;
        let mut figures = Figures {
            model,
            goal_ms: self.goal_ms,
            alone_ms,
            unlimited_ms: 0.0,
            rates: Vec::new(),
            bursts: Vec::new(),
        };
        if alone_ms > self.goal_ms {
            return Ok(figures);
        }
        figures.unlimited_ms = self.beside_paced(None, model.wbps)?;
        if figures.unlimited_ms > self.goal_ms {
            figures.rates = self.rates(model.wbps)?;
        }
        let rate = figures.kept(&figures.rates).map_or(model.wbps / RATES[0], |one| one.bytes);
        figures.bursts = self.bursts(rate)?;
        Ok(figures)
    }

    /// From the highest rate of a neighbour down to one beside which the log keeps its p99.
    fn rates(&mut self, wbps: u64) -> Result<Vec<Beside>> {
        let mut tried = Vec::new();
        for parts in RATES {
            let bytes = lines::rounded(wbps / parts);
            let p99_ms = self.beside_paced(Some(bytes), bytes)?;
            tried.push(Beside { bytes, p99_ms });
            if p99_ms <= self.goal_ms {
                break;
            }
        }
        Ok(tried)
    }

    /// Beside one that writes at `rate`, which comes to about `expected` bytes a second.
    fn beside_paced(&mut self, rate: Option<u64>, expected: u64) -> Result<f64> {
        let what = match rate {
            None => "a log beside a neighbour".into(),
            Some(rate) => format!("a log beside {}", lines::rate(rate)),
        };
        begun(&mut *self.progress, &what)?;
        let neighbour = Paced { file: &self.file, bytes: self.bytes, rate };
        self.log.beside(bounded(self.slice, expected), &neighbour)
    }

    /// The same for bursts, at this rate in the mean.
    fn bursts(&mut self, rate: u64) -> Result<Vec<Beside>> {
        let mut tried = Vec::new();
        for bytes in BURSTS.into_iter().filter(|bytes| *bytes <= self.bytes) {
            begun(&mut *self.progress, "a log beside bursts from memory")?;
            let burst = Burst { file: &self.cached, bytes: self.bytes, burst: bytes, rate };
            // A burst and its pause are seen at least twice.
            let length = self.slice.max(burst.every() * 2).min(self.slice * 2);
            let p99_ms = self.log.beside(bounded(length, rate), &burst)?;
            tried.push(Beside { bytes, p99_ms });
            if p99_ms <= self.goal_ms {
                break;
            }
        }
        Ok(tried)
    }
}

/// A shorter time where a neighbour writes too much otherwise.
fn bounded(length: Duration, rate: u64) -> Duration {
    length.min(Duration::from_secs_f64(BESIDE_MAX as f64 / rate.max(1) as f64))
}

/// Tells what is measured next, unless the run is to end.
fn begun(progress: &mut dyn Progress, what: &str) -> Result<()> {
    if is_asked() {
        return Err(Error::interrupted());
    }
    progress.event(&Event::Measuring { what });
    Ok(())
}

/// Makes a file, and opens it through the page cache and past it.
fn files(dir: &Dir, name: &Path) -> Result<(File, File)> {
    let cached = File::from(dir.create(name, 0o600).context(|| "make a file")?);
    // Where data that is changed goes to new blocks this keeps it in its place; elsewhere it fails.
    let _ = rustix::fs::ioctl_setflags(&cached, rustix::fs::IFlags::NOCOW);
    let direct = dir.open_file(name, OFlags::RDWR | OFlags::DIRECT);
    Ok((cached, direct.trying("open with O_DIRECT")?.into()))
}

/// Fills a file with `room` bytes, or of as many as `patience` allows: reading it is no reading of
/// what was never written.
fn made(file: &File, room: u64, patience: Duration) -> Result<u64> {
    let mut buffer = AlignedBuffer::new(rates::LONG_BYTES);
    fastrand::Rng::with_seed(3).fill(buffer.as_mut_slice());
    let (begun, mut bytes) = (Instant::now(), 0);
    while bytes + rates::LONG_BYTES as u64 <= room
        && (bytes == 0 || begun.elapsed() < patience)
        && !is_asked()
    {
        file.write_all_at(buffer.as_slice(), bytes).trying("a direct write")?;
        bytes += rates::LONG_BYTES as u64;
    }
    file.sync_all().context(|| "fsync")?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
