#!/usr/bin/env python3
"""Checks that a reader who opens a file finds its test. Each NAME.c outside of tests and docs has NAME_test.c beside
it, or a sentence in its first comment: "TEST covers this file.", "TEST and TEST cover this file." A TEST that
lies beside the file is named by its base name, another one by its path from the root. It is a *_test.c, *_test.sh,
*_check.sh or a Python script of tests/. A sentence that need not be there is checked too. Tests and fuzzers themselves need
none.

`tested_check.py [ROOT]` checks a tree; `--self-test` checks that a tree with planted faults is refused."""
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
import tree  # noqa: E402

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
UNTESTED = ("tests", "docs")  # folders whose programs need no tests of their own
FIRST_COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
SENTENCE = re.compile(r"(?:^|\s)(?:(\S+) covers|(\S+) and (\S+) cover) this file\.(?=\s|$)")
TEST = re.compile(r"_test\.(c|sh)$|_check\.sh$|^tests/.*\.py$")


def sources(root):
    """Returns the files that need a test, as paths from the root."""
    return [path for path in tree.files(root) if path.split("/")[0] not in UNTESTED
            and path.endswith(".c") and not path.endswith(("_test.c", "_fuzz.c"))]


def tests_named(text):
    """The tests that a file's first comment names, which begins the file."""
    comment = FIRST_COMMENT.match(text)
    words = re.sub(r"\s+\*\s|\s+", " ", comment[1]) if comment else ""
    return [name for found in SENTENCE.findall(words) for name in found if name]


def faults_of(root, path, text):
    beside = os.path.dirname(path)
    named = tests_named(text)
    if not named and not os.path.exists(os.path.join(root, path[: -len(".c")] + "_test.c")):
        yield "no test lies beside it, and its first comment does not say which \"covers this file.\""
    for name in named:
        place = name if "/" in name else os.path.join(beside, name)
        if "/" in name and os.path.dirname(name) == beside:
            yield f"{name} lies beside it: name it without the path"
        elif not TEST.search(place):
            yield f"{name} is no test"
        elif not os.path.exists(os.path.join(root, place)):
            yield f"{name} does not exist"


def check(root):
    faults, count = [], 0
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as source:
            faults += [f"{path}:1: {fault}" for fault in faults_of(root, path, source.read())]
        count += 1
    return faults, count


def self_test():
    good = {
        "lib/a/beside.c": "int x;\n",
        "lib/a/beside_test.c": "",
        "lib/a/one.c": "/* One. beside_test.c covers this file. */\n",
        "lib/a/two.c": "/* Two.\n *\n * beside_test.c and\n * tests/b/whole_test.sh cover this file. */\n",
        "lib/a/read_fuzz.c": "int x;\n",
        "plugins/c/python.c": "/* tests/b/client.py covers this file. It is read twice. */\n",
        "tests/b/whole_test.sh": "",
        "tests/b/client.py": "",
        "tests/b/support.c": "int x;\n",
    }
    bad = {
        "lib/a/bare.c": "int x;\n",
        "lib/a/later.c": "int x;\n/* beside_test.c covers this file. */\n",
        "lib/a/gone.c": "/* gone_test.c covers this file. */\n",
        "lib/a/half.c": "/* beside_test.c and\n * tests/b/gone_test.sh cover this file. */\n",
        "sched/away.c": "/* beside_test.c covers this file. */\n",
        "ilp/support.c": "/* tests/b/support.c covers this file. */\n",
        "new/part.c": "int x;\n",
        "bench/script.c": "/* bench/make.py covers this file. */\n",
        "bench/make.py": "",
        "lib/a/long.c": "/* lib/a/beside_test.c covers this file. */\n",
        "lib/a/moved.c": "/* tests/b/moved_test.c covers this file. */\n",
        "lib/a/moved_test.c": "",
    }
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**good, **bad}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write(text)
        faults, _ = check(root)
    wrong = sorted({fault.split(":")[0] for fault in faults} ^ {path for path in bad if path.endswith(".c") and not path.endswith("_test.c")})
    for path in wrong:
        print(f"tested_check self-test: {path}: " + ("refused" if path in good else "not refused"))
    return not wrong


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if self_test() else 1
    faults, files = check(sys.argv[1] if len(sys.argv) > 1 else ROOT)
    print("\n".join(faults) if faults else f"the test of a file: {files} files, all have one or name one")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
