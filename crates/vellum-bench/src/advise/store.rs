//! The recommendations as `vellum.toml`, which the library reads when a log is created.
//!
//! Only what is clearly better than the default is set: what showed no difference is left out, so
//! that the defaults go on to hold, and with them what later versions know better. The comments
//! tell all of it, with the ratios and where they were measured.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use vellum_advice::{Advice, FileAdvice, LogAdvice};

use super::Purpose;
use super::advised::Advised;
use super::recommend::Recommendation;
use super::way::Way;
use crate::error::{Context, Error, Result};

/// The first line of a file that may be replaced without being asked twice.
const MARK: &str = "Written by `vellum advise --write`, which may replace it.";

impl Advised {
    /// What is to be set: the recommendations that are clearly better than the default.
    pub fn advice(&self) -> Advice {
        let mut advice = Advice::default();
        for it in self.recommendations.iter().filter(|it| it.is_change()) {
            match (it.purpose, it.chosen) {
                (Purpose::Wal, Some(Way::Log(way))) => advice.wal = way.advice(),
                (Purpose::Log, Some(Way::Log(way))) => advice.log = way.advice(),
                (Purpose::File, Some(Way::File(way))) => advice.file = way.advice(),
                _ => {}
            }
        }
        advice
    }

    /// The content of the file, with comments that say why.
    pub fn to_toml(&self) -> String {
        let conditions = &self.report.conditions;
        let mut lines = vec![
            MARK.to_string(),
            format!("{}, vellum {}, {}", conditions.date, conditions.vellum, conditions.kernel),
        ];
        // Not the directory of the measurement: that is gone.
        if let Some(mount) = &self.surroundings.filesystem {
            lines.push(format!("{} on {}", mount.kind, mount.mount_point.display()));
        }
        for it in &self.recommendations {
            lines.push(String::new());
            lines.extend(comment(it));
        }
        vellum_advice::to_toml(&self.advice(), &lines.join("\n"))
    }

    /// Writes the file in `dir`, all of it or nothing, and returns where it is.
    ///
    /// # Errors
    ///
    /// There is a file that was not written by this, and `force` is not set; or it can't be
    /// written.
    pub fn write(&self, dir: &Path, force: bool) -> Result<PathBuf> {
        let path = dir.join(vellum_advice::FILE_NAME);
        vellum_advice::check_directory(dir).map_err(|error| Error::invalid(error.to_string()))?;
        if !force {
            check_replaceable(dir)?;
        }
        let cannot = || format!("write {}", path.display());
        let mut file = tempfile::Builder::new()
            .prefix(".vellum-toml-")
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(dir)
            .context(cannot)?;
        file.write_all(self.to_toml().as_bytes()).context(cannot)?;
        file.as_file().sync_all().context(cannot)?;
        file.persist(&path).map_err(|error| error.error).context(cannot)?;
        File::open(dir).and_then(|dir| dir.sync_all()).context(cannot)?;
        Ok(path)
    }
}

/// Whether [`Advised::write`] may write to `dir` without being forced. Best asked before measuring.
///
/// # Errors
///
/// There is a file that somebody else has written.
pub fn check_replaceable(dir: &Path) -> Result<()> {
    let path = dir.join(vellum_advice::FILE_NAME);
    let is_there = fs::symlink_metadata(&path).is_ok();
    let is_ours = || {
        let text = fs::read_to_string(&path).unwrap_or_default();
        text.lines().next().is_some_and(|line| line.trim_start_matches(['#', ' ']) == MARK)
    };
    if !is_there || is_ours() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{} was written by somebody else; --force replaces it",
        path.display()
    )))
}

/// What is recommended and why, and whether it is set.
fn comment(it: &Recommendation) -> Vec<String> {
    let mut lines = it.lines();
    if !it.is_change() {
        lines.push(format!("So nothing is set for {}.", it.purpose));
    }
    lines
}

impl super::way::LogWay {
    fn advice(&self) -> LogAdvice {
        LogAdvice {
            preallocate: Some(self.preallocate),
            fill: Some(self.fill),
            ..LogAdvice::default()
        }
    }
}

impl super::way::FileWay {
    fn advice(&self) -> FileAdvice {
        FileAdvice {
            method: Some(self.method),
            piece_bytes: Some(self.piece_bytes),
            threads: Some(self.threads),
        }
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
