//! Making golden logs. Never again those that are there.

use std::fs::{self, File as OpenFile};
use std::os::unix::fs::FileExt;
use std::path::Path;

use vellum::{Fill, Layout, Log, Lsn, Options, Preallocate, Tuning};

use super::expectation::{Expectation, Record};
use super::{add_control_of_another_boot, files_in, golden_directory, stamps_of};
use crate::support::crc::{crc32c, seal_control_header};
use crate::support::{copy_log, payload, place, scratch, segment_files};

/// How a golden log is left.
#[derive(Clone, Copy, PartialEq)]
enum Ending {
    Closed,
    /// Its files are taken while a process has it open.
    Crashed,
    /// The same, and the first sector of the last record's payload never arrived.
    Torn,
    /// Closed, and then truncated by a process that died when it had noted where.
    Cutting,
}

struct Recipe {
    name: &'static str,
    what: &'static str,
    options: fn() -> Options,
    fill: fn(&mut Writer<'_>),
    ending: Ending,
}

const RECIPES: &[Recipe] = &[
    Recipe {
        name: "mapped",
        what: "framed, filled through the mapping, never committed, closed",
        options: mapped,
        fill: |log| log.append_some(0..9, 300),
        ending: Ending::Closed,
    },
    Recipe {
        name: "staged",
        what: "framed, staged, with commits and their seals, closed",
        options: staged,
        fill: |log| log.append_committing(0..10, 500),
        ending: Ending::Closed,
    },
    Recipe {
        name: "motley",
        what: "framed: batches, pads, a record over segments, a trimmed begin, a checkpoint; \
               closed",
        options: mapped,
        fill: motley,
        ending: Ending::Closed,
    },
    Recipe {
        name: "motley-staged",
        what: "the same, staged",
        options: staged,
        fill: motley,
        ending: Ending::Closed,
    },
    Recipe {
        name: "text",
        what: "text in several segments, closed",
        options: text,
        fill: |log| log.append_some(0..30, 350),
        ending: Ending::Closed,
    },
    Recipe {
        name: "text-crashed",
        what: "text with commits and an abandoned line, as a crash leaves it",
        options: text,
        fill: |log| {
            log.append_committing(0..8, 500);
            log.abandon(40);
            log.append_some(8..10, 100);
        },
        ending: Ending::Crashed,
    },
    Recipe {
        name: "torn",
        what: "framed, staged; a sector of the last batch never arrived",
        options: staged,
        fill: |log| {
            log.append_committing(0..6, 400);
            log.append_some(6..10, 300);
            log.log.sync().unwrap();
        },
        ending: Ending::Torn,
    },
    Recipe {
        name: "crashed",
        what: "framed, filled through the mapping, with commits and without, as a crash leaves it",
        options: mapped,
        fill: |log| {
            log.append_committing(0..8, 400);
            log.append_some(8..12, 200);
        },
        ending: Ending::Crashed,
    },
    Recipe {
        name: "crashed-staged",
        what: "framed, staged, with records that were never committed, as a crash leaves it",
        options: staged,
        fill: |log| {
            log.append_committing(0..8, 400);
            log.append_some(8..12, 200);
        },
        ending: Ending::Crashed,
    },
    Recipe {
        name: "recycled",
        what: "framed, staged; trimmed segments were used again; as a crash leaves it",
        options: staged,
        fill: |log| {
            log.append_committing(0..20, 700);
            let before = log.appended[12].lsn;
            log.log.trim(Lsn::new(before)).unwrap();
            log.append_committing(20..31, 600);
        },
        ending: Ending::Crashed,
    },
];

/// Forms that `vellum-fuzz` does not know, which takes every log in `v1` apart.
const FORMS: &[Recipe] = &[
    Recipe {
        name: "text-policy",
        what: "text in files with readable names, closed ones compressed, with a policy; closed",
        options: || {
            let day = std::time::Duration::from_secs(86_400);
            text().rotate_bytes(1500).rotate_every(day).retain_files(50).compress(true)
        },
        fill: |log| log.append_some(0..30, 350),
        ending: Ending::Closed,
    },
    Recipe {
        name: "cut-staged",
        what: "framed, staged, closed; somebody died truncating it, before anything was wiped",
        options: staged,
        fill: |log| log.append_committing(0..20, 500),
        ending: Ending::Cutting,
    },
    Recipe {
        name: "cut-text",
        what: "text, closed; somebody died truncating it, before anything was wiped",
        options: text,
        fill: |log| log.append_some(0..20, 350),
        ending: Ending::Cutting,
    },
];

/// Logs whose headers have version 2, because their records have envelopes.
const MARKED: &[Recipe] = &[
    Recipe {
        name: "envelope",
        what: "framed, records with envelopes: batches, pads, a record over segments, a trimmed \
               begin, a checkpoint; closed",
        options: || mapped().envelope(true),
        fill: motley,
        ending: Ending::Closed,
    },
    Recipe {
        name: "envelope-staged",
        what: "the same, staged",
        options: || staged().envelope(true),
        fill: motley,
        ending: Ending::Closed,
    },
    Recipe {
        name: "envelope-torn",
        what: "framed, staged, records with envelopes; a sector of the last batch never arrived",
        options: || staged().envelope(true),
        fill: |log| {
            log.append_committing(0..6, 400);
            log.append_some(6..10, 300);
            log.log.sync().unwrap();
        },
        ending: Ending::Torn,
    },
];

fn mapped() -> Options {
    Options::default().tuning(Tuning::new().segment_capacity_bytes(4096).fill(Fill::Mapped))
}

fn staged() -> Options {
    Options::wal().exclusive(false).tuning(Tuning::new().segment_capacity_bytes(4096))
}

fn text() -> Options {
    let tuning = Tuning::new().segment_capacity_bytes(4096).fill(Fill::Mapped);
    Options::mapped_text().tuning(tuning.preallocate(Preallocate::Off))
}

/// Something of everything.
fn motley(log: &mut Writer<'_>) {
    log.append_some(0..5, 600);
    log.append_long(5, 6000);
    log.log.sync().unwrap();
    log.append_some(6..9, 200);
    log.abandon(100);
    log.append_batch(9..12);
    log.append_long(12, 0);
    log.append_long(13, 7);
    log.log.sync().unwrap();
    log.log.trim(Lsn::new(log.appended[4].lsn)).unwrap();
    log.log.checkpoint().set(Lsn::new(log.appended[7].lsn)).unwrap();
    log.append_batch(14..16);
    log.append_long(16, 123);
    log.append_batch(17..20);
}

/// Appends to a log and remembers what.
struct Writer<'a> {
    log: &'a Log,
    appended: Vec<Record>,
}

