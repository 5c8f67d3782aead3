//! A file that is written as a program writes its own.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use vellum_sys::Dir;

use super::program::{FileState, Pattern, SyncCall};
use super::series::Failure;
use crate::ways::direct::{AlignedBuffer, BLOCK_BYTES};

/// Records that come together are written in pieces of so much.
const BATCH_BYTES: usize = 1 << 20;
/// Reading back takes no more of the time than one part of so many.
const CHECKING_SHARE: u32 = 16;
/// Each block of a write has a stamp, so that one that is lost, or of another write or file, is
/// noticed.
const STAMPED_BYTES: usize = BLOCK_BYTES;
/// The numbers of two writes of different files differ in the bits above these.
const NUMBER_BITS: u32 = 48;
/// Of a long write no more is read back.
const READ_BYTES: usize = 64 << 10;
/// A file that was written before is made in steps, so that a slow disk gets a shorter one.
const STEP_BYTES: usize = 1 << 20;

/// Of files that are removed in the end.
const MODE: u32 = 0o600;

/// A file that is written.
pub(super) struct Target {
    file: Arc<File>,
    /// The same file, to be read: past the page cache, where the filesystem allows that.
    reader: File,
    is_cached: bool,
    state: FileState,
    sync: SyncCall,
    /// What one record takes in the file.
    record_bytes: usize,
    file_bytes: u64,
    /// Where the next write goes.
    position: u64,
    payload: AlignedBuffer,
    /// Writes that are in place and were not looked for yet.
    unchecked: Vec<Noted>,
    /// Those that were: a disk may lose them later.
    checked: Vec<Noted>,
    checked_at: Instant,
    written: u64,
    /// What the stamps of this file have in their upper bits.
    own: u64,
}

/// A write that is noted.
#[derive(Clone, Copy, Debug)]
struct Noted {
    offset: u64,
    len: usize,
    number: u64,
}

