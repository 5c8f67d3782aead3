//! Numbered pieces, whose sizes are not known ahead.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use vellum_parallel::{ErrorKind, FileOptions};
use vellum_testing::mount::Mount;
use vellum_testing::{Numbers, memory_scratch, scratch};

use super::{METHODS, assert_content, bytes_at, cut, shuffle};

/// Hands in pieces in random order; some are empty, and little memory is there for the early ones.
fn check_numbered(dir: &Path, numbers: &mut Numbers, options: FileOptions, is_ordered: bool) {
    let path = dir.join("result");
    let len = numbers.below(2_000_000);
    let mut pieces = cut(numbers, len);
    pieces.insert(pieces.len() / 2, (0, 0));
    let mut order: Vec<usize> = (0..pieces.len()).rev().collect();
    if !is_ordered {
        shuffle(numbers, &mut order);
    }
    let threads = 1 + numbers.below(8);
    let case = format!("{threads} threads, {len} bytes, {options:?} in {}", dir.display());
    let file = options.create(&path).unwrap();
    let order = Mutex::new(order);
    let next = || order.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(index) = next() {
                    let (offset, len) = pieces[index];
                    file.write_piece(index as u64, &bytes_at(offset, len)).unwrap();
                }
            });
        }
    });
    let finished = file.finish().unwrap();
    assert_eq!((finished.len, finished.pieces), (len, pieces.len() as u64), "{case}");
    assert_content(&path, &bytes_at(0, len as usize), &case);
    fs::remove_file(path).unwrap();
    assert_eq!(left_in(dir), [""; 0], "nothing is left beside it");
}

/// The names of files in `dir`. A server of FUSE hides a file that is removed before the kernel has
/// told it that no process has the file open any more.
fn left_in(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| !name.starts_with(".fuse_hidden")).collect()
}

fn check_methods(dir: &Path, seed: u64) {
    let mut numbers = Numbers::new(seed);
    for method in METHODS {
        for (parked_bytes_max, is_ordered) in [(64 << 20, false), (100_000, false), (0, true)] {
            let options = FileOptions::new().slots(1 << 20).method(method);
            let options = options.parked_bytes_max(parked_bytes_max).sync(numbers.below(2) == 0);
            check_numbered(dir, &mut numbers, options, is_ordered);
        }
    }
}

#[test]
fn numbered_pieces_in_any_order_make_one_file() {
    check_methods(scratch().path(), 1);
    check_methods(memory_scratch().path(), 2);
}

#[test]
fn numbered_pieces_make_one_file_on_every_filesystem() {
    let test = "numbered_pieces_make_one_file_on_every_filesystem";
    let mounts =
        [Mount::xfs(test), Mount::btrfs(test, 128), Mount::overlay(test), Mount::fuse(test)];
    for (seed, mount) in mounts.iter().flatten().enumerate() {
        // Not the root of the mount, where mkfs leaves a directory of its own.
        let dir = mount.path().join("results");
        fs::create_dir(&dir).unwrap();
        check_methods(&dir, 10 + seed as u64);
    }
}

#[test]
fn a_missing_piece_is_named_and_nothing_is_left() {
    let dir = scratch();
    let path = dir.path().join("result");
    let file = FileOptions::new().slots(100).create(&path).unwrap();
    file.write_piece(0, b"first").unwrap();
    file.write_piece(2, b"third").unwrap();
    let error = file.finish().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
    assert!(error.to_string().contains("piece 1 is missing"), "{error}");
    assert!(!path.exists());
}

#[test]
fn pieces_that_do_not_fit_are_refused() {
    let dir = scratch();
    let path = dir.path().join("result");
    let refusal = |index: u64, len: usize| {
        let file = FileOptions::new().slots(100).create(&path).unwrap();
        file.write_piece(0, b"first").unwrap();
        file.write_piece(5, b"early").unwrap();
        let error = file.write_piece(index, &vec![1; len]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption);
        assert_eq!(file.finish().unwrap_err().to_string(), error.to_string());
        error.to_string()
    };
    assert!(refusal(0, 1).contains("handed in before"));
    assert!(refusal(5, 1).contains("handed in before"));
    assert!(refusal(1, 101).contains("longer than a slot (100)"));
    let file = FileOptions::new().slots(100).create(&path).unwrap();
    assert_eq!(file.write_at(0, b"x").unwrap_err().kind(), ErrorKind::InvalidOption);
    drop(file);
    let file = FileOptions::new().create(&path).unwrap();
    assert_eq!(file.write_piece(0, b"x").unwrap_err().kind(), ErrorKind::InvalidOption);
    drop(file);
    let both = FileOptions::new().slots(100).len(100).create(&path);
    assert_eq!(both.unwrap_err().kind(), ErrorKind::InvalidOption);
    assert!(!path.exists());
}
