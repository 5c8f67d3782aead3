//! One disk with one filesystem: a workload runs on it, or a recovery after a power cut.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, bail};
use vellum_zoo::filesystem::Filesystem;
use vellum_zoo::unmount_patiently;

use super::command::{Runner, Template};
use super::disk::Failure;
use super::image::Image;
use super::medium::Medium;
use super::recording::Recording;
use super::verdict::Found;

/// The directory of the commands, on the filesystem.
const WORK_DIR: &str = "work";

/// The disk, and where its filesystem is mounted.
#[derive(Debug)]
pub struct Trial {
    filesystem: Filesystem,
    medium: Medium,
    mounted: PathBuf,
    runner: Runner,
}

impl Trial {
    /// A disk with this content.
    pub fn new(
        filesystem: Filesystem,
        image: Image,
        dir: &Path,
        runner: Runner,
    ) -> anyhow::Result<Trial> {
        let mounted = dir.join("mounted");
        std::fs::create_dir_all(&mounted)?;
        Ok(Trial { filesystem, medium: Medium::new(dir, image)?, mounted, runner })
    }

    /// Runs the workload on a filesystem that nothing has been done to, and records the disk.
    pub fn record(
        &mut self,
        empty: &Image,
        work: &Template,
        failure: Option<Failure>,
    ) -> anyhow::Result<Recording> {
        if failure.is_some() {
            self.medium.ask_in_whole()?;
        }
        self.medium.insert(empty.clone())?;
        let mounted = self.mount()?;
        let dir = self.mounted.join(WORK_DIR);
        std::fs::create_dir(&dir)?;
        rustix::fs::syncfs(File::open(&dir)?)?;
        self.medium.disk().start_recording(failure);
        let speech = Stdio::from(self.medium.speech()?);
        let outcome = self.runner.run(work, &dir, Some(speech));
        let recording = self.medium.disk().stop_recording();
        mounted.unmount()?;
        let (outcome, recording) = (outcome?, recording?);
        if failure.is_none() && !outcome.is_success() {
            bail!("the workload {outcome}");
        }
        if outcome.status.is_none() && outcome.signal.is_none() {
            bail!("the workload {outcome}");
        }
        Ok(recording)
    }

    /// Mounts the disk as a power cut left it and has it checked; if asked to, records what the
    /// recovery did.
    pub fn recover(
        &mut self,
        image: Image,
        check: &Template,
        is_recorded: bool,
    ) -> anyhow::Result<(Found, Option<Recording>)> {
        self.medium.insert(image)?;
        if is_recorded {
            self.medium.disk().start_recording(None);
        }
        let mounted = match self.mount() {
            Ok(mounted) => mounted,
            Err(error) => {
                let complaints = vec![format!("{error:#}")];
                return Ok((Found { complaints, ..Found::default() }, None));
            }
        };
        let outcome = self.runner.run(check, &self.mounted.join(WORK_DIR), None);
        let recording = if is_recorded { Some(self.medium.disk().stop_recording()?) } else { None };
        mounted.unmount()?;
        Ok((Found::new(&outcome?), recording))
    }

    fn mount(&self) -> anyhow::Result<Mounted> {
        self.filesystem.mount(self.medium.device_path(), &self.mounted)?;
        Ok(Mounted(Some(self.mounted.clone())))
    }
}

/// A mount that ends with this value.
struct Mounted(Option<PathBuf>);

impl Mounted {
    fn unmount(mut self) -> anyhow::Result<()> {
        match self.0.take() {
            Some(path) => unmount_patiently(&path).context("a command has left the disk in use"),
            None => Ok(()),
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            let _ = unmount_patiently(&path);
        }
    }
}
