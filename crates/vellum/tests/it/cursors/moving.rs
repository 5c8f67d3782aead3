//! Where cursors are, where they can be moved, and that they stay there.

use vellum::{ErrorKind, Lsn, Options};

use super::{append, is_text, only, rest};
use crate::durable::in_another_boot;
use crate::support::{LAYOUTS, copy_log, place, scratch, small};

#[test]
fn a_cursor_is_where_it_was_committed_in_the_next_process_and_the_next_boot() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let all = append(&log, 100, 0);
        let cursor = log.cursor("shipper", Lsn::ZERO).unwrap();
        assert_eq!(cursor.position().unwrap(), log.begin());
        assert_eq!(rest(&cursor).len(), 100);
        cursor.commit(all[40].0).unwrap();
        assert!(log.durable() >= all[40].0, "what is before a cursor is durable");
        assert_eq!(log.cursor("shipper", Lsn::ZERO).unwrap().position().unwrap(), all[40].0);
        drop((cursor, log));
        let log = Options::default().open(place(&dir)).unwrap();
        assert_eq!(rest(&log.cursor("shipper", Lsn::ZERO).unwrap())[0], all[40].0);
        drop(log);
        in_another_boot(&place(&dir));
        let log = Options::default().open(place(&dir)).unwrap();
        assert_eq!(rest(&log.cursor("shipper", Lsn::ZERO).unwrap())[0], all[40].0);
    }
}

#[test]
fn a_commit_goes_forward_and_set_goes_anywhere() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let all = append(&log, 100, 0);
        let cursor = log.cursor("x", all[50].0).unwrap();
        assert_eq!(cursor.commit(all[49].0).unwrap_err().kind(), ErrorKind::OutOfRange);
        cursor.commit(all[50].0).unwrap();
        cursor.set(all[10].0).unwrap();
        assert_eq!(cursor.position().unwrap(), all[10].0);
        cursor.commit(log.published()).unwrap();
        assert_eq!(rest(&cursor), []);
        cursor.set(Lsn::ZERO).unwrap();
        assert_eq!(cursor.position().unwrap(), log.begin());
        let beyond = Lsn::new(log.published().get() + 8);
        assert_eq!(cursor.commit(beyond).unwrap_err().kind(), ErrorKind::OutOfRange);
        assert_eq!(cursor.set(beyond).unwrap_err().kind(), ErrorKind::OutOfRange);
        if !is_text(&log) {
            let inside = Lsn::new(all[20].0.get() + 8);
            assert_eq!(cursor.commit(inside).unwrap_err().kind(), ErrorKind::OutOfRange);
        }
        assert_eq!(cursor.position().unwrap(), log.begin());
    }
}

#[test]
fn a_log_has_128_cursors_and_places_are_used_again() {
    let dir = scratch();
    let log = small(LAYOUTS[0]).open(place(&dir)).unwrap();
    append(&log, 3, 0);
    assert_eq!(log.cursors().unwrap(), []);
    for number in 0..128 {
        log.cursor(&format!("c{number:03}"), Lsn::ZERO).unwrap();
    }
    assert_eq!(log.cursor("more", Lsn::ZERO).unwrap_err().kind(), ErrorKind::Busy);
    log.cursor("c077", Lsn::ZERO).unwrap().remove().unwrap();
    let cursor = log.cursor("more", Lsn::ZERO).unwrap();
    let names: Vec<_> = log.cursors().unwrap().into_iter().map(|cursor| cursor.name).collect();
    assert!(names.len() == 128 && names.is_sorted() && !names.contains(&"c077".into()));
    let other = log.cursor("more", Lsn::ZERO).unwrap();
    other.remove().unwrap();
    assert_eq!(cursor.position().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(cursor.commit(log.published()).unwrap_err().kind(), ErrorKind::NotFound);
    for name in ["", "a b", "ä", "a/b", &"x".repeat(65)] {
        assert_eq!(log.cursor(name, Lsn::ZERO).unwrap_err().kind(), ErrorKind::InvalidOption);
    }
}

#[test]
fn who_may_only_read_sees_cursors_and_moves_none() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let all = append(&log, 10, 0);
        log.cursor("x", all[5].0).unwrap();
        let reader = Options::default().read_only(true).open(place(&dir)).unwrap();
        assert_eq!(reader.cursor("y", Lsn::ZERO).unwrap_err().kind(), ErrorKind::NotFound);
        let cursor = reader.cursor("x", Lsn::ZERO).unwrap();
        assert_eq!(rest(&cursor).len(), 5);
        let refused = [
            cursor.commit(all[6].0),
            cursor.set(all[6].0),
            cursor.own(),
            cursor.hold(vellum::CursorHold::new()),
            cursor.skip_overrun().map(drop),
            cursor.remove(),
        ];
        for error in refused {
            assert_eq!(error.unwrap_err().kind(), ErrorKind::ReadOnly);
        }
    }
}

#[test]
fn a_cursor_is_never_beyond_the_end_of_its_log() {
    for layout in LAYOUTS {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let all = append(&log, 100, 0);
        let before = log.cursor("before", all[20].0).unwrap();
        let beyond = log.cursor("beyond", all[80].0).unwrap();
        log.truncate(all[50].0).unwrap();
        assert_eq!(before.position().unwrap(), all[20].0);
        assert_eq!(beyond.position().unwrap(), all[50].0);
        // Older segments, and the cursors of today.
        append(&log, 5, 7);
        drop((before, beyond, log));
        let old = scratch();
        copy_log(&place(&dir), &place(&old));
        let log = Options::default().open(place(&dir)).unwrap();
        append(&log, 50, 9);
        log.cursor("beyond", Lsn::ZERO).unwrap().commit(log.published()).unwrap();
        drop(log);
        std::fs::copy(place(&dir).join("cursors"), place(&old).join("cursors")).unwrap();
        let reader = Options::default().read_only(true).open(place(&old)).unwrap();
        assert_eq!(
            reader.cursor("beyond", Lsn::ZERO).unwrap().position().unwrap(),
            reader.published()
        );
        let log = Options::default().open(place(&old)).unwrap();
        let end = log.published();
        append(&log, 100, 11);
        assert_eq!(
            log.cursor("beyond", Lsn::ZERO).unwrap().position().unwrap(),
            end,
            "it stays there"
        );
    }
}

#[test]
fn a_cursor_tells_how_far_its_reader_is_behind() {
    for layout in LAYOUTS {
        let dir = scratch();
        let options = if layout == vellum::Layout::Text {
            super::super::support::small(layout).rotate_bytes(1000)
        } else {
            small(layout)
        };
        let log = options.open(place(&dir)).unwrap();
        let all = append(&log, 100, 0);
        let cursor = log.cursor("x", all[60].0).unwrap();
        let stat = only(&log);
        assert_eq!((stat.name.as_str(), stat.lsn, stat.hold), ("x", all[60].0, None));
        assert_eq!(stat.lag_records, Some(40));
        let bytes: usize = all[60..].iter().map(|(_, bytes)| bytes.len()).sum();
        match is_text(&log) {
            true => assert_eq!(stat.lag_bytes, bytes as u64, "text alone counts"),
            false => assert_eq!(stat.lag_bytes, log.published().get() - all[60].0.get()),
        }
        assert_eq!(stat.lag_time.is_some(), is_text(&log));
        cursor.commit(log.published()).unwrap();
        let stat = only(&log);
        assert_eq!((stat.lag_bytes, stat.lag_records), (0, Some(0)));
        assert_eq!(stat.lag_time, Some(std::time::Duration::ZERO));
        assert_eq!(log.stat().unwrap().cursors, [stat]);
    }
}
