#!/usr/bin/env python3
"""Runs a program that uses NCCL on the host's CUDA and NCCL, bare and with the shim preloaded, and compares.

The program must print the same lines both times (in any order), and end well. Bare it leaves no records; with the shim
it leaves as many files of them as processes of it called NCCL, and where its lines say "calls N", the records hold as
many operations. Its records, and whatever else it writes there, lie in a folder that is removed at the end.

    on_the_bed.py --bed DIR:DIR --shim LIBRARY [--preload RUNTIME...] [--records N] [--seconds N] [--set NAME=VALUE...]
                  -- PROGRAM...
"""

import argparse
import glob
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

HEADER = struct.Struct("<8s4I4QQ3Qq2Q5I")


def fail(message):
    print(f"on_the_bed.py: {message}", file=sys.stderr)
    sys.exit(1)


def operations_recorded(path):
    """The operations that a file's rows of communicators count (plugins/nccl_shim/record.h)."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"SLNCCL\x01\x00":
        fail(f"{path}: this is no file of records")
    version, _, entry_bytes, _ = struct.unpack_from("<4I", data, 8)
    if (version, entry_bytes) != (1, 64):
        fail(f"{path}: version {version} with entries of {entry_bytes} bytes is not known")
    (communicators_at,) = struct.unpack_from("<Q", data, 24)
    (rows,) = struct.unpack_from("<I", data, 108)
    return sum(struct.unpack_from("<Q", data, communicators_at + 256 * row + 32)[0] for row in range(rows))


def explain_hang(records):
    """What `sluice nccl` says of the records of a program that hangs, where there is such a command."""
    command = os.environ.get("SLUICE_COMMAND")
    if command and os.path.exists(command) and glob.glob(records + "/*.nccl"):
        said = subprocess.run([command, "nccl", "--watch", records, "--stall", "1"], capture_output=True, text=True,
                              timeout=60, check=False)
        print(said.stdout, said.stderr, file=sys.stderr)


def run(command, environment, seconds, records):
    """The lines that the program prints, sorted."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        explain_hang(records)
        os.killpg(process.pid, signal.SIGKILL)
        fail(f"{' '.join(command)}: it did not end within {seconds} s")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        fail(f"{' '.join(command)}: it ended with status {process.returncode}")
    return sorted(line for line in out.splitlines() if not line.startswith("#"))


def check_records(records, files, lines):
    found = sorted(glob.glob(records + "/*.nccl"))
    if len(found) != files:
        fail(f"{len(found)} files of records, not {files}: {' '.join(found) or 'none'}")
    recorded = sum(operations_recorded(path) for path in found)
    called = sum(int(number) for line in lines for number in re.findall(r"\bcalls (\d+)$", line))
    if recorded == 0 or (called and recorded != called):
        fail(f"the program called {called} operations, the records hold {recorded}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bed", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--preload", action="append", default=[])
    parser.add_argument("--records", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    folder = tempfile.mkdtemp(prefix="sluice-nccl-")
    try:
        compare_runs(given, command, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare_runs(given, command, folder):
    records = folder + "/records"
    environment = dict(os.environ, LD_LIBRARY_PATH=given.bed, SLUICE_SHIM_DIR=records)
    if given.preload:
        environment["LD_PRELOAD"] = ":".join(given.preload)
    bare = run(command, environment, given.seconds, records)
    if not bare:
        fail(f"{' '.join(command)}: it prints no results")
    if os.path.exists(records):
        fail("the program without the shim left records")
    environment["LD_PRELOAD"] = ":".join(given.preload + [given.shim])
    environment.update(setting.split("=", 1) for setting in given.set)
    shimmed = run(command, environment, given.seconds, records)
    for line in bare:
        print(line)
    if bare != shimmed:
        print("\n".join(shimmed), file=sys.stderr)
        fail("with the shim the results are others (above; without it below)")
    check_records(records, given.records, shimmed)


main()
