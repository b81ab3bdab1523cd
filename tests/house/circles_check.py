#!/usr/bin/env python3
"""Files of one part call each other in no circle: `circles_check.py BUILD_DIR`.

The symbols of the object files say who calls whom: a file that needs a symbol depends on the file of the same part
that defines it. Two functions that need each other belong in one file. `--self-test` checks that a circle is found."""
import os
import re
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
OBJECT = re.compile(r"CMakeFiles/(?P<part>slc_[a-z]+|sluice_bench|sluice_lab)\.dir/(?P<file>.+)\.c\.o$")


def objects(build):
    """part -> {file: path of its object}; objects whose source is gone are left over from an older build."""
    parts = {}
    for folder, _, names in os.walk(build):
        for name in names:
            path = os.path.join(folder, name)
            found = OBJECT.search(path)
            source = found and os.path.join(ROOT, os.path.relpath(path[: found.start()], build), found["file"] + ".c")
            if found and os.path.exists(source):
                parts.setdefault(found["part"], {})[found["file"] + ".c"] = path
    return parts


def symbols(paths):
    """path -> the symbols that an object defines, and those that it needs."""
    tables = {path: (set(), set()) for path in paths}
    for line in subprocess.run(["nm", "-A", *paths], check=True, capture_output=True, text=True).stdout.splitlines():
        path, rest = line.split(".o:", 1)
        kind, name = rest.split()[-2:]
        tables[path + ".o"][kind == "U"].add(name)
    return tables


def dependencies(part):
    found = symbols(part.values())
    tables = {file: found[path] for file, path in part.items()}
    owner = {name: file for file, (defined, _) in tables.items() for name in defined}
    return {file: {owner[n] for n in needed if n in owner} - {file} for file, (_, needed) in tables.items()}


def circles(graph):
    """Groups of files that reach each other, by repeated reachability: parts have some dozens of files."""
    reach = {file: set(out) for file, out in graph.items()}
    for middle in graph:
        for file in graph:
            if middle in reach[file]:
                reach[file] |= reach[middle]
    groups = {frozenset(other for other in reach[file] if file in reach[other]) for file in graph if file in reach[file]}
    return sorted(sorted(group) for group in groups)


def self_test():
    return circles({"a.c": {"b.c"}, "b.c": {"c.c"}, "c.c": {"b.c", "d.c"}, "d.c": set()}) == [["b.c", "c.c"]]


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if self_test() else 1
    parts = objects(sys.argv[1])
    groups = [(part, group) for part, files in sorted(parts.items()) for group in circles(dependencies(files))]
    for part, group in groups:
        print(f"files that call each other in a circle: {part}: {' '.join(group)}")
    count = sum(len(files) for files in parts.values())
    print(f"circles: {len(groups)} in {count} files")
    return 1 if groups or not count else 0


if __name__ == "__main__":
    sys.exit(main())
