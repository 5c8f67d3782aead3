//! A run, small; the rules of the load, in a model; and the findings of verification.

use std::ops::Range;

use super::*;
use crate::ErrorKind;
use crate::progress::Silent;
use crate::queue::{WriteQueue, Zero};

fn small(dir: &Path) -> Config {
    let mut config = Config::new(dir);
    (config.bytes, config.scope.rounds) = (8 << 20, 2);
    config.duration = Duration::from_millis(40);
    config
}

fn a_load(first_touch: FirstTouch, blocks: u32, writes_max: u64) -> Load {
    let duration = Duration::from_secs(600);
    Load { blocks, depth: 32, first_touch, duration, writes_max, run: 7 }
}

#[test]
fn all_states_and_engines_run_and_are_verified_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let report = small(dir.path()).run(&mut Silent).unwrap();
    assert_eq!(report.cases.len(), ImageState::ours().len() * ImageEngine::ALL.len());
    for row in &report.cases {
        assert_eq!(row.failed, None, "{row:?}");
        assert_eq!(row.verified, row.skipped.is_none(), "{row:?}");
        assert_eq!(row.metrics.is_empty(), !row.verified, "no number without verification");
        assert!(row.metrics.iter().all(|metric| metric.samples.len() == 2), "{row:?}");
        let names: Vec<&str> = row.series.iter().map(|series| series.name.as_str()).collect();
        let expected: &[&str] =
            if row.verified { &["IOPS over time", "latency percentiles"] } else { &[] };
        assert_eq!(names, expected);
        if row.value("image") == Some("metadata") && row.verified {
            assert_eq!(row.metrics[1].samples, [1.0, 1.0], "the baseline, round by round");
        }
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn images_of_qemu_are_made_and_written_and_read_by_it() {
    if let Err(missing) = qemu::check() {
        return vellum_testing::missing::skip(missing);
    }
    let dir = tempfile::tempdir().unwrap();
    let mut config = small(dir.path());
    config.scope.rounds = 1;
    config.states = ImageState::ALL.into_iter().filter(|state| state.is_of_qemu()).collect();
    config.engines = vec![ImageEngine::Aio];
    let report = config.run(&mut Silent).unwrap();
    assert!(report.conditions.software[0].starts_with("qemu-nbd "), "{:?}", report.conditions);
    assert_eq!(report.cases.len(), 5);
    for case in &report.cases {
        assert!(case.verified, "{case:?}");
        assert_eq!(case.value("tool"), Some("qemu-nbd"));
        assert!(case.metrics.iter().any(|metric| metric.name == "rate to metadata"), "{case:?}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn each_engine_of_qemu_writes_an_image() {
    if let Err(missing) = qemu::check() {
        return vellum_testing::missing::skip(missing);
    }
    for engine in ImageEngine::ALL {
        let dir = tempfile::tempdir().unwrap();
        let way = Way { state: ImageState::Qcow2Off, engine, tool: Tool::Qemu };
        let load = a_load(FirstTouch::Plain, 512, 700);
        let figures = measure(way, &load, dir.path()).unwrap();
        assert!(figures.latency_at(50.0) > 0.0, "{engine}");
    }
}

#[test]
fn an_image_that_qemu_refuses_or_that_holds_something_else_fails_with_its_words() {
    if let Err(missing) = qemu::check() {
        return vellum_testing::missing::skip(missing);
    }
    let dir = tempfile::tempdir().unwrap();
    let load = a_load(FirstTouch::Plain, 512, 100);
    let run = |state| qemu::run(state, ImageEngine::Threads, &load, dir.path());
    let path = dir.path().join("image");
    std::fs::write(&path, vec![1; 2 << 20]).unwrap();
    let error = run(ImageState::Qcow2Off).unwrap_err().to_string();
    assert!(error.starts_with("qemu-nbd failed (Some(1)): ") && error.contains("qcow2"), "{error}");
    let error = run(ImageState::QemuRaw).unwrap_err().to_string();
    assert!(error.contains("was never written, and is not zero"), "{error}");
    std::fs::write(&path, vec![0; 4 << 20]).unwrap();
    let error = run(ImageState::QemuRaw).unwrap_err().to_string();
    assert_eq!(error, "the image has 4194304 bytes and not 2097152");
}

#[test]
fn a_case_that_can_not_be_made_says_why_and_the_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("gone");
    let case = |state| Way { state, engine: ImageEngine::Aio, tool: Tool::Vellum };
    let load = a_load(FirstTouch::Plain, 256, 1);
    let error = measure(case(ImageState::Falloc), &load, &gone).unwrap_err();
    assert_eq!(error.to_string(), "create the image: No such file or directory (os error 2)");
    assert_eq!(error.kind(), ErrorKind::Failed);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |change: fn(&mut Config)| {
        let mut config = Config::new(".");
        change(&mut config);
        assert_eq!(config.run(&mut Silent).unwrap_err().kind(), ErrorKind::InvalidOption);
    };
    refused(|config| config.bytes = (8 << 20) + 4096);
    refused(|config| config.bytes = 1 << 20);
    refused(|config| config.bytes = 1 << 60);
    refused(|config| config.states.clear());
    refused(|config| config.engines.clear());
    refused(|config| config.scope.rounds = 0);
    refused(|config| config.depth = 0);
    refused(|config| config.depth = 1000);
    refused(|config| config.duration = Duration::ZERO);
    refused(|config| config.scope.in_directory = false);
}

/// A disk in memory that carries out the writes on their way in an order of its own, and checks
/// that the order does not matter: nothing on its way overlaps.
struct Model {
    bytes: Vec<u8>,
    buffers: Vec<Vec<u8>>,
    /// Slot, range that is touched, bytes of the buffer and place of the write.
    on_its_way: Vec<(usize, Range<u64>, Range<usize>, u64)>,
    random: fastrand::Rng,
    zeroed: Vec<u64>,
    long_writes: usize,
}

impl Model {
    fn new(load: &Load) -> Model {
        let buffers = vec![vec![0; load.write_bytes_max()]; load.depth];
        let bytes = vec![0; load.blocks as usize * BLOCK_BYTES];
        let random = fastrand::Rng::with_seed(1);
        Model { bytes, buffers, on_its_way: Vec::new(), random, zeroed: vec![], long_writes: 0 }
    }

    fn send(&mut self, slot: usize, range: Range<u64>, bytes: Range<usize>, offset: u64) {
        for (_, other, ..) in &self.on_its_way {
            assert!(range.end <= other.start || other.end <= range.start, "{range:?} {other:?}");
        }
        self.on_its_way.push((slot, range, bytes, offset));
    }
}

impl WriteQueue for Model {
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        assert!(self.on_its_way.iter().all(|(other, ..)| *other != slot));
        &mut self.buffers[slot]
    }

    fn write(&mut self, slot: usize, bytes: Range<usize>, offset: u64) -> Result<()> {
        self.long_writes += usize::from(bytes.len() > BLOCK_BYTES);
        self.send(slot, offset..offset + bytes.len() as u64, bytes, offset);
        Ok(())
    }

    fn zero_and_write(
        &mut self,
        slot: usize,
        zero: Zero,
        bytes: Range<usize>,
        offset: u64,
    ) -> Result<()> {
        assert_eq!((zero.offset % CLUSTER_BYTES as u64, zero.len), (0, CLUSTER_BYTES as u64));
        self.zeroed.push(zero.offset);
        self.send(slot, zero.offset..zero.offset + zero.len, bytes, offset);
        Ok(())
    }

    fn wait(&mut self, done: &mut Vec<usize>) -> Result<()> {
        let index = self.random.usize(..self.on_its_way.len());
        let (slot, range, bytes, offset) = self.on_its_way.swap_remove(index);
        if range.end - range.start > bytes.len() as u64 {
            self.bytes[range.start as usize..range.end as usize].fill(0);
        }
        let place = offset as usize..offset as usize + bytes.len();
        self.bytes[place].copy_from_slice(&self.buffers[slot][bytes]);
        done.push(slot);
        Ok(())
    }
}

#[test]
fn nothing_on_its_way_overlaps_and_each_cluster_is_initialised_once() {
    // Few blocks, so that writes meet in clusters and passes meet in blocks.
    for first_touch in [FirstTouch::Plain, FirstTouch::ZeroRange, FirstTouch::WholeCluster] {
        let load = a_load(first_touch, 64, 5000);
        let mut model = Model::new(&load);
        let (generations, _) = load.run(&mut model).unwrap();
        assert_eq!(generations.iter().map(|times| u64::from(*times)).sum::<u64>(), 5000);
        model.zeroed.sort_unstable();
        let clusters = [0, 1, 2, 3].map(|cluster| cluster * CLUSTER_BYTES as u64);
        let (zeroed, long) = match first_touch {
            FirstTouch::Plain => (&[][..], 0),
            FirstTouch::ZeroRange => (&clusters[..], 0),
            FirstTouch::WholeCluster => (&[][..], 4),
        };
        assert_eq!((&model.zeroed[..], model.long_writes), (zeroed, long));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        std::fs::write(&path, &model.bytes).unwrap();
        content::verify(&path, &generations, load.run).unwrap();
    }
}

/// Does something wrong once.
struct Faulty {
    queue: Box<dyn WriteQueue>,
    writes: u32,
    wrong: u32,
    fault: Fault,
    lost: Option<usize>,
}

#[derive(Clone, Copy)]
enum Fault {
    Lose,
    Misplace,
    Tear,
}

impl WriteQueue for Faulty {
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.queue.buffer(slot)
    }

    fn write(&mut self, slot: usize, bytes: Range<usize>, offset: u64) -> Result<()> {
        self.writes += 1;
        match self.fault {
            _ if self.writes != self.wrong => self.queue.write(slot, bytes, offset),
            Fault::Lose => {
                self.lost = Some(slot);
                Ok(())
            }
            Fault::Misplace => self.queue.write(slot, bytes, offset ^ BLOCK_BYTES as u64),
            Fault::Tear => {
                self.queue.buffer(slot)[2048..].fill(0);
                self.queue.write(slot, bytes, offset)
            }
        }
    }

    fn zero_and_write(
        &mut self,
        slot: usize,
        zero: Zero,
        bytes: Range<usize>,
        offset: u64,
    ) -> Result<()> {
        self.queue.zero_and_write(slot, zero, bytes, offset)
    }

    fn wait(&mut self, done: &mut Vec<usize>) -> Result<()> {
        done.extend(self.lost.take());
        self.queue.wait(done)
    }
}

