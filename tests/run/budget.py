"""tests/budget.txt: the CPU seconds that each part of the tree may take of `./dev test`, by stage.

Seconds are those of a machine that compiles the files that the table names in the time that it names. Each run compiles
them itself, so that a slower processor is given more. `budget.py` compares the last run with the table; `budget.py
--write` writes the run's seconds into the table, for a person to look at and commit."""
import json
import os
import shlex
import sys
import tempfile

from measured import measured

PATH = "tests/budget.txt"
LAST = "build/dev/test.json"  # the last run
WARNS, FAILS = 1.5, 3.0  # times its budget
NOISE_S = 5.0  # nothing is said of an excess below it
UNIT_TRIES = 3


class Table:
    def __init__(self, path=PATH):
        self.comments, self.files = [], []
        self.unit_s = self.total_s = 0.0
        self.cells, self.reserved = {}, {}  # (part, stage) -> seconds; what for -> seconds
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    self.take(line.rstrip("\n"))
                except ValueError:
                    raise ValueError(f"{path}:{number}: expected `unit SECONDS`, `file PATH`, `total SECONDS`, "
                                     "`reserved NAME SECONDS` or `PART STAGE SECONDS`") from None

    def take(self, line):
        words = line.split()
        if line.startswith("#") or not words:
            self.comments.append(line)
        elif len(words) == 2 and words[0] == "unit":
            self.unit_s = float(words[1])
        elif len(words) == 2 and words[0] == "total":
            self.total_s = float(words[1])
        elif len(words) == 2 and words[0] == "file":
            self.files.append(words[1])
        elif words[0] == "reserved":
            _, name, seconds = words
            self.reserved[name] = float(seconds)
        else:
            part, stage, seconds = words
            self.cells[part, stage] = float(seconds)

    def sum_s(self):
        return sum(self.cells.values()) + sum(self.reserved.values())

    def text(self):
        """Returns the text of the file: its comments, which stand on top, then its rows."""
        lines = [line for line in self.comments if line] + [""]
        lines += [f"unit {self.unit_s:.2f}"] + [f"file {path}" for path in self.files]
        lines += [f"total {self.total_s:.0f}", ""]
        for (part, stage), seconds in self.cells.items():
            lines.append(f"{part:<14} {stage:<8} {seconds:5.0f}")
        lines += [""] + [f"reserved {name:<14} {seconds:5.0f}" for name, seconds in self.reserved.items()]
        return "\n".join(lines) + "\n"


def measure_unit(files, build, say):
    """The CPU seconds that compiling the files takes with the build's flags and no compiler cache: the median of a few
    tries. Nothing if that fails."""
    try:
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
            commands = json.load(file)
    except FileNotFoundError:
        commands = []
    sums = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(UNIT_TRIES):
            sums.append(0.0)
            for path in files:
                found = [c for c in commands if os.path.relpath(c["file"]) == path]
                if not found:
                    say(f"{PATH}: {path} is compiled nowhere in {build}; name another file, and write the table anew")
                    return None
                words = shlex.split(found[0]["command"])
                words[words.index("-o") + 1] = os.path.join(folder, "object.o")
                ended = measured(["env", "-C", found[0]["directory"], *words], say, {"CCACHE_DISABLE": "1"})
                if ended.code:
                    say(f"{PATH}: compiling {path} ended with code {ended.code}")
                    return None
                sums[-1] += ended.cpu_s
    return sorted(sums)[len(sums) // 2]


def by_part(cells):
    parts = {}
    for (part, stage), seconds in cells.items():
        parts.setdefault(part, {})[stage] = seconds
    return parts


def judge(table, cells, unit_s):
    """Returns lines to print, and those of them that fail the run."""
    lines, failures = [], []

    def fail(line):
        lines.append(f"FAILED: {line}")
        failures.append(line)

    if table.sum_s() > table.total_s:
        fail(f"{PATH}: its lines are {table.sum_s():.0f} s together, more than its total of {table.total_s:.0f}; "
             "what needs more goes to `./dev test --all`")
    if not table.unit_s or not unit_s:
        fail(f"{PATH}: the unit is unknown, in the table or of this run")
        return lines, failures
    speed = unit_s / table.unit_s
    lines.append(f"CPU seconds by part, of those in {PATH} times {speed:.2f}, as this machine compiles:")
    budgets = by_part(table.cells)
    for part, stages in sorted(by_part(cells).items(), key=lambda row: -sum(row[1].values())):
        taken, allowed = sum(stages.values()), speed * sum(budgets.get(part, {}).values())
        details = ", ".join(f"{stage} {seconds:.0f}" for stage, seconds in stages.items())
        lines.append(f"  {part:<14} {taken:6.0f} of {allowed:6.0f}   ({details})")
        if taken > WARNS * allowed and taken - allowed > NOISE_S * speed:
            row = (f"{part} took {taken:.0f} CPU seconds of {allowed:.0f}" if allowed else
                   f"{part} took {taken:.0f} CPU seconds, and has no line in {PATH}")
            row += "; make it quicker, or move what is seldom needed to `--all` (label all_only)"
            if taken > FAILS * allowed:
                fail(row)
            else:
                lines.append(f"WARNING: {row}")
    return lines, failures


def rewrite(table, cells, unit_s):
    """Puts a run's seconds into the table, in the table's unit."""
    table.unit_s = table.unit_s or unit_s
    speed = unit_s / table.unit_s
    table.cells = {cell: max(1, round(seconds / speed)) for cell, seconds in sorted(cells.items())}


def main(words):
    if words not in ([], ["--write"]):
        print(f'dev: budget has no option "{words[0]}"; it takes nothing or --write', file=sys.stderr)
        return 2
    try:
        with open(LAST, encoding="utf-8") as file:
            last = json.load(file)
    except FileNotFoundError:
        print("dev: there is no last run to take seconds from; run ./dev test", file=sys.stderr)
        return 2
    try:
        table = Table()
    except (OSError, ValueError) as error:
        print(f"dev: {error}", file=sys.stderr)
        return 2
    cells = {tuple(cell): seconds for *cell, seconds in last["cells"]}
    if words:
        if not last["whole"] or not last["unit_s"]:
            print("dev: the last run did not come to its end without failures, so its seconds are no budget; "
                  "run ./dev test", file=sys.stderr)
            return 1
        rewrite(table, cells, last["unit_s"])
        with open(PATH, "w", encoding="utf-8") as file:
            file.write(table.text())
        print(f"{PATH}: written; look at `git diff {PATH}`")
    lines, failures = judge(table, cells, last["unit_s"])
    print("\n".join(lines))
    reserved_s = sum(table.reserved.values())
    print(f"together {table.sum_s() - reserved_s:.0f} s, and {reserved_s:.0f} reserved, of {table.total_s:.0f}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
