#!/usr/bin/env python3
"""Ends sweeps of twelve cells at drawn moments, and lets the same command go on: sweep_ends.py SLUICE [MOMENTS
[SEED [SCHEDULES]]]. With one schedule in place of two, a sweep has six cells.

A moment is a way to end a sweep (the launcher is killed, with its ranks or alone; one rank is; Ctrl-C; nobody reads the
output; the disk is full; a cell is not finite) and how many cells have finished before. Then both files must be whole,
the same command must make what is missing and no more, and the results must have the cells, columns and weights of a
sweep that nothing has disturbed. The full disk needs a file system of its own, and is left out if none can be
mounted. Exit code 1 if one moment fails.
"""
import csv, json, os, random, shutil, signal, subprocess, sys, tempfile, time

SCHEDULES = sys.argv[4] if len(sys.argv) > 4 else "serial,one_ahead"
CELLS = 6 * len(SCHEDULES.split(","))
WAYS = ["launcher", "all", "rank", "interrupt", "pipe", "disk", "nan"]
LIMIT_S = 300


def command(sluice, text, folder, way):
    rates = "0.001,0.002,1e6" if way == "nan" else "0.001,0.002,0.003"
    return [sluice, "bench", "-n", "2", "--data", text, "--context", "32", "--batch", "2", "--steps", "30", "--repeat",
            "1", "--strategy", "dp,fsdp", "--schedule", SCHEDULES, "--lr", rates, "--output", folder]


def read(folder):
    """Reads the runs of both files, which must be whole: those of the JSON by their cells, and the rows of the
    table."""
    path, table = os.path.join(folder, "results.json"), os.path.join(folder, "results.csv")
    if not os.path.exists(path) or not os.path.exists(table):  # JSON comes first, before the first cell runs
        return {}, []
    with open(path) as file:
        runs = json.load(file)["runs"]
    with open(table, newline="") as file:
        rows = list(csv.reader(file))
    assert rows and all(len(row) == len(rows[0]) for row in rows), "a table that is not whole"
    return {(run["strategy"], run["schedule"], run["settings"]["lr"]): run for run in runs if not run["interrupted"]}, rows


def ranks_of(pid):
    return [int(p) for p in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()]


def end(process, way, folder, draw):
    if way in ("launcher", "all"):
        ranks = ranks_of(process.pid) if way == "all" else []
        process.kill()
        for rank in ranks:
            try:
                os.kill(rank, signal.SIGKILL)
            except ProcessLookupError:
                pass
    elif way == "rank":
        names = [p for p in ranks_of(process.pid) if b"--part" in open(f"/proc/{p}/cmdline", "rb").read()]
        if names:
            os.kill(draw.choice(names), signal.SIGKILL)
    elif way == "interrupt":
        process.send_signal(signal.SIGINT)
    elif way == "pipe":
        process.stdout.close()
    elif way == "disk":
        with open(os.path.join(folder, "..", "filler"), "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError:
                pass


def disturb(line, way, folder, after, draw):
    process = subprocess.Popen(line, stdout=subprocess.PIPE if way == "pipe" else subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    until = time.monotonic() + LIMIT_S
    while process.poll() is None and len(read(folder)[0]) < after and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(draw.random() * 0.1)
    if process.poll() is None and way != "nan":
        end(process, way, folder, draw)
    process.wait(timeout=LIMIT_S)
    if process.stdout and not process.stdout.closed:
        process.stdout.close()


def moment(sluice, text, work, way, after, whole, draw):
    folder = os.path.join(work, "sweep")
    line = command(sluice, text, folder, way)
    disturb(line, way, folder, after, draw)
    before, _ = read(folder)
    if os.path.exists(os.path.join(work, "filler")):
        os.remove(os.path.join(work, "filler"))
    again = subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
    runs, rows = read(folder)
    finite = {cell: run for cell, run in whole.items() if way != "nan" or cell[2] < 0.003}
    assert again.returncode == (1 if way == "nan" else 0), f"exit code {again.returncode}: {again.stderr[-300:]}"
    assert set(runs) == set(finite), f"{len(runs)} cells of {len(finite)}"
    lost = [cell for cell, run in before.items() if runs[cell] != run]
    assert not lost, f"finished cells were run again: {lost}"
    failed = [row for row in rows[1:] if row[rows[0].index("fits")] == ""]
    assert len(failed) == CELLS - len(finite), f"{len(failed)} failed cells"
    for cell, run in runs.items():
        assert run["weights_sha256"] == finite[cell]["weights_sha256"], f"other weights: {cell}"
        assert run.keys() == finite[cell].keys(), f"other keys: {cell}"
    return len(before)


def mounted(work):
    return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", work], capture_output=True).returncode == 0


def main():
    sluice, moments = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    draw, failures = random.Random(seed), 0
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as top:
        text = os.path.join(top, "text")
        with open(text, "w") as file:
            file.writelines(f"{i} bottles of water on the wall\n" for i in range(9000))
        folder = os.path.join(top, "whole")
        subprocess.run(command(sluice, text, folder, "none"), check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=LIMIT_S)
        whole, _ = read(folder)
        assert len(whole) == CELLS
        for number in range(moments):
            way, after = WAYS[number % len(WAYS)], draw.randrange(CELLS)
            work = os.path.join(top, f"moment-{number}")
            os.mkdir(work)
            disk = way == "disk"
            if disk and not mounted(work):
                print("SKIP: a full disk: no file system can be mounted here")
                continue
            try:
                kept = moment(sluice, text, work, way, after, whole, draw)
                print(f"{number + 1}: {way} after {after}: {kept} kept, the rest made")
            except (AssertionError, ValueError, KeyError, subprocess.TimeoutExpired) as why:
                failures += 1
                print(f"{number + 1}: {way} after {after}: FAILED: {why}")
            finally:
                if disk:
                    subprocess.run(["umount", work], capture_output=True)
                shutil.rmtree(work, ignore_errors=True)
            sys.stdout.flush()
    print(f"{moments} moments, {failures} failed")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
