#!/usr/bin/env python3
"""Plants faults in a program that runs on the host's CUDA and NCCL with the shim, and watches it with `sluice nccl`.

Each fault must be named, with the rank at fault, by `sluice nccl --watch` while the program hangs, and by `sluice nccl`
after all its processes were killed; a program without a fault must not be accused. The time that the naming took is
printed, from the moment when the fault was planted.

    faults_test.py --bed DIR:DIR --shim LIBRARY --sluice COMMAND [--threads] [--stall S] --program PROGRAM [NAME...]
    faults_test.py --bed DIR:DIR --shim LIBRARY --sluice COMMAND --innocent PROGRAM [ARGUMENT...]
"""

import argparse
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

LAST = "rank 3"
# Fault: the kind of the finding, and what its text must say.
FAULTS = {
    "none": None,
    "count": ("differs", r"ranks 0-2 called all_reduce float32\[1000\] sum.*, rank 3 called all_reduce float32\[500\] sum"),
    "dtype": ("differs", r"ranks 0-2 called all_reduce float32\[1000\].*, rank 3 called all_reduce int32\[1000\]"),
    "operation": ("differs", r"ranks 0-2 called all_reduce .*, rank 3 called reduce float32\[1000\] sum root 0"),
    "redop": ("differs", r"ranks 0-2 called all_reduce float32\[1000\] sum.*, rank 3 called all_reduce float32\[1000\] max"),
    "root": ("differs", r"ranks 0-2 called broadcast float32\[1000\] root 0.*, rank 3 called broadcast .* root 1"),
    "order": ("differs", r"ranks 0-2 called all_reduce float32\[1000\] .*, rank 3 called all_reduce float32\[250\]"),
    "too_many": ("ended", r": rank 3 called all_reduce float32\[1000\] sum.*; rank 0 \(.*\) has (ended|left)"),
    "missing": ("lags", r"ranks 0-2 called all_reduce float32\[1000\] sum.*; rank 3 \(.*\) is running"),
    "left_out": ("differs", r"ranks 0-2 called all_reduce float32\[1000\] .*, rank 3 called all_reduce float32\[999\]"),
    "send": ("send_unmatched", r"rank 3 sent float32\[1000\] \(4000 bytes\) to rank 0"),
    "unequal": ("unequal", r"rank 3 sent float32\[1000\] .* to rank 0.*, and rank 0 receives float32\[500\]"),
    "communicators": ("crossed", r"are called in opposite orders"),
    "split": ("differs", r"ranks 0-2 called split.*, rank 3 called all_reduce"),
    "killed": ("gone", r"ranks 0-2 called all_reduce .*; rank 3 \(.*\) is gone without an orderly end"),
    "stopped": ("stopped", r"ranks 0-2 called all_reduce .*; rank 3 \(.*\) is stopped"),
    "blocked": ("unfinished", r"every rank called all_reduce float32\[1000\] sum.*, and the streams? of ranks? .* ha(s|ve) not finished it"),
}
PROCESSES_ONLY = {"too_many", "killed", "stopped"}
# A wait is a fault after --stall seconds.
LATE = {"missing", "stopped", "send", "blocked"}
# These are seen in records that say what streams have finished, and only while the program lives.
NEEDS_DONE = {"blocked"}
# The records of these faults say this when all processes have been killed.
AFTERWARDS = {"missing": "lags", "stopped": "lags", "killed": "lags"}
MOST_SECONDS = 100


class Failed(Exception):
    pass


def fail(message):
    raise Failed(message)


def check_finding(fault, code, out, path, kind):
    if code not in (0, 1) or not os.path.exists(path):
        fail(f"{fault}: sluice nccl ended with {code}: {out}")
    with open(path, encoding="utf-8") as file:
        findings = json.load(file)["findings"]
    if not FAULTS[fault]:
        if code or findings:
            fail(f"{fault}: it was accused: {out}")
        return
    text = FAULTS[fault][1]
    if code != 1 or len(findings) != 1:
        fail(f"{fault}: exit code {code}, {len(findings)} findings instead of one: {out}")
    if findings[0]["kind"] != kind or not re.search(text, findings[0]["text"]):
        fail(f"{fault}: this is not {kind}, {text}: {out}")
    if findings[0]["text"] not in out:
        fail(f"{fault}: the text is not printed: {out}")


