#!/usr/bin/env python3
"""Checks that tests/house/by_change.txt speaks of this tree: each of its tests has a file of its name, and each of its
patterns matches a file. A pattern that matches none, as after a folder was renamed, would leave its test out although
what the test reads has changed.

`by_change_check.py [ROOT]` checks a tree; `--self-test` checks that a tree with planted faults is refused."""
import fnmatch
import os
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests", "run"))
import tree  # noqa: E402
import whole  # noqa: E402

FUZZ = "fuzz"  # the one row that is for a stage of `./dev test`, not for a test


def check(root):
    paths, rows = tree.files(root), whole.inputs(os.path.join(root, whole.INPUTS))
    stems = {os.path.basename(path).split(".")[0] for path in paths}
    faults = []
    for test, patterns in rows:
        name = test.split(".")[-1]
        if test != FUZZ and not fnmatch.filter(stems, name):
            faults.append(f"{whole.INPUTS}: {test}: no file is called {name}")
        faults += [f"{whole.INPUTS}: {test}: no file matches {pattern}" for pattern in patterns
                   if not any(whole.stands_for(pattern, path) for path in paths)]
    return faults, len(rows)


def self_test():
    rows = ("tests.here_test  docs/here.md lib/all/ lib/*.c build/made.c\n"
            "tests.gone_test  docs/gone.md lib/al/\n"
            "fuzz             lib/*_fuzz.c lib/all # and why\n")
    wrong = {"tests.here_test: no file matches build/made.c", "tests.gone_test: no file is called gone_test",
             "tests.gone_test: no file matches docs/gone.md", "tests.gone_test: no file matches lib/al/",
             "fuzz: no file matches lib/*_fuzz.c"}
    with tempfile.TemporaryDirectory() as root:
        for path in ("tests/here_test.c", "docs/here.md", "lib/all/a.c", "build/made.c", whole.INPUTS):
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write(rows)
        faults, count = check(root)
    differ = {fault.split(": ", 1)[1] for fault in faults} ^ wrong
    for fault in sorted(differ):
        print(f"by_change_check self-test: {fault}")
    return not differ and count == 3


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if self_test() else 1
    faults, count = check(sys.argv[1] if len(sys.argv) > 1 else ROOT)
    print("\n".join(faults) if faults else f"tests by what changed: {count} rows, all of tests and files that are there")
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
