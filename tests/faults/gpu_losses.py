#!/usr/bin/env python3
"""Ends, stops or cuts off a rank on a GPU at drawn moments, and says how soon each other rank names it:

    gpu_losses.py SLUICE NCCL [--moments N] [--seed N] [--ranks N]

Moments take turns: while ranks plan, inside a group of collectives (the link is slow), between groups (computing is), and
while they save. Ways take turns too: the process is killed, it is stopped, or its host falls silent, which is a network
namespace whose link goes down. Each other rank must name the lost one and end with an error, and no process may be left.
A rank that stands still counts as lost after --timeout; the others warn of it before. Times are printed and not held
against a limit, but for one against hanging."""

import argparse
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HANG_S = 100  # against hanging
TIMEOUT_S = 5  # of a rank that stands still
LATENCY_US = 60000  # of a slow link
MOMENTS = ("planning", "inside a group", "between groups", "saving")
WAYS = ("killed", "killed", "stopped", "silent", "killed")  # 5 and 4 have no factor in common


class Wrong(Exception):
    pass


def need(holds, what):
    if not holds:
        raise Wrong(what)


def wait_until(holds, what):
    end = time.monotonic() + HANG_S
    while not holds():
        need(time.monotonic() < end, f"{what} takes more than {HANG_S} s")
        time.sleep(0.002)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Hosts:
    """Two hosts with a link between them."""

    ADDRESSES = ("10.96.0.1", "10.96.0.2")

    def __init__(self):
        self.names = [f"sluice-losses-{os.getpid()}-{end}" for end in "ab"]
        self.missing = ""
        for name in self.names:
            self.ip("netns", "add", name)
        self.ip("-n", self.names[0], "link", "add", "uplink", "type", "veth", "peer", "name", "uplink", "netns",
                self.names[1])
        for name, address in zip(self.names, self.ADDRESSES):
            self.ip("-n", name, "addr", "add", address + "/24", "dev", "uplink")
            self.ip("-n", name, "link", "set", "uplink", "up")
            self.ip("-n", name, "link", "set", "lo", "up")

    def ip(self, *arguments):
        if self.missing:
            return
        try:
            done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
            if done.returncode:
                self.missing = done.stderr.strip().splitlines()[0] if done.stderr.strip() else "ip fails"
        except FileNotFoundError:
            self.missing = "there is no ip"

    def set_link(self, state):
        self.ip("-n", self.names[1], "link", "set", "uplink", state)

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


class Rank:
    """A process, and the lines that it wrote, each with its time."""

    def __init__(self, number, command, environment):
        self.number, self.lines = number, []
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.rstrip()))

    def pid(self):
        """The process of the rank itself, which `ip netns exec` becomes."""
        return self.process.pid

    def has_loaded(self, library):
        try:
            with open(f"/proc/{self.pid()}/maps", encoding="utf-8") as maps:
                return library in maps.read()
        except OSError:
            return False

    def ended(self):
        return self.process.poll() is not None

    def named(self, victim, since):
        """The time when it first named that rank; None: it did not. The words must not be part of a list of ranks."""
        return next((when for when, line in list(self.lines) if when >= since and re.search(rf"\brank {victim}\b", line)),
                    None)

    def end(self):
        if not self.ended():
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.reader.join()


