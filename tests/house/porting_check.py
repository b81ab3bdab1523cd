#!/usr/bin/env python3
"""docs/porting.md against the programs that it ports: `porting_check.py SLUICE LIBRARY_FOLDER [CC]`.

Every `diff` block with the names of two programs leads from one to the other, so that all of them are made from
0_plain.c; `--write FOLDER` writes them there. Two of them lie in the tree, and the other one must be what the page
makes of the first. The programs compile and say the same losses on 1, 2 and 4 ranks, the last on 5 too. Every other
`diff` block is a mistake in 4_whole.c: it is made, and the lines of the next `text` block are what two ranks then say,
`...` standing for anything. From where the page first writes SLUICE_ENGINE_CHECK=on, that is set."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PROGRAMS = os.path.join(ROOT, "docs", "examples", "porting")
PAGE = "docs/porting.md"
FIRST = "0_plain.c"
LAST = "4_whole.c"  # it lies in the tree, and mistakes are made in it
UNEVEN = "5_uneven.c"
BLOCK = re.compile(r"^```(diff|text)\n(.*?)^```$", re.M | re.S)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def sides(hunk):
    """Returns the text that a hunk replaces and the text that it puts there, each with the lines that stay."""
    lines = hunk.splitlines()
    return ("".join(line[1:] + "\n" for line in lines if line[0] in "- "),
            "".join(line[1:] + "\n" for line in lines if line[0] in "+ "))


class Job:
    def __init__(self, sluice, library, compiler, work):
        self.sluice, self.library, self.compiler, self.work = sluice, library, compiler, work

    def compile(self, source, name):
        path = os.path.join(self.work, name)
        with open(path + ".c", "w", encoding="utf-8") as file:
            file.write(source)
        subprocess.run([self.compiler, "-O2", "-I", os.path.join(ROOT, "include"), path + ".c", "-L", self.library,
                        "-lsluice", f"-Wl,-rpath,{self.library}", "-lm", "-o", path], check=True, timeout=120)
        return path

    def run(self, program, ranks, checks=False, arguments=()):
        started = [] if ranks == 0 else [self.sluice, "run", "-n", str(ranks), "--limit", "100", "--"]
        command = [*started, program, *arguments]
        environment = dict(os.environ, SLUICE_ENGINE_CHECK="on" if checks else "off")
        done = subprocess.run(command, env=environment, timeout=120, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return done.returncode, re.sub(r"^\[\d\] ", "", done.stdout, flags=re.M)


def apply(source, hunks, name):
    """The source with all hunks applied, each of which must fit in one place."""
    for hunk in hunks:
        before, after = sides(hunk)
        if source.count(before) != 1:
            sys.exit(f"{PAGE}: {source.count(before)} places of {name} are what a diff changes:\n{before}")
        source = source.replace(before, after)
    return source


def hunks_of(body):
    return re.split(r"^@@\n", body, flags=re.M)


def make_programs(page):
    """All programs by name, in the page's order."""
    made = {FIRST: read(os.path.join(PROGRAMS, FIRST))}
    for kind, body in BLOCK.findall(page):
        names = re.findall(r"^(?:---|\+\+\+) (\w+\.c)$", body, re.M)
        if kind == "diff" and names:
            old, new = names
            made[new] = apply(made.get(new, made[old]), hunks_of(body)[1:], old)
    return made


def check_last(programs):
    text = {source.split("*/", 1)[1] for source in (programs[LAST], read(os.path.join(PROGRAMS, LAST)))}
    if len(text) != 1:
        yield f"{PAGE}: its diffs do not make {LAST} of {FIRST}; --write FOLDER writes what they make"


def check_losses(job, programs):
    want = None
    for name, source in programs.items():
        path = job.compile(source, name[:-2])
        several = [(1, False), (2, False), (4, False), (2, True), *([(5, False)] if name == UNEVEN else [])]
        for ranks, checks in [(0, False)] if want is None else several:
            code, said = job.run(path, ranks, checks)
            losses = re.findall(r"loss ([\d.]+)", said)
            want = want or losses
            apart = [abs(float(a) - float(b)) > 2e-4 for a, b in zip(losses, want)]
            if code or len(losses) != len(want) or len(want) != 7 or any(apart):
                yield f"{name} on {ranks} ranks: exit code {code}, losses {losses} where they should be {want}\n{said}"


def check_mistake(job, number, source, hunks, checks, lines):
    source = apply(source, hunks, LAST)
    code, said = job.run(job.compile(source, f"mistake_{number}"), 2, checks)
    if code == 0:
        yield f"{PAGE}: this mistake is not found:\n{hunks[0]}"
    for line in lines:
        pattern = ".*".join(re.escape(part) for part in line.split("..."))
        if not re.search(f"^{pattern}$", said, re.M):
            yield f"{PAGE}: the line\n  {line}\nis not what is said:\n{said}"


def check_mistakes(job, page, source):
    mistakes = 0
    hunks = None
    for block in BLOCK.finditer(page):
        kind, body = block.groups()
        if kind == "diff":
            hunks = None if body.startswith("---") else hunks_of(body)
        elif hunks:
            mistakes += 1
            checks = "SLUICE_ENGINE_CHECK=on" in page[:block.start()]
            yield from check_mistake(job, mistakes, source, hunks, checks, body.splitlines())
            hunks = None
    if mistakes < 10:
        yield f"{PAGE}: {mistakes} mistakes were found in it, not 10 or more"


def write(programs, folder):
    for name, source in programs.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(source)


def main():
    page = read(os.path.join(ROOT, PAGE))
    programs = make_programs(page)
    if sys.argv[1] == "--write":
        return write(programs, sys.argv[2])
    work = tempfile.mkdtemp()
    try:
        job = Job(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), (sys.argv[3:] or ["cc"])[0], work)
        faults = [*check_last(programs), *check_losses(job, programs), *check_mistakes(job, page, programs[LAST])]
        if len(programs) != 6:
            faults.append(f"{PAGE}: it makes {len(programs)} programs, not 6")
    finally:
        shutil.rmtree(work)
    print("\n".join(faults) if faults else f"{PAGE}: the programs, their diffs and all lines are as it says")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
