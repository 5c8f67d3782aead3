//! Pages that commands leave in the page cache.

use std::path::{Path, PathBuf};

use vellum_testing::cache::{cached_pages, forget};

use super::support::Place;

/// Closed segments are as long as this, or nearly.
const SEGMENT: u64 = 4 << 20;

/// A log of more than four segments, without the newest.
fn closed(log: &Path) -> Vec<(PathBuf, usize)> {
    let mut files = cached_pages(log, SEGMENT / 2);
    // Prepared files are behind the newest with records.
    files.truncate(4);
    files
}

fn made(layout: &str) -> Place {
    let place = Place::new();
    let line = [&[b'x'; 999][..], b"\n"].concat();
    let segment = SEGMENT.to_string();
    let options = ["--layout", layout, "--segment-bytes", &segment];
    let ran = place.run("append", &options, &line.repeat(20_000));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    place
}

#[test]
fn a_log_that_was_not_cached_is_not_cached_when_it_was_read() {
    for layout in ["framed", "text"] {
        let place = made(layout);
        forget(&place.log(), 0);
        let before = closed(&place.log());
        assert_eq!(before.len(), 4, "{before:?}");
        if before.iter().any(|(_, pages)| *pages > 0) {
            vellum_testing::missing::skip("this filesystem keeps its files in memory");
            return;
        }
        for command in ["verify", "cat"] {
            assert_eq!(place.run(command, &[], b"").code, 0);
            assert_eq!(closed(&place.log()), before, "{layout}, {command}");
        }
    }
}

#[test]
fn a_log_that_was_cached_is_cached_when_it_was_read() {
    for layout in ["framed", "text"] {
        let place = made(layout);
        let before = closed(&place.log());
        assert!(before.iter().all(|(_, pages)| *pages > 0), "{before:?}");
        for command in ["verify", "cat"] {
            assert_eq!(place.run(command, &[], b"").code, 0);
            assert_eq!(closed(&place.log()), before, "{layout}, {command}");
        }
    }
}
