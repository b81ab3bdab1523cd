#!/usr/bin/env python3
"""Measures what plain TCP carries between ranks, in both directions at once: each rank sends to the next one and
receives from the one before, for some seconds after a warm-up. It is the yardstick for collectives on the same network.

    namespaces.sh -n 2 --rate 1gbit --only 0 -- python3 bench/compare/peers/tcp_goodput.py [--seconds 3]

Rank 0 prints one line of JSON: the least and the mean goodput over ranks in bytes a second, and the CPU time of a rank
as a share of one core."""
import argparse
import ipaddress
import json
import os
import socket
import threading
import time

PIECE = 1 << 20
WARM_UP_S = 0.5
JOIN_S = 20


def address_of(rank):
    return str(ipaddress.ip_address(os.environ["MASTER_ADDR"]) + rank)


def connect(host, port):
    end = time.monotonic() + JOIN_S
    while True:
        try:
            return socket.create_connection((host, port), timeout=JOIN_S)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def listen(host, port):
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((host, port))
    server.listen(256)
    return server


def send(connection, seconds):
    piece = memoryview(bytearray(PIECE))
    end = time.monotonic() + WARM_UP_S + seconds
    while time.monotonic() < end:
        connection.sendall(piece)
    connection.shutdown(socket.SHUT_WR)


def receive(connection, seconds):
    """Returns the bytes a second from the end of the warm-up on, and this process's CPU time in that while."""
    piece = memoryview(bytearray(PIECE))
    got, begin, cpu, last = 0, None, 0.0, None
    start = time.monotonic()
    while True:
        count = connection.recv_into(piece)
        now = time.monotonic()
        if not count:
            break
        if begin is None:
            if now - start >= WARM_UP_S:
                begin, cpu = now, time.process_time()
        elif last is None or now - begin <= seconds:
            got, last = got + count, now
    return got / (last - begin), (time.process_time() - cpu) / (last - begin)


def measure(rank, size, port, seconds):
    server = listen(address_of(rank), port)
    ahead = connect(address_of((rank + 1) % size), port)
    behind, _ = server.accept()
    ahead.settimeout(None)
    result = {}
    sender = threading.Thread(target=send, args=(ahead, seconds))
    sender.start()
    result["bytes_per_s"], result["cpu"] = receive(behind, seconds)
    sender.join()
    return result


def collect(rank, size, port, result):
    """Returns all ranks' results at rank 0, and None elsewhere."""
    if rank:
        with connect(address_of(0), port) as connection:
            connection.sendall(json.dumps(result).encode())
        return None
    results = [result]
    with listen(address_of(0), port) as server:
        for _ in range(size - 1):
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as stream:
                results.append(json.loads(stream.read()))
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    rank, size, port = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    results = collect(rank, size, port + 1, measure(rank, size, port, options.seconds))
    if results is None:
        return
    rates = [one["bytes_per_s"] for one in results]
    print(json.dumps({"ranks": size, "bytes_per_s": min(rates), "mean_bytes_per_s": sum(rates) / size,
                      "cpu": sum(one["cpu"] for one in results) / size}))


if __name__ == "__main__":
    main()
