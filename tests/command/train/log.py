"""Looks at what `sluice train --log` leaves. log.py check FOLDER [SHOWN]: every line is whole, steps follow each other
from 1 without a gap or a repeat, both tables and the event files say the same, and if SHOWN (the run's standard error)
is given every step that it shows is there; prints the number of steps. log.py value FILE STEP KEY: of a metrics.jsonl.
log.py tensorboard FOLDER: the losses that TensorBoard's own reader finds are those of metrics.jsonl."""
import csv
import glob
import json
import os
import re
import struct
import sys


def fail(words):
    print(words)
    sys.exit(1)


def crc32c(data, table=[]):
    if not table:
        for n in range(256):
            for _ in range(8):
                n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
            table.append(n)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    """Yields the contents of a file of TFRecords; the last record may be cut if the machine went down."""
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        length, crc = struct.unpack_from("<QI", data, at)
        if masked(data[at:at + 8]) != crc:
            fail(f"{path}: the length at {at} has another sum")
        content = data[at + 12:at + 12 + length]
        if masked(content) != struct.unpack_from("<I", data, at + 12 + length)[0]:
            fail(f"{path}: the content at {at} has another sum")
        yield content
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 128:
            return value, at


def fields(data):
    """Yields the fields of a message as (number, value)."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            size = 8 if kind == 1 else 4
            value, at = struct.unpack("<d" if kind == 1 else "<f", data[at:at + size])[0], at + size
        yield key >> 3, value


def losses_of_events(folder):
    losses = {}
    for path in sorted(glob.glob(os.path.join(folder, "events.out.tfevents.*"))):
        first = True
        for record in records(path):
            event = dict(fields(record))
            if first != (event.get(3) == b"brain.Event:2"):
                fail(f"{path}: the version does not come first")
            first = False
            step = event.get(2, 0)
            if 7 in event:  # a restart: what came later in earlier files is forgotten
                losses = {s: loss for s, loss in losses.items() if s < step}
            for _, value in fields(event.get(5, b"")):
                scalar = dict(fields(value))
                if scalar[1] == b"train/loss":
                    losses[step] = scalar[2]
    return losses


def lines_of(folder):
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        text = file.read()
    if text and not text.endswith("\n"):
        fail("metrics.jsonl ends with half a line")
    return [json.loads(line) for line in text.splitlines()]


def steps_of(folder):
    return [line for line in lines_of(folder) if "loss" in line]


def check(folder, shown=None):
    steps = steps_of(folder)
    numbers = [line["step"] for line in steps]
    if numbers != list(range(1, len(numbers) + 1)):
        fail(f"metrics.jsonl has the steps {numbers}")
    with open(os.path.join(folder, "metrics.csv"), encoding="utf-8", newline="") as file:
        text = file.read()
    if not text.endswith("\n"):
        fail("metrics.csv ends with half a line")
    rows = [row for row in csv.DictReader(text.splitlines()) if row["loss"]]
    # one step may be in one file and not yet in the next, if the run was killed between them
    if not 0 <= len(numbers) - len(rows) <= 1:
        fail(f"{len(numbers)} steps in metrics.jsonl, {len(rows)} in metrics.csv")
    for line, row in zip(steps, rows):
        if int(row["step"]) != line["step"] or abs(float(row["loss"]) - line["loss"]) > 1e-6:
            fail(f"step {line['step']}: metrics.csv says otherwise")
    losses = losses_of_events(folder)
    if not 0 <= len(numbers) - len(losses) <= 1:
        fail(f"{len(numbers)} steps in metrics.jsonl, {len(losses)} in the event files")
    for line in steps[:len(losses)]:
        if abs(losses[line["step"]] - line["loss"]) > 1e-5:
            fail(f"step {line['step']}: the event files say otherwise")
    if shown:
        with open(shown, encoding="utf-8", errors="replace") as file:
            seen = [int(n) for n in re.findall(r"^step (\d+)/", file.read(), re.M)]
        if seen and max(seen) > len(numbers):
            fail(f"step {max(seen)} was shown, and the log ends with {len(numbers)}")
    print(len(numbers))


def value(path, step, key):
    for line in lines_of(os.path.dirname(path)):
        if line["step"] == int(step) and key in line:
            print(line[key])
            return
    fail(f"step {step} has no {key}")


def tensorboard(folder):
    import logging
    logging.disable(logging.WARNING)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    reader = EventAccumulator(folder, size_guidance={"scalars": 0})
    reader.Reload()
    found = {event.step: event.value for event in reader.Scalars("train/loss")}
    want = {line["step"]: line["loss"] for line in steps_of(folder)}
    if found.keys() != want.keys() or any(abs(found[s] - want[s]) > 1e-5 for s in want):
        fail(f"TensorBoard reads {len(found)} losses, and metrics.jsonl has {len(want)}")
    print(f"{len(found)} losses, tags {' '.join(sorted(reader.Tags()['scalars']))}")


if __name__ == "__main__":
    {"check": check, "value": value, "tensorboard": tensorboard}[sys.argv[1]](*sys.argv[2:])
