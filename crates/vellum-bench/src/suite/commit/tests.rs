//! A run, small; and its findings when records get lost.

use std::cell::Cell as Flag;
use std::path::Path;

use super::*;
use crate::progress::Silent;

fn config(dir: &Path) -> Config {
    let mut config = Config::new(dir);
    config.bytes = vec![256];
    config.threads = vec![2];
    config.scope.rounds = 2;
    config.slice = Duration::from_millis(20);
    config
}

#[test]
fn all_cases_run_and_are_verified_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.processes = vec![1, 2];
    let report = config.run(&mut Silent).unwrap();
    assert_eq!(report.cases.len(), 2 * 6);
    for case in &report.cases {
        assert_eq!(case.failed, None, "{case:?}");
        if case.skipped.is_none() {
            assert!(case.verified, "{case:?}");
            for name in ["all commits", "files"] {
                assert!(case.figure(name).unwrap().samples[0] > 0.0, "{case:?}");
            }
        }
    }
    // Each cell has the gain of preparing, for the contenders that can prepare.
    let judged = report.cases.iter().filter(|case| case.finding.is_some());
    let names: Vec<String> = judged.clone().map(Case::name).collect();
    assert_eq!(names, ["vellum", "bare-fallocate", "bare-overwrite"].repeat(2));
    for case in judged {
        assert_eq!(case.value("prepared"), Some("yes"));
        assert!(case.figure("speed against unprepared").is_some(), "{case:?}");
    }
    let bare = report.cases.iter().find(|case| case.name() == "bare-overwrite").unwrap();
    assert_eq!(bare.figure("syncs").unwrap().samples, [1.0, 1.0]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn the_choice_of_preparation_concerns_only_who_has_it() {
    let mut config = config(Path::new("."));
    config.prepared = vec![false];
    let chosen = config.chosen().unwrap();
    let chosen: Vec<_> = chosen.iter().map(|one| (one.name(), one.is_prepared())).collect();
    let expected = [
        ("vellum", false),
        ("bare-append", false),
        ("bare-fallocate", true),
        ("bare-overwrite", true),
        ("direct-dsync", true),
    ];
    assert_eq!(chosen, expected);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |change: fn(&mut Config)| {
        let mut config = config(Path::new("."));
        change(&mut config);
        assert_eq!(config.run(&mut Silent).unwrap_err().kind(), crate::ErrorKind::InvalidOption);
    };
    refused(|config| config.bytes = vec![8]);
    refused(|config| config.threads = vec![0]);
    refused(|config| config.processes = vec![1 << 20]);
    refused(|config| config.scope.rounds = 0);
    refused(|config| config.cases = vec!["magic".into()]);
    refused(|config| config.cases = vec!["vellum".into(), "vellum".into()]);
}

/// A log that acknowledges one record that it never wrote, or breaks one that it wrote.
struct Liar {
    breaks: bool,
}

impl Contender for Liar {
    fn name(&self) -> &str {
        "liar"
    }

    fn is_prepared(&self) -> bool {
        true
    }

    fn prepare(&self, dir: &Path, cell: &Cell) -> Result<Box<dyn Prepared>> {
        let inner = bare::Bare::Append.prepare(dir, cell)?;
        Ok(Box::new(LyingLog { inner, breaks: self.breaks }))
    }
}

struct LyingLog {
    inner: Box<dyn Prepared>,
    breaks: bool,
}

impl Prepared for LyingLog {
    fn open(&self) -> Result<Box<dyn Committer>> {
        self.inner.open()
    }

    fn read_back(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        let is_first = Flag::new(true);
        self.inner.read_back(&mut |record| {
            let mut record = record.to_vec();
            let lies = is_first.replace(false);
            if lies && self.breaks {
                record[100] ^= 1;
            }
            if !lies || self.breaks {
                visit(&record);
            }
        })
    }
}

#[test]
fn a_case_that_loses_or_breaks_a_record_has_failed_and_has_no_numbers() {
    for (breaks, complaint) in [(false, "1 lost"), (true, "damaged")] {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        config.cases = vec!["liar".into(), "direct-dsync".into()];
        config.others = vec![Rc::new(Liar { breaks })];
        let report = config.run(&mut Silent).unwrap();
        let case = report.failures().next().unwrap();
        assert_eq!((case.name().as_str(), case.verified), ("liar", false));
        assert!(case.failed.as_ref().unwrap().contains(complaint), "{:?}", case.failed);
        assert!(case.metrics.is_empty(), "{case:?}");
    }
}
