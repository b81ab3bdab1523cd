"""Runs the commands of docs/quickstart.md, in order and in FOLDER: quickstart.py FOLDER. `sluice` is found by PATH.

A `sh` block is run by bash as it stands; if a line ends with "press Ctrl-C" the block gets that signal after its first
steps. A `python` block is run by the Python that SLUICE_TEST_PYTHON names. Each line of the `text` blocks that follow
must come in what both streams show, in that order: `...` stands for anything, and numbers, units and times may be
others. Rows of the plan stand for any rows, because times decide what the planner does with a layer. A `text` block that
follows another is about the same command. Other blocks are not run: they build, or need a network."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "quickstart.md")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
DECIDED = [  # what times decide: a line or several of one kind on the page stand for one or more of that kind
    re.compile(r"  \S.* (dp|oss|sdp|fsdp) +(-|yes|some) +[\d.]+ [KMG]?i?B  (whole|sharded)"),
    re.compile(r"  \((dp|oss|sdp|fsdp): [a-z ]+"),
    re.compile(r"bound +lower bound [\d.]+ (us|ms|s); this plan is [\d.]+ % (above|below)"
               r"(: [\d.]+ % [a-z]+(, [\d.]+ % [a-z]+)*)?$"),
    re.compile(r"schedule +ilp( \([a-z_, ]+\))?: \d+ reductions, \d+ gathers, \d+ updates")]
PIECE = re.compile(r"(\.\.\.|\b\d[\d.,:]*|\b(?:[KMG]iB|B|us|ms|s)\b| +)")


def piece_pattern(piece):
    if piece == "...":
        return ".*"
    if re.fullmatch(r"\d[\d.,:]*", piece):
        return r"\d[\d.,:]*"
    if re.fullmatch("[KMG]iB|B", piece):
        return "(?:[KMG]iB|B)"
    if piece in ("us", "ms", "s"):
        return "(?:us|ms|s)"
    return " *" if piece and not piece.strip() else re.escape(piece)


def pattern(line):
    """A regular expression for the lines that a line of the page stands for."""
    for kind in DECIDED:
        if kind.match(line):
            return kind
    return re.compile("".join(map(piece_pattern, PIECE.split(line))) + "$")


def run(command, folder, interrupt=False):
    """The exit code and what both streams show. The folder that a block changes to is the next one's."""
    script = f"set -e\ncd '{folder}'\n{command}\npwd >&3\n"
    place, place_end = os.pipe()
    job = subprocess.Popen(["bash", "-c", f"exec 3>&{place_end}\n{script}"], stdin=subprocess.DEVNULL, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", pass_fds=[place_end],
                           start_new_session=True)
    os.close(place_end)
    shown = []
    limit = threading.Timer(400, os.killpg, (job.pid, signal.SIGKILL))
    limit.start()
    try:
        for line in job.stdout:
            shown.append(line.rstrip("\n"))
            if interrupt and line.startswith("step "):
                os.killpg(job.pid, signal.SIGINT)  # as a terminal does it
                interrupt = False
        code = job.wait(timeout=60)
    finally:
        limit.cancel()
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
        with os.fdopen(place) as end:
            folder = end.read().strip() or folder
    return code, shown, folder


def missing(wanted, shown):
    """The first line of the page that does not come in its turn, or None."""
    rest, before = iter(shown), None
    for line in wanted:
        if line.strip() == "..." or before in DECIDED and before.match(line):
            continue
        before = pattern(line)
        if not any(before.match(got) for got in rest):
            return line
    return None


def left_out(kind, command):
    """Why a block cannot be run here, or None."""
    if kind == "python" and not os.environ.get("SLUICE_TEST_PYTHON"):
        return "SLUICE_TEST_PYTHON names no Python with torch"
    if "--picture" in command and not shutil.which("gnuplot"):
        return "gnuplot is not there"
    return None


def main(folder):
    with open(PAGE, encoding="utf-8") as page:
        blocks = BLOCK.findall(page.read())
    ran = faults = lines = 0
    rest = None  # what the last command has shown; None: it was not run
    for kind, content in blocks:
        if kind in ("sh", "python"):
            reason = left_out(kind, content)
            if reason:
                print(f"SKIP: a block of {kind}: {reason}")
                rest = None
                continue
            interrupt = "# press Ctrl-C" in content
            command = content if kind == "sh" else f'"$SLUICE_TEST_PYTHON" - <<\'END\'\n{content}END'
            code, rest, folder = run(command, folder, interrupt)
            ran += 1
            if code != (130 if interrupt else 0):
                print(f"FAILED: exit code {code} of\n{content}" + "\n".join(f"  {line}" for line in rest[-12:]))
                faults += 1
        elif kind == "text" and rest is not None:
            lines += len(content.splitlines())
            line = missing(content.splitlines(), rest)
            if line is not None:
                print(f"FAILED: the page shows, and the command does not:\n  {line}\nIt shows\n" +
                      "\n".join(f"  {got}" for got in rest))
                faults += 1
    print(f"{ran} blocks of docs/quickstart.md ran, {lines} lines of output were compared, {faults} faults")
    return 1 if faults or ran < 5 or lines < 30 else 0


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    sys.exit(main(sys.argv[1]))
