//! Recovery in memory: small logs of which any part of the last writes has arrived.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::files::recover::positions::Loss;
use crate::format::commit_record::CommitRecord;
use crate::format::control::Geometry;
use crate::format::frame::{ALIGNMENT, Codec, HEADER_LEN, frame_len};
use crate::format::segment::{self, SegmentHeader, file_name, text_file_name};
use crate::segment::LISTINGS;
use crate::segment::rights::Rights;
use crate::sys::Dir;
use crate::{Fill, Preallocate};

use zerocopy::IntoBytes;

const CAPACITY: u64 = 4096;
const SECTOR: u64 = 512;
const SECRET: u64 = 7;

fn geometry(layout: Layout) -> Geometry {
    Geometry {
        layout,
        segment_capacity: CAPACITY,
        preallocate: Preallocate::Off,
        fill: Fill::Pwrite,
        secret: SECRET,
        boot_id: [0; 16],
        has_commits: true,
        cut: 0,
        has_envelope: false,
    }
}

fn evidence() -> Evidence<'static> {
    Evidence::without_words(Loss::Power, None)
}

/// A directory in memory, where there is one.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn files(dir: &tempfile::TempDir, layout: Layout) -> Files {
    Files::new(&Dir::open(dir.path()).unwrap(), &geometry(layout), Rights::default())
}

/// The bytes written to a framed log from its first position on, and where its frames are.
#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    /// Begin of each frame, and the end of the bytes that were written of it.
    frames: Vec<(u64, u64)>,
}

impl Written {
    fn tail(&self) -> u64 {
        CAPACITY + self.bytes.len() as u64
    }

    fn add(&mut self, frame: &[u8], len: u64) {
        let begin = self.tail();
        self.frames.push((begin, begin + frame.len() as u64));
        self.bytes.extend(frame);
        self.bytes.resize((begin + len - CAPACITY) as usize, 0);
    }

    /// A frame of `len` bytes, in one segment: the rest of the one before is skipped.
    fn place(&mut self, len: u64, frame: impl FnOnce(Codec, Lsn) -> Vec<u8>) {
        let (codec, room) = (Codec::new(SECRET), CAPACITY - self.tail() % CAPACITY);
        if room < len {
            let pad = codec.pad(Lsn::new(self.tail()), room);
            self.add(&pad.to_bytes(), room);
        }
        let frame = frame(codec, Lsn::new(self.tail()));
        self.add(&frame, len);
    }

    fn record(&mut self, len: usize) {
        let payload = vec![b'x'; len];
        self.place(frame_len(len as u64), |codec, lsn| {
            [&codec.record_of(lsn, &payload).to_bytes()[..], &payload].concat()
        });
    }

    fn commit(&mut self, durable: u64) {
        let record = CommitRecord {
            durable: Lsn::new(durable),
            begin: Lsn::new(CAPACITY),
            ..CommitRecord::default()
        };
        self.place(32, |codec, lsn| record.to_frame(codec, lsn).to_vec());
    }
}

/// The segments of a log whose first bytes are these.
fn write_segments(dir: &tempfile::TempDir, bytes: &[u8]) {
    for (index, bytes) in bytes.chunks(CAPACITY as usize).enumerate() {
        let first = Lsn::new(CAPACITY * (index as u64 + 1));
        let mut file = vec![0; (segment::HEADER_LEN + CAPACITY) as usize];
        let header = SegmentHeader::new(SECRET, first, CAPACITY, Lsn::ZERO);
        file[..size_of::<SegmentHeader>()].copy_from_slice(header.as_bytes());
        file[segment::HEADER_LEN as usize..][..bytes.len()].copy_from_slice(bytes);
        fs::write(dir.path().join(file_name(first)), file).unwrap();
    }
}

/// Carries out the recovery, and checks that nothing is left to be done.
fn carry_out(files: &Files) -> Positions {
    let listing = Arc::new(Listing::read(&files.dir).unwrap());
    let (positions, listing) = recover(files, listing, evidence()).unwrap();
    assert_eq!(listing.firsts(), Listing::read(&files.dir).unwrap().firsts());
    let (again, plan) = find_end(files, &listing, evidence()).unwrap();
    assert_eq!((again.begin, again.tail), (positions.begin, positions.tail));
    assert_eq!((again.recovered.cut_bytes, plan.positions.recovered.padded_bytes), (0, 0));
    positions
}

/// Each subset of the sectors from `from` to `end`.
fn subsets(from: u64, end: u64) -> impl Iterator<Item = Vec<u64>> {
    let sectors: Vec<u64> = (from / SECTOR..end.div_ceil(SECTOR)).collect();
    assert!(sectors.len() <= 8, "{} sectors", sectors.len());
    (0..1_u32 << sectors.len()).map(move |chosen| {
        let is_chosen = |index: &usize| chosen >> index & 1 == 1;
        (0..sectors.len()).filter(is_chosen).map(|index| sectors[index]).collect()
    })
}

