//! Whole runs, small; the findings of verification, and the failures of a case that do not end a
//! run.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use super::entry::{Entry, Job, Sample, Site};
use super::source::Source;
use super::*;
use crate::ErrorKind;
use crate::error::Context;
use crate::place::Place;
use crate::progress::Silent;
use crate::sys::FileMap;

const BYTES: u64 = 1 << 20;
const LIMIT: Duration = Duration::from_secs(60);

fn small(dir: &Path) -> Config {
    let mut config = Config::new(dir);
    (config.bytes, config.piece_bytes, config.scope.rounds) = (BYTES, 64 << 10, 1);
    (config.threads, config.chunks) = (vec![1, 3], vec![1 << 10, 96 << 10]);
    config
}

fn keys(row: &Case) -> BTreeSet<&str> {
    row.keys.iter().map(|key| key.name.as_str()).collect()
}

#[test]
fn all_tables_are_made_and_verified_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let report = small(dir.path()).run(&mut Silent).unwrap();
    for row in &report.cases {
        assert_eq!(row.failed, None, "{row:?}");
        assert_eq!(row.verified, row.skipped.is_none(), "{row:?}");
        assert_eq!(row.metrics.is_empty(), !row.verified, "{row:?}");
        assert!(row.metrics.iter().all(|metric| metric.samples.len() == 1), "{row:?}");
    }
    for table in Table::ALL {
        let rows = || report.cases.iter().filter(|row| row.table == table.as_str());
        assert!(rows().any(|row| row.verified), "{table}");
        let first = rows().next().unwrap();
        assert!(rows().all(|row| keys(row) == keys(first)), "{table}");
        let names: BTreeSet<String> = rows()
            .map(|row| row.keys.iter().map(|key| format!("{};", key.value)).collect())
            .collect();
        assert_eq!(names.len(), rows().count(), "each row of {table} has a name of its own");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn others_are_compared_with_one_file_for_each_of_as_many_threads() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = small(dir.path());
    config.tables = vec![Table::Parallel];
    config.states = vec![State::Emptied];
    config.ways = vec!["files".into(), "pwrite".into()];
    let report = config.run(&mut Silent).unwrap();
    assert_eq!(report.cases.len(), 4);
    for row in &report.cases {
        let ratio = row.metrics.iter().find(|metric| metric.name == "write and sync / files");
        let ratio = &ratio.unwrap().samples;
        assert_eq!(ratio.len(), 1);
        let is_baseline = row.value("way") == Some("files");
        assert!(!is_baseline || *ratio == [1.0], "{row:?}");
    }
}

#[test]
fn how_much_of_a_new_file_is_allocated_stands_beside_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = small(dir.path());
    config.tables = vec![Table::Create];
    config.ways = vec!["ftruncate".into(), "write zeros".into()];
    let report = config.run(&mut Silent).unwrap();
    let allocated = |row: &Case| {
        let metric = row.metrics.iter().find(|metric| metric.name == "allocated").unwrap();
        (row.value("way").unwrap().to_string(), metric.samples[0] >= 100.0)
    };
    let rows: Vec<(String, bool)> = report.cases.iter().map(allocated).collect();
    assert_eq!(rows, [("ftruncate".into(), false), ("write zeros".into(), true)]);
}

/// The report of a failed case has a reason and no numbers.
fn reason(job: impl Job + 'static) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let place = Place { dir: dir.path(), filesystem: "here", is_scratch: false };
    let (mut silent, mut warnings) = (Silent, Vec::new());
    let mut arena = Arena::new(&place, 1, &mut silent, &mut warnings);
    let entries =
        vec![Entry::new(Table::Simple, job), Entry::new(Table::Simple, Writes(Fault::None))];
    let mut rows =
        Contest { entries, bytes: BYTES, names_size: false }.run(LIMIT, &mut arena).unwrap();
    let good = rows.pop().unwrap();
    assert!(good.verified && !good.metrics.is_empty(), "the run goes on: {good:?}");
    let row = rows.pop().unwrap();
    assert!(row.metrics.is_empty() && !row.verified, "{row:?}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    row
}

/// Writes the file as it should be, but for one thing.
struct Writes(Fault);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    PageMissing,
    PiecesSwapped,
    OfAnotherRound,
    TooShort,
    TooLong,
    PrivateMap,
}

impl Job for Writes {
    fn run(&self, site: &Site<'_>) -> Result<Sample> {
        let file = File::options().read(true).write(true).create_new(true).open(site.file());
        self.write(&file.trying("create")?, site).trying("write")?;
        Ok(Sample { write: 1.0, ..Sample::default() })
    }
}

