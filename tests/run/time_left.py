"""Tells how far a run has come, and how long it will take: by the CPU seconds that its stages took in the last run of
the same form, or else by tests/budget.txt."""
import os
import threading
import time

BETWEEN_S = 30  # two lines
IN_USE = 0.85  # the share of the cores that a run keeps busy, until it shows


class TimeLeft:
    def __init__(self, expected, say):
        """expected: (stage, CPU seconds) in the order of the run, seconds None if nobody knows."""
        self.expected, self.say = dict(expected), say
        self.order = [stage for stage, _ in expected]
        self.done = {stage: 0.0 for stage in self.order}  # the share of each
        self.words = {stage: "" for stage in self.order}
        self.now, self.begin = None, time.monotonic()
        self.stop = threading.Event()
        threading.Thread(target=self.tick, daemon=True).start()

    def tick(self):
        while not self.stop.wait(BETWEEN_S):
            if self.now:
                self.say(self.line())

    def enter(self, stage):
        self.now = stage

    def leave(self, stage):
        self.done[stage], self.words[stage] = 1.0, ""

    def advance(self, stage, share, words):
        self.done[stage], self.words[stage] = share, words

    def minutes(self):
        known = {stage: s for stage, s in self.expected.items() if s is not None}
        whole = sum(known.values())
        done = sum(s * self.done[stage] for stage, s in known.items())
        if not whole:
            return None
        elapsed = time.monotonic() - self.begin
        rate = done / elapsed if done > 0.1 * whole else IN_USE * (os.cpu_count() or 1)
        return (whole - done) / rate / 60

    def line(self):
        words, minutes = self.words[self.now], self.minutes()
        left = "" if minutes is None else f"; about {max(1, round(minutes))} min left"
        return (f"--- stage {self.order.index(self.now) + 1} of {len(self.order)}, {self.now}"
                f"{': ' + words if words else ''}{left}")
