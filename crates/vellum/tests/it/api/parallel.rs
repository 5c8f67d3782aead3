//! One file written by several threads.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use vellum::parallel::{FileOptions, Method, ResultFile};

use crate::support::{Numbers, memory_scratch, scratch};

const METHODS: [Method; 4] = [Method::Auto, Method::Buffered, Method::Direct, Method::Mapped];

/// What the byte at `offset` of every file here is.
fn bytes_at(offset: u64, len: usize) -> Vec<u8> {
    let byte = |offset: u64| (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    (offset..offset + len as u64).map(byte).collect()
}

/// Cuts `len` bytes into pieces: some within a block, some of many blocks, some on the borders.
fn cut(numbers: &mut Numbers, len: u64) -> Vec<(u64, usize)> {
    let mut pieces = Vec::new();
    let mut offset = 0;
    while offset < len {
        let longest = [10, 700, 4096, 10_000, 100_000, 700_000][numbers.below(6) as usize];
        let mut piece = 1 + numbers.below(longest);
        if numbers.below(3) == 0 {
            let unit = [512, 4096, 65_536][numbers.below(3) as usize];
            piece = (offset + piece).next_multiple_of(unit) - offset;
        }
        pieces.push((offset, piece.min(len - offset) as usize));
        offset += piece;
    }
    pieces
}

fn shuffle<T>(numbers: &mut Numbers, list: &mut [T]) {
    for index in (1..list.len()).rev() {
        list.swap(index, numbers.below(index as u64 + 1) as usize);
    }
}

/// Has `threads` threads take the pieces one by one and write them, from memory of any alignment.
fn write_all(file: &ResultFile, threads: u64, pieces: Vec<(u64, usize)>) {
    let pieces = Mutex::new(pieces);
    let next = || pieces.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                while let Some((offset, len)) = next() {
                    let mut buffer = file.buffer(len + 1);
                    let skipped = usize::from((thread + offset) % 3 == 0);
                    let piece = &mut buffer[skipped..skipped + len];
                    piece.copy_from_slice(&bytes_at(offset, len));
                    file.write_at(offset, piece).unwrap();
                }
            });
        }
    });
}

#[track_caller]
fn assert_content(path: &Path, len: u64, case: &str) {
    let found = fs::read(path).unwrap();
    assert_eq!(found.len() as u64, len, "{case}");
    let expected = bytes_at(0, len as usize);
    let wrong = (0..found.len()).find(|index| found[*index] != expected[*index]);
    assert_eq!(wrong, None, "the first wrong byte: {case}");
}

/// Random pieces in random order by some threads, in every method; the content is right while it
/// is in the page cache.
fn check_random_pieces(dir: &Path, seed: u64) {
    let mut numbers = Numbers::new(seed);
    let mut rounds: Vec<_> =
        METHODS.into_iter().flat_map(|method| [(method, true), (method, false)]).collect();
    shuffle(&mut numbers, &mut rounds);
    for (method, sync) in rounds {
        let path = dir.join("result");
        let len = 1 + numbers.below(3_000_000);
        let (threads, is_known) = (1 + numbers.below(8), numbers.below(3) > 0);
        let mut options = FileOptions::new().method(method).sync(sync);
        if is_known {
            options = options.len(len);
        }
        let case = format!("seed {seed}, {threads} threads, {len} bytes, {options:?}");
        let mut pieces = cut(&mut numbers, len);
        shuffle(&mut numbers, &mut pieces);
        let file = options.create(&path).unwrap();
        if numbers.below(2) == 0 {
            file.prepare().unwrap();
        }
        write_all(&file, threads, pieces);
        let finished = file.finish().unwrap();
        assert_eq!((finished.len, finished.written), (len, len), "{case}");
        assert_content(&path, len, &case);
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn pieces_of_any_boundary_and_order_make_one_file() {
    for seed in 0..4 {
        check_random_pieces(scratch().path(), seed);
        check_random_pieces(memory_scratch().path(), 100 + seed);
    }
}
