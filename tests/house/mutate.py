#!/usr/bin/env python3
"""Measures how sharp the tests are: `mutate.py [PART] [COUNT] [SEED]` changes single lines of lib, sched, ilp and
plugins, each in turn, and sees whether a test fails. PART is a folder (lib/comm; '' for all), COUNT is 20 and SEED is
drawn if not given.

It works in a copy of the tree under build/mutants, with builds of its own whose GPU is emulated. First all tests run
once on the tree as it is, in a build that notes which of the drawn lines each test runs: a test that fails there kills
nothing, and one that does not run a line cannot be failed by it. Then each mutant is built and judged by the tests that
run its line: the one that killed it last time first, then those beside the file, its part's, the programs of tests/ and
the scripts, each from the cheapest on, with a fifth of their rounds. A test kills if it fails twice. A mutant that
survives is tried again at the end by those of the tests that do more rounds in `./dev test`.

Mutants that do not compile, or whose object is the same to the byte, are drawn again. Files that only tests have are
not changed: tests, references, fuzzers, oracles. Verdicts go to build/mutants/runs/NAME/verdicts.jsonl as they come;
the same command goes on after an interruption, and begins anew if a file of the tree has changed. `--self-test` checks
how mutants are made."""
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import mutants

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
WORK = os.path.join(ROOT, "build", "mutants")
TREE = os.path.join(WORK, "tree")
FOLDERS = ("lib/", "sched/", "ilp/", "plugins/")
TESTS_OWN = re.compile(r"_(test|ref|fuzz|theirs)\.c$|/testing/|^sched/study/")
HOUSE = re.compile(r"^(hostcuda|hostnccl|cuda_emulated)\.|^tests\.(\w+_check|\w+_check_self|mutants_self"
                   r"|api_reference_test|broken_command_test|dev_test|config_defaults_test|gpu_check_test)$") # of the tree and stand-ins
FIRST_TRY = {"SLUICE_TEST_SCALE": "0.2", "SLUICE_TEST_STEPS": "25"} # the second for scripts that know it
LONG = re.compile(r"SLUICE_TEST_S|\bscale\.h|_rounds\(")
PRESET = "emulated" if platform.machine() in ("x86_64", "AMD64") else "release"
SLOTS = 2

# The lines that a process has run count even if it leaves by _exit.
LEAVING = """
#include <sys/syscall.h>
#include <unistd.h>
void __gcov_dump(void);
void _exit(int code) { __gcov_dump(); for (;;) syscall(SYS_exit_group, code); }
"""
# Coverage is built into the files of drawn lines alone, so that all other objects are those of any build.
COVERED = """
cmake_language(DEFER CALL slc_cover)
function(slc_cover)
    foreach(folder IN ITEMS @folders@)
        set_source_files_properties(@files@ DIRECTORY ${folder} PROPERTIES COMPILE_OPTIONS --coverage)
    endforeach()
endfunction()
"""


def fail(line):
    print(f"mutate: {line}", file=sys.stderr)
    sys.exit(2)


