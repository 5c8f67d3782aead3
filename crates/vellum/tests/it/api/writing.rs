//! Records that are written piece by piece.

use std::io::Write;

use crate::support::{LAYOUTS, payloads, place, scratch, small};
use vellum::Layout;

#[test]
fn what_is_written_in_pieces_is_one_record() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let (mut one, mut other) = (log.writer(), log.writer());
        for piece in ["a", " b", "\n"] {
            write!(one, "{piece}").unwrap();
            write!(other, "{piece}{piece}").unwrap();
        }
        let lsn = other.append().unwrap();
        assert_eq!(lsn, log.begin());
        one.flush().unwrap();
        one.flush().unwrap();
        writeln!(one, "next").unwrap();
        drop(one);
        drop(log.writer());
        assert_eq!(log.writer().append().unwrap(), log.tail(), "nothing is no record");
        let expected: &[&[u8]] = match layout {
            Layout::Framed => &[b"aa b b\n\n", b"a b\n", b"next\n"],
            _ => &[b"aa b b\n", b"\n", b"a b\n", b"next\n"],
        };
        assert_eq!(payloads(&log), expected);
    }
}
