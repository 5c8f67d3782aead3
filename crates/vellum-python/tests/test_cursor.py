"""`vellum_log.Cursor`: named positions, what they hold back, who owns them."""

from __future__ import annotations

import os

import pytest

import vellum_log
from conftest import in_child
from vellum_log import Cursor, Log


def rest(cursor: Cursor) -> list[bytes]:
    return [record.payload for record in cursor.read()]


def test_a_cursor_goes_forward_and_is_there_in_the_next_process(path: str) -> None:
    with Log(path) as log:
        lsns = [log.append(b"%d" % number) for number in range(5)]
        cursor = log.cursor("shipper")
        assert (cursor.name, cursor.position) == ("shipper", log.begin)
        for record in cursor.read():
            if record.payload == b"2":
                cursor.commit(record.next_lsn)
        assert cursor.position == lsns[3]
        with pytest.raises(vellum_log.OutOfRange):
            cursor.commit(lsns[1])
    with Log(path) as log:
        cursor = log.cursor("shipper")
        assert rest(cursor) == [b"3", b"4"]
        assert [record.payload for record in cursor.follow(timeout=0)] == [b"3", b"4"]
        cursor.set(0)
        assert len(rest(cursor)) == 5
        assert log.cursor("other", lsns[4]).position == lsns[4]
        assert [told["name"] for told in log.cursors()] == ["other", "shipper"]
        cursor.remove()
        with pytest.raises(vellum_log.NotFound):
            cursor.commit(log.published)
    with pytest.raises(ValueError, match="closed"):
        _ = cursor.position


def test_a_cursor_holds_records_and_tells_what_was_removed(path: str) -> None:
    with Log(path) as log:
        lsns = [log.append(b"%d" % number) for number in range(5)]
        cursor = log.cursor("x", lsns[1])
        cursor.hold(max_bytes=1 << 20)
        assert log.trim(lsns[3]) == lsns[1]
        told = log.stat()["cursors"][0]
        assert (told["holds"], told["max_held_bytes"], told["max_held_age"]) == (True, 1 << 20, None)
        assert (told["lag_records"], told["owned"], told["owner"]) == (4, False, None)
        assert cursor.skip_overrun() is None
        cursor.unhold()
        assert log.trim(lsns[3]) == lsns[3]
        with pytest.raises(vellum_log.Trimmed):
            cursor.read()
        gap = cursor.skip_overrun()
        assert gap is not None
        assert (gap["from"], gap["to"]) == (lsns[1], lsns[3])
        assert rest(cursor) == [b"3", b"4"]
        assert log.cursors()[0]["overruns"] == 1


def test_a_cursor_has_one_owner_and_a_forked_child_is_another_process(path: str) -> None:
    with Log(path) as log:
        log.append(b"a record")
        with log.cursor("x") as cursor:
            assert log.cursors()[0]["owner"] == os.getpid()
            with pytest.raises(vellum_log.Busy, match="owned by"), log.cursor("x"):
                pass

            def child() -> None:
                with pytest.raises(vellum_log.Busy):
                    cursor.commit(log.published)

            in_child(child)
            cursor.commit(log.published)
        assert not log.cursors()[0]["owned"]
        assert repr(cursor) == '<vellum_log.Cursor "x">'
