"""`vellum_log.Log`: records in, records out, and what it says when something is wrong."""

from __future__ import annotations

import fcntl
import os
import pickle
import signal
import struct
import subprocess
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import vellum_log
from conftest import in_child
from vellum_log import Error, ErrorKind, Log, Reader


def payloads(log: Log, start: int = 0) -> list[bytes]:
    return [record.payload for record in log.read(start)]


def test_records_come_back_in_order_with_their_positions(path: str) -> None:
    with Log(path) as log:
        given = [b"a", b"", b"\x00\n\xff" * 1000]
        positions = [log.append(payload) for payload in given]
        assert positions == sorted(set(positions))
        records = list(log.read())
        assert [record.payload for record in records] == given
        assert [record.lsn for record in records] == positions
        assert records[0].next_lsn == records[1].lsn
        assert payloads(log, positions[1]) == given[1:]
        assert log.begin <= positions[0] < log.published <= log.tail


def test_a_new_log_follows_the_nearest_advice_unless_it_is_not_to(path: str) -> None:
    Path(path).with_name("vellum.toml").write_text("[log]\nsegment_capacity_bytes = 8192\n")
    for arguments, is_followed in [({}, True), ({"advice": None}, True), ({"advice": False}, False)]:
        name = f"{path}-{arguments}"
        with Log(name, **arguments) as log:  # type: ignore[arg-type]
            assert (log.stat()["segment_capacity_bytes"] == 8192) == is_followed


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview, lambda b: memoryview(b + b)[: len(b)]])
def test_anything_with_the_buffer_protocol_is_a_record(path: str, wrap: Callable) -> None:
    with Log(path) as log:
        log.append(wrap(b"a record"))
        log.append_batch([wrap(b"one"), wrap(b"two")])
        assert payloads(log) == [b"a record", b"one", b"two"]


@pytest.mark.parametrize("wrong", ["text", 5, None, [1, 2]])
def test_what_is_not_bytes_is_refused(path: str, wrong: object) -> None:
    with Log(path) as log:
        with pytest.raises(TypeError, match="bytes-like"):
            log.append(wrong)  # type: ignore[arg-type]
        assert payloads(log) == []


def test_a_batch_is_all_or_nothing(path: str) -> None:
    with Log(path) as log:
        first = log.append_batch(record for record in (b"a", b"b"))
        assert next(log.read()).lsn == first
        with pytest.raises(TypeError):
            log.append_batch([b"c", "d"])  # type: ignore[list-item]
        with pytest.raises(vellum_log.InvalidOption):
            log.append_batch([])
        assert payloads(log) == [b"a", b"b"]


def test_a_committed_record_is_durable(path: str) -> None:
    with Log(path, kind="wal", segment_capacity_bytes=1 << 20) as log:
        lsn = log.append(b"an order")
        log.commit(lsn)
        assert log.durable > lsn
        assert log.append_durable(b"another") < log.durable
        log.append(b"a third")
        assert log.sync() == log.durable == log.published
        log.set_checkpoint(lsn)
        assert log.checkpoint == lsn
        assert log.recovery is None
        assert log.prepare(1) >= 0
        assert log.release_prepared() >= 0


def test_a_log_is_trimmed_and_truncated(path: str) -> None:
    with Log(path) as log:
        positions = [log.append(b"%d" % number) for number in range(5)]
        assert log.trim(positions[1]) == positions[1]
        log.truncate(positions[3])
        assert payloads(log) == [b"1", b"2"]
        with pytest.raises(vellum_log.Trimmed) as trimmed:
            log.read(positions[0])
        assert trimmed.value.lsn == positions[0]


def test_a_file_that_is_gone_is_told_and_can_be_passed_over(path: str) -> None:
    with Log(path, kind="text", rotate_bytes=100) as log:
        for number in range(5):
            log.append(b"%90d\n" % number)
        missing = log.stat()["segments"][2]["path"]
        os.remove(missing)
        (gap,) = log.stat()["gaps"]
        assert gap["from"] < gap["to"] and gap["bytes_max"] >= 91 and "missing" in gap["text"]
        assert gap["after"] is not None and gap["before"] is not None
        reader = log.read()
        with pytest.raises(vellum_log.Corrupt):
            list(reader)
        assert reader.take_gaps() == []
        reader = log.read(skip_damage=True)
        assert [int(record.payload) for record in reader] == [0, 1, 3, 4]
        assert reader.take_gaps() == [gap]
        assert reader.take_gaps() == []
        followed = log.follow(timeout=0, skip_damage=True)
        assert len(list(followed)) == 4


def test_what_a_log_is_can_be_told(path: str) -> None:
    with Log(path, kind="text", segment_capacity_bytes=8192) as log:
        log.append(b"a line\n")
        stat = log.stat()
        assert (stat["layout"], stat["fill"]) == ("text", "pwrite")
        assert stat["segment_capacity_bytes"] == 8192
        assert stat["participants"][0]["pid"] == os.getpid()
        assert stat["segments"][0]["state"] == "active"
        assert stat["holds"] == []
        assert set(stat) == set(vellum_log.Stat.__annotations__)
        report = log.verify()
        assert (report["records"], report["record_bytes"], report["damage"]) == (1, 7, [])
        assert set(report) == set(vellum_log.VerifyReport.__annotations__)
        assert (log.layout, log.path) == ("text", path)
        assert repr(log) == f'<vellum_log.Log "{path}">'