/// The verdict of verification on `writes` writes to 1 MiB, one of which went wrong.
fn said_of(fault: Fault, writes: u64, wrong: u32) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    ImageState::Metadata.make(&path, 256 * BLOCK_BYTES as u64).unwrap();
    let load = a_load(FirstTouch::Plain, 256, writes);
    let queue = ImageEngine::Aio.queue(&path, load.depth, BLOCK_BYTES).unwrap();
    let mut queue = Faulty { queue, writes: 0, wrong, fault, lost: None };
    let (generations, _) = load.run(&mut queue).unwrap();
    drop(queue);
    match content::verify(&path, &generations, load.run) {
        Ok(()) => String::from("good"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_write_that_is_lost_misplaced_or_torn_is_found() {
    assert_eq!(said_of(Fault::Lose, 256, 0), "good", "no write is wrong");
    let lost = said_of(Fault::Lose, 256, 100);
    assert!(lost.contains("was written, and is zero"), "{lost}");
    let lost = said_of(Fault::Lose, 512, 400);
    assert!(lost.contains("(written 2 times) holds block"), "{lost}");
    assert!(lost.contains("for the 1. time"), "{lost}");
    // The missing block, or the one in the wrong place: the first of the two.
    let misplaced = said_of(Fault::Misplace, 256, 256);
    assert!(misplaced.contains("is zero") || misplaced.contains("holds block"), "{misplaced}");
    let torn = said_of(Fault::Tear, 256, 17);
    assert!(torn.contains("holds nothing that was written"), "{torn}");
}

#[test]
fn a_block_that_was_never_written_must_be_zero() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let mut bytes = vec![0; 256 * BLOCK_BYTES];
    std::fs::write(&path, &bytes).unwrap();
    let said =
        |generations: &[u32]| content::verify(&path, generations, 1).unwrap_err().to_string();
    content::verify(&path, &[0; 256], 1).unwrap();
    assert!(said(&[0; 255]).contains("bytes and not"));
    bytes[200 * BLOCK_BYTES + 5] = 1;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(said(&[0; 256]), "block 200 was never written, and is not zero");
}