/// An error of the system with what was tried.
type Told<T> = Result<T, (&'static str, io::Error)>;

impl Target {
    /// Makes the file in `dir`, as it is before the clock starts, in `patience` or a shorter one.
    pub(super) fn make(
        dir: &Dir,
        name: &str,
        pattern: &Pattern,
        bytes_max: u64,
        patience: Duration,
    ) -> Result<Target, Failure> {
        let is_direct = pattern.sync == SyncCall::ODirectDsync;
        let unit = if is_direct { BLOCK_BYTES } else { 1 };
        let record_bytes = (pattern.bytes as usize).next_multiple_of(unit);
        let batch =
            if pattern.rate.is_some() { BATCH_BYTES.max(record_bytes) } else { record_bytes };
        let batch = batch / record_bytes * record_bytes;
        let mut payload = AlignedBuffer::new(batch);
        fastrand::Rng::with_seed(1).fill(payload.as_mut_slice());
        let least = batch.next_multiple_of(STEP_BYTES) as u64;
        let file_bytes = pattern.file_bytes.min(bytes_max).max(least);
        let (state, sync) = (pattern.file, pattern.sync);
        let name = Path::new(name);
        let made = made(dir, name, state, file_bytes, patience);
        let (file_bytes, made, opened) = made
            .and_then(|(file_bytes, made)| Ok((file_bytes, made, opened(dir, name, sync)?)))
            .map_err(|error| failure(error, 0))?;
        let file = Arc::new(opened);
        let direct = dir.open_file(name, OFlags::RDONLY | OFlags::DIRECT);
        let (reader, is_cached) = direct.map_or((made, true), |direct| (direct.into(), false));
        let (unchecked, checked, checked_at) = (Vec::new(), Vec::new(), Instant::now());
        let (position, written) = (0, 0);
        let own = fastrand::u64(1..1 << (u64::BITS - NUMBER_BITS)) << NUMBER_BITS;
        Ok(Target {
            file,
            reader,
            is_cached,
            state,
            sync,
            record_bytes,
            file_bytes,
            position,
            payload,
            unchecked,
            checked,
            checked_at,
            written,
            own,
        })
    }

    /// How many records go into one write at most.
    pub(super) fn batch_records(&self) -> u64 {
        (self.payload.as_slice().len() / self.record_bytes) as u64
    }

    /// The file, for who flushes it beside the writer.
    pub(super) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Begins the next file, or the same from its start, if this one is full.
    pub(super) fn renew(&mut self, records: u64) -> Result<(), Failure> {
        let len = records * self.record_bytes as u64;
        if self.position + len <= self.file_bytes {
            return Ok(());
        }
        // A write that is overwritten or cut off cannot be read back afterwards.
        let patience = self.checked_at.elapsed() / CHECKING_SHARE;
        self.check(patience).map_err(|what| self.lost(what))?;
        self.unchecked.clear();
        self.checked.clear();
        self.position = 0;
        let renewed = match self.state {
            FileState::Written => Ok(()),
            FileState::Growing => self.file.set_len(0).map_err(|error| ("cut", error)),
            FileState::Allocated => self
                .file
                .set_len(0)
                .map_err(|error| ("cut", error))
                .and_then(|()| allocated(&self.file, self.file_bytes)),
        };
        renewed.map_err(|error| failure(error, self.written))
    }

    /// Writes `records` and gets them onto the device; when the write returned, and all of it.
    pub(super) fn write(&mut self, records: u64) -> Result<(Instant, Instant), Failure> {
        let len = records as usize * self.record_bytes;
        let number = self.written;
        for block in self.payload.as_mut_slice()[..len].chunks_mut(STAMPED_BYTES) {
            let stamp = (self.own | number).to_le_bytes();
            let stamped = block.len().min(stamp.len());
            block[..stamped].copy_from_slice(&stamp[..stamped]);
        }
        let done = self.write_all(len);
        let times = done.map_err(|error| failure(error, self.written))?;
        self.unchecked.push(Noted { offset: self.position, len, number });
        self.position += len as u64;
        self.written += records;
        Ok(times)
    }

    fn write_all(&self, len: usize) -> Told<(Instant, Instant)> {
        let bytes = &self.payload.as_slice()[..len];
        self.file.write_all_at(bytes, self.position).map_err(|error| ("pwrite", error))?;
        let written = Instant::now();
        match self.sync {
            SyncCall::Fdatasync => self.file.sync_data().map_err(|error| ("fdatasync", error))?,
            SyncCall::Fsync => self.file.sync_all().map_err(|error| ("fsync", error))?,
            SyncCall::ODsync | SyncCall::ODirectDsync | SyncCall::Periodic => {
                return Ok((written, written));
            }
        }
        Ok((written, Instant::now()))
    }

    /// The failure of a disk that does not have what was written.
    pub(super) fn lost(&self, what: String) -> Failure {
        Failure { what, errno: None, after_operations: self.written }
    }

    /// Looks for writes that were not looked for yet: all of them, or as many as `patience` allows,
    /// drawn at random. The error names a write that is not there.
    pub(super) fn check(&mut self, patience: Duration) -> Result<(), String> {
        let begun = Instant::now();
        fastrand::shuffle(&mut self.unchecked);
        let mut room = AlignedBuffer::new(READ_BYTES + 2 * BLOCK_BYTES);
        while let Some(noted) = self.unchecked.pop() {
            self.checked.push(noted);
            self.look_for(noted, room.as_mut_slice())?;
            if begun.elapsed() >= patience {
                break;
            }
        }
        self.checked.append(&mut self.unchecked);
        self.checked_at = Instant::now();
        Ok(())
    }

    /// Looks once more for all that is in place, as [`check`](Target::check) does.
    pub(super) fn check_again(&mut self, patience: Duration) -> Result<(), String> {
        self.unchecked.append(&mut self.checked);
        self.check(patience)
    }

    fn look_for(&self, noted: Noted, room: &mut [u8]) -> Result<(), String> {
        let Noted { offset, len, number } = noted;
        let block = BLOCK_BYTES as u64;
        let start = offset / block * block;
        let before = (offset - start) as usize;
        let wanted = len.min(READ_BYTES);
        let room = &mut room[..(before + wanted).next_multiple_of(BLOCK_BYTES)];
        if self.is_cached {
            let range = std::num::NonZeroU64::new(room.len() as u64);
            let _ = rustix::fs::fadvise(&self.reader, start, range, rustix::fs::Advice::DontNeed);
        }
        let count = self.reader.read_at(room, start).map_err(|error| format!("read: {error}"))?;
        for at in (0..wanted).step_by(STAMPED_BYTES) {
            let stamp = (self.own | number).to_le_bytes();
            let stamped = stamp.len().min(wanted - at);
            let found = room[..count].get(before + at..before + at + stamped);
            if found != Some(&stamp[..stamped]) {
                let offset = offset + at as u64;
                return Err(format!("write {number}, at byte {offset}, is not there"));
            }
        }
        Ok(())
    }
}

/// A failure of a call.
pub(super) fn failure((what, error): (&str, io::Error), after_operations: u64) -> Failure {
    Failure { what: format!("{what}: {error}"), errno: error.raw_os_error(), after_operations }
}

/// Makes the file, and tells its length.
fn made(
    dir: &Dir,
    name: &Path,
    state: FileState,
    bytes: u64,
    patience: Duration,
) -> Told<(u64, File)> {
    let file = dir.create(name, MODE).map_err(|error| ("create", error.into()))?;
    let file = File::from(file);
    let mut len = bytes;
    match state {
        FileState::Growing => {}
        FileState::Allocated => allocated(&file, bytes)?,
        FileState::Written => len = written(&file, bytes, patience)?,
    }
    file.sync_all().map_err(|error| ("fsync", error))?;
    Ok((len, file))
}

fn allocated(file: &File, bytes: u64) -> Told<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        // A program without it has a file that grows.
        Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
        other => other.map_err(|error| ("fallocate", error.into())),
    }
}

