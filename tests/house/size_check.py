#!/usr/bin/env python3
"""Checks that the tree can be looked through: a folder has at most 30 sources, counted without those of the folders in
it, and a source has at most 700 lines. What is above that is several ideas under one name, and is split by idea.
Sources are code and scripts; pages, results, patches and inputs of readers are none.

`size_check.py [ROOT]` checks a tree; `--self-test` checks that a tree with planted faults is refused."""
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
import tree  # noqa: E402

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SOURCE = re.compile(r"\.(c|h|cc|cu|cuh|inc|sh|py|cmake)$")
SOURCES, LINES = 30, 700


def folders(root):
    """Returns the sources of each folder that has some, as paths from the root."""
    found = {}
    for path in tree.files(root):
        if SOURCE.search(path):
            found.setdefault(os.path.dirname(path) or ".", []).append(path)
    return found


def lines_of(path):
    with open(path, "rb") as source:
        return source.read().count(b"\n")


def check(root):
    faults, count = [], 0
    for folder, sources in folders(root).items():
        count += len(sources)
        if len(sources) > SOURCES:
            faults.append(f"{folder}: {len(sources)} sources, where {SOURCES} may be: draw it anew, in folders by idea")
        for path in sources:
            lines = lines_of(os.path.join(root, path))
            if lines > LINES:
                faults.append(f"{path}:{LINES + 1}: {lines} lines, where {LINES} may be: split it by idea")
    return faults, count


def self_test():
    lines_in = {f"lib/full/f{i}.c": 1 for i in range(SOURCES)}
    lines_in.update({f"lib/full/inside/f{i}.h": 1 for i in range(SOURCES)})
    lines_in.update({f"tests/pages/p{i}.json": LINES + 1 for i in range(SOURCES + 1)})
    lines_in.update({"bench/longest.py": LINES, "tests/crowded/run.sh": 1, "bench/too_long.sh": LINES + 1})
    lines_in.update({f"tests/crowded/f{i}_test.c": 1 for i in range(SOURCES)})
    lines_in.update({f"new/f{i}.c": 1 for i in range(SOURCES + 1)})
    lines_in.update({f"{folder}/made.c": LINES + 1 for folder in ("build", "out", ".hidden")})
    with tempfile.TemporaryDirectory() as root:
        for path, lines in lines_in.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write("line\n" * lines)
        faults, _ = check(root)
    wrong = {fault.split(":")[0] for fault in faults} ^ {"tests/crowded", "bench/too_long.sh", "new"}
    for path in sorted(wrong):
        print(f"size_check self-test: {path}")
    return not wrong


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if self_test() else 1
    faults, count = check(sys.argv[1] if len(sys.argv) > 1 else ROOT)
    print("\n".join(faults) if faults else f"sizes: {count} sources, no folder has more than {SOURCES}, none more than "
          f"{LINES} lines")
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
