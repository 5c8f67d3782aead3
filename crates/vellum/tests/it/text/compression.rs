//! Closed files that are compressed: read as if they were not, and never lost.

use std::fs;
use std::path::{Path, PathBuf};

use vellum::{Compression, ErrorKind, Lsn, Options, Tuning};

use super::{append_lines, line, rotating};
use crate::support::{FILLS, assert_sound, payloads, place, scratch, segment_files, skip};

fn compressed_files(log: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|p| p.extension().is_some_and(|e| e == "zst" || e == "gz")).collect();
    files.sort();
    files
}

#[test]
fn closed_files_are_compressed_and_read_as_if_they_were_not() {
    for (fill, compression) in FILLS.into_iter().zip([Compression::Zstd, Compression::Gzip]) {
        let dir = scratch();
        let log = rotating(10_000)
            .compress(compression)
            .tuning(Tuning::new().fill(fill))
            .open(place(&dir))
            .unwrap();
        let mut expected = append_lines(&log, 0..400, 100);
        assert_eq!(compressed_files(&place(&dir)).len(), 3);
        assert_eq!(segment_files(&place(&dir)).len(), 1);
        assert!(compressed_files(&place(&dir)).iter().all(|f| f.metadata().unwrap().len() < 2000));
        for loses_control in [false, true] {
            assert!(payloads(&log) == expected, "{fill} {loses_control}");
            assert_sound(&log);
            let ends: Vec<_> =
                log.stat().unwrap().segments.iter().map(|s| s.end_lsn.get()).collect();
            assert!(ends[..3].iter().all(|end| end % (16 << 20) == 10_000), "{ends:?}");
            if loses_control {
                fs::remove_file(place(&dir).join("control")).unwrap();
                let again = Options::default().read_only(true).open(place(&dir)).unwrap();
                assert!(payloads(&again) == expected);
            }
        }
        drop(log);
        let log = Options::default().open(place(&dir)).unwrap();
        expected.extend(append_lines(&log, 400..450, 100));
        assert!(payloads(&log) == expected);
    }
}

#[test]
fn what_somebody_died_at_is_finished_by_the_next() {
    let dir = scratch();
    let log = rotating(1000).open(place(&dir)).unwrap();
    let mut expected = append_lines(&log, 0..35, 100);
    drop(log);
    // One is compressed in part, another wholly, and the plain file is still there.
    let plain = segment_files(&place(&dir));
    let whole = zstd::encode_all(&fs::read(&plain[1]).unwrap()[..], 1).unwrap();
    fs::write(place(&dir).join("compressed.new"), &whole[..20]).unwrap();
    fs::write(plain[1].with_extension("log.zst"), &whole).unwrap();
    let log = Options::default().compress(true).open(place(&dir)).unwrap();
    assert_eq!(segment_files(&place(&dir)), plain[3..]);
    assert_eq!(compressed_files(&place(&dir)).len(), 3);
    expected.extend(append_lines(&log, 35..36, 100));
    assert!(payloads(&log) == expected);
    assert!(!place(&dir).join("compressed.new").exists());
    for file in compressed_files(&place(&dir)) {
        let text = zstd::decode_all(&fs::read(file).unwrap()[..]).unwrap();
        assert_eq!(text.len(), 1000, "any tool reads them");
    }
}

#[test]
fn what_is_kept_is_counted_as_it_lies_on_the_disk() {
    let dir = scratch();
    let options = rotating(10_000).compress(true).retain_bytes(12_000);
    let log = options.open(place(&dir)).unwrap();
    append_lines(&log, 0..1000, 100);
    let files = compressed_files(&place(&dir));
    assert!(files.len() > 3, "many small ones: {files:?}");
    let bytes: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(bytes <= 12_000);
    assert!(payloads(&log).ends_with(&[line(999, 100)]));
    assert_sound(&log);
}

#[test]
fn a_reader_follows_from_compressed_files_to_the_newest() {
    for compression in [Compression::Zstd, Compression::Gzip] {
        let dir = scratch();
        let log = rotating(1000).compress(compression).open(place(&dir)).unwrap();
        append_lines(&log, 0..5, 100);
        let mut reader = log.reader(Lsn::ZERO).unwrap();
        for number in 0..100 {
            assert_eq!(reader.next().unwrap().unwrap().payload, line(number, 100));
            append_lines(&log, number + 5..number + 6, 100);
        }
    }
}

