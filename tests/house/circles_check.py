#!/usr/bin/env python3
"""Checks that the files of any one target call each other in no circle: `circles_check.py BUILD_DIR`.

The symbols of the object files say who calls whom: a file that needs a symbol, weakly too, depends on the file of the
same target that defines it. Two functions that need each other belong in one file. `--self-test` checks that a circle
is found, and that symbols are told apart."""
import os
import re
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
OBJECT = re.compile(r"CMakeFiles/(?P<target>\w+)\.dir/(?P<file>.+)\.o$")
TEST = re.compile(r"_(test|fuzz)\.(c|cc)$")  # it may stand in for a function that the file under test calls


def objects(build):
    """target -> {file: path of its object}; objects whose source is gone are left over from an older build."""
    targets = {}
    for folder, _, names in os.walk(build):
        for name in names:
            path = os.path.join(folder, name)
            found = OBJECT.search(path)
            source = found and os.path.join(ROOT, os.path.relpath(path[: found.start()], build), found["file"])
            if found and os.path.exists(source) and not TEST.search(source):
                targets.setdefault(found["target"], {})[found["file"]] = path
    return targets


def sort_symbol(kind, name, defined, needed):
    """Sorts a symbol by nm's letter: U, or w and v if it is weak, is one that the file needs; other small letters are
    the file's own."""
    if kind in "Uwv":
        needed.add(name)
    elif kind.isupper() or kind in "iu":
        defined.add(name)


def symbols(paths):
    """path -> the symbols that an object defines for others, and those that it needs."""
    tables = {path: (set(), set()) for path in paths}
    for line in subprocess.run(["nm", "-A", *paths], check=True, capture_output=True, text=True).stdout.splitlines():
        path, rest = line.split(".o:", 1)
        sort_symbol(*rest.split()[-2:], *tables[path + ".o"])
    return tables


def dependencies(target):
    found = symbols(target.values())
    tables = {file: found[path] for file, path in target.items()}
    owner = {name: file for file, (defined, _) in tables.items() for name in defined}
    return {file: {owner[n] for n in needed if n in owner} - {file} for file, (_, needed) in tables.items()}


def circles(graph):
    """Groups of files that reach each other, by repeated reachability: a target has some dozens of files."""
    reach = {file: set(out) for file, out in graph.items()}
    for middle in graph:
        for file in graph:
            if middle in reach[file]:
                reach[file] |= reach[middle]
    groups = {frozenset(other for other in reach[file] if file in reach[other]) for file in graph if file in reach[file]}
    return sorted(sorted(group) for group in groups)


def self_test():
    defined, needed = set(), set()
    for kind, name in (("T", "a"), ("t", "own"), ("U", "b"), ("w", "hook"), ("W", "weak"), ("b", "local")):
        sort_symbol(kind, name, defined, needed)
    if (defined, needed) != ({"a", "weak"}, {"b", "hook"}):
        return False
    return circles({"a.c": {"b.c"}, "b.c": {"c.c"}, "c.c": {"b.c", "d.c"}, "d.c": set()}) == [["b.c", "c.c"]]


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if self_test() else 1
    targets = {name: files for name, files in objects(sys.argv[1]).items() if len(files) > 1}
    groups = [(name, group) for name, files in sorted(targets.items()) for group in circles(dependencies(files))]
    for name, group in groups:
        print(f"files that call each other in a circle: {name}: {' '.join(group)}")
    count = sum(len(files) for files in targets.values())
    print(f"circles: {len(groups)} in {count} files of {len(targets)} targets")
    return 1 if groups or not count else 0


if __name__ == "__main__":
    sys.exit(main())