class Job:
    def __init__(self, options, work, moment, way, hosts):
        self.moment, self.way, self.hosts = moment, way, hosts
        self.save = os.path.join(work, "run")
        shutil.rmtree(self.save, ignore_errors=True)
        command = [options.sluice, "train", "--device", "cuda", "--data", os.path.join(work, "text"), "--strategy", "fsdp",
                   "--steps", "100000", "--eval-batches", "0", "--timeout", str(TIMEOUT_S)]
        slow = moment == "inside a group"
        command += ["--batch", "2", "--context", "16"] if slow else ["--batch", "2", "--context", "48"]
        if moment != "planning":
            command += ["--schedule", "one_ahead"]
        if moment == "saving":
            command += ["--save", self.save, "--save-every", "1"]
        environment = dict(os.environ, SLUICE_COMM_NCCL=options.nccl, WORLD_SIZE=str(options.ranks),
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()),
                           SLUICE_JOB_TOKEN=f"losses-{os.getpid()}-{random.getrandbits(40)}", OMP_NUM_THREADS="1",
                           HOSTNCCL_LATENCY=str(LATENCY_US if slow else 0))
        self.ranks = []
        for rank in range(options.ranks):
            where = []
            if way == "silent":
                where = ["ip", "netns", "exec", hosts.names[rank == options.ranks - 1]]
                environment["MASTER_ADDR"] = hosts.ADDRESSES[0]
            self.ranks.append(Rank(rank, where + command,
                                   dict(environment, RANK=str(rank), LOCAL_RANK=str(rank),
                                        LOCAL_WORLD_SIZE=str(options.ranks))))

    def any_ended(self):
        return any(rank.ended() for rank in self.ranks)

    def has_trained(self):
        return self.any_ended() or any(re.match(r"step +[1-9]", line) for _, line in list(self.ranks[0].lines))

    def is_joined(self):
        return self.any_ended() or all(rank.has_loaded("libnccl") for rank in self.ranks)

    def saves(self):
        return self.any_ended() or (os.path.isdir(self.save) and
                                    any(name.endswith(".partial") for name in os.listdir(self.save)))

    def come_to_moment(self, draw, planning_s):
        wait_until(self.is_joined, "joining")
        if self.moment == "planning":
            time.sleep(draw.uniform(0, planning_s))
        else:
            wait_until(self.has_trained, "the first step")
            time.sleep(draw.uniform(0, 0.5))
        if self.moment == "saving":
            wait_until(self.saves, "saving")
            time.sleep(draw.uniform(0, 0.01))
        need(not self.any_ended(), "a rank has ended before any was lost")

    def lose(self, victim):
        if self.way == "silent":
            self.hosts.set_link("down")
        else:
            os.kill(self.ranks[victim].pid(), signal.SIGKILL if self.way == "killed" else signal.SIGSTOP)
        return time.monotonic()

    def end(self):
        for rank in self.ranks:
            rank.end()
        if self.way == "silent":
            self.hosts.set_link("up")


def measure_planning(options, work):
    """Returns the seconds that ranks take from their joining to the first step."""
    job = Job(options, work, "planning", "killed", None)
    try:
        wait_until(job.is_joined, "joining")
        began = time.monotonic()
        wait_until(job.has_trained, "the first step")
        need(not job.any_ended(), "ranks do not train: " + "; ".join(line for _, line in job.ranks[0].lines[-3:]))
        return time.monotonic() - began
    finally:
        job.end()


def lose_one(options, work, hosts, number, draw, planning_s):
    """Returns (moment, way, seconds until each other rank named the lost one, until all had ended)."""
    moment, way = MOMENTS[number % len(MOMENTS)], WAYS[number % len(WAYS)]
    if way == "silent" and hosts.missing:
        way = "killed"
    victim = options.ranks - 1 if way == "silent" else draw.randrange(options.ranks)
    job = Job(options, work, moment, way, hosts)
    try:
        job.come_to_moment(draw, planning_s)
        lost = job.lose(victim)
        others = [rank for rank in job.ranks if rank.number != victim]
        wait_until(lambda: all(rank.ended() for rank in others), f"{moment}, rank {victim} {way}: ending")
        over = time.monotonic() - lost
        for rank in others:
            rank.reader.join()
            need(rank.process.returncode > 0, f"{moment}, rank {victim} {way}: rank {rank.number} ended with "
                                              f"{rank.process.returncode}")
            need(rank.named(victim, lost), f"{moment}, rank {victim} {way}: rank {rank.number} names it not: "
                                           f"{[line for _, line in rank.lines[-4:]]}")
        return moment, way, [rank.named(victim, lost) - lost for rank in others], over
    finally:
        job.end()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("sluice")
    parser.add_argument("nccl")
    parser.add_argument("--moments", type=int, default=40)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SLUICE_TEST_SEED", "0")) or 1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    print(f"seed {options.seed}")
    hosts = Hosts()
    if hosts.missing:
        print(f"SKIP: a host that falls silent: {hosts.missing}")
    slowest = {}
    try:
        with tempfile.TemporaryDirectory() as work:
            with open(os.path.join(work, "text"), "w", encoding="utf-8") as text:
                text.writelines(f"{i} bottles of water on the wall,\n" for i in range(9000))
            planning_s = measure_planning(options, work)
            print(f"from joining to the first step: {planning_s:.2f} s", flush=True)
            for number in range(options.moments):
                moment, way, seconds, over = lose_one(options, work, hosts, number, draw, planning_s)
                slowest.setdefault(way, []).extend(seconds)
                print(f"{moment:16} {way:8} named after {' '.join(f'{s:.2f}' for s in seconds)} s, all over after "
                      f"{over:.2f} s", flush=True)
    finally:
        hosts.remove()
    for way, seconds in sorted(slowest.items()):
        print(f"{way}: {len(seconds)} ranks named it, {sum(s <= 2 for s in seconds)} within 2 s, the last after "
              f"{max(seconds):.2f} s")


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        print(f"gpu_losses.py: {wrong}", file=sys.stderr)
        sys.exit(1)
