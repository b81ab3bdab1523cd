#!/usr/bin/env python3
"""Ends runs of `sluice train --go-on` at drawn moments and in drawn ways, and starts them again, as a batch system does
with a job that it requeues: requeue.py SLUICE [--kills N] [--ranks LIST] [--seed N].

A chain is one training that ends and begins again so often. Chains of a fixed number of ranks must come to the weights of
a run that was never ended, and a chain whose number of ranks is drawn each time to its last step. After each end the
folder has at least what it had before, a run that could still save has lost no step, and the next one begins right after
the last that was saved."""

import argparse
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

WAIT_S = 120  # against hanging
FAR = 1000000  # steps that no run comes to


class Wrong(Exception):
    pass


def need(holds, what):
    if not holds:
        raise Wrong(what)


def wait_until(holds, what):
    end = time.monotonic() + WAIT_S
    while not holds():
        need(time.monotonic() < end, f"{what} takes more than {WAIT_S} s")
        time.sleep(0.005)


def processes_of(mark):
    """Returns the processes whose command line has the mark, as {pid: is it a rank}."""
    found = {}
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and mark.encode() in open(f"/proc/{name}/cmdline", "rb").read():
                found[int(name)] = b"\0RANK=" in b"\0" + open(f"/proc/{name}/environ", "rb").read()
        except OSError:
            pass
    return found


class Chain:
    def __init__(self, sluice, work, ranks, draw):
        self.sluice, self.ranks, self.draw = sluice, ranks, draw
        self.folder = os.path.join(work, f"run-{ranks}")
        self.text = os.path.join(work, "text")
        self.errors = os.path.join(work, "errors")

    def command(self, ranks, steps, *more):
        return [self.sluice, "train", "--data", self.text, "--context", "16", "--batch", "2", "--eval-batches", "0",
                "--schedule", "one_ahead", "--steps", str(steps), *(["-n", str(ranks)] if ranks > 1 else []), *more]

    def saved(self):
        """Returns the step of the latest whole checkpoint, or 0 if there is none."""
        try:
            return max([int(name[5:]) for name in os.listdir(self.folder) if re.fullmatch(r"step-\d+", name)] or [0])
        except FileNotFoundError:
            return 0

    def said(self):
        with open(self.errors, encoding="utf-8", errors="replace") as file:
            return file.read()

    def draw_ranks(self):
        return self.draw.randint(1, 3) if self.ranks == "drawn" else int(self.ranks)

    def end(self, job, how, ranks):
        if how == "a rank is killed" and ranks > 1:
            those = []

            def started():
                those[:] = [pid for pid, is_rank in processes_of(self.folder).items() if is_rank]
                return those or job.poll() is not None

            wait_until(started, "the start of a rank")
            if those:
                os.kill(self.draw.choice(those), signal.SIGKILL)
        elif how == "the launcher is killed":
            job.kill()
        elif how in ("SIGTERM", "SIGINT", "SIGHUP"):
            job.send_signal(getattr(signal, how))
        elif how != "time is over":
            os.killpg(job.pid, signal.SIGKILL)

    def kill_once(self):
        ranks, before = self.draw_ranks(), self.saved()
        how = self.draw.choice(["all are killed", "all are killed", "a rank is killed", "the launcher is killed",
                                "SIGTERM", "SIGINT", "SIGHUP", "time is over"])
        every, early, rest_s = self.draw.randint(1, 5), self.draw.random() < 0.2, self.draw.uniform(0, 0.3)
        more = ["--stop-after", f"{2 + rest_s}"] if how == "time is over" else []
        with open(self.errors, "w", encoding="utf-8") as errors:
            job = subprocess.Popen(self.command(ranks, FAR, "--go-on", self.folder, "--save-every", str(every), *more),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                                   start_new_session=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
            if how != "time is over":
                if not early or how.startswith("SIG"):
                    wait_until(lambda: "step " in self.said() or job.poll() is not None, "the first step")
                time.sleep(rest_s / (10 if early else 1))
            at = self.saved()
            self.end(job, how, ranks)
            output, _ = job.communicate(timeout=WAIT_S)
        wait_until(lambda: not processes_of(self.folder), "the end of all processes")
        after = self.saved()
        print(f"  {ranks} rank{'s' if ranks > 1 else ''}, {how}: from step {before}, saved {after}, "
              f"exit code {job.returncode}", flush=True)
        need(after >= at >= before, f"step {at} was saved, and now it is {after}")
        began = re.search(r"; (?:steps (\d+) to )?\d+(?: steps?)? of ", output)
        if began:
            need(int(began[1] or 1) == before + 1, f"it went on at step {began[1]} after step {before}\n{output}")
        if how.startswith("SIG") or how == "time is over":
            stopped = re.search(r"stopped at step (\d+) of", output)
            need(job.returncode == (75 if how == "time is over" else 130), f"exit code {job.returncode}\n{self.said()}")
            need(stopped and int(stopped[1]) == after, f"the last step is not saved: {after}\n{output}")
        else:
            need(job.returncode not in (0, 75, 130), f"exit code {job.returncode}")

    def weights(self, ranks, steps, *more):
        result = os.path.join(os.path.dirname(self.folder), "result.json")
        job = subprocess.run(self.command(ranks, steps, "--json", result, *more), stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=WAIT_S * 10)
        need(job.returncode == 0, f"exit code {job.returncode}: {job.stderr}")
        with open(result, encoding="utf-8") as file:
            return json.load(file)["runs"][0]["weights_sha256"]

    def run(self, kills):
        for _ in range(kills):
            self.kill_once()
        ranks, steps = self.draw_ranks(), self.saved() + 3
        went_on = self.weights(ranks, steps, "--go-on", self.folder)
        need(self.saved() == steps, f"{self.saved()} steps are saved, and not {steps}")
        if self.ranks != "drawn":
            whole = self.weights(ranks, steps)
            need(went_on == whole, f"after {steps} steps weights are {went_on}, and {whole} without an end between")
        print(f"  {kills} ends on {self.ranks} ranks: {steps} steps, "
              + ("the last one is reached" if self.ranks == "drawn" else "weights are those of one run"), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("sluice")
    parser.add_argument("--kills", type=int, default=50, help="of all chains together (default 50)")
    parser.add_argument("--ranks", default="1,2,3,drawn", help="one chain each (default 1,2,3,drawn)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    options = parser.parse_args()
    chains = options.ranks.split(",")
    print(f"{options.kills} ends, seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as work:
        with open(os.path.join(work, "text"), "w", encoding="utf-8") as text:
            for number in range(9000):
                text.write(hashlib.md5(b"%d" % number).hexdigest()[:24] + f" {number}\n")
        try:
            for place, ranks in enumerate(chains):
                draw = random.Random(f"{options.seed} {ranks}")
                share = options.kills * (place + 1) // len(chains) - options.kills * place // len(chains)
                Chain(os.path.abspath(options.sluice), work, ranks, draw).run(share)
        except Wrong as why:
            print(f"FAILED: {why}")
            return 1
        finally:
            for pid in processes_of(work):
                if pid != os.getpid():
                    os.kill(pid, signal.SIGKILL)
    print(f"{options.kills} ends: every run went on")
    return 0


if __name__ == "__main__":
    sys.exit(main())