def test_the_path_of_a_log_is_exact_in_any_encoding(path: str) -> None:
    latin = os.path.join(os.path.dirname(os.fsencode(path)), b"caf\xe9")
    with Log(os.fsdecode(latin)) as log, Log(log.path, create=False) as again:
        assert os.fsencode(log.path) == latin
        assert again.tail == log.append(b"record")


def test_who_holds_something_is_told(path: str) -> None:
    with Log(path) as log, open(os.path.join(path, "lock"), "r+b") as lock:
        # As an opening or closing process has it for a moment; an open-file-description lock.
        fields = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        fcntl.fcntl(lock, 37, fields)
        (hold,) = log.stat()["holds"]
        assert set(hold) == set(vellum_log.Hold.__annotations__)
        assert (hold["what"], hold["pid"], hold["waited"]) == ("gate", os.getpid(), None)
        assert f"is held by this process, {os.getpid()}" in hold["text"]


def test_who_is_waited_for_in_vain_is_named(path: str) -> None:
    def hold(ready: int) -> None:
        log = Log(path)
        os.write(ready, b"!")
        signal.pause()
        log.close()

    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            hold(told)
        finally:
            os._exit(1)
    try:
        os.read(ready, 1)
        os.kill(child, signal.SIGSTOP)
        os.waitpid(child, os.WUNTRACED)
        with Log(path, timeout=0.2) as log:
            lsn = log.append(b"a record")
            place = next(p for p in log.stat()["participants"] if p["pid"] == child)
            set_commit_lock(path, place["index"])
            attempts = [lambda: log.commit(lsn), lambda: log.commit(lsn, timeout=0.1), log.sync]
            for attempt in attempts:
                with pytest.raises(vellum_log.TimedOut, match=f"process {child}, which is stopped"):
                    attempt()
            assert isinstance(vellum_log.TimedOut("x"), TimeoutError)
            set_commit_lock(path, None)
            log.commit(lsn, timeout=60)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def set_commit_lock(path: str, index: int | None) -> None:
    """Has the word of the lock for commits name a participant, as if it had stopped there."""
    with open(os.path.join(path, "control"), "r+b", buffering=0) as control:
        owner = 0
        if index is not None:
            place = os.pread(control.fileno(), 8, 4096 + 1024 + 64 * index)
            (generation,) = struct.unpack("=Q", place)
            owner = generation << 10 | index
        os.pwrite(control.fileno(), struct.pack("=Q", owner), 4096 + 197632 + 128)


def test_damage_is_reported_with_its_place(path: str) -> None:
    with Log(path) as log:
        lsn = log.append(b"a record")
        segment = Path(log.stat()["segments"][0]["path"])
        content = bytearray(segment.read_bytes())
        content[content.index(b"a record")] ^= 1
        segment.write_bytes(content)
        (damage,) = log.verify()["damage"]
        assert (damage["lsn"], damage["path"]) == (lsn, str(segment))
        assert set(damage) == set(vellum_log.Damage.__annotations__)
        with pytest.raises(vellum_log.Corrupt):
            payloads(log)


def test_a_closed_log_says_so(path: str) -> None:
    log = Log(path)
    reader = log.read()
    assert not log.closed
    with log:
        log.append(b"a record")
    log.close()
    assert log.closed and repr(log).endswith(", closed>")
    for act in (
        lambda: log.append(b"x"), log.sync, log.stat, log.read, lambda: log.begin,
        lambda: next(reader), lambda: pickle.dumps(log),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="the log .*app.log is closed"):
            act()


def test_every_kind_of_error_has_a_class_of_its_own() -> None:
    source = Path(__file__).parents[2] / "vellum-files" / "src" / "error.rs"
    table = source.read_text().split("pub enum ErrorKind {")[1].split("\n}")[0]
    rows = [line.strip().rstrip(",").split(" = ") for line in table.splitlines() if " = " in line]
    assert len(rows) >= 18
    for name, number in rows:
        error = getattr(vellum_log, name)
        assert issubclass(error, Error) and issubclass(error, OSError)
        assert error.kind == ErrorKind(int(number))
        assert error.kind.name == "".join(f"_{c}" if c.isupper() else c.upper() for c in name)[1:]


