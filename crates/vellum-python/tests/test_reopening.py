"""Opening a log that is there with each option: which ones refuse it, and which change nothing."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import vellum_log
from conftest import handler_to
from vellum_log import Log

#: A value of each option that is not the log's.
OTHERS: dict[str, list[Any]] = {
    "fill": ["mapped", "pwrite", "staged"],
    "segment_capacity_bytes": [4096, 1 << 30],
    "preallocate": ["off", "sparse", "zeros", "recycle"],
    "mode": [0o600],
    "application_tag": [7],
    "envelope": [True],
    "file_link": [True],
    "rotate_bytes": [1 << 30],
    "rotate_every": [86400],
    "rotate_offset": [3600],
    "retain_bytes": [1 << 30],
    "retain_age": [86400],
    "retain_files": [9],
    "compress": ["gzip"],
    "create": [False],
    "create_new": [True],
    "read_only": [True],
    "exclusive": [True],
    "advice": [False],
    "prefault_bytes": [4096],
    "mapped_bytes_max": [4096],
    "staged_segments_max": [2],
    "spare_segments_max": [0],
    "on_stage_full": ["error"],
    "on_full": ["block", "drop"],
    "timeout": [60],
    "checkpoint_after_bytes": [1],
}
#: Each log is refused with these, and a framed one with those.
ALWAYS = {"application_tag", "envelope", "create_new"}
FRAMED = {"rotate_bytes", "rotate_every", "rotate_offset", "retain_files", "compress"}


def test_the_values_are_of_all_options() -> None:
    assert {*OTHERS, "path", "kind"} == set(inspect.signature(Log).parameters)


def shape(log: Log) -> tuple[Any, ...]:
    stat = log.stat()
    return stat["segment_capacity_bytes"], stat["fill"], stat["preallocate"]


@pytest.mark.parametrize("kind", ["wal", "events", "text", "mapped-text"])
def test_an_option_refuses_no_log_but_one_that_would_be_misunderstood(
    path: str, kind: Any
) -> None:
    with Log(path, kind=kind, segment_capacity_bytes=1 << 20) as log:
        log.append(b"before\n")
        before, is_framed = shape(log), log.layout == "framed"
    for name, value in [(name, value) for name, values in OTHERS.items() for value in values]:
        refused = name in ALWAYS or is_framed and (name in FRAMED or value == "drop")
        if refused:
            with pytest.raises((vellum_log.InvalidOption, vellum_log.AlreadyExists)):
                Log(path, **{name: value})
            continue
        with Log(path, **{name: value}) as log:
            assert shape(log) == before, name
            assert [record.payload for record in log.read()] == [b"before\n"], name
    with Log(path) as log:
        log.append(b"behind\n")
        assert len(list(log.read())) == 2


def test_a_handler_takes_the_log_that_is_there(directory: str) -> None:
    for options in [{}, {"fill": "mapped"}, {"segment_capacity_bytes": 1 << 20}]:
        handler = handler_to(directory, **options)
        assert shape(handler.log)[:2] == (64 << 20, "pwrite")
        handler.close()
