//! Lines with NULs, as a handler in UTF-16 and dumps of memory write them.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use vellum::{Options, Tuning};

use super::line;
use crate::support::{FILLS, assert_sound, payloads, place, scratch, segment_files};

/// The bytes of a line of text in UTF-16, a short one of NULs alone, and a long one.
fn lines() -> [Vec<u8>; 3] {
    let wide = "wide".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let with_end = |mut bytes: Vec<u8>| {
        bytes.push(b'\n');
        bytes
    };
    [wide, vec![0; 3], vec![0; 200_000]].map(with_end)
}

/// Takes away what a file stores from 64 to 128 KiB.
fn punch(file: &Path) {
    let file = File::options().write(true).open(file).unwrap();
    let flags = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the call takes no memory.
    let done = unsafe { libc::fallocate(file.as_raw_fd(), flags, 64 << 10, 64 << 10) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn nuls_that_were_appended_are_no_damage_and_a_hole_is() {
    for fill in FILLS {
        let dir = scratch();
        let log =
            Options::mapped_text().tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
        let mut expected = lines().to_vec();
        expected.push(line(1, 90));
        for line in &expected {
            log.append(line).unwrap();
        }
        assert!(payloads(&log) == expected, "{fill}");
        assert_sound(&log);
        punch(&segment_files(&place(&dir))[0]);
        let damage = log.verify().unwrap().damage;
        assert_eq!(damage.len(), 1, "{fill}: {damage:?}");
        assert!(damage[0].reason.contains("hole"), "{damage:?}");
        assert!(payloads(&log) == expected, "{fill}");
    }
}
