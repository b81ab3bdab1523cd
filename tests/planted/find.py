#!/usr/bin/env python3
"""Plants faults, one at a time, in a copy of the tree, and says which test of `./dev test` finds each.

    find.py --stage NAME "SCALE OPTION..." [--stage ...] [--finders] [PATCH...]    what `./dev planted` runs
    find.py --check BUILD                                              tests.planted_check

A fault is a patch beside this file. Lines before its diff say what it plants, which stage must find it, and which test
there is cheapest to find it with; ctest's name of it says what to build, unless `Targets` does:

    Planted: what is wrong now
    Stage: tsan
    Finder: memory.arena_test
    Targets: target target

The copy is a work tree of git in build/planted, with a build folder for each stage. There the finders must pass without
a fault. With one the finder runs first, then the stage's other tests, those of the fault's part first, up to the first
that fails; --finders leaves the others out. The output of that test says how the fault was found. Results go to
build/planted/found.json, and what the failing tests printed to build/planted/PATCH.log.

--check says whether each patch applies to this tree and whether its finder is in the stage, without building."""
import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(ROOT, "build", "planted")
COPY = os.path.join(WORK, "tree")
HEAD = re.compile(r"^(Planted|Stage|Finder|Targets): (.+)$", re.MULTILINE)
FILE = re.compile(r"^\+\+\+ b/(\S+)", re.MULTILINE)
SKIPPED = 77
# Labels that a stage's tests have, and that they have not: cmake/SluiceParts.cmake says what they mean.
LABELS = {"tsan": ({"threads"}, {"by_change", "all_only"}), "asan": (set(), {"release_only", "by_change", "all_only"})}
# The first that a failing test printed is how it was found; a leak alone is not how a fault shows.
REPORTS = [re.compile(text, re.MULTILINE) for text in (
    r"WARNING: (ThreadSanitizer): ([^(\n]*[^ (\n])",
    r"ERROR: (AddressSanitizer): ([\w-]+)",
    r"(runtime error): (.*)$",
    r"^(emulated CUDA): (.*)$",
    r"Test failed with (exception): (.*)$",
    r"^(Timeout)()$")]
SUMMARY = re.compile(r"^SUMMARY: \w+: (.*)$", re.MULTILINE)
LEAK = re.compile(r"LeakSanitizer: ")
ASSERTION = re.compile(r"^(?:\[ +(?:ERROR|LINE) +\] --- )?(\S+?\.(?:c|cc|sh|py):\d+.*)$", re.MULTILINE)


class Problem(Exception):
    """An error that stops all further work."""


def git(*arguments, folder=ROOT, **variables):
    # A folder above the tree may be a repository too, of which git would then speak.
    environment = dict(os.environ, GIT_CEILING_DIRECTORIES=os.path.dirname(folder), **variables)
    result = subprocess.run(["git", "-c", "core.hooksPath=/dev/null", *arguments], cwd=folder, env=environment,
                            capture_output=True, text=True, check=False)
    if result.returncode:
        raise Problem(f"git {arguments[0]}: {result.stderr.strip()}")
    return result.stdout.strip()


# ---- Patches ----

class Patch:
    def __init__(self, name):
        self.name, self.path = name, os.path.join(HERE, name + ".patch")
        if not os.path.exists(self.path):
            raise Problem(f"there is no {os.path.relpath(self.path, ROOT)}")
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        head = dict(HEAD.findall(text.split("\ndiff --git ")[0]))
        for key in ("Planted", "Stage", "Finder"):
            if key not in head:
                raise Problem(f"{name}: a line \"{key}: ...\" is missing before its diff")
        self.planted, self.stage, self.finder = head["Planted"], head["Stage"], head["Finder"]
        if self.stage not in LABELS:
            raise Problem(f"{name}: no stage is called \"{self.stage}\"")
        self.targets = head["Targets"].split() if "Targets" in head else [self.finder.replace(".", "_", 1)]
        files = FILE.findall(text)
        if not files:
            raise Problem(f"{name}: it changes no file")
        self.part = files[0].split("/")[1]

    def apply(self, folder, *options):
        try:
            git("apply", "--whitespace=nowarn", *options, self.path, folder=folder)
        except Problem as why:
            raise Problem(f"{self.name}: the patch no longer applies: {why}") from why


def all_patches():
    return [Patch(name[:-len(".patch")]) for name in sorted(os.listdir(HERE)) if name.endswith(".patch")]


# ---- The copy ----

