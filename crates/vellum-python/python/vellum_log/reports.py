"""What `Log.stat`, `Log.verify` and `Log.recovery` return: dictionaries with these keys.

Positions are LSNs; sizes are bytes.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class Segment(TypedDict):
    """A file of the log: the positions in it, its size, and whether it is written to."""

    path: str
    first_lsn: int
    end_lsn: int
    file_bytes: int
    allocated_bytes: int
    state: Literal["sealed", "active", "prepared", "spare"]


class Participant(TypedDict):
    """A process that has the log open, or died while it had.

    `in_flight` is what it has reserved and not published: pairs of position and bytes.
    """

    index: int
    pid: int
    alive: bool
    stopped: bool
    in_flight: list[tuple[int, int]]


class Hold(TypedDict):
    """Something that others may wait for, and the process that holds it.

    `pid` is None where it cannot be told; `waited` is for how many seconds others have waited, or
    None; `range` is the position and the bytes of a batch or an append; `text` says all of it.
    """

    what: Literal[
        "space", "repair", "commit", "commit-group", "text-write-lock", "dropped-records", "append", "gate",
        "compression", "cursors",
    ]
    pid: int | None
    other_namespace: bool
    state: Literal["running", "sleeping", "stopped", "dead", "unknown"]
    waited: float | None
    range: tuple[int, int] | None
    text: str


class CursorStat(TypedDict):
    """A named cursor: where it is, and how far its reader is behind.

    Times are seconds; None where nothing tells. `lag_bytes` counts to the published end, `lag` is
    the age of the oldest record that is not finished, at most. `missing_bytes` were removed in
    front of it, at most; `overruns` and `overrun_bytes` count what its reader went on behind.
    """

    name: str
    lsn: int
    lag_bytes: int
    lag_records: int | None
    lag: int | None
    committed_at: int
    holds: bool
    max_held_bytes: int | None
    max_held_age: int | None
    owned: bool
    owner: int | None
    missing_bytes: int
    overruns: int
    overrun_bytes: int
    overrun_at: int | None


class Policy(TypedDict):
    """When a text log goes on in a new file, and which it keeps. Times are seconds; None is no
    limit."""

    rotate_bytes: int | None
    rotate_every: int | None
    rotate_offset: int
    retain_bytes: int | None
    retain_age: int | None
    retain_files: int | None
    compress: Literal["none", "zstd", "gzip"]


class RemovedFiles(TypedDict):
    """Files that the policy has removed, and the bytes of text in them."""

    files: int
    bytes: int


class RemovedStat(TypedDict):
    """What the policy of a text log has removed since its control file was made, by the rule.

    `left_over` are files that could not be removed, as another user's in a sticky directory.
    """

    by_bytes: RemovedFiles
    by_age: RemovedFiles
    by_files: RemovedFiles
    left_over: RemovedFiles


# With a key that is a word of the language.
Gap = TypedDict(
    "Gap",
    {
        "path": str,
        "from": int,
        "to": int,
        "bytes_max": int,
        "after": int | None,
        "before": int | None,
        "text": str,
    },
)
"""A stretch of a log that cannot be read: the file, the positions, how many bytes at most, between which
times (seconds since 1970, None where nothing tells) it was appended, and what is wrong."""


class ShipStat(TypedDict):
    """How shipping to another machine goes.

    `fault` is what failed last, `fault_number` the store's number for it, such as an HTTP status.
    `shipped` is 0 where no shipper has said it since the last boot; `shipped_at` is when something
    was shipped last. From `held_from` on the log keeps records for the shipper. `gap` is the newest
    stretch that was removed before it was shipped. `puts` and the keys behind it are counted since
    the log was shipped first.
    """

    status: Literal["none", "running", "retrying", "fenced", "diverged", "gap"]
    fault: (
        Literal["unreachable", "denied", "missing", "throttled", "store", "local"] | None
    )
    fault_number: int | None
    pid: int | None
    generation: int
    shipped: int
    shipped_at: int | None
    lag_bytes: int
    held_from: int | None
    gap: tuple[int, int] | None
    puts: int
    gets: int
    log_bytes: int
    sent_bytes: int
    retries: int


class Stat(TypedDict):
    """The state of a log at one moment.

    `log_id` is None where an earlier version made the log; `epoch` grows whenever positions may be
    given out again; `lost` is between which positions `vellum repair` or a restore left out records of a
    framed log; `last_recovery` is the newest one of any process. `envelope` is whether each
    record has its time and writer; `ship` is None for a log that is not shipped.
    """

    log_id: str | None
    epoch: int
    application_tag: int | None
    lost: tuple[int, int] | None
    last_recovery: Recovery | None
    layout: Literal["framed", "text"]
    begin: int
    durable: int
    published: int
    tail: int
    prepared_end: int
    checkpoint: int
    segment_capacity_bytes: int
    preallocate: str
    fill: Literal["mapped", "pwrite", "staged"]
    filesystem: str
    can_sync_name: bool
    policy: Policy
    records: int
    record_bytes: int
    segments_made: int
    staged_bytes: int
    repairs: int
    repaired_bytes: int
    dropped: int
    removed: RemovedStat
    gaps: list[Gap]
    cursors: list[CursorStat]
    cursors_fault: str | None
    commits: int
    syncs: int
    synced_bytes: int
    sync_micros: list[int]
    sync_micros_sum: int
    poison: str | None
    segments: list[Segment]
    participants: list[Participant]
    holds: list[Hold]
    envelope: bool
    ship: ShipStat | None


class Damage(TypedDict):
    """One thing that is wrong with a log: the file, the byte of it, the position, and what."""

    path: str
    offset: int
    lsn: int
    reason: str


class VerifyReport(TypedDict):
    """What is in a log between `begin` and `end`. It is good when `damage` is empty."""

    records: int
    record_bytes: int
    pads: int
    pad_bytes: int
    commit_records: int
    batches: int
    begin: int
    end: int
    damage: list[Damage]


# With a key that is a word of the language.
Recovery = TypedDict(
    "Recovery",
    {
        "end": int,
        "durable": int,
        "cut_bytes": int,
        "padded_bytes": int,
        "from": int,
        "reason": Literal[
            "reboot",
            "moved",
            "control_lost",
            "disagreement",
            "poisoned",
            "truncation",
            "stage_lost",
        ],
        "time": int,
    },
)
"""What opening a log after a crash came to: its end, what was known to be durable, how many torn bytes
behind the end were cut, and how many were filled in before it. Positions hold what they held up to
`from`; `time` is in seconds since 1970."""
