#!/usr/bin/env python3
"""The pages of single programs against these programs: `programs_check.py SLUICE LIBRARY_FOLDER [CC]`.

Every `c` block of such a page stands in its program, line for line; `...` alone on a line leaves something out. A `text`
block whose first line begins with `$` has commands and what they print, `...` standing for anything; one that prints no
weights fails, all others with as many ranks end with the same. A `diff` block is a mistake, and the `text` block after it what two ranks then say,
with SLUICE_ENGINE_CHECK=on from where the page names it. A program that is right says nothing with it."""
import os
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from porting_check import ROOT, Job, read, sides  # noqa: E402

PAGES = {"recomputation.md": "recompute", "optimizers.md": "lion"}
BLOCK = re.compile(r"^```(c|diff|text)\n(.*?)^```$", re.M | re.S)
CHECKS = "SLUICE_ENGINE_CHECK=on"


def fits(line, said):
    return re.search("^" + ".*".join(re.escape(part) for part in line.split("...")) + "$", said, re.M)


class Page:
    def __init__(self, job, name, program):
        self.job, self.name, self.program = job, name, program
        self.text = read(os.path.join(ROOT, "docs", name))
        self.source = read(os.path.join(ROOT, "docs", "examples", "programs", program + ".c"))
        self.path = job.compile(self.source, program)
        self.weights = {}  # by the number of ranks
        self.counts = {"c": 0, "diff": 0, "text": 0}

    def check_commands(self, body):
        for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            found = re.fullmatch(rf"sluice run -n (\d+) -- \./{self.program}(.*)", command)
            if not found:
                yield f"docs/{self.name}: a command that is not known: {command}"
                continue
            ranks, arguments = int(found[1]), found[2].split()
            for checks in (False, True):
                code, said = self.job.run(self.path, ranks, checks, arguments)
                if (code == 0) != ("weights" in output):
                    yield f"docs/{self.name}: {command} ends with {code}:\n{said}"
                yield from (f"docs/{self.name}: {command} does not print\n  {line}\nbut:\n{said}"
                            for line in output.splitlines() if not fits(line, said))
                self.weights.setdefault(ranks, set()).update(re.findall(r"^weights (\w+)$", said, re.M))

    def check_mistake(self, hunk, checks, lines):
        before, after = sides(hunk)
        if self.source.count(before) != 1:
            yield f"docs/{self.name}: {self.program}.c does not have, once, what a mistake changes:\n{before}"
            return
        path = self.job.compile(self.source.replace(before, after), f"{self.program}_mistake")
        code, said = self.job.run(path, 2, checks, ["all"] if self.program == "recompute" else [])
        if code == 0:
            yield f"docs/{self.name}: this mistake is not found:\n{hunk}"
        yield from (f"docs/{self.name}: the line\n  {line}\nis not what is said:\n{said}" for line in lines
                    if not fits(line, said))

    def check(self):
        hunk = None
        for block in BLOCK.finditer(self.text):
            kind, body = block.groups()
            self.counts[kind] += 1
            if kind == "c":
                yield from (f"docs/{self.name}: {self.program}.c lacks what the page shows of it:\n{piece}"
                            for piece in re.split(r"^\.\.\.\n", body, flags=re.M) if piece not in self.source)
            elif kind == "diff":
                hunk = body
            elif body.startswith("$"):
                yield from self.check_commands(body)
            elif hunk:
                yield from self.check_mistake(hunk, CHECKS in self.text[:block.start()], body.splitlines())
                hunk = None
        if min(self.counts.values()) < 1 or not self.weights or any(len(found) != 1 for found in self.weights.values()):
            yield f"docs/{self.name}: its blocks are {self.counts}, its weights by ranks {self.weights}"


def main():
    work = tempfile.mkdtemp()
    try:
        job = Job(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), (sys.argv[3:] or ["cc"])[0], work)
        faults = [fault for name, program in PAGES.items() for fault in Page(job, name, program).check()]
    finally:
        shutil.rmtree(work)
    print("\n".join(faults) if faults else "docs: the pages of programs show them as they are, and what they print")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
