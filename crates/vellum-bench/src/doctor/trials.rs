//! Experiments beside the programs: the same write where a suspected cause is present, and where it
//! is absent. They are tried again and again while the run continues, each in turn, so that one
//! sees of the disk what the others see.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use serde::Serialize;
use vellum_command::samples::quantile_of;
use vellum_sys::Dir;

use super::series::median;
use crate::suite::commit::write_zeros;
use crate::ways::direct::{AlignedBuffer, BLOCK_BYTES};

/// The file that is overwritten, from its start again when its end is reached.
const OVERWRITTEN_BYTES: u64 = 2 << 20;
/// A file that grows is cut when it is so long.
const GROWN_BYTES_MAX: u64 = 8 << 20;
/// A portion has at least so many rounds of all experiments.
const ROUNDS_MIN: usize = 2;
/// The unit that disks say they have; many have a larger one inside.
const SECTOR_BYTES: usize = 512;
/// No disk has a larger one that a write could share with others.
const LARGE_BYTES: usize = 64 << 10;
/// So many threads write at a time.
pub(super) const AT_ONCE: u64 = 4;
/// A shorter rest lets no disk sleep.
pub(super) const REST_MIN: Duration = Duration::from_millis(500);
/// What each file of a run may be read and written by.
const MODE: u32 = 0o600;
/// The errors that the kernel has for requests that a device does not fulfil; a filesystem becomes
/// read-only after them.
const OF_DEVICE: [i32; 7] = [
    libc::EIO,
    libc::EROFS,
    libc::ETIMEDOUT,
    libc::EREMOTEIO,
    libc::ENODATA,
    libc::ENOLINK,
    libc::EBADE,
];

/// What single calls cost, in the median; nothing where it was not tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Probe {
    /// A direct write of 4096 bytes, which the device need not keep.
    pub write_us: f64,
    /// A flush after it.
    pub flush_us: f64,
    /// A direct write of 512 bytes, where the filesystem takes it.
    pub sector_us: Option<f64>,
    /// A direct write of 64 KiB at a multiple of that.
    pub large_us: Option<f64>,
    /// 4096 bytes over older ones, with the `fdatasync` after it.
    pub overwritten_us: Option<f64>,
    /// The same, in nine of ten cases no longer.
    pub overwritten_p90_us: Option<f64>,
    /// The same, in one of ten cases no longer.
    pub overwritten_p10_us: Option<f64>,
    /// The same by four threads at a time, until all of them have theirs.
    pub together_us: Option<f64>,
    /// 4096 bytes at the end of a file that grows, with the `fdatasync` after it.
    pub grown_us: Option<f64>,
    /// A direct write of 4096 bytes to a place that was never written.
    pub first_us: Option<f64>,
    /// The same to that place again.
    pub again_us: Option<f64>,
    /// A direct write after a rest.
    pub rested_us: Option<f64>,
    /// The one after it.
    pub woken_us: Option<f64>,
}

impl Probe {
    /// Of ten writes over older blocks, how long the fastest and the slowest take.
    pub(super) fn spread_us(self) -> Option<(f64, f64)> {
        self.overwritten_p10_us.zip(self.overwritten_p90_us)
    }
}

/// How long each call took, in microseconds.
#[derive(Debug, Default)]
struct Times {
    write: Vec<f64>,
    flush: Vec<f64>,
    sector: Vec<f64>,
    large: Vec<f64>,
    overwritten: Vec<f64>,
    together: Vec<f64>,
    grown: Vec<f64>,
    first: Vec<f64>,
    again: Vec<f64>,
    rested: Vec<f64>,
    woken: Vec<f64>,
}

/// The files of the experiments, and what came of them.
pub(super) struct Trials {
    /// Written before.
    old: File,
    old_direct: File,
    /// It grows, by writes into the page cache.
    grown: File,
    grown_len: u64,
    /// It grows, by direct writes.
    fresh_direct: File,
    fresh_len: u64,
    buffer: AlignedBuffer,
    round: u64,
    times: Times,
    /// A call has failed, so that there are no more of them.
    failure: Option<io::Error>,
}

/// An experiment, which is told a place in the file that is overwritten.
type Experiment = fn(&mut Trials, u64) -> io::Result<()>;

const EXPERIMENTS: [Experiment; 5] =
    [Trials::overwritten, Trials::together, Trials::grown, Trials::direct, Trials::first_and_again];