impl Writes {
    fn write(&self, file: &File, site: &Site<'_>) -> io::Result<()> {
        file.set_len(site.bytes)?;
        let round = if self.0 == Fault::OfAnotherRound { site.round + 1 } else { site.round };
        let mut source = Source::new(site.bytes as usize, round);
        let mut bytes = source.piece(0, site.bytes as usize).to_vec();
        match self.0 {
            Fault::PageMissing => bytes[40 << 10..44 << 10].fill(0),
            Fault::PiecesSwapped => {
                let (front, back) = bytes.split_at_mut(512 << 10);
                front[..1024].swap_with_slice(&mut back[..1024]);
            }
            Fault::PrivateMap => {
                let mut map = FileMap::private(file, bytes.len())?;
                map.whole().store(0, &bytes);
                return Ok(());
            }
            _ => {}
        }
        file.write_all_at(&bytes, 0)?;
        match self.0 {
            Fault::TooShort => file.set_len(site.bytes - 1),
            Fault::TooLong => file.set_len(site.bytes + 1),
            _ => Ok(()),
        }
    }
}

#[test]
fn what_is_not_in_the_file_as_it_was_written_is_found() {
    let found = |fault| reason(Writes(fault)).failed.unwrap();
    assert_eq!(found(Fault::PageMissing), "what was written at byte 40960 is not there");
    assert_eq!(found(Fault::PiecesSwapped), "what was written at byte 0 is not there");
    assert_eq!(found(Fault::OfAnotherRound), "what was written at byte 0 is not there");
    assert!(found(Fault::TooShort).contains("1048575 bytes and not"));
    assert!(found(Fault::TooLong).contains("1048577 bytes and not"));
    assert_eq!(found(Fault::PrivateMap), "what was written at byte 0 is not there");
}

/// A case that does something else than write.
struct Does(fn(&Site<'_>) -> Result<Sample>);

impl Job for Does {
    fn run(&self, site: &Site<'_>) -> Result<Sample> {
        (self.0)(site)
    }

    fn verify(&self, _site: &Site<'_>) -> Result<()> {
        Ok(())
    }
}

#[test]
fn what_happens_to_a_case_is_told_in_its_row() {
    let row = reason(Does(|site| {
        // A store behind the end of the file, as where there is no room for a page.
        let file = File::options().read(true).write(true).create_new(true).open(site.file());
        let mut map = FileMap::new(&file.trying("create")?, 4096).trying("mmap")?;
        map.whole().store(0, b"~");
        Ok(Sample::default())
    }));
    assert_eq!(row.failed.unwrap(), "killed by SIGBUS");
    let row = reason(Does(|_| {
        let _ = kill_process(getpid(), Signal::KILL);
        Ok(Sample::default())
    }));
    assert_eq!(row.failed.unwrap(), "killed by SIGKILL");
    let row = reason(Does(|_| Err(io::Error::from_raw_os_error(libc::ENOSPC)).trying("pwrite")));
    assert!(row.failed.unwrap().starts_with("pwrite: No space left on device"));
    let row = reason(Does(|_| Err(io::Error::from_raw_os_error(libc::ENODEV)).trying("mmap")));
    assert!(row.skipped.unwrap().starts_with("mmap: No such device") && row.failed.is_none());
}

#[test]
fn files_that_hold_no_zeros_or_no_blocks_are_not_made_as_promised() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let file = File::create_new(&path).unwrap();
    file.set_len(BYTES).unwrap();
    verify::zeros(&path, BYTES).unwrap();
    assert!(verify::allocated(&path, BYTES).unwrap_err().to_string().contains("allocated"));
    file.write_all_at(b"~", 5000).unwrap();
    let error = verify::zeros(&path, BYTES).unwrap_err();
    assert_eq!(error.to_string(), "byte 5000 is not zero");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = small(dir.path());
    config.ways = vec!["fly".into()];
    let error = config.run(&mut Silent).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
    assert!(error.to_string().contains("pwritev x128"), "{error}");
}

#[test]
fn files_of_several_sizes_are_made_and_each_has_its_table() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = small(dir.path());
    config.tables = vec![Table::Create];
    config.sizes = vec![1 << 20, 2 << 20];
    let report = config.run(&mut Silent).unwrap();
    let mut tables: Vec<&str> = report.cases.iter().map(|case| case.table.as_str()).collect();
    tables.dedup();
    assert_eq!(tables, ["create, 1 MiB", "create, 2 MiB"]);
    assert!(report.cases.iter().all(|case| case.failed.is_none()));
}
