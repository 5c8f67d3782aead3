"""A web application that logs each request. How it logs is in the environment variable APP_LOGGING, in
the form of `logging.config.dictConfig`.

Imported before the server forks or after, as the server is told; so is the handler made.
"""

from __future__ import annotations

import itertools
import json
import logging
import logging.config
import os
from collections.abc import Callable, Iterable

logging.config.dictConfig(json.loads(os.environ["APP_LOGGING"]))

_logger = logging.getLogger("app")
#: Of this worker: each has a copy of its own.
_lines = itertools.count()


def application(environ: dict[str, str], start_response: Callable[..., object]) -> Iterable[bytes]:
    """Logs the number in the path, and answers when that is done."""
    number = int(environ["PATH_INFO"].lstrip("/"))
    filler = "x" * (number * 37 % 300)
    _logger.info("worker %d line %d request %d %s.", os.getpid(), next(_lines), number, filler)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "7")])
    return [b"logged\n"]
