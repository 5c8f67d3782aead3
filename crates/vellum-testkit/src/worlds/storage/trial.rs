//! A trial: a log of one kind on one disk, used by several processes, and one trouble.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cast::Cast;
use super::check::{self, Owed, Owing};
use super::disk::{self, Disk};
use super::reader::ReaderArgs;
use super::table::{Keeps, Kind, Trouble};
use super::writer::WriterArgs;
use crate::powercut::disk::Outage;
use crate::random::Random;
use crate::worlds::shape::{Shape, Size};
use crate::worlds::sys;

/// The first writers: one that commits, and one with threads. Others come later.
const FIRST: [&str; 2] = ["a", "bcd"];
const LATER: &str = "ef";
const AGAIN: &str = "h";
const LAST: &str = "g";
/// So many records are there, at least, before the trouble comes.
const BEFORE: u64 = 60;
/// So many more come afterwards, of each thread, if nothing stops it.
const AFTER: u64 = 150;
/// Bytes of short records.
const SHORT: u64 = 300;
/// MiB that are left of a disk for a log that fills it with short records.
const LEFT_MIB: u64 = 6;
/// As many for a copy that shares blocks, and for the records that fill the disk.
const COPIED_MIB: u64 = 24;
const CUTS: u64 = 6;
/// Of an error: the process has to close the log and to open it again. The record may be there.
const CONTROL_LOST: &str = "cannot store into the control file";

/// The parts of a trial.
pub(crate) struct Trial {
    pub(crate) trouble: &'static Trouble,
    pub(crate) disk: &'static disk::Kind,
    pub(crate) shape: Shape,
    pub(crate) mib: u64,
    pub(crate) seed: u64,
}

/// Counts of passed checks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) records: u64,
    pub(crate) errors: u64,
}

struct Scene<'a> {
    trial: &'a Trial,
    random: Random,
    disk: Disk,
    cast: Cast,
    size: Size,
    bytes_max: u64,
}

impl Trial {
    /// Runs it below `base`, which it makes. The faults, if any.
    pub(crate) fn run(&self, base: &Path) -> anyhow::Result<Result<Tally, Vec<String>>> {
        fs::create_dir(base)?;
        let mut random = Random::new(self.seed);
        let can_fail = matches!(self.trouble.kind, Kind::Failing | Kind::Vanished);
        let disk = Disk::make(base, self.disk, self.mib, can_fail)?;
        let is_large = random.below(2) == 0 && self.trouble.kind.fills();
        let bytes_max = if is_large { 300 << 10 } else { SHORT };
        let is_usual = random.below(2) == 0 && (self.shape != Shape::Wal || self.mib >= 600);
        let size = if is_usual { Size::Usual } else { Size::Small };
        let cast = Cast::new(base)?;
        let mut scene = Scene { trial: self, random, disk, cast, size, bytes_max };
        scene.play()?;
        scene.end(base)
    }

    fn log(&self, disk: &Disk) -> PathBuf {
        disk.work().join("log")
    }
}