impl Writer<'_> {
    fn note(&mut self, lsn: Lsn, bytes: &[u8]) {
        self.appended.push(Record::new(lsn.get(), crc32c(bytes), bytes));
    }

    /// Records of about `len` bytes.
    fn append_some(&mut self, seeds: std::ops::Range<u64>, len: usize) {
        for seed in seeds {
            self.append_long(seed, len + 13 * (seed as usize % 7));
        }
    }

    fn append_long(&mut self, seed: u64, len: usize) {
        let bytes = payload(self.log.layout(), seed, len);
        let lsn = self.log.append(&bytes).unwrap();
        self.note(lsn, &bytes);
    }

    /// The same, with a commit after every second.
    fn append_committing(&mut self, seeds: std::ops::Range<u64>, len: usize) {
        for seed in seeds {
            self.append_some(seed..seed + 1, len);
            if seed % 2 == 1 {
                self.log.sync().unwrap();
            }
        }
    }

    fn append_batch(&mut self, seeds: std::ops::Range<u64>) {
        let all: Vec<Vec<u8>> =
            seeds.map(|seed| payload(self.log.layout(), seed, 40 + 9 * seed as usize)).collect();
        let mut batch = self.log.batch();
        all.iter().for_each(|bytes| batch.push(bytes).unwrap());
        let from = batch.append().unwrap();
        let mut reader = self.log.reader(from).unwrap();
        for bytes in &all {
            let lsn = reader.next().unwrap().unwrap().lsn;
            self.appended.push(Record::new(lsn.get(), crc32c(bytes), bytes));
        }
    }

    /// Space that is reserved and not used. In a text log that leaves a line, too.
    fn abandon(&mut self, len: usize) {
        let lsn = self.log.tail();
        drop(self.log.reserve(len).unwrap());
        if self.log.layout() == Layout::Text {
            let mut reader = self.log.reader(lsn).unwrap();
            let line = reader.next().unwrap().unwrap().payload.to_vec();
            self.note(lsn, &line);
        }
    }
}