impl Trials {
    /// Makes the files in `dir`; an error where direct writes do not work.
    pub(super) fn make(dir: &Dir) -> io::Result<Trials> {
        let made = |name: &str| dir.create(Path::new(name), MODE).map(File::from);
        let direct = |name: &str| {
            let opened = dir.open_file(Path::new(name), OFlags::WRONLY | OFlags::DIRECT);
            opened.map(File::from)
        };
        let (old, grown, _) = (made("trial-old")?, made("trial-grown")?, made("trial-fresh")?);
        write_zeros(&old, OVERWRITTEN_BYTES)?;
        let (old_direct, fresh_direct) = (direct("trial-old")?, direct("trial-fresh")?);
        Ok(Trials {
            old,
            old_direct,
            grown,
            grown_len: 0,
            fresh_direct,
            fresh_len: 0,
            buffer: AlignedBuffer::new(LARGE_BYTES),
            round: 0,
            times: Times::default(),
            failure: None,
        })
    }

    /// Tries all of them in turn for `time`.
    pub(super) fn portion(&mut self, time: Duration) {
        let begun = Instant::now();
        let mut rounds = 0;
        while self.failure.is_none() && (rounds < ROUNDS_MIN || begun.elapsed() < time) {
            self.failure = self.round().err();
            rounds += 1;
        }
    }

    /// Each experiment once, in any order: the first call after a pause may find more of a budget
    /// than the next.
    fn round(&mut self) -> io::Result<()> {
        let places = OVERWRITTEN_BYTES / LARGE_BYTES as u64;
        let place = self.round % places * LARGE_BYTES as u64;
        self.round += 1;
        let mut order = EXPERIMENTS;
        fastrand::shuffle(&mut order);
        order.into_iter().try_for_each(|experiment| experiment(self, place))?;
        self.cut()
    }

    fn overwritten(&mut self, place: u64) -> io::Result<()> {
        let block = &self.buffer.as_slice()[..BLOCK_BYTES];
        self.times.overwritten.push(micros(|| synced(&self.old, block, place))?);
        Ok(())
    }

    fn together(&mut self, place: u64) -> io::Result<()> {
        let block = &self.buffer.as_slice()[..BLOCK_BYTES];
        self.times.together.push(micros(|| at_once(&self.old, block, place))?);
        Ok(())
    }

    fn grown(&mut self, _: u64) -> io::Result<()> {
        let block = &self.buffer.as_slice()[..BLOCK_BYTES];
        self.times.grown.push(micros(|| synced(&self.grown, block, self.grown_len))?);
        self.grown_len += BLOCK_BYTES as u64;
        Ok(())
    }

    /// Direct writes of several lengths. Each comes after a flush of the same place, so that none
    /// has farther to go.
    fn direct(&mut self, place: u64) -> io::Result<()> {
        let Trials { old_direct: file, buffer, times, .. } = self;
        let large = buffer.as_slice();
        let (block, sector) = (&large[..BLOCK_BYTES], &large[..SECTOR_BYTES]);
        file.write_all_at(block, place)?;
        file.sync_data()?;
        times.write.push(micros(|| file.write_all_at(block, place))?);
        times.flush.push(micros(|| file.sync_data())?);
        match micros(|| file.write_all_at(sector, place)) {
            Ok(time) => times.sector.push(time),
            Err(error) if is_of_device(&error) => return Err(error),
            // A filesystem may take no write of less than its block.
            Err(_) => {}
        }
        file.sync_data()?;
        times.large.push(micros(|| file.write_all_at(large, place))?);
        file.sync_data()
    }

    fn first_and_again(&mut self, _: u64) -> io::Result<()> {
        let Trials { fresh_direct: file, fresh_len, buffer, times, .. } = self;
        let block = &buffer.as_slice()[..BLOCK_BYTES];
        times.first.push(micros(|| file.write_all_at(block, *fresh_len))?);
        times.again.push(micros(|| file.write_all_at(block, *fresh_len))?);
        *fresh_len += LARGE_BYTES as u64;
        file.sync_data()
    }

    /// Begins the files that grow anew, once they are long.
    fn cut(&mut self) -> io::Result<()> {
        for (file, len) in
            [(&self.grown, &mut self.grown_len), (&self.fresh_direct, &mut self.fresh_len)]
        {
            if *len >= GROWN_BYTES_MAX {
                file.set_len(0)?;
                file.sync_all()?;
                *len = 0;
            }
        }
        Ok(())
    }