impl Scene<'_> {
    fn play(&mut self) -> anyhow::Result<()> {
        match self.trial.trouble.kind {
            Kind::FilledByItself => self.fill_by_itself(),
            Kind::FilledByOthers => self.fill_by_others(),
            Kind::SizeLimit => self.limit_size(),
            Kind::Reflink => self.share_blocks(),
            Kind::ShutDown => self.shut_down(),
            Kind::Failing => {
                let outage = *self.random.pick(&[Outage::Writes, Outage::NewBlocks]);
                self.fail_device(outage)
            }
            Kind::Vanished => self.fail_device(Outage::All),
            Kind::Cut => self.cut_files(),
            Kind::CopyTruncate => self.copy_and_truncate(),
        }
    }

    /// The options that all writers of the trial have in common.
    fn writer(&self, letters: &str) -> WriterArgs {
        WriterArgs {
            log: self.trial.log(&self.disk),
            numbers: self.cast.numbers().to_path_buf(),
            shape: self.trial.shape,
            size: self.size,
            letters: letters.to_owned(),
            bytes_max: self.bytes_max,
            seed: self.trial.seed,
            commit_every: self.commit_every(letters),
            records: u32::MAX,
            pause_us: 0,
            file_bytes_max: 0,
        }
    }

    /// The first commits; where committed records must be there, often, and so do those that come
    /// later.
    fn commit_every(&self, letters: &str) -> u32 {
        let is_judged = self.trial.trouble.kind.keeps() == Keeps::Committed;
        match (letters == FIRST[0], is_judged) {
            (true, false) => 40,
            (true, true) => 3,
            (false, true) if letters != FIRST[1] => 7,
            (false, _) => 0,
        }
    }

    fn start(&mut self, writer: &WriterArgs) -> anyhow::Result<()> {
        self.cast.start(&writer.words(), &writer.letters)
    }

    fn start_all(&mut self, pause_us: u64) -> anyhow::Result<()> {
        for letters in FIRST {
            self.start(&WriterArgs { pause_us, ..self.writer(letters) })?;
        }
        let (log, shape) = (self.trial.log(&self.disk), self.trial.shape);
        let keeps = self.trial.trouble.kind.keeps();
        let strict = matches!(keeps, Keeps::Appended | Keeps::Committed);
        self.cast.start(&ReaderArgs { log, shape, strict }.words(), "!")
    }

    /// Waits until all threads of the started processes have appended so many more, or cannot.
    fn wait_for_more(&mut self, more: u64) -> anyhow::Result<()> {
        let letters = self.cast.letters();
        let wanted: Vec<(char, u64)> = letters
            .chars()
            .map(|letter| Ok((letter, self.cast.promised(letter)?.0 + more)))
            .collect::<anyhow::Result<_>>()?;
        self.cast.wait(|cast| {
            for (letter, wanted) in &wanted {
                if !cast.has_stopped(*letter) && cast.promised(*letter)?.0 < *wanted {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    fn fill_by_itself(&mut self) -> anyhow::Result<()> {
        if self.bytes_max < 4096 || self.trial.mib > 400 && self.random.below(2) == 0 {
            let left = LEFT_MIB + self.random.below(20);
            self.disk.leave(left)?;
        }
        self.start_all(0)?;
        self.cast.settle()?;
        self.be_full()
    }

    fn fill_by_others(&mut self) -> anyhow::Result<()> {
        self.start_all(300)?;
        self.wait_for_more(BEFORE)?;
        // A piece at a time, so that both meet the end.
        while self.disk.take(1 << 20)? && !self.cast.has_settled() {
            self.cast.step()?;
        }
        self.disk.fill()?;
        self.cast.settle()?;
        self.be_full()
    }

    /// The disk is full and all know it: others come, one may be killed; then there is space.
    fn be_full(&mut self) -> anyhow::Result<()> {
        self.start(&self.writer(LATER))?;
        self.cast.settle()?;
        if self.random.below(2) == 0 {
            self.cast.kill('b')?;
        }
        let grows = self.random.below(2) == 0;
        self.disk.make_space(grows)?;
        self.go_on()
    }

    /// There is space: all continue but those that have to close the log first.
    fn go_on(&mut self) -> anyhow::Result<()> {
        for letter in self.cast.go_on()?.chars() {
            let error = self.cast.last_error(letter);
            if !error.contains(CONTROL_LOST) {
                let fault = format!("{letter} cannot go on: {error}");
                self.cast.faults.push(fault);
            }
        }
        Ok(())
    }

    fn limit_size(&mut self) -> anyhow::Result<()> {
        let (records, [one, other]) = (400, FIRST);
        self.start(&WriterArgs { records, ..self.writer(one) })?;
        let most = [4 << 10, 70 << 10, 600 << 10, 5 << 20];
        let file_bytes_max = *self.random.pick(&most);
        self.start(&WriterArgs { file_bytes_max, records: 2000, ..self.writer(other) })?;
        self.cast.settle()?;
        self.start(&WriterArgs { records, ..self.writer(LATER) })?;
        self.cast.settle()?;
        let stuck = self.cast.go_on()?;
        if stuck.chars().any(|letter| !other.contains(letter)) {
            self.cast.faults.push(format!("{stuck} cannot go on"));
        }
        Ok(())
    }

    fn share_blocks(&mut self) -> anyhow::Result<()> {
        // The rest is taken so soon that blocks are still shared.
        self.disk.leave(COPIED_MIB)?;
        self.start_all(1000)?;
        self.wait_for_more(BEFORE)?;
        let (log, copy) = (self.trial.log(&self.disk), self.disk.work().join("copy"));
        let mut command = Command::new("cp");
        command.args(["-r", "--reflink=always"]).arg(&log).arg(&copy);
        // A file of the log may go meanwhile.
        let _ = sys::run(&mut command);
        if self.random.below(2) == 0 {
            let _ = fs::remove_file(copy.join("control"));
        }
        self.disk.fill()?;
        self.wait_for_more(AFTER)?;
        // Other free space is in use by now.
        self.disk.fill()?;
        self.wait_for_more(AFTER)?;
        // A disk that was full before has none.
        let _ = fs::remove_dir_all(&copy);
        self.be_full()
    }

    /// The filesystem stops under its writers. It is mounted again when they are gone.
    fn shut_down(&mut self) -> anyhow::Result<()> {
        self.write_until_it_fails(|scene| {
            let how = scene.random.below(3) as u32;
            scene.disk.shut_down(how)
        })?;
        self.disk.mount_again()
    }

    /// The device fails under the writers, and works again when they are gone.
    fn fail_device(&mut self, outage: Outage) -> anyhow::Result<()> {
        self.write_until_it_fails(|scene| {
            scene.disk.fail(Some(outage));
            Ok(())
        })?;
        // It may work again before the filesystem is unmounted.
        if self.random.below(2) == 0 {
            self.disk.fail(None);
            self.write_until_power_cut()?;
        }
        self.disk.mount_again()
    }

    /// One opens the log on a filesystem that may have given up. Its committed records have to be
    /// on the device.
    fn write_until_power_cut(&mut self) -> anyhow::Result<()> {
        let records = AFTER as u32;
        self.start(&WriterArgs { records, ..self.writer(AGAIN) })?;
        self.cast.settle()?;
        self.cast.end()?;
        self.disk.fail(Some(Outage::Writes));
        Ok(())
    }

    /// All write, then it fails by `fail`, and one more comes.
    fn write_until_it_fails(
        &mut self,
        fail: impl FnOnce(&mut Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.start_all(2000)?;
        let before = BEFORE + self.random.below(60);
        self.wait_for_more(before)?;
        fail(self)?;
        self.wait_for_more(AFTER)?;
        self.start(&self.writer(LATER))?;
        self.wait_for_more(AFTER)?;
        self.cast.end()
    }

    fn cut_files(&mut self) -> anyhow::Result<()> {
        self.start_all(500)?;
        self.wait_for_more(BEFORE)?;
        for _ in 0..CUTS {
            let Some(path) = self.some_file()? else { continue };
            let len = fs::metadata(&path).map_or(0, |place| place.len());
            let to = *self.random.pick(&[0, 4096, len / 2]);
            let file = File::options().write(true).open(&path);
            // It may have gone meanwhile.
            let _ = file.and_then(|file| file.set_len(to.min(len)));
            self.wait_for_more(BEFORE / 2)?;
        }
        self.wait_for_more(AFTER)
    }

    /// One of the newest files of the log, or its control file.
    fn some_file(&mut self) -> anyhow::Result<Option<PathBuf>> {
        let log = self.trial.log(&self.disk);
        let mut files: Vec<PathBuf> = fs::read_dir(&log)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_file() && !path.is_symlink() && !path.ends_with("lock"))
            .collect();
        files.sort();
        Ok((!files.is_empty()).then(|| self.random.pick(&files).clone()))
    }

    /// What `logrotate` does to the newest file where it is told `copytruncate`.
    fn copy_and_truncate(&mut self) -> anyhow::Result<()> {
        self.start_all(200)?;
        for _ in 0..CUTS {
            self.wait_for_more(BEFORE)?;
            let log = self.trial.log(&self.disk);
            let Ok(current) = fs::canonicalize(log.join("current")) else { continue };
            if fs::copy(&current, self.disk.work().join("rotated")).is_ok() {
                let file = File::options().write(true).open(&current);
                let _ = file.and_then(|file| file.set_len(0));
            }
        }
        self.wait_for_more(AFTER)
    }

    /// Ends all processes, starts one more, and checks the records.
    fn end(mut self, base: &Path) -> anyhow::Result<Result<Tally, Vec<String>>> {
        self.cast.end()?;
        let keeps = self.trial.trouble.kind.keeps();
        if self.cast.faults.is_empty() {
            self.check(base, keeps)?;
        }
        let records = self.cast.appended()?;
        let errors = self.cast.errors.len() as u64;
        Ok(match self.cast.faults.is_empty() {
            true => Ok(Tally { records, errors }),
            false => Err(self.cast.faults),
        })
    }

    fn check(&mut self, base: &Path, keeps: Keeps) -> anyhow::Result<()> {
        if keeps != Keeps::Rest {
            let records = AFTER as u32;
            self.start(&WriterArgs { records, bytes_max: SHORT, ..self.writer(LAST) })?;
            self.cast.settle()?;
            self.cast.end()?;
            if self.cast.promised('g')?.0 < AFTER {
                let error = self.cast.last_error('g');
                let fault = format!("nobody can go on afterwards: {error}");
                self.cast.faults.push(fault);
                return Ok(());
            }
        }
        let mut owed = Owed::new();
        for letter in self.cast.letters().chars() {
            let (appended, committed) = self.cast.promised(letter)?;
            let is_all = keeps == Keeps::Appended || LAST.contains(letter);
            let may_repeat = self
                .cast
                .errors
                .iter()
                .any(|(one, error)| *one == letter && error.contains(CONTROL_LOST));
            let count = if is_all { appended } else { committed };
            owed.insert(letter, Owing { count, may_repeat });
        }
        let log = self.trial.log(&self.disk);
        let found = check::check(&log, self.trial.shape, &owed, keeps, &base.join("fault"))?;
        self.cast.faults.extend(found);
        Ok(())
    }
}