#[test]
#[ignore = "makes the golden logs that are not there yet"]
fn make_missing_golden_logs() {
    for (recipes, directory) in [(RECIPES, "v1"), (FORMS, "v1-forms"), (MARKED, "v2")] {
        for recipe in recipes {
            let target = golden_directory(directory).join(recipe.name);
            if !target.exists() {
                make(recipe, &target);
            }
        }
    }
}

fn make(recipe: &Recipe, target: &Path) {
    let dir = scratch();
    let log = (recipe.options)().open(place(&dir)).unwrap();
    let mut writer = Writer { log: &log, appended: Vec::new() };
    (recipe.fill)(&mut writer);
    let appended = writer.appended;
    let mut log = Some(log);
    if [Ending::Closed, Ending::Cutting].contains(&recipe.ending) {
        log = None;
    }
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    copy_log(&place(&dir), target);
    drop(log);
    let control_len = fs::metadata(target.join("control")).unwrap().len();
    fs::remove_file(target.join("control")).unwrap();
    fs::remove_file(target.join("lock")).unwrap();
    if recipe.ending == Ending::Torn {
        tear(target, appended[appended.len() - 3].lsn);
    }
    let geometry = target.join("geometry");
    let mut bytes = fs::read(&geometry).unwrap();
    bytes[48..64].copy_from_slice(b"the golden boot!");
    if recipe.ending == Ending::Cutting {
        let cut = appended[appended.len() / 2].lsn;
        bytes[64..72].copy_from_slice(&cut.to_le_bytes());
    }
    seal_control_header(&mut bytes);
    fs::write(&geometry, bytes).unwrap();
    let expected = expectation(target, control_len, appended);
    fs::write(target.with_extension("txt"), expected.to_text(recipe.what)).unwrap();
}

/// Loses the sector behind the start of the record at `lsn`.
fn tear(log: &Path, lsn: u64) {
    let name = format!("{:016x}.seg", lsn / 4096 * 4096);
    let files = segment_files(log);
    let path = files.iter().find(|file| file.ends_with(&name)).unwrap();
    let file = OpenFile::options().write(true).open(path).unwrap();
    file.write_all_at(&[0; 512], (4096 + lsn % 4096).next_multiple_of(512)).unwrap();
}

/// Values that opening shows; but the records are those that were appended.
fn expectation(log: &Path, control_len: u64, appended: Vec<Record>) -> Expectation {
    let dir = scratch();
    copy_log(log, &place(&dir));
    add_control_of_another_boot(&place(&dir), control_len);
    let opened = Options::default().open(place(&dir)).unwrap();
    let (begin, end) = (opened.begin().get(), opened.published().get());
    let (records, gone) = appended.into_iter().partition(|r| (begin..end).contains(&r.lsn));
    Expectation {
        files: files_in(log),
        control_len,
        begin,
        end,
        durable: opened.durable().get(),
        checkpoint: opened.checkpoint().lsn().get(),
        cut: opened.recovery().map_or(0, |recovery| recovery.cut_bytes),
        records,
        gone,
        stamps: stamps_of(&opened),
    }
}
