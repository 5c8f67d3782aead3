//! The marker in the place of a line whose writer died says its size once.

use std::fs;
use std::os::unix::fs::FileExt;

use vellum::{Fill, Options, Tuning};

use super::line;
use crate::durable::in_another_boot;
use crate::support::child::Child;
use crate::support::{FILLS, assert_sound, payloads, place, scratch, segment_files};

/// A line of the report: longer than a marker's line, and than two segments of 64 KiB.
const LOST: usize = 174_635;

/// The sizes that the markers among `lines` report.
fn told(lines: &[Vec<u8>]) -> Vec<usize> {
    let size = |line: &Vec<u8>| {
        let words = std::str::from_utf8(line).ok()?.strip_prefix("~ vellum: ")?;
        words.split_once(" bytes lost: ")?.0.parse().ok()
    };
    lines.iter().filter_map(size).collect()
}

fn options(fill: Fill, segment_bytes: u64) -> Options {
    Options::mapped_text().tuning(Tuning::new().fill(fill).segment_capacity_bytes(segment_bytes))
}

#[test]
fn a_lost_line_leaves_its_size_once() {
    for (fill, segment_bytes) in
        FILLS.into_iter().flat_map(|fill| [(fill, 64 << 10), (fill, 1 << 20)])
    {
        let dir = scratch();
        let log = options(fill, segment_bytes).open(place(&dir)).unwrap();
        log.append(&line(1, 100)).unwrap();
        let arguments = [place(&dir).to_str().unwrap().to_string(), LOST.to_string()];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut writer = Child::start("hold a reservation", &arguments);
        writer.hears().unwrap();
        writer.kill();
        log.append(&line(2, 100)).unwrap();
        let lines = payloads(&log);
        assert_eq!(told(&lines), [LOST], "{fill} {segment_bytes}");
        assert_eq!((&lines[0], lines.last().unwrap()), (&line(1, 100), &line(2, 100)));
        let fillers = &lines[2..lines.len() - 1];
        let is_filler = |line: &Vec<u8>| line.iter().all(|byte| b"~\n".contains(byte));
        assert!(fillers.len() < 6 && fillers.iter().all(is_filler), "{fill} {segment_bytes}");
        assert!(lines.iter().all(|line| line.len() <= 60 << 10));
        let lost: usize = lines.iter().map(Vec::len).sum();
        assert_eq!(lost, LOST + 200, "every byte of the hole is a marker's");
        assert_sound(&log);
    }
}

/// A log with a line, the marker of a lost one, and another line, which is closed.
fn with_marker(dir: &tempfile::TempDir, fill: Fill, segment_bytes: u64) {
    let log = options(fill, segment_bytes).open(place(dir)).unwrap();
    log.append(&line(1, 100)).unwrap();
    let arguments = [place(dir).to_str().unwrap().to_string(), LOST.to_string()];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut writer = Child::start("hold a reservation", &arguments);
    writer.hears().unwrap();
    writer.kill();
    log.append(&line(2, 100)).unwrap();
}

// A marker of which a power cut left the beginning got another one in its rest: the sum of the lost
// bytes was too large.
#[test]
fn a_marker_that_was_half_written_at_a_power_cut_tells_its_size_once() {
    // Holes in the file of the marker's beginning, by offset and length.
    let holes: [&[(u64, u64)]; 6] = [
        &[(4096, 4096)],
        &[(8192, 40_000)],
        // Each at the end of a line of the marker, over two, and all but the beginning.
        &[(100 + 60 * 1024 - 10, 10)],
        &[(53_248, 12_288)],
        &[(4096, 61_440)],
        &[(4096, 4096), (16_384, 4096), (32_768, 20_000)],
    ];
    for fill in FILLS {
        for segment_bytes in [64 << 10, 1 << 20] {
            for holes in holes {
                let dir = scratch();
                with_marker(&dir, fill, segment_bytes);
                // Of small segments the marker begins in the second: its line is longer than one.
                let files = segment_files(&place(&dir));
                let marked = |file: &&std::path::PathBuf| {
                    String::from_utf8_lossy(&fs::read(file).unwrap()).contains("~ vellum: ")
                };
                let file = files.iter().find(marked).unwrap();
                let len = fs::metadata(file).unwrap().len();
                let file = fs::File::options().write(true).open(file).unwrap();
                for (offset, hole) in holes {
                    let hole = (*hole).min(len.saturating_sub(*offset + 1));
                    file.write_all_at(&vec![0; hole as usize], *offset).unwrap();
                }
                in_another_boot(&place(&dir));
                let log = Options::default().open(place(&dir)).unwrap();
                let lines = payloads(&log);
                let case = format!("{fill} {segment_bytes} {holes:?}");
                assert_eq!(told(&lines), [LOST], "{case}");
                // In the middle of a line too.
                let text = String::from_utf8(lines.concat()).unwrap();
                assert_eq!(text.matches(" bytes lost: ").count(), 1, "{case}");
                assert_eq!((&lines[0], lines.last().unwrap()), (&line(1, 100), &line(2, 100)));
                let lost: usize = lines.iter().map(Vec::len).sum();
                assert_eq!(lost, LOST + 200, "{case}");
                assert_sound(&log);
            }
        }
    }
}

// The bytes of a hole behind the end of a marker are told for themselves.
#[test]
fn a_hole_that_is_longer_than_the_marker_before_it_tells_the_rest() {
    let dir = scratch();
    let log = Options::text().open(place(&dir)).unwrap();
    log.append(&line(1, 100)).unwrap();
    let marker = format!("{:~<200}\n", "~ vellum: 201 bytes lost: their writer died ");
    let other = format!("{:~<70}\n", "~ a line of the program, and no marker");
    for text in [&*marker, "line\n", &*other, "last\n"] {
        log.append(text.as_bytes()).unwrap();
    }
    drop(log);
    let file = fs::File::options().write(true).open(&segment_files(&place(&dir))[0]).unwrap();
    // From the middle of the marker to the end of `line`, and in the line of the program.
    file.write_all_at(&[0; 106], 200).unwrap();
    file.write_all_at(&[0; 25], 350).unwrap();
    in_another_boot(&place(&dir));
    let lines = payloads(&Options::default().open(place(&dir)).unwrap());
    let text = String::from_utf8(lines.concat()).unwrap();
    assert_eq!(text.len(), 301 + 5 + 71 + 5, "{text}");
    assert_eq!(text.matches(" bytes lost").count(), 1, "{text}");
    assert!(text.ends_with("last\n"), "{text}");
}