/// Two commit groups were in flight. No matter which sectors of them have arrived, the log ends
/// where the whole frames end, and all durable bytes are there.
fn check_framed(lens: [&[usize]; 3]) {
    let mut written = Written::default();
    let mut durable = written.tail();
    for (group, lens) in lens.iter().enumerate() {
        if group == 1 {
            durable = written.tail();
        }
        lens.iter().for_each(|len| written.record(*len));
        written.commit(durable);
    }
    let dir = directory();
    let files = files(&dir, Layout::Framed);
    let arrived = durable as usize - CAPACITY as usize;
    for sectors in subsets(durable, written.tail()) {
        let mut bytes = written.bytes.clone();
        let has = |lsn: u64| lsn < durable || sectors.contains(&(lsn / SECTOR));
        for (at, byte) in bytes.iter_mut().enumerate().filter(|(at, _)| !has(CAPACITY + *at as u64))
        {
            assert!(at >= arrived);
            *byte = 0;
        }
        write_segments(&dir, &bytes);
        let is_whole = |(begin, end): &&(u64, u64)| (*begin..*end).all(has);
        let torn = written.frames.iter().find(|frame| !is_whole(frame));
        let end = torn.map_or(written.tail(), |(begin, _)| *begin);
        let positions = carry_out(&files);
        assert_eq!(positions.tail.get(), end, "{sectors:?}");
        assert!(positions.recovered.durable.get() <= durable, "{sectors:?}");
        let mut window = crate::files::window::Window::new(crate::files::view::Still::of(&files));
        let len = end - CAPACITY;
        let kept = window.fetch(Lsn::new(CAPACITY), len, Lsn::new(end)).unwrap();
        assert!(kept == &written.bytes[..len as usize], "{sectors:?}");
    }
}

#[test]
fn a_framed_log_ends_with_its_last_whole_frame_whatever_has_arrived() {
    check_framed([&[100, 900], &[700, 8], &[300, 900]]);
    check_framed([&[3000], &[300, 700], &[1000, 0, 50]]);
    check_framed([&[], &[1], &[2500]]);
    check_framed([&[1, 2, 3], &[ALIGNMENT as usize * 60 - HEADER_LEN, 480], &[480, 480]]);
}

/// The path of the text file at `first`.
fn text_path(dir: &tempfile::TempDir, first: u64) -> PathBuf {
    dir.path().join(text_file_name(1_700_000_000 + first, Lsn::new(first), false))
}

/// Of a text log everything up to `durable` has arrived, and any pieces behind it. No NUL and no
/// part of a line is left, and all durable bytes are there.
#[test]
fn a_text_log_has_whole_lines_whatever_has_arrived() {
    const PIECE: usize = 40;
    let lines: String = (0..10).map(|line| format!("line {line} of a log with text\n")).collect();
    let lines = lines.as_bytes();
    let durable = lines.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let pieces = (lines.len() - durable).div_ceil(PIECE);
    assert!(pieces <= 8);
    for chosen in 0..1_u32 << pieces {
        let dir = directory();
        let mut text = lines.to_vec();
        for (index, piece) in text[durable..].chunks_mut(PIECE).enumerate() {
            if chosen >> index & 1 == 0 {
                piece.fill(0);
            }
        }
        fs::write(text_path(&dir, CAPACITY), &text).unwrap();
        let files = files(&dir, Layout::Text);
        let positions = carry_out(&files);
        let mut left = fs::read(text_path(&dir, CAPACITY)).unwrap();
        // Zeros at the end are ready for the next records.
        left.truncate(left.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        assert_eq!(positions.tail.get(), CAPACITY + left.len() as u64);
        assert!(left.starts_with(&lines[..durable]), "{chosen:b}");
        assert!(!left.contains(&0) && left.ends_with(b"\n"), "{chosen:b}");
        // Bytes that have arrived stay where they are.
        let is_there = |at: &usize| text.get(*at).is_some_and(|byte| *byte != 0);
        assert!((0..left.len()).filter(is_there).all(|at| left[at] == text[at]), "{chosen:b}");
    }
}

#[test]
fn a_recovery_lists_the_directory_once() {
    let dir = directory();
    let mut written = Written::default();
    (0..9).for_each(|_| written.record(900));
    written.commit(CAPACITY);
    write_segments(&dir, &written.bytes[..written.bytes.len() - 100]);
    let framed = (dir, Layout::Framed);

    let dir = directory();
    fs::write(text_path(&dir, CAPACITY), b"a line\n\0\0\0\0\0\0\0\0\0\0\0\0\0\0and one\n").unwrap();
    fs::write(text_path(&dir, 2 * CAPACITY), b"").unwrap();
    fs::write(text_path(&dir, 3 * CAPACITY), b"another line\nand a torn").unwrap();
    fs::write(text_path(&dir, 4 * CAPACITY), b"").unwrap();
    for (dir, layout) in [framed, (dir, Layout::Text)] {
        let files = files(&dir, layout);
        LISTINGS.set(0);
        let listing = Arc::new(Listing::read(&files.dir).unwrap());
        recover(&files, listing, evidence()).unwrap();
        assert_eq!(LISTINGS.get(), 1, "{layout}");
    }
}
