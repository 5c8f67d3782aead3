//! Random operations against a vector of the records that must come out.

use std::io::Write;
use std::path::Path;

use proptest::prelude::*;
use vellum::{Fill, Layout, Log, Lsn, Options, Tuning};

use crate::support::{Read, assert_sound, payload, place, read_all, read_from, scratch, small};

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Batch(Vec<usize>),
    Reserve(usize),
    Abandon(usize, usize),
    /// Up to this many thousandths of the log.
    Trim(usize),
    ReadFrom(usize),
    Reopen,
    LoseControlFile,
}

fn len() -> impl Strategy<Value = usize> {
    prop_oneof![
        4 => 2..200usize,
        2 => 200..4200usize,
        1 => 4070..4110usize,
        1 => 4200..20_000usize,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => len().prop_map(Step::Append),
        2 => prop::collection::vec(2..1500usize, 1..6).prop_map(Step::Batch),
        2 => len().prop_map(Step::Reserve),
        2 => (len(), 0..1000usize).prop_map(|(len, part)| Step::Abandon(len, part)),
        2 => (0..=1000usize).prop_map(Step::Trim),
        2 => (0..1000usize).prop_map(Step::ReadFrom),
        1 => Just(Step::Reopen),
        1 => Just(Step::LoseControlFile),
    ]
}

/// The log, and its expected records.
struct Model {
    log: Option<Log>,
    options: Options,
    layout: Layout,
    records: Vec<Read>,
    appended: u64,
}

impl Model {
    fn new(path: &Path, options: Options, layout: Layout) -> Model {
        let log = Some(options.open(path).unwrap());
        Model { log, options, layout, records: Vec::new(), appended: 0 }
    }

    fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    fn fresh(&mut self, len: usize) -> Vec<u8> {
        self.appended += 1;
        payload(self.layout, self.appended, len)
    }

    fn take(&mut self, step: &Step, path: &Path) {
        match step {
            Step::Append(len) => {
                let bytes = self.fresh(*len);
                let lsn = self.log().append(&bytes).unwrap();
                self.records.push((lsn, bytes));
            }
            Step::Batch(lens) => self.batch(lens),
            Step::Reserve(len) => {
                let bytes = self.fresh(*len);
                let mut reservation = self.log().reserve(*len).unwrap();
                reservation.write_all(&bytes).unwrap();
                let lsn = reservation.publish().unwrap();
                self.records.push((lsn, bytes));
            }
            Step::Abandon(len, part) => {
                let mut reservation = self.log().reserve(*len).unwrap();
                reservation.write_all(&vec![b'x'; len * part / 1000]).unwrap();
            }
            Step::Trim(part) => self.trim(*part),
            Step::ReadFrom(part) => {
                let from = self.records.len() * part / 1000;
                if let Some((lsn, _)) = self.records.get(from) {
                    let found = without_markers(read_from(self.log(), *lsn).unwrap(), self.layout);
                    assert!(found == self.records[from..], "from record {from}");
                }
            }
            Step::Reopen => self.reopen(path, false),
            Step::LoseControlFile => self.reopen(path, true),
        }
    }

    fn batch(&mut self, lens: &[usize]) {
        let payloads: Vec<_> = lens.iter().map(|len| self.fresh(*len)).collect();
        let log = self.log.as_ref().unwrap();
        let mut batch = log.batch();
        payloads.iter().for_each(|bytes| batch.push(bytes).unwrap());
        let first = batch.append().unwrap();
        let lsns = read_from(log, first).unwrap();
        assert_eq!(lsns.len(), payloads.len());
        self.records.extend(lsns.iter().map(|read| read.0).zip(payloads));
    }

    fn trim(&mut self, part: usize) {
        let count = self.records.len() * part / 1000;
        let before = self.records.get(count).map_or(self.log().published(), |read| read.0);
        assert_eq!(self.log().trim(before).unwrap().begin, before.max(self.log().begin()));
        self.records.drain(..count);
    }

    fn reopen(&mut self, path: &Path, loses_control: bool) {
        let (begin, tail) = (self.log().begin(), self.log().tail());
        self.log = None;
        if loses_control {
            std::fs::remove_file(path.join("control")).unwrap();
        }
        self.log = Some(self.options.open(path).unwrap());
        if !loses_control {
            assert_eq!((self.log().begin(), self.log().tail()), (begin, tail));
        } else if self.layout == Layout::Text {
            // A text file has no place to note where its log begins: whole segments are kept.
            assert!(self.log().begin() <= begin);
            self.log().trim(begin).unwrap();
        }
    }

    fn check(&self) {
        let found = without_markers(read_all(self.log()), self.layout);
        let lsns = |reads: &[Read]| reads.iter().map(|read| read.0).collect::<Vec<Lsn>>();
        assert_eq!(lsns(&found), lsns(&self.records));
        assert!(found == self.records);
        assert_eq!(self.log().published(), self.log().tail());
        assert_sound(self.log());
    }
}

/// Without the lines that a text log shows for abandoned ranges.
fn without_markers(mut reads: Vec<Read>, layout: Layout) -> Vec<Read> {
    if layout == Layout::Text {
        reads.retain(|(_, line)| line != b"\n" && line.first() != Some(&b'~'));
    }
    reads
}

fn check_steps(options: Options, layout: Layout, steps: &[Step]) {
    let dir = scratch();
    let mut model = Model::new(&place(&dir), options, layout);
    for step in steps {
        model.take(step, &place(&dir));
        model.check();
    }
    model.reopen(&place(&dir), false);
    model.check();
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_framed_log_behaves_like_a_vector(
        is_mapped: bool, has_envelope: bool, steps in prop::collection::vec(step(), 1..40),
    ) {
        let fill = if is_mapped { Fill::Mapped } else { Fill::Pwrite };
        let options = small(Layout::Framed).tuning(Tuning::new().fill(fill)).envelope(has_envelope);
        check_steps(options, Layout::Framed, &steps);
    }

    #[test]
    fn a_text_log_behaves_like_a_vector(
        is_mapped: bool, steps in prop::collection::vec(step(), 1..40),
    ) {
        let fill = if is_mapped { Fill::Mapped } else { Fill::Pwrite };
        check_steps(small(Layout::Text).tuning(Tuning::new().fill(fill)), Layout::Text, &steps);
    }
}
