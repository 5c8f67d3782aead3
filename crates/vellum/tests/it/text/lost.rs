//! The marker in the place of a line whose writer died says its size once.

use vellum::{Fill, Options, Tuning};

use super::line;
use crate::support::child::Child;
use crate::support::{FILLS, assert_sound, payloads, place, scratch};

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
