"""The id of a log, its epochs, and positions that are stored outside of it."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import vellum_log
from vellum_log import Log, Position


def test_a_position_is_the_same_record_or_refused(tmp_path: Path) -> None:
    with Log(tmp_path / "log") as log, Log(tmp_path / "other") as other:
        first, second = log.append(b"first"), log.append(b"second")
        position = log.position(second)
        assert (position.log, position.epoch, position.lsn) == (log.id, 1, second)
        assert Position(str(position)) == position == pickle.loads(pickle.dumps(position))
        assert log.resolve(position) == second
        reader = log.read(position)
        record = next(reader)
        assert record.payload == b"second"
        after = reader.position_of(record.next_lsn)
        assert log.resolve(after, after=True) == record.next_lsn
        with pytest.raises(vellum_log.OtherLog) as other_log:
            other.resolve(position)
        assert other_log.value.kind == vellum_log.ErrorKind.OTHER_LOG == 22
        log.truncate(second)
        assert log.append(b"another") == second
        assert log.epoch == 2
        with pytest.raises(vellum_log.Rewound) as rewound:
            log.read(position)
        assert rewound.value.lsn == second
        assert rewound.value.kind == vellum_log.ErrorKind.REWOUND == 21
        assert [record.payload for record in log.read(position, after=True)] == [b"another"]
        assert next(log.follow(log.position(first), timeout=5)).payload == b"first"
        with pytest.raises(vellum_log.InvalidOption):
            Position("7")


def test_the_state_tells_id_epoch_tag_and_recovery(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with Log(path, kind="text", application_tag=7) as log:
        log.append(b"line\n")
        stat = log.stat()
        assert (stat["log_id"], stat["epoch"], stat["application_tag"]) == (log.id, 1, 7)
        assert stat["last_recovery"] is None
    (path / "control").unlink()
    with Log(path) as log:
        recovery = log.recovery
        assert recovery is not None and recovery["reason"] == "control_lost"
        assert recovery["from"] == recovery["end"] == log.tail
    with Log(path, read_only=True) as log:
        assert log.recovery is None
        assert log.stat()["last_recovery"] == recovery
    with pytest.raises(vellum_log.InvalidOption, match="0x0000000000000007"):
        Log(path, application_tag=8)