    /// Lets the disk rest for `time`, and writes twice.
    pub(super) fn rest(&mut self, time: Duration) {
        if time < REST_MIN || self.failure.is_some() {
            return;
        }
        thread::sleep(time);
        self.failure = self.rested().err();
    }

    fn rested(&mut self) -> io::Result<()> {
        let block = &self.buffer.as_slice()[..BLOCK_BYTES];
        let write = || micros(|| self.old_direct.write_all_at(block, 0));
        let (rested, woken) = (write()?, write()?);
        self.times.rested.push(rested);
        self.times.woken.push(woken);
        Ok(())
    }

    /// Why there are no more of them, if a call has failed.
    pub(super) fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// What came of it; `None` of nothing.
    pub(super) fn probe(&self) -> Option<Probe> {
        let Times { write, flush, sector, large, overwritten, grown, .. } = &self.times;
        let middle = |times: &[f64]| (!times.is_empty()).then(|| median(times));
        let all = |share| (!overwritten.is_empty()).then(|| quantile_of(overwritten, share));
        Some(Probe {
            write_us: middle(write)?,
            flush_us: middle(flush)?,
            sector_us: middle(sector).filter(|_| sector.len() == write.len()),
            large_us: middle(large),
            overwritten_us: middle(overwritten),
            overwritten_p90_us: all(0.9),
            overwritten_p10_us: all(0.1),
            together_us: middle(&self.times.together),
            grown_us: middle(grown),
            first_us: middle(&self.times.first),
            again_us: middle(&self.times.again),
            rested_us: middle(&self.times.rested),
            woken_us: middle(&self.times.woken),
        })
    }
}

/// Does an error come from the device, or from a filesystem that stopped because of it?
pub(super) fn is_of_device(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|errno| OF_DEVICE.contains(&errno))
}

fn synced(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)?;
    file.sync_data()
}

/// The same by so many threads, each in a block of its own.
fn at_once(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    thread::scope(|scope| {
        let write = |index: u64| {
            let offset = offset + index * BLOCK_BYTES as u64;
            scope.spawn(move || synced(file, bytes, offset))
        };
        let threads: Vec<_> = (0..AT_ONCE).map(write).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
    })
}

fn micros(call: impl FnOnce() -> io::Result<()>) -> io::Result<f64> {
    let from = Instant::now();
    call()?;
    Ok(from.elapsed().as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use vellum_testing::kernel::where_it_fails;

    use super::*;

    #[test]
    fn each_experiment_is_tried_and_the_files_stay_short() {
        let dir = tempfile::tempdir().unwrap();
        let Ok(mut trials) = Trials::make(&Dir::open(dir.path()).unwrap()) else { return };
        assert_eq!(trials.probe(), None);
        trials.portion(Duration::ZERO);
        trials.rest(REST_MIN);
        trials.fresh_len = GROWN_BYTES_MAX;
        trials.portion(Duration::ZERO);
        assert!(trials.failure().is_none());
        let probe = trials.probe().unwrap();
        assert!(probe.write_us > 0.0 && probe.flush_us > 0.0);
        let pairs = [
            (probe.overwritten_us, probe.grown_us),
            (probe.overwritten_us, probe.together_us),
            (probe.first_us, probe.again_us),
            (probe.rested_us, probe.woken_us),
        ];
        assert!(pairs.iter().all(|(one, other)| one.is_some() && other.is_some()), "{probe:?}");
        let fresh = std::fs::metadata(dir.path().join("trial-fresh")).unwrap();
        assert!(fresh.len() <= GROWN_BYTES_MAX);
    }

    #[test]
    fn an_error_of_the_device_is_kept_wherever_it_comes() {
        let kept = |act: fn(&mut Trials)| {
            let dir = tempfile::tempdir().unwrap();
            let Ok(mut trials) = Trials::make(&Dir::open(dir.path()).unwrap()) else { return };
            where_it_fails(libc::SYS_pwrite64, libc::EIO, || act(&mut trials));
            let failure = trials.failure().and_then(io::Error::raw_os_error);
            assert_eq!(failure, Some(libc::EIO));
        };
        kept(|trials| trials.portion(Duration::ZERO));
        kept(|trials| trials.rest(REST_MIN));
    }
}