def run(command, **options):
    """Returns what a command printed; the command must succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        print(done.stdout[-4000:], file=sys.stderr)
        fail(f"failed: {' '.join(command)}")
    return done.stdout


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def keep(path, facts):
    """Writes facts that a later run reads; an interruption leaves the file of before."""
    write(path + ".new", json.dumps(facts, indent=0))
    os.replace(path + ".new", path)


# ---- The copy of the tree ----

def copy_tree():
    """Makes the copy what the tree is now; the result stands for its content."""
    listed = run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT).split("\0")
    files = sorted({file for file in listed if file and os.path.isfile(os.path.join(ROOT, file))})
    content = hashlib.sha256()
    for file in files:
        source, copy = os.path.join(ROOT, file), os.path.join(TREE, file)
        with open(source, "rb") as opened:
            data = opened.read()
        if not file.startswith("tests/house/"): # whose scripts judge no mutant
            content.update(file.encode() + b"\0" + hashlib.sha256(data).digest())
        if os.path.exists(copy):
            with open(copy, "rb") as opened:
                if opened.read() == data:
                    continue
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy(source, copy)
    kept = set(files)
    for folder, folders, names in os.walk(TREE):
        if folder == TREE and "build" in folders:
            folders.remove("build")
        for name in names:
            if os.path.relpath(os.path.join(folder, name), TREE) not in kept:
                os.remove(os.path.join(folder, name))
    return content.hexdigest()[:16]


class Build:
    """One build of the copy: its programs, its tests, how each file is compiled."""

    def __init__(self, name, *options):
        self.path = os.path.join(TREE, "build", name)
        run(["cmake", "--preset", PRESET, "-B", self.path, *options], cwd=TREE)
        self.make("all")
        described = json.loads(run(["ctest", "--test-dir", self.path, "--show-only=json-v1"]))
        self.tests = [Test(self, test) for test in described["tests"] if not HOUSE.search(test["name"])]
        programs = {test.command[0] for test in self.tests}
        linked = re.findall(r"^build ([^|:]+)(?:\| [^:]*)?: \w+_LINKER__", read(self.path + "/build.ninja"), re.M)
        built = [name for line in linked for name in line.split() if os.path.exists(os.path.join(self.path, name))]
        self.shared = [name for name in built if os.path.join(self.path, name) not in programs]
        self.plugins = [name for name in self.shared if name.startswith("plugins/")]
        self.compiled = {}
        for entry in json.loads(read(self.path + "/compile_commands.json")):
            self.compiled.setdefault(os.path.relpath(entry["file"], TREE), []).append(entry)

    def make(self, *targets):
        run(["ninja", "-C", self.path, f"-j{os.cpu_count()}", *targets])

    def objects(self, file):
        """The code of a file's objects, without what is for debuggers; nothing if it does not compile."""
        codes = []
        for number, entry in enumerate(self.compiled[file]):
            made = os.path.join(WORK, f"object-{number}.o")
            command = shlex.split(entry["command"])
            command[command.index("-o") + 1] = made
            if subprocess.run(command, cwd=entry["directory"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode:
                return None
            run(["objcopy", "-g", "--remove-section=.comment", made])
            with open(made, "rb") as opened:
                codes.append(opened.read())
            os.remove(made)
        return codes


# ---- Tests ----

class Test:
    def __init__(self, build, described):
        self.build, self.name, self.command = build, described["name"], described["command"]
        if os.path.basename(self.command[0]) == "test_seconds":  # only starts the test, whose name follows
            self.command = self.command[2:]
        of = {property["name"]: property["value"] for property in described.get("properties", [])}
        if {"WILL_FAIL", "PASS_REGULAR_EXPRESSION"} & set(of):
            fail(f"{self.name} passes in a way that mutate.py does not know")
        self.environment = dict(setting.split("=", 1) for setting in of.get("ENVIRONMENT", []))
        self.folder = of.get("WORKING_DIRECTORY", build.path)
        self.skip_code = of.get("SKIP_RETURN_CODE")
        self.failures = [re.compile(pattern) for pattern in of.get("FAIL_REGULAR_EXPRESSION", [])]
        self.part, _, self.stem = self.name.partition(".")
        self.is_program = self.command[0].startswith(build.path + "/")
        self.source = self.find_source()
        self.takes_steps = self.source and "SLUICE_TEST_STEPS" in read(os.path.join(TREE, self.source))

    def find_source(self):
        """The file that says what is tested, if there is one."""
        if not self.is_program:
            scripts = (word for word in self.command if re.search(r"_test\.(sh|py)$", word))
            return os.path.relpath(next(scripts, TREE), TREE).strip(".")
        folder = os.path.relpath(os.path.dirname(self.command[0]), self.build.path)
        for place, _, names in os.walk(os.path.join(TREE, folder)):
            if self.stem + ".c" in names:
                return os.path.relpath(os.path.join(place, self.stem + ".c"), TREE)
        return ""

    def is_long(self):
        """Does it do more rounds in `./dev test`? Its source says so, or what that names beside it or of tests/."""
        if not self.source:
            return True
        texts, beside = [read(os.path.join(TREE, self.source))], os.path.dirname(os.path.join(TREE, self.source))
        names = set(re.findall(r"[\w/.-]+\.(?:h|py|sh)\b", texts[0]))
        for path in [os.path.join(beside, os.path.basename(name)) for name in names] + [
                os.path.join(TREE, name) for name in names]:
            if os.path.isfile(path):
                texts.append(read(path))
        return any(LONG.search(text) for text in texts)

    def rank(self, file, costs):
        """Returns the test's place among those that judge a file: the cheapest of the nearest comes first."""
        near = 5
        if os.path.splitext(self.source)[0] == os.path.splitext(file)[0] + "_test":
            near = 0
        elif os.path.dirname(self.source) == os.path.dirname(file):
            near = 1
        elif part_of(self.source) == part_of(file):
            near = 2
        elif self.part != "tests" and self.is_program:
            near = 3
        elif self.is_program:
            near = 4
        return near, costs[self.name]["cpu_s"]

    def build_it(self):
        """Builds what the test runs: a unit test and the plugins that it may load, or all programs and libraries."""
        unit = self.source.startswith(FOLDERS)
        program = [os.path.relpath(self.command[0], self.build.path)] if self.is_program else []
        self.build.make(*program, *(self.build.plugins if unit else self.build.shared))

    def run(self, limit_s, settings):
        """(passed, failed, skipped or late; CPU seconds; wall seconds). No process of it is left behind."""
        if not self.takes_steps:
            settings = {name: value for name, value in settings.items() if name != "SLUICE_TEST_STEPS"}
        with open(os.path.join(WORK, f"{self.name}.log"), "w+b") as log:
            begin = time.monotonic()
            started = subprocess.Popen(self.command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, start_new_session=True, preexec_fn=end_first_without_memory,
                                       env={**os.environ, **self.environment, **settings})
            late = threading.Event()
            running.add(started.pid)
            timer = threading.Timer(limit_s, lambda: (late.set(), kill_session(started.pid)))
            timer.start()
            _, status, usage = os.wait4(started.pid, 0)
            timer.cancel()
            started.returncode = code = os.waitstatus_to_exitcode(status)
            kill_session(started.pid)
            running.discard(started.pid)
            log.seek(0)
            output = log.read().decode(errors="replace")
        verdict = "failed"
        if late.is_set():
            verdict = "late"
        elif code == self.skip_code:
            verdict = "skipped"
        elif code == 0 and not any(pattern.search(output) for pattern in self.failures):
            verdict = "passed"
        if verdict != "failed":
            os.remove(os.path.join(WORK, f"{self.name}.log"))
        return verdict, usage.ru_utime + usage.ru_stime, time.monotonic() - begin


def end_first_without_memory():
    write("/proc/self/oom_score_adj", "1000")


running = set() # sessions of tests


def stop(*_):
    """Leaves no test behind; a line that is changed is put back by the next run."""
    for session in list(running):
        kill_session(session)
    os._exit(130)


def kill_session(session):
    """Ends all processes of a session that this program began."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(read(f"/proc/{name}/stat").rpartition(")")[2].split()[3]) == session:
                os.kill(int(name), signal.SIGKILL)
        except (OSError, ValueError, IndexError):
            pass


def part_of(file):
    return "/".join(file.split("/")[:2 if file.startswith(("lib/", "plugins/")) else 1])


# ---- The draw ----

def draw(build, part, count, seed):
    """The first mutants that compile to something else."""
    files = sorted(file for file in build.compiled
                   if file.endswith(".c") and file.startswith(FOLDERS) and not TESTS_OWN.search(file)
                   and (file + "/").startswith(part + "/" if part else ""))
    if not files:
        fail(f'no source of lib, sched, ilp or plugins is below "{part}"')
    texts = {file: read(os.path.join(TREE, file)) for file in files}
    drawn, originals, refused = [], {}, 0
    for mutant in mutants.draw(texts, seed):
        file = mutant["file"]
        path = os.path.join(TREE, file)
        if file not in originals:
            originals[file] = build.objects(file)
        before = os.stat(path)
        write(path, mutants.applied(texts[file], mutant))
        changed = build.objects(file)
        write(path, texts[file])
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        if changed is None or changed == originals[file]:
            refused += 1
            continue
        drawn.append(mutant)
        show(f"drawn {len(drawn)} of {count}")
        if len(drawn) == count:
            break
    print(f"\n{refused} more were drawn that do not compile or change nothing; seed {seed}", flush=True)
    return drawn


# ---- Which test runs which line ----

def build_covered(files):
    leaving = os.path.join(WORK, "leaving.o")
    write(leaving[:-1] + "c", LEAVING)
    run(["cc", "-O1", "-fPIC", "-c", "-o", leaving, leaving[:-1] + "c"])
    folders = {os.path.dirname(path) + "/" for path in run(["git", "ls-files", "*CMakeLists.txt"], cwd=ROOT).split()}
    folders = sorted(folder[:-1] for folder in folders if folder.startswith(FOLDERS))
    write(WORK + "/covered.cmake",
          COVERED.replace("@folders@", " ".join(folders))
          .replace("@files@", " ".join(os.path.join(TREE, file) for file in files)))
    link = [f"-DCMAKE_{kind}_LINKER_FLAGS=--coverage" for kind in ("SHARED", "MODULE")]
    build = Build("covered", f"-DCMAKE_PROJECT_INCLUDE={WORK}/covered.cmake",
                  f"-DCMAKE_EXE_LINKER_FLAGS=--coverage {leaving}", *link)
    for file in files:
        for entry in build.compiled[file]:
            if "--coverage" not in entry["command"]:
                fail(f"{file} is compiled without --coverage")
    return build


class Slot:
    """A place where one test at a time leaves its counts."""

    def __init__(self, build, number):
        self.path = os.path.join(WORK, f"counts-{number}")
        shutil.rmtree(self.path, ignore_errors=True)
        for folder, _, names in os.walk(build.path):
            for name in names:
                if name.endswith(".gcno"):
                    os.makedirs(self.path + folder, exist_ok=True)
                    os.symlink(os.path.join(folder, name), os.path.join(self.path + folder, name))

    def lines(self):
        """{file: {line: was it run}} of the test before; its counts are removed."""
        counts = [os.path.join(folder, name) for folder, _, names in os.walk(self.path)
                  for name in names if name.endswith(".gcda")]
        if not counts:
            return {}
        found = {}
        done = subprocess.run(["gcov", "--json-format", "--stdout", *counts], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
        for text in filter(None, done.stdout.splitlines()):
            made = json.loads(text)
            for file in made["files"]:
                path = os.path.relpath(os.path.join(made["current_working_directory"], file["file"]), TREE)
                lines = found.setdefault(path, {})
                for line in file["lines"]:
                    number = line["line_number"]
                    lines[number] = lines.get(number, False) or line["count"] > 0
        for count in counts:
            os.remove(count)
        return found


def runs_line(lines, mutant):
    """Did a test run the mutant's line? Of a line without code of its own the file says it."""
    of = lines.get(mutant["file"], {})
    return of.get(mutant["line"], any(of.values()))


def baseline(drawn, path):
    """Returns what each test does on the tree as it is: {test: verdict, cpu_s, wall_s, runs: [number of the
    mutant]}."""
    known = json.loads(read(path)) if os.path.exists(path) else {}
    build = build_covered(sorted({mutant["file"] for mutant in drawn}))
    slots, lock = [Slot(build, number) for number in range(SLOTS)], threading.Lock()

    def note(test):
        with lock:
            slot = slots.pop()
        for _ in range(2):
            verdict, cpu_s, wall_s = test.run(600, {**FIRST_TRY, "GCOV_PREFIX": slot.path})
            if verdict != "failed":
                break
        lines = slot.lines()
        with lock:
            slots.append(slot)
            known[test.name] = {"verdict": verdict, "cpu_s": round(cpu_s, 2), "wall_s": round(wall_s, 1),
                                "runs": [i for i, mutant in enumerate(drawn) if runs_line(lines, mutant)]}
            keep(path, known)
            show(f"{len(known)} of {len(build.tests)} tests run on the tree as it is")

    with ThreadPoolExecutor(SLOTS) as pool:
        list(pool.map(note, [test for test in build.tests if test.name not in known]))
    failed = sorted(name for name, of in known.items() if of["verdict"] in ("failed", "late"))
    print(f"\n{sum(of['cpu_s'] for of in known.values()):.0f} CPU seconds of tests on the tree as it is", flush=True)
    if failed:
        print(f"these fail there, and kill nothing: {' '.join(failed)}", flush=True)
    return known


# ---- Judging ----

def is_killed_by(test, known, settings):
    """(killed, CPU seconds). A test kills if it fails twice, or is late if it is short."""
    test.build_it()
    limit_s = min(300, max(60, 6 * known["wall_s"] * (1 if settings else 5)))
    spent = 0
    for _ in range(2):
        verdict, cpu_s, _ = test.run(limit_s, settings)
        spent += cpu_s
        if verdict in ("passed", "skipped"):
            return False, spent
        if verdict == "late" and 10 * known["wall_s"] < limit_s:
            break
    return True, spent


def judge(tests, mutant, known, settings):
    """The test that kills a mutant, or nothing, and the CPU seconds that the tests took."""
    path = os.path.join(TREE, mutant["file"])
    text = read(path)
    spent, killer = 0, None
    write(path, mutants.applied(text, mutant))
    try:
        for test in tests:
            show(f"{mutant['file']}:{mutant['line']} {test.name}")
            killed, cpu_s = is_killed_by(test, known[test.name], settings)
            spent += cpu_s
            if killed:
                killer = test.name
                break
    finally:
        write(path, text)
    return killer, spent


def name_of(mutant):
    return (mutant["file"], mutant["before"], mutant["nth"], mutant["after"])


def earlier_killers():
    """Returns {name of a mutant: the test that killed it in an earlier run}."""
    killers = {}
    for folder, _, names in os.walk(os.path.join(WORK, "runs")):
        for name in sorted(names):
            for line in read(os.path.join(folder, name)).splitlines() if name.endswith(".jsonl") else []:
                verdict = json.loads(line)
                if verdict.get("by"):
                    killers[name_of(verdict)] = verdict["by"]
    return killers


def judges_of(build, mutant, number, known):
    """The tests that can fail by a mutant, in the order in which they are asked."""
    able = [test for test in build.tests
            if known[test.name]["verdict"] == "passed" and number in known[test.name]["runs"]]
    first = earlier_killers().get(name_of(mutant))
    return sorted(able, key=lambda test: (test.name != first, test.rank(mutant["file"], known)))


def judge_all(build, drawn, known, verdicts_path, tree):
    """Each mutant's verdict, first with few rounds, then the survivors' with all."""
    verdicts = {}
    for line in read(verdicts_path).splitlines() if os.path.exists(verdicts_path) else []:
        verdict = json.loads(line)
        if verdict["tree"] == tree:
            verdicts[name_of(verdict)] = verdict

    def note(mutant, verdict, killer, spent, asked):
        verdicts[name_of(mutant)] = made = {**mutant, "tree": tree, "verdict": verdict, "by": killer, "asked": asked,
                                            "cpu_s": round(spent, 1)}
        with open(verdicts_path, "a", encoding="utf-8") as file:
            file.write(json.dumps(made) + "\n")

    begin, judged = time.monotonic(), 0
    for again in (False, True):
        for number, mutant in enumerate(drawn):
            of = verdicts.get(name_of(mutant))
            if of and (of["verdict"] != "survived at first" or not again):
                continue
            tests = judges_of(build, mutant, number, known)
            if again:
                tests = [test for test in tests if test.is_long()]
            killer, spent = judge(tests, mutant, known, {} if again else FIRST_TRY)
            verdict = "killed" if killer else "survived" if again else "survived at first"
            note(mutant, verdict, killer, spent, len(tests))
            judged += 1
            left = sum(name_of(other) not in verdicts for other in drawn)
            print_line(f"[{len(drawn) - left}/{len(drawn)}] {mutant['file']}:{mutant['line']} "
                       f"{'killed by ' + killer if killer else 'survived ' + str(len(tests)) + ' tests'} "
                       f"({spent:.0f} CPU s)" + ("" if again else
                       f"; about {left * (time.monotonic() - begin) / judged / 60:.0f} minutes left"))
    return [verdicts[name_of(mutant)] for mutant in drawn]


# ---- What is shown ----

def show(line):
    """Shows on a terminal what goes on."""
    if sys.stdout.isatty():
        print(f"\r\033[K{line}", end="", flush=True)


def print_line(line):
    print(f"\r\033[K{line}" if sys.stdout.isatty() else line, flush=True)


def report(verdicts):
    survivors = [verdict for verdict in verdicts if verdict["verdict"] == "survived"]
    print(f"\nkilled: {len(verdicts) - len(survivors)} of {len(verdicts)}" + ("; survived:" if survivors else ""))
    for of in survivors:
        print(f"  {of['file']}:{of['line']}  {of['operator']}, run by {of['asked']} tests\n    - {of['before']}\n"
              f"    + {of['after']}")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if mutants.self_test() else 1
    part, count, seed = (sys.argv[1:] + ["", "20", ""][len(sys.argv) - 1:])[:3]
    if not count.isdigit() or not int(count) or len(sys.argv) > 4:
        fail("usage: mutate.py [PART] [COUNT] [SEED]; PART is a folder, '' for all")
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    part, seed = part.strip("/"), seed or str(int(time.time()))
    folder = os.path.join(WORK, "runs", f"{part.replace('/', '+') or 'all'}-{count}-{seed}")
    os.makedirs(folder, exist_ok=True)
    print(f"mutants of {part or 'all parts'}: {count}, seed {seed}", flush=True)
    tree = copy_tree()
    build = Build("mutated")
    drawn_path = os.path.join(folder, f"drawn-{tree}.json")
    if not os.path.exists(drawn_path):
        keep(drawn_path, draw(build, part, int(count), seed))
    drawn = json.loads(read(drawn_path))
    known = baseline(drawn, os.path.join(folder, f"baseline-{tree}.json"))
    report(judge_all(build, drawn, known, os.path.join(folder, "verdicts.jsonl"), tree))
    return 0


if __name__ == "__main__":
    sys.exit(main())
