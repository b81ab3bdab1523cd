"""The shim's records, read as docs/formats.md describes them: a second reader, which shares nothing with the first."""

import struct

MAGIC = b"SLNCCL\x01\x00"
OPERATIONS = range(1, 20)
NO_COMMUNICATOR = 0xFFFF
COUNTED = range(1, 12)  # the operations that a communicator counts: collectives, splits, sends and receives
SPLIT = 9  # below it a count of 0 is a collective of nothing, which is not counted; a split's count is its colour


# Members of a communicator's row after its hash and `done`, and the reasons why calls passed, in their order.
COUNTS = ("bytes_passed", "bytes_compressed", "bytes_sent_compressed", "fused_calls", "fused_groups", "compressed_calls")
REASONS = ("captured", "registered", "nonblocking", "settings", "kind", "size", "alone", "staging", "warming", "broken")


class Records:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        if self.data[:8] != MAGIC:
            raise ValueError(f"{path}: this is no file of records")
        version, _, entry_bytes, self.entry_count = struct.unpack_from("<4I", self.data, 8)
        if (version, entry_bytes) != (1, 64):
            raise ValueError(f"{path}: version {version} with entries of {entry_bytes} bytes is not known")
        communicators_at, _, self.entries_at, _, self.file_bytes = struct.unpack_from("<5Q", self.data, 24)
        self.first_call_ns, _, self.begun, self.state, rows = struct.unpack_from("<qqQ2I", self.data, 80)
        self.calls = [struct.unpack_from("<Q", self.data, communicators_at + 256 * row + 32)[0] for row in range(rows)]

    def entries(self):
        """(index, communicator, number, operation, count, time) of each committed entry, oldest first."""
        for index in range(max(0, self.begun - self.entry_count), self.begun):
            at = self.entries_at + index % self.entry_count * 64
            sequence, number, time_ns, count, send, _, stream = struct.unpack_from("<2Iq4Q", self.data, at)
            if sequence == (index + 1) & 0xFFFFFFFF:
                yield index, send >> 48, number, stream >> 48 & 0xFF, count, time_ns

    def transforms(self):
        """Returns the counts of fusing and compressing, added up over the communicators, with the record's limits."""
        communicators_at = struct.unpack_from("<Q", self.data, 24)[0]
        totals = dict.fromkeys(COUNTS + REASONS, 0)
        for row in range(len(self.calls)):
            at = communicators_at + 256 * row + 72
            values = struct.unpack_from("<6Q10I", self.data, at)
            for name, value in zip(COUNTS + REASONS, values):
                totals[name] += value
        totals["staging_limit"], totals["staging_peak"] = struct.unpack_from("<2Q", self.data, 144)
        return totals
