"""tests/whole.json, which says when all tests passed: the commit, the date, the processor, the CPU seconds of each
stage. `./dev test --all` writes it; so does `./dev test --failed` if all that failed in it passes, and nothing else than
these tests' own files has changed. `./dev test` says how old it is, and leaves out tests whose inputs are the same
since."""
import datetime
import fnmatch
import json
import os
import subprocess

PATH = "tests/whole.json"
INPUTS = "tests/house/by_change.txt"
OLD = 100  # commits
WRITE_IT = "run `./dev test --all` and commit the file that it writes"


def git(*words):
    """Returns what git prints, or None if git fails or is not there."""
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def read():
    try:
        with open(PATH, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else "unknown"


def state():
    """The commit that is checked out, and how many files differ from it; nothing if that is unknown."""
    head, changes = git("rev-parse", "HEAD"), git("status", "--porcelain")
    return (head.strip(), len(changes.splitlines())) if head and changes is not None else None


def write(before, seconds):
    """Writes the file for a run that began in state `before`; returns a line that says so, or why not."""
    if before is None or state() is None:
        return f"{PATH} is not written: git knows no commit here"
    commit, changes = before
    if changes or state() != tuple(before):
        return (f"{PATH} is not written: the tree is not that of commit {commit[:10]}, before or after the run; "
                "commit, and run it again")
    return put(commit, seconds)


def complete(before, seconds, repeated):
    """Writes the file for a run that began in state `before`, and whose failed tests, `repeated`, pass now. Their own
    files may have changed: NAME.* of PART.NAME."""
    now, names = state(), {test.split(".")[-1] for test in repeated}
    if now is None or before is None or now[1] or before[1]:
        return f"{PATH} is not written: commit, and repeat what failed"
    differ = git("diff", "--name-only", "--no-renames", before[0], now[0])
    others = [path for path in (differ or "").splitlines() if os.path.basename(path).split(".")[0] not in names]
    if differ is None or others:
        return (f"{PATH} is not written: since the whole run other files have changed than those of the tests that were "
                f"repeated{', as ' + others[0] if others else ''}")
    return put(now[0], seconds, repeated)


def put(commit, seconds, repeated=()):
    whole = {"commit": commit, "date": datetime.date.today().isoformat(), "processor": processor(),
             "cpu_seconds": {stage: round(s) for stage, s in seconds.items()}}
    if repeated:
        whole["repeated"] = sorted(repeated)
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(json.dumps(whole, indent=2) + "\n")
    return f"{PATH} is written; commit it"


def age(whole):
    """Returns how many commits ago everything passed, or None if that is unknown here."""
    if not whole or git("cat-file", "-e", whole["commit"] + "^{commit}") is None:
        return None
    count = git("rev-list", "--count", whole["commit"] + "..HEAD")
    return int(count) if count else None


def say_age():
    whole = read()
    if not whole:
        return f"WARNING: {PATH} is missing, so nobody has said that all tests pass: {WRITE_IT}"
    commit, commits = whole["commit"][:10], age(whole)
    if commits is None:
        return (f"{PATH}: all tests passed at commit {commit} ({whole['date']}), which this clone does not have; "
                "how many commits ago is unknown (is it a shallow clone?)")
    ago = f"all tests passed {commits} commit{'s' * (commits != 1)} ago, at {commit} ({whole['date']})"
    return f"WARNING: {ago}, which is more than {OLD}: {WRITE_IT}" if commits > OLD else f"{PATH}: {ago}"


def changed():
    """The files that differ from those with which all tests passed, or nothing if that is unknown."""
    whole = read()
    if not whole or git("cat-file", "-e", whole["commit"] + "^{commit}") is None:
        return None
    differ = git("diff", "--name-only", "--no-renames", whole["commit"])
    new = git("ls-files", "--others", "--exclude-standard")
    return None if differ is None or new is None else differ.splitlines() + new.splitlines()


def inputs(path=INPUTS):
    """Rows (test, patterns) of tests/house/by_change.txt; `*` stands for any text in both, and a folder for all in
    it."""
    rows = []
    try:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                words = line.split("#")[0].replace("->", " ").replace(":", " ").split()
                if words:
                    rows.append((words[0], words[1:]))
    except FileNotFoundError:
        pass
    return rows


def stands_for(pattern, path):
    """Returns whether a pattern of those rows stands for the file."""
    folder = pattern.rstrip("/")
    return path == folder or path.startswith(folder + "/") or fnmatch.fnmatchcase(path, pattern)


def unchanged(tests):
    """Returns those of the tests whose inputs are listed and are the same as when all tests passed."""
    differ = changed()
    if differ is None:
        return []

    def same(test):
        patterns = [each for name, listed in inputs() if fnmatch.fnmatchcase(test, name) for each in listed]
        return patterns and not any(stands_for(pattern, path) for path in differ for pattern in patterns)
    return [test for test in tests if same(test)]
