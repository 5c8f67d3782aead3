"""What the native part formats is what `logging.Formatter` formats, byte for byte."""

from __future__ import annotations

import itertools
import logging
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from vellum_log import Log, VellumHandler

USUAL = [
    None,
    "%(message)s",
    "%(asctime)s %(levelname)s %(process)d %(message)s",
    "%(asctime)s - %(name)s - %(levelname)-8s - [%(filename)s:%(lineno)d] %(message)s",
    "%(levelname)8s|%(levelname)-8s|%(levelno)04d|%(lineno)-6d|%(lineno)6d|%(process)s",
    "%(created)s %(msecs)d %(msecs)03d %(relativeCreated)d %(thread)d %(threadName)s",
    "%(pathname)s %(module)s %(funcName)s %(processName)s %(taskName)s 100%% %(message)20s",
    "no field at all",
]
UNUSUAL = [
    "%(created)f %(message)s",
    "%(message).3s",
    "%(levelno)+d %(levelno)x %(message)r",
    "%(missing)s",
    "%(message)s %(exc_info)s",
    "%(levelname)d",
    "%(__class__)s",
    "%(getMessage)s",
    "%(message)s %(message",
]
class Text(str):
    def __str__(self) -> str:
        return "another text"


class Template(str):
    """A text that fills itself in."""

    def __str__(self) -> str:
        return self

    def __mod__(self, args: Any) -> str:
        return f"{args} filled in otherwise"


class Number(int):
    def __str__(self) -> str:
        return "another number"


class Pair(tuple):  # type: ignore[type-arg]
    pass


MESSAGES: list[tuple[Any, Any]] = [
    ("plain", ()),
    ("%d items in %s", (3, "a box")),
    ("%(a)s by name", ({"a": 1},)),
    ("two\nlines\n", ()),
    ("", ()),
    ("ümlaut 漢字 \U0001f600 \x00 \r", ()),
    ("surrogate \udc80 \ud800", ()),
    (ValueError("an object"), ()),
    (12345, ()),
    (b"bytes", ()),
    ("100%", ()),
    ("percent %% %s", ("x",)),
    ("%d", ("not a number",)),
    ("%s %s", ("one",)),
    ("%s", ("one", "two")),
    ("no place", ("one",)),
    ("%d %d %s %s", (0, -7, 10, -(2**63))),
    ("%d %s", (2**63, -(2**70))),
    ("%d %s", (True, False)),
    ("%s %d", (1.5, 1.5)),
    ("%s %s", (None, ("a", "pair"))),
    ("%d %s", (Number(5), Number(6))),
    ("%s", (Text("hidden"),)),
    (Text("hidden %s"), ("x",)),
    (Text("hidden"), ()),
    (Template("%s in a template"), ("x",)),
    (Template("a template"), ()),
    ("%s and %s", Pair(("one", "two"))),
    ("%s", ["a list"]),
    ("%s", ("ümlaut 漢字 \U0001f600",)),
    ("漢%s字%d", ("é", 3)),
    ("%s", ("\udc80",)),
    ("\udc80 %s", ("x",)),
    ("%s" * 3 + "%%" * 2, ("%s", "%", "")),
    ("%5d|%-5s|%i|%r|%.2f|%x", (3, "x", 4, "y", 1.0, 255)),
    ("%s %", ("x",)),
    ("%s %y", ("x", "y")),
    ("%s %q", ("x", "y")),
    ("%(a)s", ("not a mapping",)),
    ("%s", ("long " * 1000,)),
    ("long " * 1000 + "%s", ("x",)),
    (None, None),
]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)


class Sink:
    """A handler on a log, and what went into it last."""

    def __init__(self, path: str) -> None:
        self.handler = VellumHandler(path, segment_capacity_bytes=1 << 20)
        self.reader = self.handler.log.read()

    def written(self, record: logging.LogRecord) -> bytes:
        self.handler.handle(record)
        return b"".join(line.payload for line in self.reader)


@pytest.fixture
def sink(path: str) -> Iterator[Sink]:
    sink = Sink(path)
    yield sink
    sink.handler.close()


def record(msg: Any = "message", args: Any = (), **attributes: Any) -> logging.LogRecord:
    made = logging.LogRecord("a.name", logging.INFO, "/a/file.py", 42, msg, args, None, "function")
    made.__dict__.update(attributes)
    return made


def expected(formatter: logging.Formatter | None, of: logging.LogRecord) -> bytes:
    """What a `FileHandler` writes that loses no character; nothing where formatting fails."""
    try:
        text = (formatter or logging.Formatter()).format(of) + "\n"
    except Exception:
        return b""
    return text.encode("utf-8", "backslashreplace")


