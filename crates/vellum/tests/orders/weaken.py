#!/usr/bin/env python3
"""Weakens every memory order of `shared/` by one step and runs the models with weak memory.

Writes `steps.md`: which model fails for which order, and for the others the reason why it stands,
from `reasons.tsv`. Writes their counts into `docs/protocol.md`. Fails if an order has neither, or a reason is of no use any more.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
ROOM = "crates/vellum/src/shared"
PAGE = ROOT / "docs/protocol.md"
# The counts are between these two comments of the page.
BEGIN, END = "<!-- orders: written by `make orders` -->\n", "<!-- /orders -->\n"
LIST = HERE / "steps.md"
# A model that has not ended by then takes the order for right.
SECONDS = 900
ORDER = re.compile(r"Ordering::(Relaxed|Acquire|Release|AcqRel|SeqCst)")
FUNCTION = re.compile(r"^\s*(?:pub(?:\([a-z]+\))? )?(?:const )?(?:unsafe )?fn (\w+)")


def weaker(kind, order):
    """The orders that are one step weaker than that of a load, a store or an exchange. What no model
    reaches has no kind."""
    if kind is None:
        return [] if order == "Relaxed" else ["weaker"]
    if order == "SeqCst":
        return [{"load": "Acquire", "store": "Release"}.get(kind, "AcqRel")]
    if order == "AcqRel":
        return ["Acquire", "Release"]
    # There is no relaxed fence.
    return ["Relaxed"] if order in ("Acquire", "Release") and kind != "fence" else []


def build():
    """The test program of the library, with weak memory."""
    command = ["cargo", "test", "--profile", "model", "-p", "vellum", "--lib", "--no-run"]
    command += ["--target-dir", "target/weak", "--message-format", "json-render-diagnostics"]
    environment = os.environ | {"RUSTFLAGS": "--cfg loom"}
    built = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    made = [json.loads(line).get("executable") for line in built.stdout.splitlines()]
    return [program for program in made if program][-1]


class Site:
    """One order in the sources."""

    def __init__(self, file, line, column, function, code, order):
        self.file, self.line, self.column = file, line, column
        self.function, self.code, self.order = function, code, order
        self.access = self.kind = None
        self.tests = []

    def key(self, to):
        return (self.file, self.function, self.code, f"{self.order} → {to}")


def statement(lines, at):
    """The line of an order, with the call that it belongs to where that stands above it."""
    code = lines[at].strip()
    if not code.startswith("Ordering::"):
        return code
    call = next(line for line in reversed(lines[:at]) if line.rstrip().endswith("("))
    return f"{call.strip()} … {code}"


def sites():
    found = []
    for path in sorted((ROOT / ROOM).glob("*.rs")):
        if path.name.startswith(("model", "weak", "primitive")):
            continue
        lines = path.read_text().split("\n")
        function = ""
        for at, line in enumerate(lines):
            if line.startswith("#[cfg(") and "test" in line:
                break
            function = (FUNCTION.match(line) or [None, function])[1]
            if line.lstrip().startswith("//"):
                continue
            for order in ORDER.finditer(line):
                code = statement(lines, at)
                found.append(Site(path.name, at + 1, order.start() + 1, function, code, order[1]))
    return found


def run(models, tests, **environment):
    """Runs tests one by one; returns the name of the first that fails."""
    return next((test for test in tests if ends(models, test, **environment) == "fails"), None)


def ends(models, test, **environment):
    command = [models, "--exact", test, "--test-threads", "1"]
    try:
        done = subprocess.run(command, env=os.environ | environment, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "has not ended"
    return "fails" if done.returncode else "passes"


def reach(models, found, skipped, pool):
    """Finds out which test makes which access, by running all of them."""
    listed = subprocess.run([models, "--list"], capture_output=True, text=True, check=True).stdout
    tests = re.findall(r"^(shared::weak::\S+): test$", listed, re.M)
    tests = [test for test in tests if not any(part in test for part in skipped)]
    made = defaultdict(list)
    for test, accesses in zip(tests, pool.map(lambda test: accesses_of(models, test), tests)):
        for access in accesses:
            made[access].append(test)
    for (access, kind), tests in made.items():
        place, line, column, which = access.rsplit(":", 3)
        name, after = place.removeprefix(f"{ROOM}/"), (int(line), int(column))
        behind = [site for site in found if site.file == name and (site.line, site.column) > after]
        if not behind:
            continue
        site = behind[int(which)]
        site.access, site.kind, site.tests = access, kind, tests


def accesses_of(models, test):
    with tempfile.NamedTemporaryFile("r") as out:
        if run(models, [test], VELLUM_ORDERS=out.name):
            sys.exit(f"{test} fails though nothing is weakened")
        return {tuple(line.split("\t")[:2]) for line in out.read().splitlines()}


def reasons():
    rows = (HERE / "reasons.tsv").read_text().splitlines()
    return {tuple(row.split("\t")[:4]): row.split("\t")[4] for row in rows if row and row[0] != "#"}


def step_of(site, to):
    return f"{site.access}={to}"


def alone(models, site, to, before):
    """The test that fails with one order weakened; that of the page `before` is run first."""
    tests = sorted(site.tests, key=lambda test: test != before.get(site.key(to)))
    return run(models, tests, VELLUM_WEAKEN=step_of(site, to)) if site.access else None


def together(models, steps, pool):
    """Whether no test fails with all of these steps weakened. Then none does with one of them: it has
    no execution that all of them do not have."""
    weakened = ",".join(step_of(*step) for step in steps)
    tests = sorted({test for site, _ in steps for test in site.tests})
    return all(pool.map(lambda test: ends(models, test, VELLUM_WEAKEN=weakened) == "passes", tests))


def groups(steps):
    """Steps of one file, of which no two weaken the same order."""
    made = defaultdict(list)
    for site, to in steps:
        turn = sum(other is site for number in range(2) for other, _ in made[site.file, number])
        made[site.file, turn].append((site, to))
    return [group for group in made.values() if group]


def fates(models, found, pool):
    """What becomes of each order, one step weaker: the test that fails. What stood when the page was
    written is weakened together; half of it, where something fails then."""
    before, known, fate = caught_before(), reasons(), {}

    def note(site, to, test):
        print(f"{site.file}:{site.line} {site.function}: {site.order} → {to}: {test}", flush=True)
        fate[site, to] = test

    steps = [(site, to) for site in found for to in weaker(site.kind, site.order)]
    stood = [(site, to) for site, to in steps if site.access and site.key(to) in known]
    left = groups(stood)
    while left:
        group = left.pop()
        if len(group) > 1 and together(models, group, pool):
            for site, to in group:
                note(site, to, None)
        elif len(group) > 1:
            left += [group[: len(group) // 2], group[len(group) // 2 :]]
    rest = [step for step in steps if step not in fate]
    for (site, to), test in zip(rest, pool.map(lambda step: alone(models, *step, before), rest)):
        note(site, to, test)
    return [(site, to, fate[site, to]) for site, to in steps]


def caught_before():
    """The test that failed for each order when the list was written."""
    found, file = {}, None
    for line in LIST.read_text().splitlines():
        file = line.removeprefix("## `").rstrip("`") if line.startswith("## ") else file
        row = re.fullmatch(r"\| `(\w+)` \| `(.*)` \| (\S+ → \S+) \| `([\w:]+)` fails \|", line)
        if row:
            code = row[2].replace("\\|", "|")
            found[file, row[1], code, row[3]] = f"shared::weak::{row[4]}"
    return found


def listed(rows):
    text = ["# Memory orders, each one step weaker\n\nWritten by `make orders`; `docs/protocol.md` says how to read it."]
    for file in sorted({row[0] for row in rows}):
        text += [f"\n## `{file}`\n", "| function | order | one step weaker | what then |", "|---|---|---|---|"]
        for _, function, code, step, what in [row for row in rows if row[0] == file]:
            code = code.replace("|", "\\|")
            text.append(f"| `{function}` | `{code}` | {step} | {what} |")
    return "\n".join(text) + "\n"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--only", help="weaken what stands in this file, or in lines that hold this; write nothing")
    arguments.add_argument("--models", help="the test program, if it is built")
    arguments.add_argument("--skip", action="append", default=[], help="leave out tests with this in their names")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count())
    given = arguments.parse_args()
    found, models = sites(), os.path.abspath(given.models or build())
    with ThreadPoolExecutor(given.jobs) as pool:
        reach(models, found, given.skip, pool)
        if given.only:
            found = [site for site in found if given.only in (site.file, site.function) or given.only in site.code]
        done = fates(models, found, pool)
    known, rows, faults, used = reasons(), [], [], set()
    for site, to, test in done:
        key = site.key(to)
        if test:
            rows.append((*key, f"`{test.removeprefix('shared::weak::')}` fails"))
            continue
        used.add(key)
        rows.append((*key, known.get(key, "nothing fails")))
        if key not in known:
            faults.append("no reason: " + "\t".join(key))
    if given.only:
        sys.exit("\n".join(faults) or 0)
    faults += ["of no use: " + "\t".join(key) for key in known if key not in used]
    relaxed = sum(site.order == "Relaxed" for site in found)
    stands = sum(test is None for _, _, test in done)
    counts = {"all": len(rows), "caught": len(rows) - stands, "stands": stands, "relaxed": relaxed}
    LIST.write_text(listed(rows))
    before, rest = PAGE.read_text().split(BEGIN)
    text = (HERE / "head.md").read_text().format(**counts)
    PAGE.write_text(before + BEGIN + text + END + rest.split(END)[1])
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
