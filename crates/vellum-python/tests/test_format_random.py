"""Formats, messages and moments at random: what the native part writes is what `logging` would."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from test_format import Sink, copy, expected, record

FIELDS = [
    "asctime", "created", "filename", "funcName", "levelname", "levelno", "lineno", "message", "module", "msecs",
    "name", "pathname", "process", "processName", "relativeCreated", "thread", "threadName", "missing",
]  # fmt: skip
"""Fields of a record, and one that it does not have."""

TEXT = st.text(st.characters(codec=None), max_size=8)
NUMBER = st.integers(-(2**70), 2**70)
VALUE = st.one_of(TEXT, NUMBER, st.floats(), st.booleans(), st.none(), st.binary(max_size=4))
FLAGS = st.sampled_from(["", "-", "0", " ", "+", "#", "-0"])
WIDTH = st.sampled_from(["", "1", "6", "20"])
PRECISION = st.sampled_from(["", ".0", ".3"])
CONVERSION = st.sampled_from("sdrixXfgeac%")


@st.composite
def places(draw: st.DrawFn, name: str = "") -> str:
    parts = [draw(part) for part in (FLAGS, WIDTH, PRECISION, CONVERSION)]
    return "%" + name + "".join(parts)


@st.composite
def fields(draw: st.DrawFn) -> str:
    return draw(places(f"({draw(st.sampled_from(FIELDS))})"))


FORMAT = st.lists(st.one_of(fields(), st.just("%(message)s"), TEXT), max_size=5).map("".join)
MESSAGE = st.lists(st.one_of(places(), TEXT), max_size=4).map("".join)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)


@pytest.fixture
def sink(path: str) -> Iterator[Sink]:
    sink = Sink(path)
    yield sink
    sink.handler.close()


RANDOM = settings(
    max_examples=500,
    deadline=None,
    database=None,
    # One log serves all examples: a record is looked for behind the one before.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@RANDOM
@given(fmt=FORMAT, msg=MESSAGE, args=st.lists(VALUE, max_size=4))
def test_random_formats_and_messages(sink: Sink, fmt: str, msg: str, args: list[Any]) -> None:
    formatter = logging.Formatter(fmt, validate=False)
    sink.handler.setFormatter(formatter)
    of = record(msg, tuple(args))
    assert sink.written(copy(of)) == expected(formatter, of)


@RANDOM
@given(
    created=st.floats(-1e10, 1e11),
    msecs=st.floats(-10, 2000),
    datefmt=st.one_of(st.none(), st.text("%YmdHMSjBZ: ", max_size=12)),
)
def test_random_moments(sink: Sink, created: float, msecs: float, datefmt: str | None) -> None:
    formatter = logging.Formatter("%(asctime)s %(msecs)d %(message)s", datefmt)
    sink.handler.setFormatter(formatter)
    of = record(created=created, msecs=msecs)
    assert sink.written(copy(of)) == expected(formatter, of)


@RANDOM
@given(attributes=st.dictionaries(st.sampled_from(FIELDS + ["exc_text", "stack_info"]), VALUE, max_size=3))
def test_random_attributes(sink: Sink, attributes: dict[str, Any]) -> None:
    formatter = logging.Formatter("%(levelname)-8s|%(lineno)d|%(name)s|%(message)s")
    sink.handler.setFormatter(formatter)
    of = record("a message", **attributes)
    assert sink.written(copy(of)) == expected(formatter, of)
