//! One file written by several threads: any pieces, in any order, on every filesystem.

#[path = "../../examples/parallel_gzip.rs"]
#[allow(dead_code)]
mod example;
mod failures;
mod numbered;

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use vellum_parallel::{FileOptions, Method, ResultFile};
use vellum_sys::HUGE_PAGE_BYTES;
use vellum_testing::mount::Mount;
use vellum_testing::{Numbers, child, kernel, memory_scratch, scratch};

/// Where a second process of a test starts; an ordinary run passes over it.
#[test]
fn child_entry() {
    child::run_role(&[&[
        ("fill without advice", failures::fill_without_advice),
        ("write under a size limit", failures::write_under_a_size_limit),
    ]]);
}

const METHODS: [Method; 4] = [Method::Auto, Method::Buffered, Method::Direct, Method::Mapped];

/// The content at `offset` of every file here: a number of 8 bytes for each 8 bytes.
fn bytes_at(offset: u64, len: usize) -> Vec<u8> {
    let words = offset / 8..(offset + len as u64).div_ceil(8);
    let word = |word: u64| (word + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    let bytes: Vec<u8> = words.flat_map(word).collect();
    let skipped = (offset % 8) as usize;
    bytes[skipped..skipped + len].to_vec()
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
fn assert_bytes(path: &Path, expected: &[u8], case: &str) {
    let found = fs::read(path).unwrap();
    assert_eq!(found.len(), expected.len(), "{case}");
    if found != expected {
        let wrong = (0..found.len()).find(|index| found[*index] != expected[*index]);
        panic!("the byte at {wrong:?} is wrong: {case}");
    }
}

/// Asserts what is in a file, as the page cache has it and as the device has it.
#[track_caller]
fn assert_content(path: &Path, expected: &[u8], case: &str) {
    assert_bytes(path, expected, case);
    let file = fs::File::open(path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    assert_bytes(path, expected, &format!("on the device: {case}"));
}

/// Writes a file in random pieces in random order, and checks it.
fn check_pieces(dir: &Path, numbers: &mut Numbers, options: FileOptions) {
    let path = dir.join("result");
    let len = 1 + numbers.below(2_000_000);
    let threads = 1 + numbers.below(8);
    let options = if numbers.below(3) > 0 { options.len(len) } else { options };
    let case = format!("{threads} threads, {len} bytes, {options:?} in {}", dir.display());
    let mut pieces = cut(numbers, len);
    shuffle(numbers, &mut pieces);
    let file = options.create(&path).unwrap();
    if numbers.below(2) == 0 {
        file.prepare().unwrap();
    }
    write_all(&file, threads, pieces);
    let finished = file.finish().unwrap();
    assert_eq!((finished.len, finished.written), (len, len), "{case}");
    assert_content(&path, &bytes_at(0, len as usize), &case);
    fs::remove_file(path).unwrap();
}

/// The same in every method, synced and not.
fn check_methods(dir: &Path, seed: u64) {
    let mut numbers = Numbers::new(seed);
    for method in METHODS {
        for sync in [true, false] {
            check_pieces(dir, &mut numbers, FileOptions::new().method(method).sync(sync));
        }
    }
}

#[test]
fn pieces_of_any_boundary_and_order_make_one_file() {
    check_methods(scratch().path(), 1);
    check_methods(memory_scratch().path(), 2);
}

#[test]
fn pieces_make_one_file_on_every_filesystem() {
    let test = "pieces_make_one_file_on_every_filesystem";
    let mounts = [
        Mount::ext4(test, 64),
        Mount::xfs(test),
        Mount::btrfs(test, 128),
        Mount::overlay(test),
        Mount::fuse(test),
    ];
    for (seed, mount) in mounts.iter().flatten().enumerate() {
        check_methods(mount.path(), 10 + seed as u64);
    }
}

/// The method that a small file was written with.
fn method_used(dir: &Path, method: Method, sync: bool) -> Method {
    let path = dir.join("small");
    let file = FileOptions::new().len(200_000).method(method).sync(sync).create(&path).unwrap();
    let before = file.method();
    file.write_at(0, &bytes_at(0, 200_000)).unwrap();
    let finished = file.finish().unwrap();
    assert_eq!(finished.method, before, "the method does not change on the way");
    fs::remove_file(path).unwrap();
    finished.method
}

#[test]
fn each_filesystem_gets_the_method_that_suits_it() {
    use Method::{Auto, Buffered, Direct, Mapped};
    let test = "each_filesystem_gets_the_method_that_suits_it";
    // Synced by choice, unsynced by choice, direct as asked, mapped as asked.
    let cases = [
        (Mount::ext4(test, 32), [Direct, Buffered, Direct, Mapped]),
        (Mount::xfs(test), [Direct, Buffered, Direct, Mapped]),
        (Mount::btrfs(test, 128), [Direct, Buffered, Direct, Buffered]),
        (Mount::tmpfs(test, 8), [Mapped, Mapped, Buffered, Mapped]),
        (Mount::overlay(test), [Buffered, Buffered, Direct, Buffered]),
    ];
    for (mount, expected) in cases {
        let Some(mount) = mount else { continue };
        let asked = [(Auto, true), (Auto, false), (Direct, false), (Mapped, false)];
        let used = asked.map(|(method, sync)| method_used(mount.path(), method, sync));
        assert_eq!(used, expected, "{}", mount.path().display());
    }
    if let Some(fuse) = Mount::fuse(test) {
        assert_eq!(method_used(fuse.path(), Auto, true), Buffered);
        assert_eq!(method_used(fuse.path(), Mapped, true), Buffered);
    }
}

#[test]
fn a_file_has_the_exact_length_whatever_it_is() {
    let dir = scratch();
    let path = dir.path().join("result");
    for method in METHODS {
        for len in [0, 1, 511, 4095, 4096, 4097, 65_535, 65_536, 65_537, 1 << 20, (1 << 20) + 1] {
            for options in [FileOptions::new().len(len), FileOptions::new()] {
                let file = options.method(method).create(&path).unwrap();
                file.write_at(0, &bytes_at(0, len as usize)).unwrap();
                assert_eq!(file.finish().unwrap().len, len);
                assert_content(&path, &bytes_at(0, len as usize), &format!("{method}, {len}"));
                fs::remove_file(&path).unwrap();
            }
        }
    }
}

#[test]
fn what_nobody_writes_reads_as_zeros() {
    let dir = scratch();
    let path = dir.path().join("result");
    for method in METHODS {
        let mut expected = vec![0; 1_000_000];
        let file = FileOptions::new().len(1_000_000).method(method).create(&path).unwrap();
        for (offset, len) in [(10, 100), (70_000, 5), (200_000, 300_000), (999_000, 10)] {
            let piece = bytes_at(offset, len);
            file.write_at(offset, &piece).unwrap();
            expected[offset as usize..offset as usize + len].copy_from_slice(&piece);
        }
        assert_eq!(file.finish().unwrap().written, 300_115, "{method}");
        assert_content(&path, &expected, &method.to_string());
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_file_in_memory_is_right_in_huge_pages_and_in_single_ones() {
    let dir = memory_scratch();
    let path = dir.path().join("result");
    let len = 3 * HUGE_PAGE_BYTES as u64 + 12_345;
    let mut numbers = Numbers::new(11);
    for options in [FileOptions::new().len(len), FileOptions::new()] {
        for prepares in [true, false] {
            let mut pieces = cut(&mut numbers, len);
            shuffle(&mut numbers, &mut pieces);
            let file = options.create(&path).unwrap();
            if prepares {
                file.prepare().unwrap();
            }
            write_all(&file, 4, pieces);
            file.finish().unwrap();
            assert_bytes(&path, &bytes_at(0, len as usize), &format!("{options:?}"));
            fs::remove_file(&path).unwrap();
        }
        // Where the kernel has none.
        for errno in [libc::EINVAL, libc::ENOMEM, libc::EAGAIN] {
            kernel::where_it_fails(libc::SYS_madvise, errno, || {
                let file = options.create(&path).unwrap();
                file.write_at(0, &bytes_at(0, len as usize)).unwrap();
                file.finish().unwrap();
            });
            assert_bytes(&path, &bytes_at(0, len as usize), &format!("{errno}, {options:?}"));
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn what_nobody_writes_of_a_huge_page_reads_as_zeros() {
    let dir = memory_scratch();
    let path = dir.path().join("result");
    let len = 3 * HUGE_PAGE_BYTES;
    let file = FileOptions::new().len(len as u64).create(&path).unwrap();
    file.write_at(len as u64 / 2, b"piece").unwrap();
    assert_eq!(file.finish().unwrap().written, 5);
    let mut expected = vec![0; len];
    expected[len / 2..][..5].copy_from_slice(b"piece");
    assert_bytes(&path, &expected, "one piece");
}

#[test]
fn more_open_ends_than_fit_into_memory_go_through_the_page_cache() {
    // A small piece in each of more cells than are kept, then the rest of every second one.
    const CELL: u64 = 64 << 10;
    let dir = scratch();
    let path = dir.path().join("result");
    let cells = 1100;
    let file = FileOptions::new().len(cells * CELL).method(Method::Direct).create(&path).unwrap();
    let mut expected = vec![0; (cells * CELL) as usize];
    let mut write = |offset: u64, len: u64| {
        let piece = vec![offset as u8 | 1; len as usize];
        file.write_at(offset, &piece).unwrap();
        expected[offset as usize..(offset + len) as usize].copy_from_slice(&piece);
    };
    (0..cells).for_each(|cell| write(cell * CELL + 5, 5000));
    (0..cells).step_by(2).for_each(|cell| {
        write(cell * CELL + 5005, CELL - 5005);
        write(cell * CELL, 5);
    });
    file.finish().unwrap();
    assert_content(&path, &expected, "many cells");
}

#[test]
fn a_synced_file_survives_a_power_cut() {
    let test = "a_synced_file_survives_a_power_cut";
    for mount in [Mount::ext4(test, 64), Mount::xfs(test)].into_iter().flatten() {
        for method in METHODS {
            let path = mount.path().join(method.to_string());
            let len = 3_000_001;
            let file = FileOptions::new().len(len).method(method).sync(true).create(&path).unwrap();
            write_all(&file, 3, cut(&mut Numbers::new(7), len));
            file.finish().unwrap();
            mount.cut_power();
            assert_content(&path, &bytes_at(0, len as usize), &format!("{method}"));
        }
    }
}

#[test]
fn the_example_makes_a_gzip_file_that_others_read() {
    use std::io::Read;
    let dir = scratch();
    let (from, to) = (dir.path().join("plain"), dir.path().join("plain.gz"));
    for len in [0, 100, 3_500_000] {
        // Half of it can be compressed, so that no member is as long as another.
        let plain: Vec<u8> = bytes_at(0, len)
            .chunks(5000)
            .flat_map(|part| [part, part])
            .flatten()
            .copied()
            .collect();
        fs::write(&from, &plain).unwrap();
        let finished = example::compress(&from, &to, 3).unwrap();
        assert_eq!(finished.len, fs::metadata(&to).unwrap().len());
        let mut found = Vec::new();
        let packed = fs::File::open(&to).unwrap();
        flate2::read::MultiGzDecoder::new(packed).read_to_end(&mut found).unwrap();
        assert!(found == plain, "{len} bytes");
        fs::remove_file(&to).unwrap();
    }
}
