#!/usr/bin/env python3
"""NCCL called from Python through ctypes, as vLLM does it: the library opened by its path or by its name, two ranks in
threads. Prints what the programs of this folder print.

    client.py PATH-OR-NAME-OF-NCCL
"""

import ctypes
import sys
import threading
import zlib

RANKS, COUNT = 2, 1000
FLOAT32, SUM = 7, 0
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


def load():
    cuda, nccl = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL(sys.argv[1])
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    cuda.cudaMalloc.argtypes = [ctypes.POINTER(pointer), size]
    cuda.cudaMemcpy.argtypes = [pointer, pointer, size, number]
    cuda.cudaFree.argtypes = [pointer]
    nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(pointer), number, UniqueId, number]
    nccl.ncclAllReduce.argtypes = [pointer, pointer, size, number, number, pointer, pointer]
    nccl.ncclCommDestroy.argtypes = [pointer]
    nccl.ncclGetErrorString.restype = ctypes.c_char_p
    return cuda, nccl


def checked(result, what):
    if result:
        raise RuntimeError(f"{what}: error {result}")


def run_rank(cuda, nccl, name, rank, lines):
    communicator, memory = ctypes.c_void_p(), ctypes.c_void_p()
    host = (ctypes.c_float * COUNT)(*((rank + 1) * i for i in range(COUNT)))
    checked(cuda.cudaSetDevice(rank), "cudaSetDevice")
    checked(nccl.ncclCommInitRank(ctypes.byref(communicator), RANKS, name, rank), "ncclCommInitRank")
    checked(cuda.cudaMalloc(ctypes.byref(memory), ctypes.sizeof(host)), "cudaMalloc")
    checked(cuda.cudaMemcpy(memory, host, ctypes.sizeof(host), HOST_TO_DEVICE), "cudaMemcpy")
    checked(nccl.ncclAllReduce(memory, memory, COUNT, FLOAT32, SUM, communicator, None), "ncclAllReduce")
    checked(cuda.cudaDeviceSynchronize(), "cudaDeviceSynchronize")
    checked(cuda.cudaMemcpy(host, memory, ctypes.sizeof(host), DEVICE_TO_HOST), "cudaMemcpy")
    if list(host) != [float(RANKS * (RANKS + 1) // 2 * i) for i in range(COUNT)]:
        raise RuntimeError(f"rank {rank}: the sums are wrong: {host[:4]}...")
    checked(cuda.cudaFree(memory), "cudaFree")
    checked(nccl.ncclCommDestroy(communicator), "ncclCommDestroy")
    lines[rank] = f"rank {rank} results {zlib.crc32(bytes(host)):08x} calls 1"


def main():
    cuda, nccl = load()
    version, name, lines = ctypes.c_int(), UniqueId(), {}
    checked(nccl.ncclGetVersion(ctypes.byref(version)), "ncclGetVersion")
    print("version", version.value, nccl.ncclGetErrorString(4).decode())
    checked(nccl.ncclGetUniqueId(ctypes.byref(name)), "ncclGetUniqueId")
    threads = [threading.Thread(target=run_rank, args=(cuda, nccl, name, r, lines)) for r in range(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(lines) != RANKS:
        sys.exit("client.py: a rank failed (above)")
    print("\n".join(lines.values()))


main()
