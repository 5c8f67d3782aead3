"""The wheel's ten lines: a handler in threads and forked processes, and a log of its own."""

import logging
import os
import pathlib
import sys
import tempfile
import threading

from vellum_log import Log, VellumHandler

place = pathlib.Path(tempfile.mkdtemp())
logging.basicConfig(handlers=[VellumHandler(place / "web.log")], level=logging.INFO)
for number in range(4):
    if os.fork() == 0:
        logging.info("from child %d", number)
        os._exit(0)
for _ in range(4):
    assert os.wait()[1] == 0
threads = [threading.Thread(target=logging.info, args=("from thread %d", n)) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with Log(place / "web.log") as log:
    assert len(list(log.read())) == 8
with Log(place / "orders.wal", kind="wal") as log:
    log.commit(log.append(b"an order"))
    assert [bytes(record.payload) for record in log.read()] == [b"an order"]
has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
assert has_gil == ("free-threading" not in sys.version), "the module switches the GIL on"
print("wheel: works with Python", sys.version.split()[0], "" if has_gil else "without the GIL")
