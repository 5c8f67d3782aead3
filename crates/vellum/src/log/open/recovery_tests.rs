//! Finding the end of real logs, and carrying out what is left to be done.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::files::Files;
use crate::files::names::GEOMETRY_NAME;
use crate::files::recover::find_end;
use crate::files::recover::plan::{self, Step};
use crate::files::recover::positions::{Evidence, Loss};
use crate::format::control::Geometry;
use crate::segment::listing::Listing;
use crate::segment::rights::Rights;
use crate::sys::Dir;
use crate::{Options, Tuning};

/// A closed log with records in several files, and its directory.
fn log_of(options: Options, line: &[u8]) -> (tempfile::TempDir, Arc<Listing>, Files) {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("log");
    let tuning = Tuning::new().segment_capacity_bytes(4096);
    let log = options.tuning(tuning).open(&path).unwrap();
    for _ in 0..300 {
        log.append(line).unwrap();
    }
    drop(log);
    let dir = Dir::open(&path).unwrap();
    let geometry = Geometry::parse(&fs::read(path.join(GEOMETRY_NAME)).unwrap()).unwrap();
    let listing = Arc::new(Listing::read(&dir).unwrap());
    assert!(listing.files.len() > 2);
    (parent, listing, Files::new(&dir, &geometry, Rights::default()))
}

fn contents(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    all.sort();
    all
}

fn evidence(loss: Loss) -> Evidence<'static> {
    Evidence::without_words(loss, None)
}

/// Finding the end changes nothing. Once the plan is carried out, the log ends where the plan
/// said, and nothing is left to be done.
fn check(files: &Files, listing: &Arc<Listing>, loss: Loss) -> Vec<Step> {
    let before = contents(files.dir.path());
    let (seen, plan) = find_end(files, listing, evidence(loss)).unwrap();
    assert!(contents(files.dir.path()) == before);
    assert!(seen.tail <= plan.positions.tail);
    let left = plan::carry_out(files, Arc::clone(listing), &plan.steps).unwrap();
    assert_eq!(left.firsts(), Listing::read(&files.dir).unwrap().firsts());
    let (seen, again) = find_end(files, &left, evidence(loss)).unwrap();
    assert_eq!(seen.tail, plan.positions.tail);
    assert_eq!(seen.allocated_end, plan.positions.allocated_end);
    assert_eq!(again.positions.tail, seen.tail);
    assert_eq!(again.positions.recovered.padded_bytes, 0);
    let is_done = |step: &Step| matches!(step, Step::Clear { .. } | Step::Cut { .. });
    assert!(again.steps.iter().all(is_done), "{:?}", again.steps);
    plan.steps
}

#[test]
fn finding_the_end_of_a_text_log_changes_nothing_and_its_plan_is_enough() {
    for loss in [Loss::Words, Loss::Power] {
        let options = Options::text().rotate_bytes(1000);
        let (_parent, listing, files) = log_of(options, b"a line of text\n");
        let path = |index: usize| &listing.files[listing.files.len() - 1 - index].path;
        // The last line is torn, the file before has a hole, the one before is empty.
        let text = fs::read(path(0)).unwrap();
        let end = text.iter().rposition(|byte| *byte == b'\n').unwrap();
        fs::write(path(0), &text[..end - 3]).unwrap();
        let mut text = fs::read(path(1)).unwrap();
        text[30..45].fill(0);
        fs::write(path(1), text).unwrap();
        fs::write(path(2), b"").unwrap();
        let steps = check(&files, &listing, loss);
        assert!(steps.iter().any(|step| matches!(step, Step::Pad(range) if range.len == 15)));
        assert!(steps.iter().any(|step| matches!(step, Step::Mark(_))));
        let ends_line = steps.iter().any(|step| matches!(step, Step::EndLine(_)));
        assert_eq!(ends_line, loss == Loss::Power);
    }
}

#[test]
fn finding_the_end_of_a_framed_log_changes_nothing_and_its_plan_is_enough() {
    for loss in [Loss::Words, Loss::Power] {
        let (_parent, listing, files) = log_of(Options::events(), &[b'x'; 100]);
        let path = &listing.files[listing.files.len() / 2].path;
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 50].fill(0);
        fs::write(path, bytes).unwrap();
        let steps = check(&files, &listing, loss);
        let pads = steps.iter().any(|step| matches!(step, Step::Pad(_)));
        assert_eq!(pads, loss == Loss::Words, "{steps:?}");
    }
}
