#!/usr/bin/env python3
"""Carries out `./dev test` and `./dev stress`: builds and tests one preset after the other, and says at the end what
passed, what failed, what was skipped and why, and what it cost.

Builds run ahead of the tests, at a lower priority: tests wait for each other most of the time, and what they leave of
the processor builds the next preset."""
import concurrent.futures
import json
import os
import re
import signal
import sys
import threading
import time

import budget
import forms
import whole
from measured import end_all, interrupt, measured
from tally import seconds_of, tally
from time_left import TimeLeft

STATE = "build/dev"  # what is kept of the last runs
FAILED = os.path.join(STATE, "failed.json")
LEFT_OUT = re.compile(r"^-- .*(left out|one thread)")
EDGE = re.compile(r"^\[(\d+)/(\d+)\] ")  # a line of ninja's
DONE = re.compile(r"^ *(\d+)/(\d+) Test +#\d+: (\S+)")  # a line of ctest's
BUILD_LIMIT_S, TESTS_LIMIT_S = 3600, 5400
SLOWEST = 10
KEPT = ("test", "all", "quick")  # forms whose last run is remembered
UNIT = "the unit of the budget"
printing = threading.Lock()


def say(line=""):
    with printing:
        print(line, flush=True)


def read_json(path, default):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (FileNotFoundError, json.JSONDecodeError):
        return default


