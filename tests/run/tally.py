"""Tells what became of the tests of one run: reads the file that ctest --output-junit writes, and the seconds that
test_seconds notes.

A test that is skipped, or skips a part, prints a line `SKIP: WHY`; skip() of cmocka counts without one too. If a
build has the device cuda and the machine no GPU, all kernel tests say so, which counts once. A test that was selected
and is disabled has failed: it should have run."""
import re
import xml.etree.ElementTree as xml

RUN = re.compile(r"^\[ RUN      \] (\S+)")
SKIPPED = re.compile(r"^\[  SKIPPED \] (\S+)$")
DONE = re.compile(r"^\[(  SKIPPED |       OK |  FAILED  |  ERROR   |==========)\]")
SETS = re.compile(r"^instruction sets: ran(.*); lacking(.*)$")
NO_GPU = re.compile(r"^(kernels on cuda): not run: (.*)$")
NO_REASON = "without a word why"


class Tally:
    def __init__(self):
        self.passed, self.failed = [], []  # names of tests
        self.skipped = []  # names of tests that did not run
        self.skips = []  # lines `TEST: WHY`, of tests and of parts of tests
        self.ran, self.lacks = set(), set()  # instruction sets that kernels were tested with, and others


def skips_inside(output):
    """Pairs of what was skipped (a test of a program, or nothing for a part of a script) and why."""
    inside, reasons = "", []
    for line in output.splitlines():
        if RUN.match(line):
            inside, reasons = RUN.match(line)[1], []
        elif line.startswith("SKIP: "):
            reasons.append(line[len("SKIP: "):])
            yield inside, reasons[-1]
        elif inside and SKIPPED.match(line) and not reasons:
            yield inside, NO_REASON
        if inside and DONE.match(line):
            inside = ""


def tally(junit):
    result, no_gpu = Tally(), set()
    for case in xml.parse(junit).getroot().iter("testcase"):
        name, status = case.get("name"), case.get("status")
        output = case.findtext("system-out") or ""
        inside = list(skips_inside(output))
        for line in output.splitlines():
            if SETS.match(line):
                result.ran.update(SETS.match(line)[1].split())
                result.lacks.update(SETS.match(line)[2].split())
            if NO_GPU.match(line):
                no_gpu.add(": ".join(NO_GPU.match(line).groups()))
        skipped = case.find("skipped")
        asked = skipped is not None and skipped.get("message", "").startswith("SKIP_RETURN_CODE")
        if status == "notrun" and asked:
            why = "; ".join(reason for _, reason in inside) or NO_REASON
            result.skips.append(f"{name}: {why}")
            result.skipped.append(name)
            continue
        (result.passed if status == "run" else result.failed).append(name)
        result.skips += [f"{name}: {test}: {why}" if test else f"{name}: {why}" for test, why in inside]
    result.skips += sorted(no_gpu)
    return result


def seconds_of(path):
    """The CPU seconds of each test; one that was killed before it ended is not among them."""
    seconds = {}
    try:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                name, user, system = line.split()
                seconds[name] = seconds.get(name, 0.0) + float(user) + float(system)
    except FileNotFoundError:
        pass  # no test was started by test_seconds
    return seconds
