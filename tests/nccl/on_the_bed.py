#!/usr/bin/env python3
"""Runs a program that uses NCCL on the host's CUDA and NCCL, bare and with the shim preloaded, and compares.

The program must print the same lines both times (in any order), and end well. Bare it leaves no records; with the shim
it leaves as many files of them as processes of it called NCCL, and if its lines say "calls N", the records hold as
many operations. Its records lie in a folder that is removed at the end. A program that ends with 77 is not there: the
test is skipped, and the program says why.

    on_the_bed.py --bed DIR:DIR --shim LIBRARY [OPTIONS] -- PROGRAM...
"""

import argparse
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from records import Records

SKIPPED = 77


def fail(message):
    print(f"on_the_bed.py: {message}", file=sys.stderr)
    sys.exit(1)


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(SKIPPED)


def explain_hang(records):
    """Prints what `sluice nccl --watch` says of the records of a program that hangs, if there is such a command."""
    command = os.environ.get("SLUICE_COMMAND")
    if command and os.path.exists(command) and glob.glob(records + "/*.nccl"):
        said = subprocess.run([command, "nccl", "--watch", records, "--stall", "1"], capture_output=True, text=True,
                              timeout=60, check=False)
        print(said.stdout, said.stderr, file=sys.stderr)


def run(command, environment, seconds, records):
    """Runs a program and returns the lines that it prints, sorted."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        explain_hang(records)
        fail(f"{' '.join(command)}: it did not end within {seconds} s")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode == SKIPPED:
        print(out, end="")
        sys.exit(SKIPPED)
    if process.returncode:
        fail(f"{' '.join(command)}: it ended with status {process.returncode}")
    return sorted(out.splitlines())


def check_records(records, files, lines):
    found = sorted(glob.glob(records + "/*.nccl"))
    if len(found) != files:
        fail(f"{len(found)} files of records, not {files}: {' '.join(found) or 'none'}")
    recorded = sum(sum(Records(path).calls) for path in found)
    called = sum(int(number) for line in lines for number in re.findall(r"\bcalls (\d+)$", line))
    if recorded == 0 or (called and recorded != called):
        fail(f"the program called {called} operations, the records hold {recorded}")


def check_no_alarm(records):
    """`sluice nccl --watch` finds nothing in the records of a program that ended well."""
    command = os.environ.get("SLUICE_COMMAND")
    if not command:
        return
    said = subprocess.run([command, "nccl", "--watch", records], capture_output=True, text=True, timeout=120,
                          check=False, env=dict(os.environ, LD_PRELOAD=""))
    if said.returncode:
        print(said.stdout, said.stderr, file=sys.stderr)
        fail("`sluice nccl --watch` finds a fault in a program without one (above)")


def check_transforms(records, expected):
    """Each file's counts must make each expression true, as "fused_calls > 0"."""
    for path in glob.glob(records + "/*.nccl"):
        totals = Records(path).transforms()
        for expression in expected:
            if not eval(expression, {"__builtins__": {}}, totals):  # of CMakeLists.txt, not of a stranger
                fail(f"{expression} does not hold: {totals}")


def python_with(module):
    """The Python that SLUICE_TEST_PYTHON names, if it has the module."""
    python = os.environ.get("SLUICE_TEST_PYTHON")
    if not python:
        skip(f"SLUICE_TEST_PYTHON names no Python with {module}")
    asked = subprocess.run([python, "-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec({module!r}))"],
                           check=False, capture_output=True)
    if asked.returncode:
        skip(f"SLUICE_TEST_PYTHON={python} has no module {module}")
    return python


def compare_runs(given, command, folder):
    records = folder + "/records"
    *before, shim = given.shim.split(":")
    environment = dict(os.environ, LD_LIBRARY_PATH=given.bed, SLUICE_SHIM_DIR=records)
    after = []
    if given.preload_bed:
        names = ("libcuda.so.1", "libcudart.so.13", "libnccl.so.2")
        after = [path for name in names for bed in given.bed.split(":") for path in glob.glob(f"{bed}/{name}")]
    environment["LD_PRELOAD"] = ":".join(before + after)
    bare = run(command, environment, given.seconds, records)
    if not bare:
        fail(f"{' '.join(command)}: it prints no results")
    if os.path.exists(records):
        fail("the program without the shim left records")
    environment["LD_PRELOAD"] = ":".join([*before, shim, *after])
    environment.update(setting.split("=", 1) for setting in given.set)
    shimmed = run(command, environment, given.seconds, records)
    for line in bare:
        print(line)
    if bare != shimmed:
        print("\n".join(shimmed), file=sys.stderr)
        fail("with the shim the results are others (above) than without it")
    check_records(records, given.records, shimmed)
    check_transforms(records, given.expect)
    check_no_alarm(records)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bed", required=True, help="the folders of the host's CUDA and NCCL")
    parser.add_argument("--shim", required=True, help="its path, after those of sanitizers' libraries and colons")
    parser.add_argument("--preload-bed", action="store_true", help="for programs whose RPATH names another NCCL")
    parser.add_argument("--module", help="run the program with SLUICE_TEST_PYTHON, if that has this module")
    parser.add_argument("--records", type=int, default=1, help="processes that call NCCL")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="only where the shim is")
    parser.add_argument("--expect", action="append", default=[], help="holds for the counts of fusing and compressing")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if given.module:
        command = [python_with(given.module), *command]
    folder = tempfile.mkdtemp(prefix="sluice-nccl-")
    try:
        compare_runs(given, command, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
