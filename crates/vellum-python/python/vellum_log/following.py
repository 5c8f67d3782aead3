"""Following a log in an asyncio program."""

import asyncio
from collections.abc import AsyncIterator

from vellum_log._vellum_log import Log, Reader, Record


async def follow_async(
    log: Log, start: int = 0, *, durable: bool = False, skip_damage: bool = False
) -> AsyncIterator[Record]:
    """The records from `start` on, or from the oldest for 0, and then those that come.

    For `async for`. It waits in the event loop, without a thread. With `durable`, a record comes
    only after some process has committed it. Errors are those of `Log.follow`.
    """
    reader = log.read(start, durable=durable, skip_damage=skip_damage, pollable=True)
    while True:
        for record in reader:
            yield record
        await _readable(reader)


async def _readable(reader: Reader) -> None:
    """Waits until the reader may have more."""
    loop = asyncio.get_running_loop()
    is_readable = asyncio.Event()
    loop.add_reader(reader.fileno(), is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(reader.fileno())
