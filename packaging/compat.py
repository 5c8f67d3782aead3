"""Has two versions of the command append to one log: compat.py OLD NEW NAME-OF-OLD

For each kind of log and each order of creation: both append in turn, both append at once, one of them
is killed in the middle. Then both read and verify. Every acknowledged record must be there once, in
what each of them reads. A refusal is a result, and is printed; a lost record is a failure.
"""

import collections
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

KINDS = {
    "framed, mapped": ["--layout", "framed", "--fill", "mapped"],
    "framed, staged": ["--layout", "framed", "--fill", "staged"],
    "text, mapped": ["--layout", "text", "--fill", "mapped"],
    "text, pwrite": ["--layout", "text", "--fill", "pwrite"],
}
SEGMENT = ["--segment-bytes", "65536"]
COUNT = 200


class Refused(Exception):
    """A version that does not take this log, and says so."""


class Lost(Exception):
    """A promise that was broken."""


class Appender:
    """`vellum append --ack`, which lives until its input ends."""

    started = []

    def __init__(self, program, log, options=()):
        self.program, self.acknowledged, self.sent = program, [], 0
        command = [program.path, "append", "--ack", *options, log]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen(command, text=True, bufsize=1, **pipes)
        Appender.started.append(self)

    def append(self, count=COUNT):
        for _ in range(count):
            line = f"{self.program.name} {self.program.count()} " + "x" * (self.sent % 300)
            self.sent += 1
            try:
                self.process.stdin.write(line + "\n")
            except BrokenPipeError:
                break
            if not self.process.stdout.readline():
                break
            self.acknowledged.append(line)
        else:
            return
        self.fail()

    def fail(self):
        self.process.wait()
        raise Refused(self.program.refusal("append", self.process.stderr.read()))

    def write_unheard(self):
        """Lines whose acknowledgements nobody waits for: the process is busy when it is killed."""
        self.process.stdin.write("".join(f"{self.program.name} unheard {n}\n" for n in range(500)))

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def close(self):
        _, errors = self.process.communicate()
        if self.process.returncode != 0:
            raise Refused(self.program.refusal("append", errors))
        return self.acknowledged


class Program:
    """One version of the command."""

    def __init__(self, path, name):
        self.path, self.name, self.numbers = path, name, itertools.count()

    def count(self):
        return next(self.numbers)

    def refusal(self, what, errors):
        first = (errors.strip().splitlines() or ["says nothing"])[0]
        return f"{self.name}: {what}: {first}"

    def run(self, what, log):
        done = subprocess.run([self.path, what, log], capture_output=True, text=True)
        if done.returncode != 0:
            raise Refused(self.refusal(what, done.stderr))
        return done.stdout.splitlines()

    def supports(self, options):
        with tempfile.TemporaryDirectory() as scratch:
            try:
                Appender(self, f"{scratch}/log", [*options, *SEGMENT]).close()
                return True
            except Refused:
                return False


def check(log, programs, acknowledged):
    for program in programs:
        program.run("verify", log)
        found = collections.Counter(program.run("cat", log))
        wrong = [line for line in acknowledged if found[line] != 1]
        if wrong:
            raise Lost(f"{program.name} reads {len(wrong)} of {len(acknowledged)} records wrongly: {wrong[0]!r}")


def share(log, creator, joiner, options, killed):
    """The steps; returns how many records were acknowledged."""
    first = Appender(creator, log, [*options, *SEGMENT])
    first.append()
    acknowledged = first.close()
    second = Appender(joiner, log)
    second.append()
    acknowledged += second.close()
    check(log, [creator, joiner], acknowledged)

    at_once = [Appender(creator, log), Appender(joiner, log)]
    for _ in range(COUNT // 20):
        for appender in at_once:
            appender.append(20)
    victim, survivor = (at_once[0], at_once[1]) if killed is creator else (at_once[1], at_once[0])
    victim.write_unheard()
    victim.kill()
    survivor.append()
    survivor.close()
    acknowledged += victim.acknowledged + survivor.acknowledged
    check(log, [creator, joiner], acknowledged)

    for program in (joiner, creator):
        last = Appender(program, log)
        last.append(5)
        acknowledged += last.close()
    check(log, [creator, joiner], acknowledged)
    return len(acknowledged)


def end_all():
    """Ends what a run has left behind; returns what was acknowledged in it."""
    for appender in Appender.started:
        appender.process.kill()
        appender.process.wait()
    acknowledged = [line for appender in Appender.started for line in appender.acknowledged]
    Appender.started.clear()
    return acknowledged


def outcome(creator, joiner, options, killed):
    with tempfile.TemporaryDirectory() as scratch:
        log = f"{scratch}/log"
        newer = creator if creator.name == "new" else joiner
        try:
            try:
                return f"works: {share(log, creator, joiner, options, killed)} records", True
            except Refused as refused:
                acknowledged = end_all()
                check(log, [newer], acknowledged)
                text = str(refused).replace(scratch, "")
                return f"refused: {text}; new reads all {len(acknowledged)} records", True
        except (Lost, Refused) as lost:
            return f"LOST: {lost}", False
        finally:
            end_all()


def main(old_path, new_path, revision):
    old, new = Program(old_path, "old"), Program(new_path, "new")
    print(f"| log | created by | killed | old ({revision}) and new on one log |\n|---|---|---|---|")
    is_sound = True
    for kind, options in KINDS.items():
        if not old.supports(options):
            print(f"| {kind} | old | | old cannot make such a log |")
        for creator, killed in itertools.product((old, new), repeat=2):
            if creator is old and not old.supports(options):
                continue
            joiner = new if creator is old else old
            text, kept = outcome(creator, joiner, options, killed)
            is_sound &= kept
            print(f"| {kind} | {creator.name} | {killed.name} | {text} |", flush=True)
    return 0 if is_sound else 1


if __name__ == "__main__":
    Path(sys.argv[1]).stat()
    sys.exit(main(*sys.argv[1:]))