def write_json(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
    os.replace(path + ".new", path)


def exactly(names):
    return "^(" + "|".join(re.sub(r"([.+*?\[\]()^$|\\])", r"\\\1", name) for name in names) + ")$"


class Built:
    """The outcome of a build. `tests` are those that the stage selects, with their labels."""

    def __init__(self):
        self.ok, self.cpu_s, self.lines, self.left_out, self.tests = False, 0.0, [], [], {}


def listed(preset, select):
    """The tests that ctest would run, each with its labels."""
    lines = []
    ended = measured(["ctest", "--test-dir", f"build/{preset}", "--show-only=json-v1", *select], lines.append)
    text = "\n".join(lines)
    if ended.code or "{" not in text:
        raise RuntimeError(text)
    tests = {}
    for test in json.loads(text[text.index("{"):])["tests"]:
        labels = [p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"]
        tests[test["name"]] = labels[0] if labels else []
    return tests


def configure(stage, built):
    ended = measured(["cmake", "--preset", stage.name, *stage.options], built.lines.append, limit_s=300)
    built.cpu_s += ended.cpu_s
    if ended.code:
        return False
    built.left_out = [line for line in built.lines if LEFT_OUT.match(line)]
    built.lines = list(built.left_out)
    try:
        built.tests = listed(stage.name, stage.select) if stage.select is not None else {}
    except RuntimeError as error:
        built.lines.append(str(error))
        return False
    return True


def build(stage, ahead, few, advance):
    """Configures and builds what the stage needs; with `few`, nothing if it has no test."""
    built = Built()
    if not configure(stage, built):
        return built
    if few and stage.select is not None and not built.tests:
        built.ok = True
        return built

    def take(line):
        edge = EDGE.match(line)
        if edge:
            advance(int(edge[1]) / int(edge[2]), f"{edge[1]} of {edge[2]} built")
        else:
            built.lines.append(line)

    targets = ["--target", *stage.targets] if stage.targets else []
    ended = measured([*(["nice"] if ahead else []), "cmake", "--build", "--preset", stage.name, *targets], take,
                     {"NINJA_STATUS": "[%f/%t] "}, BUILD_LIMIT_S)
    built.ok = ended.code == 0
    built.cpu_s += ended.cpu_s
    return built


class Run:
    def __init__(self, form):
        self.form = form
        self.passed = self.failed = 0
        self.rows = []  # (stage, result, CPU seconds, wall seconds)
        self.skips, self.ran, self.lacks = [], set(), set()
        self.cells = {}  # (part, stage) -> CPU seconds
        self.tests = {}  # "PRESET TEST" -> CPU seconds
        self.unit_s = None
        self.presets = [stage for stage in form.stages if isinstance(stage, forms.Preset)]
        self.last = read_json(f"{STATE}/{form.name}.json", {}) if form.name in KEPT else {}
        self.pool = concurrent.futures.ThreadPoolExecutor(1)
        self.builds = {}
        self.begin, self.commit = time.monotonic(), whole.state()
        self.clock = TimeLeft(self.expected(), say)

    # ---- What is known from the last run ----

    def expected(self):
        known = self.last.get("stages", {})
        try:
            table = budget.Table() if self.form.judged else None
        except (OSError, ValueError):
            table = None  # judged and reported at the end

        def budgeted(holds):
            return sum(s for cell, s in table.cells.items() if holds(*cell)) if table else None

        expected = {}
        for stage in self.form.stages:
            if isinstance(stage, forms.Command):
                alike = sum(getattr(other, "part", None) == stage.part for other in self.form.stages)
                all_alike = budgeted(lambda part, _, wanted=stage.part: part == wanted)
                expected[stage.name] = all_alike and all_alike / alike
                continue
            expected[f"build {stage.name}"] = budgeted(lambda part, of, name=stage.name: (part, of) == ("build", name))
            if self.form.judged and stage.name == "release":
                expected[UNIT] = None
            if stage.select is not None:
                expected[f"test {stage.name}"] = budgeted(
                    lambda part, of, name=stage.name: part != "build" and of == name)
        return [(name, known.get(name, seconds)) for name, seconds in expected.items()]

    # ---- Stages ----

    def enter(self, name):
        self.clock.enter(name)
        say(f"\n=== {name}")

    def leave(self, name, result, cpu_s, begin):
        self.clock.leave(name)
        self.rows.append((name, result, cpu_s, time.monotonic() - begin))

    def spend(self, part, stage, seconds):
        self.cells[part, stage] = self.cells.get((part, stage), 0.0) + seconds

    def remember(self, stage, ran, failing):
        """Keeps for --failed what failed, and forgets what ran again: tests, and None for the stage as a whole."""
        origin = stage.origin or self.form.name
        known = [entry for entry in read_json(FAILED, []) if entry[:2] != [origin, stage.name] or entry[2] not in ran]
        write_json(FAILED, known + [[origin, stage.name, test, stage.env.get(forms.SEED)] for test in failing])

    def command(self, stage):
        if stage.by_change and whole.unchanged([stage.part]):
            self.skips.append(f"{stage.name}: nothing that it reads has changed since {whole.PATH}")
            self.clock.leave(stage.name)
            return True
        self.enter(stage.name)
        begin = time.monotonic()
        ended = measured(stage.argv, say, stage.env, stage.limit_s)
        ok = ended.code == 0
        self.passed, self.failed = self.passed + ok, self.failed + (not ok)
        self.spend(stage.part, stage.part, ended.cpu_s)
        self.leave(stage.name, "ok" if ok else "FAILED", ended.cpu_s, begin)
        self.remember(stage, [None], [] if ok else [None])
        return ok

    def start_builds(self):
        ahead = len(self.presets) > 1
        for stage in self.presets:
            def advance(share, words, name=f"build {stage.name}"):
                self.clock.advance(name, share, words)
            self.builds[stage] = self.pool.submit(build, stage, ahead, self.form.few, advance)

    def built(self, stage):
        """Waits for a preset's build; returns it, or nothing if there is nothing to test."""
        name = f"build {stage.name}"
        self.enter(name)
        begin = time.monotonic()
        built = self.builds[stage].result()
        for line in built.lines:
            say(line)
        self.spend("build", stage.name, built.cpu_s)
        self.leave(name, "ok" if built.ok else "FAILED", built.cpu_s, begin)
        if stage.name == "release":  # other presets leave out the same, or mean to
            self.skips += [f"{stage.name}: {line[3:]}" for line in built.left_out]
        if not built.ok:
            self.failed += 1
            self.remember(stage, [None], [None])
            return None
        self.remember(stage, [None] if stage.select is None else [], [])
        return built if stage.select is not None else None

    def leave_out_unchanged(self, stage, built):
        """ctest's option that leaves out the tests whose inputs have not changed; they are listed as skipped."""
        if not self.form.by_change:
            return []
        same = whole.unchanged([test for test, labels in built.tests.items() if "by_change" in labels])
        for test in same:
            self.skips.append(f"{stage.name}: {test}: nothing that it reads has changed since {whole.PATH}")
            del built.tests[test]
        return ["-E", exactly(same)] if same else []

    def test(self, stage, built):
        name, folder = f"test {stage.name}", os.path.abspath(f"build/{stage.name}")
        junit, seconds = os.path.join(folder, "tests.xml"), os.path.join(folder, "test-seconds.txt")
        options = list(stage.select) + self.leave_out_unchanged(stage, built)
        if not built.tests and self.form.few:
            self.clock.leave(name)
            self.remember(stage, stage.asked, [])  # they are tests no more
            return
        self.enter(name)
        for path in (junit, seconds):
            if os.path.exists(path):
                os.remove(path)
        weights = {test: self.last.get("tests", {}).get(f"{stage.name} {test}", 1.0) for test in built.tests}
        came = [0.0]

        with open(os.path.join(folder, "dev-test.log"), "w", encoding="utf-8") as log:
            def take(line):
                log.write(line + "\n")
                done = DONE.match(line)
                if done:
                    came[0] += weights.get(done[3], 0.0)
                    self.clock.advance(name, came[0] / (sum(weights.values()) or 1.0),
                                       f"{done[1]} of {done[2]} tests")
                if not re.match(r" *Start +\d", line):
                    say(line)

            begin = time.monotonic()
            ended = measured(["ctest", "--test-dir", folder, "-j", str(3 * (os.cpu_count() or 1)),
                              "--output-on-failure", "--no-tests=error", "--output-junit", junit,
                              "--test-output-size-passed", "1000000", *options], take,
                             {**stage.env, "SLUICE_TEST_SCALE": str(stage.scale), "TEST_SECONDS": seconds},
                             TESTS_LIMIT_S)
        ok = self.count(stage, built, junit, seconds, ended.code)
        self.leave(name, "ok" if ok else "FAILED", ended.cpu_s, begin)

    def count(self, stage, built, junit, seconds, code):
        """Adds what became of the tests. Returns whether all is well: a ctest that did not come to its end is a failure
        too."""
        missing = list(built.tests)
        failing = []
        if os.path.exists(junit):
            done = tally(junit)
            failing = done.failed
            self.passed += len(done.passed)
            self.failed += len(done.failed)
            self.skips += [f"{stage.name}: {skip}" for skip in done.skips]
            self.ran, self.lacks = self.ran | done.ran, self.lacks | done.lacks
            ran = done.passed + done.failed + done.skipped
            missing = [test for test in missing if test not in ran]
        if missing or not built.tests or (code and not failing):
            self.failed += 1
            say(f"dev: ctest ended with code {code}, and {len(missing)} of {len(built.tests)} tests did not run")
            failing = failing + (missing or [None])
        for test, s in seconds_of(seconds).items():
            self.tests[f"{stage.name} {test}"] = s
            self.spend(test.split(".")[0], stage.name, s)
        self.remember(stage, [None, *built.tests, *stage.asked], failing)
        return not failing

    def measure_unit(self):
        """Measures the seconds that this machine takes for a known piece of work."""
        self.enter(UNIT)
        begin = time.monotonic()
        try:
            self.unit_s = budget.measure_unit(budget.Table().files, "build/release", say)
        except (OSError, ValueError):
            pass  # the judge reads the table again, and says what is wrong with it
        self.leave(UNIT, "ok" if self.unit_s else "FAILED", budget.UNIT_TRIES * (self.unit_s or 0), begin)

    def carry_out(self):
        self.say_seeds()
        self.start_builds()
        for stage in self.form.stages:
            if isinstance(stage, forms.Command):
                if not self.command(stage) and self.form.gate_stops:
                    for future in self.builds.values():
                        future.cancel()
                    end_all()
                    return
                continue
            built = self.built(stage)
            if self.form.judged and built and stage.name == "release":
                self.measure_unit()
            if built:
                self.test(stage, built)

    # ---- The end ----

    def say_seeds(self):
        for seed in self.form.seeds():
            say(f"seeds are drawn: {forms.SEED}={seed} ./dev test --all repeats them, and changes those of a single test")

    def say_stages(self):
        say("\n=== summary")
        self.say_seeds()
        say(f"{'stage':<44} {'':>6} {'CPU s':>7} {'wall s':>7}")
        for name, result, cpu_s, wall_s in self.rows:
            say(f"{name:<44} {result:>6} {cpu_s:7.0f} {wall_s:7.0f}")
        cpu_s, wall_s = sum(row[2] for row in self.rows), time.monotonic() - self.begin
        say(f"{'together':<44} {'':>6} {cpu_s:7.0f} {wall_s:7.0f}")

    def say_slowest(self):
        slowest = sorted(self.tests.items(), key=lambda test: -test[1])[:SLOWEST]
        if slowest:
            say(f"\nthe {len(slowest)} slowest tests, in CPU seconds:")
        for name, seconds in slowest:
            say(f"  {seconds:6.1f}  {name}")

    def judge(self):
        say()
        try:
            lines, failures = budget.judge(budget.Table(), self.cells, self.unit_s)
        except (OSError, ValueError) as error:
            lines = failures = [f"FAILED: {budget.PATH}: {error}"]
        for line in lines:
            say(line)
        self.passed, self.failed = self.passed + (not failures), self.failed + bool(failures)

    def say_skips(self):
        if self.ran:
            say(f"instruction sets of the kernels that ran: {' '.join(sorted(self.ran))}")
        self.skips += [f"kernels for {name}: this machine lacks the instruction set" for name in sorted(self.lacks)]
        if self.skips:
            say("\nskipped:")
        for line in self.skips:
            say(f"  {line}")

    def keep(self, complete):
        write_json(f"{STATE}/{self.form.name}.json", {
            "whole": complete, "began": self.commit, "unit_s": self.unit_s, "tests": self.tests,
            "stages": {name: cpu_s for name, _, cpu_s, _ in self.rows},
            "cells": [[part, stage, seconds] for (part, stage), seconds in self.cells.items()]})

    def complete_whole(self):
        """After --failed has passed: completes the last whole run, if that is what it repeated."""
        last = read_json(f"{STATE}/all.json", {})
        repeated = [test for stage in self.form.stages if stage.origin == "all" for test in stage.asked]
        if repeated and not last.get("whole") and not any(entry[0] == "all" for entry in read_json(FAILED, [])):
            say(whole.complete(last.get("began"), last["stages"], repeated))

    def close(self, interrupted):
        """Prints what became of the run; returns its exit code."""
        self.say_stages()
        self.say_slowest()
        complete = not interrupted and not self.failed
        if self.form.judged and not interrupted:
            self.judge()
        if not interrupted and self.form.name in KEPT:
            self.keep(complete)
        say()
        if self.form.name == "all" and complete and self.passed:
            say(whole.write(self.commit, {name: cpu_s for name, _, cpu_s, _ in self.rows}))
        if self.form.name == "failed" and complete and self.passed:
            self.complete_whole()
        if self.form.name == "test":
            say(whole.say_age())
        self.say_skips()
        if interrupted:
            say("\ndev: interrupted")
        say(f"\n{self.passed} passed, {self.failed} failed, {len(self.skips)} skipped")
        return 130 if interrupted else int(self.failed > 0 or self.passed == 0)


class Mistake(Exception):
    """A mistake of the user's in what was asked for; its text says what to do."""


def tests_of(preset, options, select):
    """Configures a preset, and lists its tests."""
    built = Built()
    if not configure(forms.Preset(preset, 1, options, select), built):
        for line in built.lines:
            say(line)
        raise Mistake(f"the preset {preset} cannot be configured")
    return built.tests


def what_failed():
    """The form that repeats what failed last."""
    entries = read_json(FAILED, None)
    if entries is None:
        raise Mistake("no run is known here whose failures could be repeated; run ./dev test")
    stages = []
    for name in dict.fromkeys(entry[0] for entry in entries):
        form = forms.form_of(name)
        failed = {stage: [entry[2] for entry in entries if entry[:2] == [name, stage]]
                  for stage in dict.fromkeys(entry[1] for entry in entries if entry[0] == name)}
        needed = {stage.needs for stage in form.stages if isinstance(stage, forms.Command) and stage.name in failed}
        seeds = {entry[1]: entry[3] for entry in entries if entry[0] == name and entry[3]}
        for stage in form.stages:
            stage.origin = name
            if stage.name in seeds:
                stage.env = {**stage.env, forms.SEED: seeds[stage.name]}
            if isinstance(stage, forms.Preset):
                tests = failed.get(stage.name)
                if tests and None not in tests:
                    stage.select, stage.asked = ["-R", exactly(tests)], tests
                elif not tests and stage.name in needed:
                    stage.select = None
                elif not tests:
                    continue
            elif stage.name not in failed:
                continue
            stage.by_change = False
            stages.append(stage)
    return forms.Form("failed", stages, few=True)


def form_asked_for(words):
    if not words:
        return forms.usual()
    option, most = words[0], 2 if words[0] == "--all" else 1
    if not re.fullmatch("[0-9]{0,19}", os.environ.get(forms.SEED, "")):
        raise Mistake(f'{forms.SEED} is "{os.environ[forms.SEED]}"; give a number, or nothing')
    if len(words) > most:
        raise Mistake(f'test has no use for "{words[most]}"; see ./dev help')
    if not all(words):
        raise Mistake("an argument is empty; give a part of a test's name, or nothing")
    if option == "--quick":
        return forms.quick()
    if option == "--failed":
        return what_failed()
    if option == "--all":
        part = words[1] if len(words) > 1 else ""
        if part:
            parts = {test.split(".")[0] for test in tests_of("release", forms.STRICT, [])}
            if part not in parts:
                raise Mistake(f'there is no part "{part}"; the parts are {" ".join(sorted(parts))}')
        return forms.everything(part)
    if option.startswith("-"):
        raise Mistake(f'test has no option "{option}"; see ./dev help')
    matching = tests_of("release", forms.STRICT, ["-R", option])
    named = [test for test in matching if option in (test, test.split(".")[-1])]
    if not matching:
        raise Mistake(f'no test\'s name matches "{option}"; `ctest --test-dir build/release -N` lists them')
    return forms.named(exactly(named) if named else option)


def count_asked_for(word):
    if not re.fullmatch(r"[1-9][0-9]{0,8}", word):
        raise Mistake(f'stress: expected a number of steps or plans, not "{word}"')
    return int(word)


def main(words):
    interrupted = False

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, interrupt)
    try:
        if words[:1] == ["stress"]:
            of = words[1:2] if words[1:2] == ["pipelines"] else []
            form = forms.stress_of(of + [count_asked_for(word) for word in words[1 + len(of):]])
        else:
            form = form_asked_for(words[1:])
    except Mistake as mistake:
        print(f"dev: {mistake}", file=sys.stderr)
        return 2
    if not form.stages:
        print("dev: nothing failed in the last run, so there is nothing to repeat")
        return 0
    run = Run(form)
    try:
        run.carry_out()
    except KeyboardInterrupt:
        interrupted = True
        for future in run.builds.values():
            future.cancel()
        end_all()
    return run.close(interrupted)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