#[test]
fn a_log_has_files_of_each_kind_and_the_newest_wish_counts() {
    let dir = scratch();
    let log = rotating(1000).open(place(&dir)).unwrap();
    let mut expected = append_lines(&log, 0..15, 100);
    drop(log);
    for (turn, compression) in
        [Compression::Zstd, Compression::Gzip, Compression::None].into_iter().enumerate()
    {
        let log = Options::default().compress(compression).open(place(&dir)).unwrap();
        assert_eq!(log.stat().unwrap().policy.compression, compression);
        let numbers = 15 + turn * 10..25 + turn * 10;
        expected.extend(append_lines(&log, numbers, 100));
        assert!(payloads(&log) == expected, "{compression}");
        assert_sound(&log);
    }
    let names = compressed_files(&place(&dir));
    let count = |end: &str| names.iter().filter(|name| name.extension().unwrap() == end).count();
    assert_eq!((count("zst"), count("gz")), (2, 1));
}

#[test]
fn a_file_that_somebody_packs_with_gzip_is_read_on() {
    let test = "a_file_that_somebody_packs_with_gzip_is_read_on";
    let dir = scratch();
    let log = rotating(1000).open(place(&dir)).unwrap();
    let expected = append_lines(&log, 0..25, 100);
    for file in &segment_files(&place(&dir))[..2] {
        let Ok(done) = std::process::Command::new("gzip").arg(file).status() else {
            return skip(test, "there is no gzip");
        };
        assert!(done.success());
    }
    assert!(payloads(&log) == expected);
    assert_sound(&log);
    drop(log);
    assert!(payloads(&Options::default().open(place(&dir)).unwrap()) == expected);
    let gz = &compressed_files(&place(&dir))[0];
    assert!(std::process::Command::new("gzip").arg("-d").arg(gz).status().unwrap().success());
    assert!(payloads(&Options::default().open(place(&dir)).unwrap()) == expected, "and unpacks");
}

#[test]
fn a_compressed_file_that_is_damaged_is_an_error_and_truncation_there_is_refused() {
    // The checksum of zstd is the last four bytes, that of gzip is before them.
    for (compression, from_end) in [(Compression::Zstd, 1), (Compression::Gzip, 5)] {
        let dir = scratch();
        let log = rotating(1000).compress(compression).open(place(&dir)).unwrap();
        append_lines(&log, 0..35, 100);
        let begin = log.begin();
        assert_eq!(log.truncate(begin).unwrap_err().kind(), ErrorKind::Unsupported);
        let file = &compressed_files(&place(&dir))[0];
        let mut bytes = fs::read(file).unwrap();
        let at = bytes.len() - from_end;
        bytes[at] ^= 1;
        fs::write(file, bytes).unwrap();
        let error = log.reader(Lsn::ZERO).unwrap().next().map(drop).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corrupt, Some(file.as_path())));
        assert_eq!(log.verify().unwrap().damage.len(), 1);
    }
}

#[test]
fn the_standard_tool_reads_them() {
    let test = "the_standard_tool_reads_them";
    for (tool, compression) in [("zstd", Compression::Zstd), ("gzip", Compression::Gzip)] {
        let Ok(told) = std::process::Command::new(tool).arg("--version").output() else {
            skip(test, &format!("there is no {tool}"));
            continue;
        };
        assert!(told.status.success());
        let dir = scratch();
        let log = rotating(1000).compress(compression).open(place(&dir)).unwrap();
        let lines = append_lines(&log, 0..15, 100);
        let file = &compressed_files(&place(&dir))[0];
        let output = std::process::Command::new(tool).args(["-dc"]).arg(file).output().unwrap();
        assert!(output.stdout == lines[..10].concat());
    }
}

#[test]
fn a_compression_that_fails_leaves_nothing_and_what_was_left_goes_with_the_next_opener() {
    let dir = scratch();
    let log = rotating(100).open(place(&dir)).unwrap();
    append_lines(&log, 0..3, 90);
    let oldest = segment_files(&place(&dir))[0].clone();
    let mut obstacle = oldest.into_os_string();
    obstacle.push(".zst");
    fs::create_dir(&obstacle).unwrap();
    drop(log);
    let unfinished = place(&dir).join("compressed.new");
    let log = Options::default().compress(true).open(place(&dir)).unwrap();
    assert!(!unfinished.exists());
    fs::remove_dir(&obstacle).unwrap();
    fs::write(&unfinished, b"left by a process that was killed").unwrap();
    drop(log);
    drop(Options::default().compress(false).open(place(&dir)).unwrap());
    assert!(!unfinished.exists());
}