def test_errors_name_the_file_and_the_cause(path: str) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        Log(path, create=False)
    assert isinstance(missing.value, vellum_log.NotFound)
    assert path in str(missing.value) and missing.value.path == missing.value.filename
    with Log(path), pytest.raises(FileExistsError) as there:
        Log(path, create_new=True)
    copy = pickle.loads(pickle.dumps(there.value))
    assert type(copy) is vellum_log.AlreadyExists
    assert (str(copy), copy.path, copy.kind) == (str(there.value), there.value.path, 4)
    with Log(path, read_only=True) as log, pytest.raises(vellum_log.ReadOnly):
        log.append(b"x")


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"kind": "plain"}, ValueError, "mapped-text"),
        ({"kinds": "text"}, TypeError, "kinds"),
        ({"segment_capacity_bytes": -1}, ValueError, "segment_capacity_bytes is -1"),
        ({"segment_capacity_bytes": 5000}, vellum_log.InvalidOption, "multiple"),
        ({"rotate_every": -1}, ValueError, "rotate_every is -1"),
        ({"retain_age": timedelta(seconds=-1)}, ValueError, "retain_age"),
        ({"kind": 5}, TypeError, "str"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    path: str, options: dict, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        Log(path, **options)
    assert not os.path.exists(path)


def test_a_full_disk_is_an_error_of_its_own(path: str) -> None:
    import resource

    with Log(path, fill="pwrite", segment_capacity_bytes=1 << 20) as log:
        log.append(b"there is room")

        def fill() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
            with pytest.raises(vellum_log.NoSpace) as full:
                log.append(b"x" * 10_000)
            assert isinstance(full.value, OSError)

        assert in_child(fill) == 0
        log.append(b"there still is")
        assert len(payloads(log)) == 2


def test_follow_waits_for_another_process_and_for_its_timeout(path: str) -> None:
    with Log(path) as log:
        log.append(b"first")
        reader = log.follow(timeout=30)
        assert next(reader).payload == b"first"
        assert in_child(lambda: log.append(b"second")) == 0
        assert next(reader).payload == b"second"
        assert list(log.follow(reader.position, timeout=timedelta(milliseconds=20))) == []


def test_others_run_while_one_follows(path: str) -> None:
    """If the waiting thread kept the GIL, the append could not happen."""
    with Log(path) as log:
        found: list[bytes] = []
        thread = threading.Thread(
            target=lambda: found.append(next(log.follow(timeout=60)).payload)
        )
        thread.start()
        log.append(b"for the other thread")
        thread.join()
        assert found == [b"for the other thread"]


def come_to_wait(reader: Reader) -> str:
    """Returns when another thread is waiting for the next record; what this one is told then."""
    while True:
        try:
            reader.position
        except RuntimeError as error:
            return str(error)


def test_a_reader_belongs_to_one_thread_at_a_time(path: str) -> None:
    with Log(path) as log:
        reader = log.follow(timeout=60)
        waiting = threading.Thread(target=lambda: next(reader, None))
        waiting.start()
        assert "another thread" in come_to_wait(reader)
        log.append(b"go on")
        waiting.join()


def test_closing_ends_who_follows(path: str) -> None:
    log = Log(path)
    reader = log.follow()
    errors: list[BaseException] = []

    def follow() -> None:
        try:
            next(reader)
        except ValueError as error:
            errors.append(error)

    thread = threading.Thread(target=follow)
    thread.start()
    come_to_wait(reader)
    log.close()
    thread.join()
    assert "is closed" in str(errors[0])


def test_ctrl_c_interrupts_who_follows(
    path: str, run_python: Callable[..., subprocess.Popen[str]]
) -> None:
    # A process that is started in the background inherits that Ctrl-C is ignored.
    program = """
        import signal, sys
        from vellum_log import Log
        signal.signal(signal.SIGINT, signal.default_int_handler)
        log = Log(sys.argv[1])
        print("ready", flush=True)
        try:
            for record in log.follow():
                pass
        except KeyboardInterrupt:
            print("interrupted")
        """
    process = run_python(program, path)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert output == "interrupted\n" or "KeyboardInterrupt" in errors


def test_threads_append_at_the_same_time(path: str) -> None:
    with Log(path) as log:

        def append(name: int) -> None:
            for number in range(500):
                log.append(b"%d %d" % (name, number))

        threads = [threading.Thread(target=append, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = payloads(log)
        assert len(found) == 2000
        for name in range(4):
            own = [int(p.split()[1]) for p in found if p.split()[0] == b"%d" % name]
            assert own == list(range(500))


def test_a_forked_child_goes_on_with_the_log(path: str) -> None:
    with Log(path) as log:
        log.append(b"parent")
        assert in_child(lambda: [log.append(b"child"), log.close()]) == 0
        log.append(b"parent again")
        assert payloads(log) == [b"parent", b"child", b"parent again"]


def test_a_pickled_log_joins_the_same_one(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.path.dirname(path))
    with Log("app.log", create_new=True, read_only=False) as log:
        monkeypatch.chdir("/")
        with pickle.loads(pickle.dumps(log)) as copy:
            copy.append(b"from the copy")
        assert payloads(log) == [b"from the copy"]
    with Log(path, read_only=True) as log, pickle.loads(pickle.dumps(log)) as copy:
        with pytest.raises(vellum_log.ReadOnly):
            copy.append(b"x")
