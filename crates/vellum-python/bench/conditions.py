"""What the figures were taken under, as `vellum bench` tells it: see `Conditions` in vellum-bench.

What can't be found out is None, never a reason not to measure.
"""

from __future__ import annotations

import os
import platform
import sys
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

_WRITEBACK = (
    "dirty_ratio",
    "dirty_bytes",
    "dirty_background_ratio",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
)


def now(directory: Path, software: list[str]) -> dict[str, Any]:
    """The conditions of a measurement in `directory`."""
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "vellum": _vellum_version(),
        "software": [f"{platform.python_implementation()} {platform.python_version()}", *software],
        "command_line": sys.argv,
        "vellum_options": "",
        "machine": {
            "cpu": _field("/proc/cpuinfo", "model name"),
            "cores": len(os.sched_getaffinity(0)),
            "memory_bytes": _memory_bytes(),
        },
        "kernel": f"{platform.system()} {platform.release()} {platform.version()}",
        "directory": str(directory.resolve()),
        "filesystem": filesystem(directory),
        "device": None,
        "writeback": {name: _number(f"/proc/sys/vm/{name}") for name in _WRITEBACK},
        "load_average": os.getloadavg(),
    }


def lines(conditions: dict[str, Any]) -> list[str]:
    """The same for people, in short."""
    machine, mount = conditions["machine"], conditions["filesystem"]
    text = [f"{machine['cpu']}, {machine['cores']} cores, {conditions['kernel']}"]
    if mount:
        text.append(f"{mount['kind']} on {mount['source']} ({mount['mount_options']})")
    return [*text, ", ".join(conditions["software"])]


def filesystem(directory: Path) -> dict[str, str] | None:
    """The mounted filesystem that `directory` is on."""
    device = os.stat(directory).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    found = None
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        head, tail = line.split(" - ")
        fields, (kind, source, options) = head.split(), tail.split()[:3]
        point = fields[4]
        if fields[2] == number and directory.resolve().is_relative_to(point):
            found = {
                "kind": kind,
                "source": source,
                "mount_point": point,
                "mount_options": f"{fields[5]},{options}",
            }
    return found


def _vellum_version() -> str:
    try:
        return metadata.version("vellum-log")
    except metadata.PackageNotFoundError:
        return "not installed"


def _memory_bytes() -> int | None:
    text = _field("/proc/meminfo", "MemTotal")
    return int(text.split()[0]) * 1024 if text else None


def _field(path: str, name: str) -> str | None:
    """The value of the first line ``name : value``."""
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None
