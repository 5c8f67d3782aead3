//! A log that is about to be created, and the function of the program that tunes it.

use std::path::{Path, PathBuf};

use crate::options::choice::{Fill, Layout, Preallocate};
use crate::options::limits::check_sparse;
use crate::sys::filesystem::Filesystem;
use crate::{Options, Result, Tuning};

/// Finds a tuning for a log that is about to be created, and the file that it is from; `None` where
/// there is none.
///
/// The crate `vellum-advice` has one: `vellum_advice::nearest`.
pub type AdviceSource = fn(&NewLog<'_>) -> Result<Option<(PathBuf, Tuning)>>;

/// A log that is about to be created, and the choices of the program for it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NewLog<'a> {
    /// The directory of the log, which need not exist.
    pub dir: &'a Path,
    /// How records are laid out in the segments.
    pub layout: Layout,
    /// Whether the program wants the records staged.
    pub is_staged: bool,
    /// Whether the log may be filled through a mapping: a full disk cannot kill the process by it,
    /// and the program has chosen nothing that a mapping contradicts.
    pub may_be_mapped: bool,
    /// [`Tuning::fill`] of the program.
    pub fill: Option<Fill>,
    /// [`Tuning::preallocate`] of the program.
    pub preallocate: Option<Preallocate>,
}

impl<'a> NewLog<'a> {
    /// The log in `dir` that these options would create. A filesystem that is not known may be one
    /// on which mapping is safe.
    #[doc(hidden)]
    pub fn of(options: &Options, dir: &'a Path, filesystem: Option<Filesystem>) -> NewLog<'a> {
        let is_hazardous = filesystem.is_some_and(|found| found.mapping_hazard().is_some());
        let Tuning { fill, preallocate, .. } = options.tuning;
        NewLog {
            dir,
            layout: options.layout.unwrap_or_default(),
            is_staged: options.wanted_fill() == Some(Fill::Staged),
            // Every tool reads a log that is of the kind to be filled by `pwrite`.
            may_be_mapped: !is_hazardous
                && options.fill_of_kind != Some(Fill::Pwrite)
                && check_sparse(preallocate, Some(Fill::Mapped)).is_ok(),
            fill,
            preallocate,
        }
    }
}

impl Options {
    /// These options for a new log in `dir`, which exists, completed by the source of the program,
    /// and the file that the source names.
    pub(crate) fn advised(
        &self,
        dir: &Path,
        filesystem: Filesystem,
    ) -> Result<(Options, Option<PathBuf>)> {
        let Some((path, advised)) = self.advice_for(&NewLog::of(self, dir, Some(filesystem)))?
        else {
            return Ok((self.clone(), None));
        };
        let tuning = self.tuning.clone().or(advised);
        let options = Options { tuning, ..self.clone() };
        options.check()?;
        Ok((options, Some(path)))
    }

    /// Refuses to create a log in `dir`, which need not exist, where the source of the program
    /// fails.
    pub(crate) fn check_advice(&self, dir: &Path) -> Result<()> {
        self.advice_for(&NewLog::of(self, dir, None)).map(drop)
    }

    fn advice_for(&self, log: &NewLog<'_>) -> Result<Option<(PathBuf, Tuning)>> {
        self.tuning.advice_from.map_or(Ok(None), |source| source(log))
    }
}
