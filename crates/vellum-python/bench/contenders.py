"""The handlers that are compared: how each is opened, and which files it leaves.

| who, when | what |
|---|---|
| parent, once | `missing`: can it run here? |
| parent, before the processes start | `begin` |
| each process, before the clock | `open` |
| parent, when all processes stand ready | `attend` |
| each process, under the clock | the handler, then `leave` |
| parent, under the clock, after the last process | `finish` |
| parent, after the clock | `files` |
"""

from __future__ import annotations

import importlib.util
import logging
import logging.handlers
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

LOG_NAME = "app.log"


@dataclass(frozen=True)
class Rotation:
    """When a new file begins, and how many old ones are kept: so many that none is deleted."""

    bytes_max: int
    files_max: int

    @classmethod
    def keeping_all(cls, bytes_max: int, total_bytes: int, processes: int) -> Rotation:
        """Each process may begin a new file where one would do, if they don't know of each other."""
        return cls(bytes_max, processes * (2 + total_bytes // bytes_max))

    def arguments(self) -> dict[str, int]:
        """As `logging.handlers.RotatingFileHandler` wants them."""
        return {"maxBytes": self.bytes_max, "backupCount": self.files_max}


def _arguments(rotation: Rotation | None) -> dict[str, int]:
    return rotation.arguments() if rotation else {}


class Contender:
    """A handler that every process opens for itself, on one path for all."""

    name: str
    # : The package whose version matters, and from which the import comes.
    package: str | None = None
    module: str | None = None
    #: Is the line made in the process that logs?
    formats_in_process = True

    def missing(self) -> str | None:
        """Why it can't run here."""
        if self.module and importlib.util.find_spec(self.module) is None:
            return f"the Python module {self.module} (package {self.package}) is not installed"
        return None

    def software(self) -> str | None:
        """Package and version, where it is not the standard library."""
        if self.package is None or self.missing():
            return None
        return f"{self.package} {metadata.version(self.package)}"

    def begin(self, directory: Path, rotation: Rotation | None, formatter: logging.Formatter) -> None:
        """Makes ready what the processes share."""

    def open(self, directory: Path, rotation: Rotation | None) -> logging.Handler:
        """The handler of this process."""
        raise NotImplementedError

    def attend(self) -> None:
        """Starts what works in the parent."""

    def leave(self, handler: logging.Handler) -> None:
        """The process has logged everything: what is left in memory goes into the file."""
        handler.close()

    def finish(self) -> bool:
        """Waits until everything is in the file. Was there anything to wait for?"""
        return False

    def files(self, directory: Path) -> list[Path]:
        """All files of the log."""
        return [path for path in directory.glob(LOG_NAME + "*") if path.is_file()]


class File(Contender):
    """`logging.FileHandler`, what the others are compared with. It does not rotate."""

    name = "FileHandler"

    def open(self, directory: Path, rotation: Rotation | None) -> logging.Handler:
        return logging.FileHandler(directory / LOG_NAME)


class Rotating(Contender):
    """`logging.handlers.RotatingFileHandler`, made for one process, shared as people do."""

    name = "RotatingFileHandler"

    def open(self, directory: Path, rotation: Rotation | None) -> logging.Handler:
        return logging.handlers.RotatingFileHandler(directory / LOG_NAME, **_arguments(rotation))


class Concurrent(Contender):
    """`ConcurrentRotatingFileHandler`: a lock on a file for each record."""

    name = "concurrent-log-handler"
    package, module = "concurrent-log-handler", "concurrent_log_handler"

    def open(self, directory: Path, rotation: Rotation | None) -> logging.Handler:
        from concurrent_log_handler import ConcurrentRotatingFileHandler

        return ConcurrentRotatingFileHandler(directory / LOG_NAME, **_arguments(rotation))


class Queue(Contender):
    """`QueueHandler` in every process, and a `QueueListener` that alone writes the file."""

    name = "QueueHandler"
    formats_in_process = False

    def begin(self, directory: Path, rotation: Rotation | None, formatter: logging.Formatter) -> None:
        from multiprocessing import get_context

        self.queue = get_context("fork").Queue()
        target = Rotating().open(directory, rotation)
        target.setFormatter(formatter)
        self.target = target
        self.listener = logging.handlers.QueueListener(self.queue, target)

    def open(self, directory: Path, rotation: Rotation | None) -> logging.Handler:
        return logging.handlers.QueueHandler(self.queue)

    def attend(self) -> None:
        self.listener.start()

    def leave(self, handler: logging.Handler) -> None:
        self.queue.close()
        self.queue.join_thread()

    def finish(self) -> bool:
        self.listener.stop()
        self.target.close()
        self.queue.close()
        return True


class Vellum(Contender):
    """`VellumHandler`: the processes share one log directory."""

    name = "VellumHandler"
    package, module = "vellum-log", "vellum_log"
    #: Which way lines take into the file.
    fill = "pwrite"

    def open(self, directory: Path, rotation: Rotation | None) -> logging.Handler:
        from vellum_log import VellumHandler

        return VellumHandler(directory / LOG_NAME, fill=self.fill, **_arguments(rotation))

    def files(self, directory: Path) -> list[Path]:
        return sorted((directory / LOG_NAME).glob("*.log"))


class Mapped(Vellum):
    """The same with `fill="mapped"`: no system call, and zeros behind the end of the open file."""

    name = "VellumHandler-mapped"
    fill = "mapped"


def every_one() -> list[Contender]:
    """In the order of their turns."""
    return [Vellum(), Mapped(), File(), Rotating(), Concurrent(), Queue()]
