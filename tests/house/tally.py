#!/usr/bin/env python3
"""What became of the tests of one run, for `./dev test`: `tally.py JUNIT` reads the file that ctest --output-junit
writes and prints one fact a line: `passed N`, `failed N`, `skipped TEST: WHY` for each test and each part of one that
did not run, `ran SET` and `lacks SET` for the instruction sets that kernels were tested with.

A test that is skipped, or skips a part, prints a line `SKIP: WHY`; skip() of cmocka counts without one too. Where a build
has the device cuda and the machine no GPU, all kernel tests say so, which counts once."""
import re
import sys
import xml.etree.ElementTree as xml

RUN = re.compile(r"^\[ RUN      \] (\S+)")
SKIPPED = re.compile(r"^\[  SKIPPED \] (\S+)$")
DONE = re.compile(r"^\[(  SKIPPED |       OK |  FAILED  |  ERROR   |==========)\]")
SETS = re.compile(r"^instruction sets: ran(.*); lacking(.*)$")
NO_GPU = re.compile(r"^(kernels on cuda): not run: (.*)$")
NO_REASON = "without a word why"


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


def tally(cases):
    counts = {"passed": 0, "failed": 0}
    skips, ran, lacks, no_gpu = [], set(), set(), set()
    for case in cases:
        name, status = case.get("name"), case.get("status")
        output = case.findtext("system-out") or ""
        inside = list(skips_inside(output))
        for line in output.splitlines():
            if SETS.match(line):
                ran.update(SETS.match(line)[1].split())
                lacks.update(SETS.match(line)[2].split())
            if NO_GPU.match(line):
                no_gpu.add(": ".join(NO_GPU.match(line).groups()))
        skipped = case.find("skipped")
        asked = skipped is not None and skipped.get("message", "").startswith("SKIP_RETURN_CODE")
        if status == "disabled" or (status == "notrun" and asked):
            why = "; ".join(reason for _, reason in inside) or ("disabled" if status == "disabled" else NO_REASON)
            skips.append(f"{name}: {why}")
            continue
        counts["passed" if status == "run" else "failed"] += 1
        skips += [f"{name}: {test}: {why}" if test else f"{name}: {why}" for test, why in inside]
    return counts, skips + sorted(no_gpu), ran, lacks


def main():
    cases = xml.parse(sys.argv[1]).getroot().iter("testcase")
    counts, skips, ran, lacks = tally(cases)
    for kind, count in counts.items():
        print(kind, count)
    for skip in skips:
        print("skipped", skip)
    for kind, sets in (("ran", ran), ("lacks", lacks)):
        for name in sorted(sets):
            print(kind, name)


if __name__ == "__main__":
    main()
