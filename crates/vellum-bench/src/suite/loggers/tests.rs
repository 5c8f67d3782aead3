//! Small runs: of our own loggers, and of one that loses, drops or breaks.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;

use super::*;
use crate::error::Context;
use crate::progress::Silent;
use crate::report::Report;

/// Appends under a lock, but for every third record.
struct Leaky {
    /// Does it say so?
    is_honest: bool,
    /// Of a record, only so much is written; all of it if none.
    torn_at: Option<usize>,
}

struct Leak {
    file: Mutex<(std::fs::File, u64)>,
    is_honest: bool,
    torn_at: Option<usize>,
}

impl Contender for Leaky {
    fn name(&self) -> &str {
        "leaky"
    }

    fn open(&self, dir: &Path, _bytes: usize) -> Result<Box<dyn Logger>> {
        let file = OpenOptions::new().create(true).append(true).open(dir.join("log"));
        let file = file.context(|| "open")?;
        let Leaky { is_honest, torn_at } = *self;
        Ok(Box::new(Leak { file: Mutex::new((file, 0)), is_honest, torn_at }))
    }
}

impl Logger for Leak {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Thread(self)))
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        let count = self.file.lock().unwrap().1;
        Ok(if self.is_honest { count / 3 } else { 0 })
    }
}

struct Thread<'a>(&'a Leak);

impl Session for Thread<'_> {
    fn log(&mut self, record: &[u8]) -> Result<()> {
        let (file, count) = &mut *self.0.file.lock().unwrap();
        *count += 1;
        let end = self.0.torn_at.unwrap_or(record.len());
        let is_kept = !count.is_multiple_of(3);
        if is_kept { file.write_all(&record[..end]).context(|| "write") } else { Ok(()) }
    }
}

fn run(leaky: Leaky) -> Report {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new(dir.path());
    (config.threads, config.bytes, config.records) = (vec![1, 3], vec![64, 4096], 900);
    config.scope.rounds = 2;
    config.others = vec![Rc::new(leaky)];
    let report = config.run(&mut Silent).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "a run leaves nothing");
    assert_eq!(report.cases.len(), 4 * 3);
    report
}

fn leaky(report: &Report) -> impl Iterator<Item = &Case> {
    report.cases.iter().filter(|row| row.value("logger") == Some("leaky"))
}

#[test]
fn loggers_that_keep_everything_or_tell_are_verified() {
    let report = run(Leaky { is_honest: true, torn_at: None });
    for row in &report.cases {
        assert!(row.verified, "{row:?}");
        assert_eq!(row.metrics.len(), 4, "{row:?}");
        assert!(row.metrics.iter().all(|metric| metric.samples.len() == 2), "{row:?}");
    }
    for row in leaky(&report) {
        let dropped = row.metrics.iter().find(|metric| metric.name == "dropped").unwrap();
        assert!(dropped.samples.iter().all(|share| (share - 100.0 / 3.0).abs() < 0.1), "{row:?}");
    }
}

#[test]
fn a_logger_that_loses_records_in_silence_has_no_figures() {
    for row in leaky(&run(Leaky { is_honest: false, torn_at: None })) {
        let failed = row.failed.as_deref().unwrap();
        assert!(failed.contains("300 lost") && row.metrics.is_empty(), "{failed}");
    }
}

#[test]
fn a_logger_that_tears_records_has_no_figures() {
    for row in leaky(&run(Leaky { is_honest: true, torn_at: Some(60) })) {
        assert!(row.failed.as_deref().unwrap().contains("torn"), "{row:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut configs = vec![Config::new("."); 5];
    configs[0].bytes = vec![15];
    configs[1].threads = vec![0];
    configs[2].scope.rounds = 0;
    configs[3].cases = vec!["pigeon".into()];
    configs[4].records = 2;
    for config in configs {
        assert_eq!(config.run(&mut Silent).unwrap_err().kind(), crate::ErrorKind::InvalidOption);
    }
}
