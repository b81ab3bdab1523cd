#!/usr/bin/env python3
"""Joins hosts, which are network namespaces, by wires with faults that are set while packets are on their way.

    wire.py NAMESPACE...

Host I gets the interface eth0 with the address 10.97.0.(I+1). Each end is a TUN device, and this process carries every
packet, so that nothing is needed of the kernel but /dev/net/tun. It prints "ready", then takes lines from its standard
input until that ends, and says "ok" to each:

    FROM TO FAULT VALUE    FROM and TO are numbers of hosts, or "all"; a value of 0 ends the fault

    size BYTES             drops packets above that size
    syn FIRST-LAST         drops packets that open a connection to these ports too
    refuse FIRST-LAST      answers them with a reset instead
    loss, duplicate, flip  the share of packets that are dropped, come twice, or come with a bit turned
    delay MS, jitter MS    holds packets back, each for MS and for up to jitter's MS more, so that they change places
    rate BITS              the link carries so many bits a second, short packets first, as a fair queue does, and drops
                           what would wait for more than 0.4 s
    down 1                 nothing passes
    clear 0                ends all faults
"""
import fcntl
import heapq
import os
import random
import selectors
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
TCP, SYN, RST, ACK = 6, 0x02, 0x04, 0x10
MOST_BYTES, SHORT_BYTES, LONGEST_QUEUE_S = 65536, 400, 0.4


def make_device(number, namespace):
    """Returns the descriptor of a new interface in the namespace."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    name = f"slc{os.getpid()}x{number}"
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    inside = ["ip", "-n", namespace]
    for command in (
        ["ip", "link", "set", name, "netns", namespace],
        inside + ["link", "set", name, "name", "eth0"],
        inside + ["addr", "add", f"10.97.0.{number + 1}/24", "dev", "eth0"],
        inside + ["link", "set", "eth0", "up"],
        inside + ["link", "set", "lo", "up"],
    ):
        subprocess.run(command, check=True)
    return fd


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Packet:
    """The fields of an IPv4 packet that the faults ask about."""

    def __init__(self, data):
        header = (data[0] & 15) * 4
        self.sender, self.receiver = data[12:16], data[16:20]
        self.opens_port = None
        if data[9] == TCP and len(data) >= header + 20:
            self.ports = struct.unpack("!HH", data[header : header + 4])
            (self.sequence,) = struct.unpack("!I", data[header + 4 : header + 8])
            if data[header + 13] & (SYN | ACK) == SYN:
                self.opens_port = self.ports[1]

    def reset(self):
        """Returns the packet that refuses the connection which this one opens."""
        ends = self.receiver + self.sender
        tcp = struct.pack("!HHIIBBHHH", self.ports[1], self.ports[0], 0, self.sequence + 1 & 0xFFFFFFFF, 5 << 4,
                          RST | ACK, 0, 0, 0)
        tcp = tcp[:16] + struct.pack("!H", checksum(ends + struct.pack("!HH", TCP, len(tcp)) + tcp)) + tcp[18:]
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, TCP, 0) + ends
        return ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + tcp


class Wire:
    """Carries the packets of one direction between two hosts."""

    def __init__(self):
        self.free_at = 0.0
        self.clear()

    def clear(self):
        self.size = self.loss = self.duplicate = self.flip = self.delay = self.jitter = self.rate = self.down = 0.0
        self.syn, self.refuse = [], []

    def set(self, fault, value):
        if fault == "clear":
            self.clear()
        elif fault in ("syn", "refuse"):
            first, _, last = value.partition("-")
            setattr(self, fault, getattr(self, fault) + [(int(first), int(last))] if last else [])
        elif fault in vars(self):
            setattr(self, fault, float(value))
        else:
            raise ValueError(f"no fault {fault}")

    def opens(self, packet, ports):
        return any(first <= (packet.opens_port or 0) <= last for first, last in ports)

    def arrivals(self, data, packet, now):
        """Yields when, and as which bytes, the packet arrives."""
        if self.down or (self.size and len(data) > self.size) or self.opens(packet, self.syn):
            return
        if random.random() < self.loss:
            return
        if random.random() < self.flip:
            bit = random.randrange(len(data) * 8)
            data = bytearray(data)
            data[bit // 8] ^= 1 << bit % 8
        at = now
        if self.rate and len(data) > SHORT_BYTES:
            if self.free_at > now + LONGEST_QUEUE_S:
                return
            at = self.free_at = max(self.free_at, now) + len(data) * 8 / self.rate
        for _ in range(1 + (random.random() < self.duplicate)):
            yield at + (self.delay + random.random() * self.jitter) / 1000, bytes(data)


class Switch:
    def __init__(self, namespaces):
        self.fds = [make_device(i, name) for i, name in enumerate(namespaces)]
        self.wires = {(a, b): Wire() for a in range(len(self.fds)) for b in range(len(self.fds)) if a != b}
        self.waiting = []  # a heap of (time, number, receiver, bytes)
        self.count = 0

    def deliver(self, host, data):
        try:
            os.write(self.fds[host], data)
        except OSError:
            pass  # the host is down, or its queue is full: the packet is lost, as packets are

    def hold(self, at, host, data):
        self.count += 1
        heapq.heappush(self.waiting, (at, self.count, host, data))

    def take(self, host):
        """Carries the packets that the host has sent."""
        now = time.monotonic()
        for _ in range(64):
            try:
                data = os.read(self.fds[host], MOST_BYTES)
            except BlockingIOError:
                return
            if len(data) < 20 or data[0] >> 4 != 4:
                continue
            packet = Packet(data)
            to = packet.receiver[3] - 1
            wire = self.wires.get((host, to))
            if packet.receiver[:3] != bytes((10, 97, 0)) or not wire:
                continue
            if wire.opens(packet, wire.refuse):
                self.deliver(host, packet.reset())
                continue
            for at, arrived in wire.arrivals(data, packet, now):
                if at <= now:
                    self.deliver(to, arrived)
                else:
                    self.hold(at, to, arrived)

    def set(self, line):
        sender, receiver, fault, value = line.split()
        for (a, b), wire in self.wires.items():
            if sender in ("all", str(a)) and receiver in ("all", str(b)):
                wire.set(fault, value)

    def time_left(self):
        return max(0.0, self.waiting[0][0] - time.monotonic()) if self.waiting else None

    def deliver_due(self):
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            _, _, host, data = heapq.heappop(self.waiting)
            self.deliver(host, data)


def main():
    switch = Switch(sys.argv[1:])
    ready = selectors.DefaultSelector()
    ready.register(0, selectors.EVENT_READ)
    for host, fd in enumerate(switch.fds):
        ready.register(fd, selectors.EVENT_READ, host)
    print("ready", flush=True)
    typed = b""
    while True:
        for key, _ in ready.select(switch.time_left()):
            if key.fd:
                switch.take(key.data)
                continue
            read = os.read(0, 4096)
            if not read:
                return
            *lines, typed = (typed + read).split(b"\n")
            for line in lines:
                switch.set(line.decode())
                print("ok", flush=True)
        switch.deliver_due()


main()