def snapshot():
    """A commit of the tree as it is, with all that is not committed yet. No branch knows it."""
    environment = {"GIT_INDEX_FILE": os.path.join(WORK, "index")}
    for who in ("AUTHOR", "COMMITTER"):
        environment[f"GIT_{who}_NAME"], environment[f"GIT_{who}_EMAIL"] = "planted", "planted@localhost"
    git("read-tree", "HEAD", **environment)
    git("add", "--all", **environment)
    tree = git("write-tree", **environment)
    return git("commit-tree", tree, "-p", "HEAD", "-m", "the tree in which faults are planted", **environment)


def make_copy():
    os.makedirs(WORK, exist_ok=True)
    commit = snapshot()
    git("worktree", "prune")
    if os.path.exists(COPY):
        git("checkout", "--quiet", "--force", "--detach", commit, folder=COPY)
        git("clean", "--quiet", "-d", "--force", folder=COPY)
    else:
        git("worktree", "add", "--quiet", "--detach", COPY, commit)


class Stage:
    def __init__(self, name, options):
        self.name = name
        self.scale, *rest = options.split()
        self.configure = [option for option in rest if option.startswith("-D")]
        self.select = [option for option in rest if not option.startswith("-D")]
        self.build_folder = os.path.join(COPY, "build", name)

    def command(self, *arguments):
        log = os.path.join(WORK, "build.log")
        with open(log, "w", encoding="utf-8") as out:
            if subprocess.run(arguments, cwd=COPY, stdout=out, stderr=subprocess.STDOUT, check=False).returncode:
                raise Problem(f"{' '.join(arguments)} failed: {os.path.relpath(log, ROOT)} says why")

    def build(self, *targets):
        # Transports are loaded by name; no test's target brings them.
        self.command("cmake", "--build", "--preset", self.name, "--target", *targets, "plugins/transport/all")

    def begin(self):
        self.command("cmake", "--preset", self.name, *self.configure)

    def tests(self):
        """The stage's tests, with their labels."""
        shown = subprocess.run(["ctest", "--test-dir", self.build_folder, "--show-only=json-v1", *self.select],
                               capture_output=True, text=True, check=True).stdout
        return {test["name"]: labels_of(test) for test in json.loads(shown)["tests"]
                if not property_of(test, "DISABLED")}

    def run(self, *tests):
        """Runs the tests up to the first that fails, and returns its name and what it printed, or None."""
        results = os.path.join(WORK, "tests.xml")
        if os.path.exists(results):
            os.remove(results)
        pattern = "^(" + "|".join(map(re.escape, tests)) + ")$"
        code = subprocess.run(
            ["ctest", "--test-dir", self.build_folder, "-R", pattern, *self.select, "--stop-on-failure",
             "--no-tests=error", "--output-junit", results, "--test-output-size-failed", "10000000",
             "-j", str(os.cpu_count() if len(tests) > 1 else 1)],
            env=dict(os.environ, SLUICE_TEST_SCALE=self.scale), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            check=False).returncode
        for case in xml.parse(results).getroot().iter("testcase"):
            if case.get("status") == "fail":
                ended = "" if case.find("failure") is None else case.find("failure").get("message", "")
                return case.get("name"), f"{case.findtext('system-out') or ''}\n{ended}\n"
        if code:
            raise Problem(f"ctest failed with code {code} in {os.path.relpath(self.build_folder, ROOT)}, no test did")
        return None


def property_of(test, name, otherwise=None):
    return next((p["value"] for p in test.get("properties", []) if p["name"] == name), otherwise)


def labels_of(test):
    return property_of(test, "LABELS", [])


# ---- Finding ----

def describe(output):
    """Returns the way in which a failing test says that something is wrong, and the line that says it."""
    for report in REPORTS:
        found = report.search(output)
        if found:
            summary = SUMMARY.search(output)
            kind = "UndefinedBehaviorSanitizer" if found[1] == "runtime error" else found[1]
            return f"{kind}: {found[2]}".rstrip(": "), summary[1] if summary else ""
    assertion = ASSERTION.search(output)
    if assertion:  # what it leaves behind leaks, too
        return "assertion", assertion[1].strip()
    if LEAK.search(output):
        return "", ""
    return "assertion", output.strip().splitlines()[-1] if output.strip() else ""


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def orders(stage, patch, finders_alone):
    """The tests that may find it, most likely ones first, each list with what it needs to be built."""
    tests = stage.tests()
    if patch.finder in tests:
        yield patch.targets, [patch.finder]
    others = [] if finders_alone else [name for name in tests if name != patch.finder]
    for names in ([name for name in others if patch.part in tests[name]],
                  [name for name in others if patch.part not in tests[name]]):
        if names:
            yield ["all"], names


def find(stage, patch, finders_alone, log):
    """Runs tests with the fault in the copy until one finds it."""
    for targets, names in orders(stage, patch, finders_alone):
        stage.build(*targets)
        failed = stage.run(*names)
        if failed:
            with open(log, "w", encoding="utf-8") as file:
                file.write(failed[1])
            how, where = describe(failed[1])
            if how:
                return failed[0], how, where
    return None, "", ""


