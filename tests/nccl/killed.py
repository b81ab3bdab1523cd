#!/usr/bin/env python3
"""Kills the ranks of a program with the shim at moments drawn from a seed, with signal 9, and reads what they left: every
entry but the one that a rank was writing must be whole, and belong to a communicator that the file knows.

    killed.py --bed DIR:DIR --shim LIBRARY [--rounds N] [--seed N] -- PROGRAM...

The program prints nothing that matters, never ends by itself in that time, and has one thread in each rank.
"""

import argparse
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from records import COUNTED, NO_COMMUNICATOR, OPERATIONS, SPLIT, Records


def fail(message):
    print(f"killed.py: {message}", file=sys.stderr)
    sys.exit(1)


def check_file(path):
    with open(path, "rb") as file:
        if not any(file.read(8)):
            return 0  # its process was killed while it made the file
    records, found, latest = Records(path), 0, {}
    if os.path.getsize(path) != records.file_bytes:
        fail(f"{path}: {os.path.getsize(path)} bytes, not {records.file_bytes}")
    for index, communicator, number, operation, count, time_ns in records.entries():
        found += 1
        if operation not in OPERATIONS or (communicator != NO_COMMUNICATOR and communicator >= len(records.calls)):
            fail(f"{path}: entry {index} is operation {operation} of communicator {communicator}")
        if not records.first_call_ns <= time_ns <= time.monotonic_ns():
            fail(f"{path}: entry {index} has the time {time_ns}")
        if operation in COUNTED and communicator != NO_COMMUNICATOR and (count or operation >= SPLIT):
            if number != latest.get(communicator, number - 1) + 1:
                fail(f"{path}: entry {index} is number {number} after {latest.get(communicator)}")
            latest[communicator] = number
    kept = min(records.begun, records.entry_count)
    if found not in (kept, kept - 1):
        fail(f"{path}: {found} of {kept} entries are whole")
    return found


def kill_once(given, command, seconds):
    """Kills the program once, and returns the number of entries that were read from its records."""
    folder = tempfile.mkdtemp(prefix="sluice-killed-")
    environment = dict(os.environ, LD_LIBRARY_PATH=given.bed, SLUICE_SHIM_DIR=folder, LD_PRELOAD=given.shim)
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while not glob.glob(folder + "/*.nccl") and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(seconds)
        if process.poll() is not None:
            fail(f"{' '.join(command)}: it ended before it was killed")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return sum(check_file(path) for path in glob.glob(folder + "/*.nccl"))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bed", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    drawn = random.Random(given.seed)
    read = [kill_once(given, command, drawn.uniform(0, 0.6)) for _ in range(given.rounds)]
    print(f"{given.rounds} times killed; entries read: {read}")
    if not any(read):
        fail("nothing was recorded")


main()
