//! Calling the function of the program that tunes a log which is about to be created.

use std::path::{Path, PathBuf};

use crate::options::choice::Fill;
use crate::options::limits::check_sparse;
use crate::options::tuning::NewLog;
use crate::sys::filesystem::Filesystem;
use crate::{Options, Result, Tuning};

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