/// Writes a file of `bytes`, or of as much as `patience` allows.
fn written(file: &File, bytes: u64, patience: Duration) -> Told<u64> {
    let begun = Instant::now();
    let mut content = vec![0; STEP_BYTES];
    fastrand::Rng::with_seed(2).fill(&mut content);
    let mut len = 0;
    while len < bytes && (len == 0 || begun.elapsed() < patience) {
        let step = (bytes - len).min(STEP_BYTES as u64) as usize;
        file.write_all_at(&content[..step], len).map_err(|error| ("pwrite", error))?;
        file.sync_data().map_err(|error| ("fdatasync", error))?;
        len += step as u64;
    }
    Ok(len)
}

fn opened(dir: &Dir, name: &Path, sync: SyncCall) -> Told<File> {
    let flags = match sync {
        SyncCall::ODsync => OFlags::DSYNC,
        SyncCall::ODirectDsync => OFlags::DSYNC | OFlags::DIRECT,
        _ => OFlags::empty(),
    };
    let open = |flags| dir.open_file(name, OFlags::WRONLY | flags);
    match open(flags) {
        // A filesystem without direct writes: the program does without them, too.
        Err(rustix::io::Errno::INVAL) => open(flags - OFlags::DIRECT),
        other => other,
    }
    .map(File::from)
    .map_err(|error| ("open", error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::program::Program;

    fn target(name: &str, dir: &Path) -> Target {
        let program = Program::named(name).unwrap();
        let dir = Dir::open(dir).unwrap();
        Target::make(&dir, name, &program.pattern, 1 << 20, Duration::ZERO).unwrap()
    }

    #[test]
    fn every_pattern_is_written_and_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        for program in Program::all().unwrap() {
            let mut target = target(&program.name, dir.path());
            let fitting = target.file_bytes / target.record_bytes as u64;
            let records = target.batch_records().min(16);
            for _ in 0..fitting / records + 2 {
                target.renew(records).unwrap();
                target.write(records).unwrap();
            }
            assert!(target.position < target.file_bytes, "{}", program.name);
            target.check(Duration::MAX).unwrap();
        }
    }

    #[test]
    fn a_write_that_is_not_there_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let mut target = target("sqlite", dir.path());
        target.write(1).unwrap();
        target.write(1).unwrap();
        std::fs::write(dir.path().join("sqlite"), vec![0; 1 << 20]).unwrap();
        let missing = target.check(Duration::MAX).unwrap_err();
        assert!(missing.starts_with("write ") && missing.ends_with(", is not there"), "{missing}");
    }

    #[test]
    fn one_lost_block_among_many_writes_is_found_past_the_cache() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["etcd", "sqlite", "postgres", "vellum"] {
            let mut target = target(name, dir.path());
            (0..40).for_each(|_| assert!(target.write(1).is_ok()));
            let Noted { offset, number, .. } = target.unchecked[17];
            // On the device, and not by the cache of this file.
            let file = File::options().write(true).open(dir.path().join(name)).unwrap();
            file.write_all_at(&[0xff; 8], offset).unwrap();
            file.sync_all().unwrap();
            let missing = target.check(Duration::MAX).unwrap_err();
            assert_eq!(missing, format!("write {number}, at byte {offset}, is not there"));
        }
    }

    #[test]
    fn a_block_of_another_file_and_one_that_is_lost_later_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let [mut one, mut other] = ["sqlite", "postgres"].map(|name| target(name, dir.path()));
        (0..10).for_each(|_| assert!(one.write(1).is_ok() && other.write(1).is_ok()));
        one.check(Duration::MAX).unwrap();
        one.check_again(Duration::MAX).unwrap();
        // The same number at the same place of another file.
        let open = |name: &str| {
            File::options().read(true).write(true).open(dir.path().join(name)).unwrap()
        };
        let mut block = vec![0; BLOCK_BYTES];
        open("postgres").read_exact_at(&mut block, 0).unwrap();
        open("sqlite").write_all_at(&block, 0).unwrap();
        open("sqlite").sync_all().unwrap();
        one.check(Duration::MAX).unwrap();
        let missing = one.check_again(Duration::MAX).unwrap_err();
        assert_eq!(missing, "write 0, at byte 0, is not there");
    }

    #[test]
    fn a_failure_has_the_number_of_the_error() {
        let dir = tempfile::tempdir().unwrap();
        let program = Program::named("etcd").unwrap();
        let path = dir.path().join("gone");
        std::fs::create_dir(&path).unwrap();
        let gone = Dir::open(&path).unwrap();
        std::fs::remove_dir(&path).unwrap();
        let failed =
            Target::make(&gone, "file", &program.pattern, 1 << 20, Duration::ZERO).err().unwrap();
        assert_eq!(failed.errno, Some(libc::ENOENT));
    }
}