def copy(of: logging.LogRecord) -> logging.LogRecord:
    made = logging.LogRecord("", 0, "", 0, "", (), None)
    made.__dict__.clear()
    made.__dict__.update(of.__dict__)
    return made


def calls_of_python(act: Any) -> int:
    """How often `act` comes to `Formatter.format` in Python."""
    calls = 0

    def count(frame: Any, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code is logging.Formatter.format.__code__

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("fmt", USUAL + UNUSUAL)
@pytest.mark.parametrize("datefmt", [None, "%H:%M:%S", "%d. %B %Y", ""])
def test_every_message_in_every_format(sink: Sink, fmt: str | None, datefmt: str | None) -> None:
    formatter = logging.Formatter(fmt, datefmt, validate=False)
    sink.handler.setFormatter(formatter)
    for msg, args in MESSAGES:
        given = record(msg, args)
        assert sink.written(copy(given)) == expected(formatter, given), (msg, args)


@pytest.mark.parametrize("fmt", USUAL)
def test_what_is_usual_never_comes_to_python(sink: Sink, fmt: str | None) -> None:
    """Otherwise the other tests would compare the standard library with itself."""
    sink.handler.setFormatter(logging.Formatter(fmt, validate=False) if fmt else None)
    usual = record("%d items", (3,), taskName=None)
    assert calls_of_python(lambda: sink.handler.handle(usual)) == 0
    traced = record("x", exc_info=(ValueError, ValueError("x"), None))
    assert calls_of_python(lambda: sink.handler.handle(traced)) == 1


def test_moments_of_all_sorts(sink: Sink) -> None:
    formatter = logging.Formatter("%(asctime)s %(message)s")
    sink.handler.setFormatter(formatter)
    created = [0.0, 0.999, 1.0, 1e9, 1767225599.9996, 1767225600.0, 4102444800.5, -1.5, 1e9 + 0.0005]
    for moment, msecs in itertools.product(created, [0.0, 7.0, 999.0, 999.99, 1000.0, -1.0, 5]):
        given = record(created=moment, msecs=msecs)
        assert sink.written(copy(given)) == expected(formatter, given), (moment, msecs)
    for odd in (1767225600, "x", None):
        given = record(created=odd)
        assert sink.written(copy(given)) == expected(formatter, given), odd


def test_odd_attributes(sink: Sink) -> None:
    formatter = logging.Formatter("%(levelname)-9s|%(lineno)d|%(lineno)05d|%(x)s|%(x)6s|%(message)s")
    sink.handler.setFormatter(formatter)
    values = [
        Text("text"), True, -7, 0, 2**63 - 1, -(2**63), 2**63, 2**70, Number(5), 1.5, -0.4, float("nan"), float("inf"), 1e300, None, "x" * 9,
        [], "漢字", "e\u0301",
    ]  # fmt: skip
    for value in values:
        for attributes in ({"x": value}, {"x": 1, "lineno": value}, {"x": 1, "levelname": value}):
            given = record(**attributes)
            assert sink.written(copy(given)) == expected(formatter, given), attributes


@pytest.mark.parametrize(
    "missing", ["msg", "args", "exc_info", "exc_text", "stack_info", "created", "msecs", "lineno"]
)
def test_a_record_that_lacks_something(sink: Sink, missing: str) -> None:
    formatter = logging.Formatter("%(asctime)s %(lineno)d %(message)s")
    sink.handler.setFormatter(formatter)
    given = record()
    del given.__dict__[missing]
    assert sink.written(copy(given)) == expected(formatter, given)


def test_a_formatter_that_is_changed_twice(sink: Sink) -> None:
    """What hides an attribute of the class may itself be replaced."""
    formatter = logging.Formatter("%(asctime)s %(message)s")
    sink.handler.setFormatter(formatter)
    given = record(created=1767225599.25)
    for converter in (time.gmtime, lambda seconds: time.gmtime(0), time.localtime):
        formatter.converter = converter
        assert sink.written(copy(given)) == expected(formatter, given)
    formatter.__class__ = Shouting
    assert sink.written(copy(given)) == expected(formatter, given)


def test_tracebacks_and_stacks(sink: Sink) -> None:
    formatter = logging.Formatter("%(levelname)s %(message)s")
    sink.handler.setFormatter(formatter)
    try:
        raise KeyError("é \udc80")
    except KeyError:
        raised = sys.exc_info()
    for attributes in (
        {"exc_info": raised},
        {"exc_text": "a text"},
        {"stack_info": "a stack"},
        {"exc_info": raised, "stack_info": "a stack"},
        {"exc_info": (None, None, None)},
        {"exc_info": False, "stack_info": ""},
    ):
        given = record(**attributes)
        assert sink.written(copy(given)) == expected(formatter, given), attributes


class Shouting(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).upper()


class ShoutingTime(logging.Formatter):
    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return "o'clock"


@pytest.mark.parametrize(
    "formatter",
    [
        Shouting("%(message)s"),
        ShoutingTime("%(asctime)s %(message)s"),
        logging.Formatter("{levelname} {message}", style="{"),
        logging.Formatter("$levelname $message", style="$"),
        logging.Formatter("%(message)s %(host)s", defaults={"host": "here"}),
        logging.Formatter("%(message)s", defaults={"message": "never shown"}),
    ],
)
def test_other_formatters(sink: Sink, formatter: logging.Formatter) -> None:
    sink.handler.setFormatter(formatter)
    given = record()
    assert sink.written(copy(given)) == expected(formatter, given)


@pytest.mark.parametrize(
    "change",
    [
        {"converter": time.gmtime},
        {"converter": lambda seconds: time.gmtime(0)},
        {"datefmt": "%S"},
        {"default_msec_format": None},
        {"default_msec_format": "%s.%03d"},
        {"default_time_format": "%H"},
        {"formatTime": lambda record, datefmt: "never"},
        {"formatMessage": lambda record: "replaced"},
        {"format": lambda record: "replaced as a whole"},
        {"usesTime": lambda: False},
        {"formatException": lambda info: "no details"},
        {"_fmt": "not looked at"},
        {"_style": logging.PercentStyle("%(levelname)s")},
    ],
)
def test_a_formatter_that_is_changed_later(sink: Sink, change: dict[str, Any]) -> None:
    formatter = logging.Formatter("%(asctime)s %(message)s")
    sink.handler.setFormatter(formatter)
    given = record(created=1767225599.25)
    assert sink.written(copy(given)) == expected(formatter, given)
    formatter.__dict__.update(change)
    given = record(created=1767225599.25, asctime="then")
    assert sink.written(copy(given)) == expected(formatter, given)


def test_a_style_and_classes_that_are_changed_later(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    formatter = logging.Formatter("%(asctime)s %(message)s")
    sink.handler.setFormatter(formatter)
    given = record()
    assert sink.written(copy(given)) == expected(formatter, given)
    formatter._style._fmt = "%(levelname)s"
    assert sink.written(copy(given)) == expected(formatter, given) == b"INFO\n"
    formatter._style._fmt = "%(asctime)s %(message)s"
    monkeypatch.setattr(logging.Formatter, "converter", time.gmtime)
    assert sink.written(copy(given)) == expected(formatter, given)
    with monkeypatch.context() as patch:
        patch.setattr(logging.Formatter, "formatTime", lambda *_: "patched")
        assert sink.written(copy(given)) == b"patched message\n"
    monkeypatch.setattr(logging.LogRecord, "getMessage", lambda self: "another message")
    assert sink.written(copy(given)) == expected(formatter, given)
    assert b"another" in sink.written(copy(given))


def test_records_of_another_class(sink: Sink) -> None:
    class Record(logging.LogRecord):
        def getMessage(self) -> str:
            return f"braces: {self.msg}"

    given = Record("name", 20, "file", 1, "message", (), None)
    assert sink.written(given) == b"braces: message\n"


def test_a_record_shows_what_formatting_leaves_there(sink: Sink) -> None:
    """Handlers that come after may look at `message` and `asctime`."""
    sink.handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    given = record("%d", (5,))
    written = sink.written(given)
    assert written.decode() == f"{given.asctime} {given.message}\n"


def test_a_message_that_logs_itself(sink: Sink) -> None:
    class Chatty:
        def __str__(self) -> str:
            sink.handler.handle(record("inner"))
            return "outer"

    assert sink.written(record(Chatty())) == b"inner\nouter\n"


@pytest.mark.parametrize(
    ("encoding", "errors", "message"),
    [
        ("latin-1", None, "é 漢"),
        ("utf-16-le", "strict", "é"),
        ("UTF8", "replace", "\ud800"),
        ("ascii", "ignore", "é!"),
    ],
)
def test_other_encodings(path: str, encoding: str, errors: str | None, message: str) -> None:
    handler = VellumHandler(path, encoding=encoding, errors=errors)
    handler.handle(record(message))
    handler.close()
    with Log(path) as log:
        written = b"".join(line.payload for line in log.read())
    assert written == (message + "\n").encode(encoding, errors or "backslashreplace")