def try_patch(stage, patch, finders_alone):
    began, used = time.monotonic(), cpu_seconds()
    patch.apply(COPY)
    try:
        test, how, where = find(stage, patch, finders_alone, os.path.join(WORK, patch.name + ".log"))
    except Problem as why:
        raise Problem(f"{patch.name}: {why}") from why
    finally:
        git("checkout", "--quiet", "--force", "HEAD", folder=COPY)
        git("clean", "--quiet", "-d", "--force", folder=COPY)
    return {"patch": patch.name, "part": patch.part, "stage": stage.name, "planted": patch.planted, "test": test,
            "finder": patch.finder, "how": how, "where": where, "cpu_s": round(cpu_seconds() - used, 1),
            "wall_s": round(time.monotonic() - began, 1)}


def begin_stage(stage, patches):
    """Builds what the stage needs first, and proves that the finders pass without a fault."""
    stage.begin()
    stage.build(*dict.fromkeys(target for patch in patches for target in patch.targets))
    tests = stage.tests()
    finders = [finder for finder in dict.fromkeys(patch.finder for patch in patches) if finder in tests]
    failed = stage.run(*finders) if finders else None
    if failed:
        log = os.path.join(WORK, stage.name + ".log")
        with open(log, "w", encoding="utf-8") as file:
            file.write(failed[1])
        raise Problem(f"{failed[0]} fails in {stage.name} without any fault: {os.path.relpath(log, ROOT)} says how")


def row(result):
    found = result["test"] or "NOT FOUND"
    return f"{result['part']:10} {result['patch']:28} {result['stage']:5} {found:36} {result['how']}"


def show(results):
    print(f"\n{'part':10} {'fault':28} {'stage':5} {'found by':36} how")
    for result in sorted(results, key=lambda r: (r["stage"], r["part"], r["patch"])):
        print(row(result))
    missed = [r["patch"] for r in results if not r["test"]]
    late = [r["patch"] for r in results if r["test"] and r["test"] != r["finder"]]
    if late:
        print(f"found, but not by the test that their head names: {' '.join(late)}")
    print(f"{len(results) - len(missed)} found, {len(missed)} not found")
    return not missed


def find_all(stages, patches, finders_alone):
    for patch in patches:
        patch.apply(ROOT, "--check")
    make_copy()
    results = []
    for stage in stages:
        own = [patch for patch in patches if patch.stage == stage.name]
        if not own:
            continue
        print(f"{stage.name}: building, and running the finders without a fault", flush=True)
        begin_stage(stage, own)
        for patch in own:
            results.append(try_patch(stage, patch, finders_alone))
            print(f"{row(results[-1])}  ({results[-1]['cpu_s']} CPU s)", flush=True)
    with open(os.path.join(WORK, "found.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    return show(results)


# ---- Checking ----

def check(patches, build):
    """Patches apply, and finders that this build has are in their stage."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True,
                           check=True).stdout
    listed = json.loads(shown)["tests"]
    tests = {test["name"]: labels_of(test) for test in listed}
    disabled = {test["name"] for test in listed if property_of(test, "DISABLED")}
    wrong = []
    for patch in patches:
        try:
            patch.apply(ROOT, "--check")
        except Problem as why:
            wrong.append(str(why))
        wanted, unwanted = LABELS[patch.stage]
        labels = set(tests.get(patch.finder, wanted))
        for label in sorted(wanted - labels | unwanted & labels):
            wrong.append(f"{patch.name}: its finder, {patch.finder}, is not always in {patch.stage}: the label "
                         f"{label} is {'missing' if label in wanted else 'there'}")
    wrong += [f"{patch.name}: its finder, {patch.finder}, is disabled in this build of its stage" for patch in patches
              if patch.finder in disabled and patch.stage == os.path.basename(os.path.normpath(build))]
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(patches)} patches, {len(wrong)} faults in them")
    return not wrong and bool(patches)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--check", metavar="BUILD")
    parser.add_argument("--stage", nargs=2, action="append", default=[])
    parser.add_argument("--finders", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if not shutil.which("git"):
        print("SKIP: git is not installed, which applies patches")
        sys.exit(SKIPPED)
    patches = [Patch(name.removesuffix(".patch")) for name in options.names] or all_patches()
    if options.check:
        return check(patches, options.check)
    return find_all([Stage(*stage) for stage in options.stage], patches, options.finders)


if __name__ == "__main__":
    try:
        sys.exit(0 if main() else 1)
    except Problem as problem:
        print(f"find.py: {problem}", file=sys.stderr)
        sys.exit(1)
