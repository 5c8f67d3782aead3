"""`python -m vellum_log`, and the script `vellum`: the command that the wheel brings."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

_COMMAND = Path(__file__).parent / "bin" / "vellum"


def main() -> None:
    """Becomes the command."""
    if not _COMMAND.exists():
        sys.exit(
            "vellum: this vellum-log was built without the command, as pip builds it from sources; "
            "`make wheel` builds one with it, and `make install` the command alone"
        )
    # Python ignores these, and a program inherits that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv(_COMMAND, ["vellum", *sys.argv[1:]])


if __name__ == "__main__":
    main()
