//! Advice as the tuning of a new log. The program goes before the advice: a value that contradicts
//! a choice of the program is left out, and the rest holds.

use vellum::advice::NewLog;
use vellum::internal::check_sparse;
use vellum::{Fill, Layout, Preallocate, Tuning};

use crate::Advice;

/// The part of the advice that agrees with the choices of the program for `log`.
pub(super) fn tuning(advice: &Advice, log: &NewLog<'_>) -> Tuning {
    let section = if log.is_staged { &advice.wal } else { &advice.log };
    // No measurement can tell that a full disk will not kill the process.
    let fill = section.fill.filter(|fill| match fill {
        Fill::Mapped => log.may_be_mapped,
        Fill::Staged => log.is_staged,
        _ => true,
    });
    let filled = log.fill.or(fill).or(log.is_staged.then_some(Fill::Staged));
    let preallocate = section.preallocate.filter(|preallocate| match preallocate {
        Preallocate::Recycle | Preallocate::Zeros => log.layout != Layout::Text,
        Preallocate::Sparse => check_sparse(Some(*preallocate), filled).is_ok(),
        _ => true,
    });
    let tuning = with(Tuning::new(), fill, Tuning::fill);
    let tuning = with(tuning, preallocate, Tuning::preallocate);
    let tuning = with(tuning, section.segment_capacity_bytes, Tuning::segment_capacity_bytes);
    with(tuning, section.prefault_bytes, Tuning::prefault_bytes)
}

fn with<T>(tuning: Tuning, value: Option<T>, set: fn(Tuning, T) -> Tuning) -> Tuning {
    match value {
        Some(value) => set(tuning, value),
        None => tuning,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use vellum::Options;
    use vellum::internal::check;
    use vellum_sys::filesystem::Filesystem;

    use super::*;
    use crate::LogAdvice;

    const FILESYSTEMS: [Filesystem; 2] = [Filesystem::Ext, Filesystem::Btrfs];

    /// A program's choices, the advice of a file, and the log that follows both.
    struct Case {
        before: Options,
        chosen: (Option<Preallocate>, Option<Fill>),
        filesystem: Filesystem,
        advice: Advice,
        after: Options,
    }

    fn new_log(options: &Options, filesystem: Filesystem) -> NewLog<'static> {
        NewLog::of(options, Path::new("log"), Some(filesystem))
    }

    fn chosen(choice: (Option<Preallocate>, Option<Fill>)) -> Tuning {
        with(with(Tuning::new(), choice.0, Tuning::preallocate), choice.1, Tuning::fill)
    }

    /// Every combination of a program's possible choices and a file's possible advice.
    fn each(mut check_case: impl FnMut(&Case)) {
        let fills = [None, Some(Fill::Mapped), Some(Fill::Pwrite), Some(Fill::Staged)];
        let preallocates = [None, Some(Preallocate::Auto), Some(Preallocate::Off)]
            .into_iter()
            .chain([Preallocate::Sparse, Preallocate::Fallocate].map(Some))
            .chain([Preallocate::Zeros, Preallocate::Recycle].map(Some));
        let ways: Vec<_> = preallocates.flat_map(|p| fills.map(|fill| (p, fill))).collect();
        for base in [Options::wal(), Options::events(), Options::text(), Options::mapped_text()] {
            for way in &ways {
                let before = base.clone().tuning(chosen(*way));
                if check(&before).is_err() {
                    continue;
                }
                for ((preallocate, fill), filesystem) in
                    ways.iter().flat_map(|way| FILESYSTEMS.map(|filesystem| (*way, filesystem)))
                {
                    let log = LogAdvice { preallocate, fill, ..LogAdvice::default() };
                    let advice = Advice { wal: log, log, ..Advice::default() };
                    let advised = tuning(&advice, &new_log(&before, filesystem));
                    let after = base.clone().tuning(advised).tuning(chosen(*way));
                    let before = before.clone();
                    check_case(&Case { before, chosen: *way, filesystem, advice, after });
                }
            }
        }
    }

    #[test]
    fn what_a_program_may_ask_for_stays_valid_whatever_a_file_advises() {
        let mut count = 0;
        each(|Case { before, advice, after, .. }| {
            let answer = check(after);
            assert!(answer.is_ok(), "{before:?} {advice:?}: {answer:?}");
            count += 1;
        });
        assert!(count > 1000, "{count}");
    }

    #[test]
    fn a_file_never_overrules_a_program_nor_maps_where_that_is_dangerous() {
        let mut counts = [0; 3];
        each(|Case { before, chosen, filesystem, after, .. }| {
            let (before, after) = (new_log(before, *filesystem), new_log(after, *filesystem));
            assert!(chosen.1.is_none() || after.fill == chosen.1);
            assert!(chosen.0.is_none() || after.preallocate == chosen.0);
            let is_mapped = after.fill == Some(Fill::Mapped) && chosen.1.is_none();
            assert!(!is_mapped || *filesystem == Filesystem::Ext);
            assert!(!after.is_staged || before.is_staged);
            let seen = [is_mapped, after.is_staged, after.preallocate != chosen.0];
            counts.iter_mut().zip(seen).for_each(|(count, seen)| *count += usize::from(seen));
        });
        assert!(counts.iter().all(|count| *count > 0), "each was followed: {counts:?}");
    }
}
