"""The wheel's ten lines: a handler in forked processes, and a log of its own."""

import logging
import os
import pathlib
import sys
import tempfile

from vellum_log import Log, VellumHandler

place = pathlib.Path(tempfile.mkdtemp())
logging.basicConfig(handlers=[VellumHandler(place / "web.log")], level=logging.INFO)
for number in range(4):
    if os.fork() == 0:
        logging.info("from child %d", number)
        os._exit(0)
for _ in range(4):
    assert os.wait()[1] == 0
with Log(place / "web.log") as log:
    assert len(list(log.read())) == 4
with Log(place / "orders.wal", wal=True) as log:
    log.commit(log.append(b"an order"))
    assert [bytes(record.payload) for record in log.read()] == [b"an order"]
print("wheel: works with Python", sys.version.split()[0])
