//! Following the advice where the program has not decided for itself.

use std::path::{Path, PathBuf};

use crate::options::advice::{Advice, LogAdvice};
use crate::options::limits::check_sparse;
use crate::sys::filesystem::Filesystem;
use crate::{Fill, Layout, Options, Preallocate, Result};

impl Options {
    /// These options for a new log in `dir`, which exists, with what is advised there in the place
    /// of what was left open, and the file that advised it.
    pub(crate) fn advised(
        &self,
        dir: &Path,
        filesystem: Filesystem,
    ) -> Result<(Options, Option<PathBuf>)> {
        Ok(match self.advice_at(dir)? {
            Some((path, advice)) => (self.following(&advice, filesystem), Some(path)),
            None => (self.clone(), None),
        })
    }

    /// Refuses to create a log in `dir`, which need not exist, below advice that is damaged.
    pub(crate) fn check_advice(&self, dir: &Path) -> Result<()> {
        self.advice_at(dir).map(drop)
    }

    fn advice_at(&self, dir: &Path) -> Result<Option<(PathBuf, Advice)>> {
        self.tuning.advice_from.map_or(Ok(None), |source| source(dir))
    }

    fn following(&self, advice: &Advice, filesystem: Filesystem) -> Options {
        let is_wal = self.wanted_fill() == Some(Fill::Staged);
        let section = if is_wal { &advice.wal } else { &advice.log };
        let mut options = self.clone();
        options.follow_fill(section, filesystem);
        options.follow_preallocate(section);
        let capacity = options.tuning.segment_capacity_bytes.or(section.segment_capacity_bytes);
        options.tuning.segment_capacity_bytes = capacity;
        options.tuning.prefault_bytes = options.tuning.prefault_bytes.or(section.prefault_bytes);
        options
    }

    fn follow_fill(&mut self, section: &LogAdvice, filesystem: Filesystem) {
        // No measurement can tell that a full disk will not kill the process.
        let applies = |fill: &Fill| match fill {
            Fill::Mapped => {
                // What every tool is to read is not mapped.
                self.fill_of_kind != Some(Fill::Pwrite)
                    && filesystem.mapping_hazard().is_none()
                    && check_sparse(self.tuning.preallocate, Some(Fill::Mapped)).is_ok()
            }
            Fill::Staged => self.wanted_fill() == Some(Fill::Staged),
            _ => true,
        };
        self.tuning.fill = self.tuning.fill.or(section.fill.filter(applies));
    }

    fn follow_preallocate(&mut self, section: &LogAdvice) {
        let is_text = self.layout == Some(Layout::Text);
        let applies = |preallocate: &Preallocate| match preallocate {
            Preallocate::Recycle | Preallocate::Zeros => !is_text,
            Preallocate::Sparse => check_sparse(Some(*preallocate), self.wanted_fill()).is_ok(),
            _ => true,
        };
        self.tuning.preallocate = self.tuning.preallocate.or(section.preallocate.filter(applies));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination of what a program may ask for and a file may advise.
    fn each(mut check: impl FnMut(&Options, &Advice, Filesystem)) {
        let fills = [None, Some(Fill::Mapped), Some(Fill::Pwrite), Some(Fill::Staged)];
        let preallocates = [None, Some(Preallocate::Auto), Some(Preallocate::Off)]
            .into_iter()
            .chain([Preallocate::Sparse, Preallocate::Fallocate].map(Some))
            .chain([Preallocate::Zeros, Preallocate::Recycle].map(Some));
        let ways: Vec<_> = preallocates.flat_map(|p| fills.map(|fill| (p, fill))).collect();
        for base in [Options::wal(), Options::events(), Options::text(), Options::mapped_text()] {
            for (preallocate, fill) in &ways {
                let mut options = base.clone();
                (options.tuning.preallocate, options.tuning.fill) = (*preallocate, *fill);
                for (preallocate, fill) in &ways {
                    let log = LogAdvice {
                        preallocate: *preallocate,
                        fill: *fill,
                        ..LogAdvice::default()
                    };
                    let advice = Advice { wal: log, log, ..Advice::default() };
                    if options.check().is_ok() {
                        check(&options, &advice, Filesystem::Ext);
                        check(&options, &advice, Filesystem::Btrfs);
                    }
                }
            }
        }
    }

    #[test]
    fn what_a_program_may_ask_for_stays_valid_whatever_a_file_advises() {
        let mut count = 0;
        each(|options, advice, filesystem| {
            let followed = options.following(advice, filesystem);
            let answer = followed.check();
            assert!(answer.is_ok(), "{options:?} {advice:?}: {answer:?}");
            count += 1;
        });
        assert!(count > 1000, "{count}");
    }

    #[test]
    fn a_file_never_overrules_a_program_nor_maps_where_that_is_dangerous() {
        each(|options, advice, filesystem| {
            let followed = options.following(advice, filesystem);
            assert!(options.tuning.fill.is_none() || followed.tuning.fill == options.tuning.fill);
            assert!(
                options.tuning.preallocate.is_none()
                    || followed.tuning.preallocate == options.tuning.preallocate
            );
            let is_mapped =
                followed.tuning.fill == Some(Fill::Mapped) && options.tuning.fill.is_none();
            assert!(!is_mapped || filesystem == Filesystem::Ext);
            let is_staged = followed.wanted_fill() == Some(Fill::Staged);
            assert!(!is_staged || options.wanted_fill() == Some(Fill::Staged));
        });
    }
}
