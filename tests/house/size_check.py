#!/usr/bin/env python3
"""Checks that the tree can be looked through: a folder has at most 30 sources, counted without those of the folders in
it, and a source has at most 700 lines. What is above that is several ideas under one name, and is split by idea.
Sources are code and scripts; pages, results, patches and inputs of readers are none. The folders that are looked
through, PARTS, must be all of the tree's that hold sources.

`size_check.py [ROOT]` checks a tree; `--self-test` checks that a tree with planted faults is refused."""
import os
import re
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PARTS = ("include", "lib", "sched", "ilp", "plugins", "bench", "tests", "docs", "cmake")
SOURCE = re.compile(r"\.(c|h|cc|cu|cuh|inc|sh|py|cmake)$")
SOURCES, LINES = 30, 700
BUILT = ("build", "out")


def folders(root):
    """Each folder of the house and the sources in it, as paths from the root."""
    for part in PARTS:
        for folder, _, names in os.walk(os.path.join(root, part)):
            inside = os.path.relpath(folder, root)
            yield inside, [os.path.join(inside, name) for name in sorted(names) if SOURCE.search(name)]


def unknown_parts(root):
    """A fault for each part that is not there, and for each folder of the root that has sources and is no part."""
    for part in PARTS:
        if not os.path.isdir(os.path.join(root, part)):
            yield f"{part}: no such folder: name the tree's folders in PARTS of tests/house/size_check.py"
    for name in sorted(os.listdir(root)):
        inside = os.path.join(root, name)
        if name.startswith(".") or name in PARTS + BUILT or not os.path.isdir(inside):
            continue
        if any(SOURCE.search(source) for _, _, sources in os.walk(inside) for source in sources):
            yield f"{name}: nobody looks at its sources: add it to PARTS of tests/house/size_check.py"


def lines_of(path):
    with open(path, "rb") as source:
        return source.read().count(b"\n")


def check(root):
    faults, count = list(unknown_parts(root)), 0
    for folder, sources in folders(root):
        count += len(sources)
        if len(sources) > SOURCES:
            faults.append(f"{folder}: {len(sources)} sources, where {SOURCES} may be: draw it anew, in folders by idea")
        for path in sources:
            lines = lines_of(os.path.join(root, path))
            if lines > LINES:
                faults.append(f"{path}:{LINES + 1}: {lines} lines, where {LINES} may be: split it by idea")
    return faults, count


def self_test():
    tree = {f"lib/full/f{i}.c": 1 for i in range(SOURCES)}
    tree.update({f"lib/full/inside/f{i}.h": 1 for i in range(SOURCES)})
    tree.update({f"tests/pages/p{i}.json": LINES + 1 for i in range(SOURCES + 1)})
    tree.update({"bench/longest.py": LINES, "tests/crowded/run.sh": 1, "bench/too_long.sh": LINES + 1})
    tree.update({f"tests/crowded/f{i}_test.c": 1 for i in range(SOURCES)})
    tree.update({f"{part}/page.md": 1 for part in PARTS if part != "sched"})
    tree.update({"schedules/order.c": 1, "notes/page.md": 1, "build/made.c": 1, ".hidden/made.c": 1})
    with tempfile.TemporaryDirectory() as root:
        for path, lines in tree.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write("line\n" * lines)
        faults, _ = check(root)
    wrong = {fault.split(":")[0] for fault in faults} ^ {"tests/crowded", "bench/too_long.sh", "sched", "schedules"}
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
