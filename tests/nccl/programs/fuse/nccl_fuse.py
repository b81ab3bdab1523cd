#!/usr/bin/env python3
"""Prints what SLUICE_SHIM_FUSE gains on the host's CUDA and NCCL: groups of small all-reduces with the shim fusing and
with the shim recording only, by turns; and the size of a call at which fusing neither gains nor loses, by

    (n - 1) alpha > 2 kappa + 4 n V / M

with what one more call of a group costs (alpha), a copy kernel's launch (kappa) and the memory's bandwidth (M), all
measured before, and the gain at that size. The times say nothing about a GPU's.

    nccl_fuse.py [BUILD]        BUILD: build/release, or where sluice_nccl, nccl_shim_kernels, hostcuda, hostnccl and
                                grouped_times were built
"""

import os
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 7


def seconds(build, folder, fuse, count, size, steps):
    parts = ("tests/nccl/bed/hostcuda", "tests/nccl/bed/hostnccl")
    environment = dict(os.environ, LD_LIBRARY_PATH=":".join(f"{build}/{part}" for part in parts),
                       LD_PRELOAD=f"{build}/plugins/nccl/shim/libsluice_nccl.so", SLUICE_SHIM_DIR=folder,
                       HOSTCUDA_KERNELS=f"{build}/plugins/nccl/shim/transforms/libnccl_shim_kernels.so")
    if fuse:
        environment.update(SLUICE_SHIM_FUSE="64MiB", SLUICE_SHIM_STAGING="128MiB")
    ran = subprocess.run([f"{build}/bench/grouped_times", str(count), str(size), str(steps)], env=environment,
                         check=True, capture_output=True, text=True, timeout=120)
    return float(ran.stdout) * 1e-6


def by_turns(build, folder, count, size, steps=15):
    """The medians apart and fused, and the median of the turns' ratios."""
    turns = [(seconds(build, folder, False, count, size, steps), seconds(build, folder, True, count, size, steps))
             for _ in range(ROUNDS)]
    apart, fused = (statistics.median(times) for times in zip(*turns))
    return apart, fused, statistics.median(a / f for a, f in turns)


def show(name, count, size, apart, fused, ratio):
    print(f"{name:28} {count:5} x {size:7} B: apart {apart * 1e6:8.0f} us, fused {fused * 1e6:8.0f} us, {ratio:.2f} x")


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/release")
    with tempfile.TemporaryDirectory(prefix="sluice-fuse-") as folder:
        result = by_turns(build, folder, 1000, 2048)
        show("many small ones", 1000, 2048, *result)
        few, many = (by_turns(build, folder, n, 16) for n in (2, 500))
        alpha = (many[0] - few[0]) / 498
        kappa = max((few[1] - few[0] + alpha) / 2, 0)
        large = by_turns(build, folder, 100, 65536)
        show("large ones", 100, 65536, *large)
        copying = large[1] - large[0] + 99 * alpha - 2 * kappa
        bandwidth = 4 * 100 * 65536 / max(copying, 1e-9)
        print(f"alpha {alpha * 1e6:.2f} us, kappa {kappa * 1e6:.1f} us, M {bandwidth * 1e-9:.2f} GB/s")
        for count in (10, 100, 1000):
            size = int((((count - 1) * alpha - 2 * kappa) * bandwidth / (4 * count)) // 16 * 16)
            if size < 16:
                print(f"{count} calls: fusing does not pay, whatever their size")
                continue
            show("at the threshold", count, size, *by_turns(build, folder, count, size))


main()