def is_dead(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def end(process, records):
    """Ends the program and its ranks, stopped ones too, and waits until they are gone."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    ranks = [os.path.basename(path).split("-")[-2] for path in glob.glob(records + "/*.nccl")]
    deadline = time.monotonic() + MOST_SECONDS
    while not all(map(is_dead, ranks)) and time.monotonic() < deadline:
        time.sleep(0.01)


def check_afterwards(given, fault, folder):
    """The records of dead processes tell the fault too."""
    after = subprocess.run([given.sluice, "nccl", folder], capture_output=True, text=True, check=False,
                           timeout=MOST_SECONDS)
    if after.returncode != (1 if FAULTS[fault] else 0):
        fail(f"{fault}: afterwards exit code {after.returncode}: {after.stdout}{after.stderr}")
    path = folder + "/after.json"
    watch = subprocess.run([given.sluice, "nccl", "--watch", folder, "--json", path], capture_output=True, text=True,
                           check=False, timeout=MOST_SECONDS)
    kind = FAULTS[fault] and AFTERWARDS.get(fault, FAULTS[fault][0])
    if fault in AFTERWARDS:
        if watch.returncode != 1 or LAST not in watch.stdout:
            fail(f"{fault}: afterwards: {watch.stdout}{watch.stderr}")
    else:
        check_finding(fault, watch.returncode, watch.stdout, path, kind)


def plant(given, fault):
    folder = tempfile.mkdtemp(prefix="sluice-faults-")
    try:
        return plant_in(given, fault, folder)
    finally:
        shutil.rmtree(folder)


def plant_in(given, fault, folder):
    records = folder + "/records"
    environment = dict(os.environ, LD_LIBRARY_PATH=given.bed, LD_PRELOAD=given.shim, SLUICE_SHIM_DIR=records,
                       HOSTNCCL_MISMATCH="hang")
    if fault in NEEDS_DONE:
        environment["SLUICE_SHIM_DONE"] = "1"
    command = [given.program, fault] + ([] if given.threads else ["--processes"])
    with open(folder + "/out", "w+", encoding="utf-8") as out:
        program = subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)
        watch = None
        try:
            watch = subprocess.Popen([given.sluice, "nccl", "--watch", records, "--stall", str(given.stall), "--json",
                                      folder + "/found.json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                     text=True)
            said, _ = watch.communicate(timeout=MOST_SECONDS)
            named = time.monotonic()
            if not FAULTS[fault]:
                program.wait(timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            out.seek(0)
            fail(f"{fault}: nothing was found in {MOST_SECONDS} s; the program said: {out.read()}")
        finally:
            if watch and watch.poll() is None:
                watch.kill()
                watch.wait()
            end(program, records)
        out.seek(0)
        told = out.read()
    kind = FAULTS[fault] and FAULTS[fault][0]
    check_finding(fault, watch.returncode, said, folder + "/found.json", kind)
    planted = re.findall(r"planted (\d+)", told)
    if FAULTS[fault] and not planted:
        fail(f"{fault}: it was named before it was planted: {said}")
    if not FAULTS[fault] and program.returncode:
        fail(f"{fault}: the program ended with {program.returncode}: {told}")
    late = named - int(planted[-1]) / 1e9 if planted else 0
    if fault not in NEEDS_DONE:
        check_afterwards(given, fault, records)
    after = f" (--stall {given.stall})" if fault in LATE else ""
    return f"{fault:14} {late:6.2f} s{after}\n  " + said.strip().replace("\n", "\n  ")


def watch_innocent(given):
    """The program keeps to the rules."""
    folder = tempfile.mkdtemp(prefix="sluice-faults-")
    environment = dict(os.environ, LD_LIBRARY_PATH=given.bed, LD_PRELOAD=given.shim, SLUICE_SHIM_DIR=folder)
    watch = subprocess.Popen([given.sluice, "nccl", "--watch", folder, "--stall", str(given.stall)],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    program = None
    try:
        program = subprocess.Popen(given.innocent, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
        said, _ = watch.communicate(timeout=3 * MOST_SECONDS)
        if watch.returncode:
            fail(f"{' '.join(given.innocent)} was accused: {said}")
        if program.wait(MOST_SECONDS):
            fail(f"{' '.join(given.innocent)} ended with {program.returncode}")
        after = subprocess.run([given.sluice, "nccl", folder], capture_output=True, text=True, check=False,
                               timeout=MOST_SECONDS)
        if after.returncode:
            fail(f"{' '.join(given.innocent)} was accused afterwards: {after.stderr}")
    finally:
        watch.kill()
        watch.wait()
        if program:
            end(program, folder)
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bed", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--sluice", required=True)
    parser.add_argument("--program")
    parser.add_argument("--stall", type=float, default=2)
    parser.add_argument("--threads", action="store_true", help="all ranks in one process")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--innocent", nargs=argparse.REMAINDER, help="a program without faults, and its arguments")
    parser.add_argument("--at-a-time", type=int, default=3, help="faults; they wait most of the time")
    given = parser.parse_args()
    try:
        if given.innocent:
            watch_innocent(given)
            return
        names = [name for name in given.names or FAULTS if not given.threads or name not in PROCESSES_ONLY]
        with ThreadPoolExecutor(given.at_a_time) as pool:
            for told in pool.map(lambda fault: plant(given, fault), names):
                print(told, flush=True)
    except Failed as failure:
        print(f"faults_test.py: {failure}", file=sys.stderr)
        sys.exit(1)


main()
