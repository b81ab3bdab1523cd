#!/usr/bin/env python3
"""PyTorch's communication with the nccl backend, two processes, as a data-parallel program uses it: single collectives,
coalesced ones, and a training loop whose compute runs on the CPU. Prints what the programs of this folder print.

    torch_client.py [--hang]     --hang: rank 1 leaves one all-reduce out, and the program hangs

PyTorch's CUDA wheel has to be there; kernels of its own do not run on the bed, so tensors on the device are only copied.
"""

import os
import subprocess
import sys
import tempfile
import zlib

RANKS = 2


def start_ranks():
    with tempfile.TemporaryDirectory(prefix="sluice-torch-") as folder:
        ranks = [
            subprocess.Popen([sys.executable, *sys.argv],
                             env=dict(os.environ, RANK=str(rank), WORLD_SIZE=str(RANKS), STORE=folder + "/store"))
            for rank in range(RANKS)
        ]
        return max(abs(rank.wait()) for rank in ranks)


class Results:
    def __init__(self):
        self.hash = 0

    def add(self, tensor, expected):
        got = tensor.cpu()
        if expected is not None and not got.equal(expected):
            raise RuntimeError(f"got {got}, not {expected}")
        self.hash = zlib.crc32(got.numpy().tobytes(), self.hash)


def collectives(torch, dist, rank, results):
    on_device = lambda values: torch.empty(values.numel(), device="cuda").copy_(values)
    base = torch.arange(1000, dtype=torch.float32)
    mine = (rank + 1) * base

    tensor = on_device(mine)
    dist.all_reduce(tensor)
    results.add(tensor, 3 * base)
    tensor.copy_(mine)
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG, async_op=True).wait()
    results.add(tensor, 1.5 * base)
    tensor.copy_(mine)
    dist.broadcast(tensor, src=1)
    results.add(tensor, 2 * base)

    tensor.copy_(mine)
    shard, whole = torch.empty(500, device="cuda"), torch.empty(2000, device="cuda")
    dist.reduce_scatter_tensor(shard, tensor)
    results.add(shard, 3 * base[500 * rank : 500 * (rank + 1)])
    dist.all_gather_into_tensor(whole, tensor)
    results.add(whole, torch.cat([base, 2 * base]))

    several = [on_device(mine + k) for k in range(4)]
    with dist._coalescing_manager(device=torch.device("cuda", rank), async_ops=True) as manager:
        for each in several:
            dist.all_reduce(each)
    manager.wait()
    for k, each in enumerate(several):
        results.add(each, 3 * base + 2 * k)
    if rank == 0:
        dist.send(several[0], 1)
    else:
        dist.recv(several[1], 0)
        results.add(several[1], 3 * base)
    dist.barrier()


def train(torch, dist, rank, results, hang):
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(6)])
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(rank)
    target = torch.randn(64, 64, generator=torch.Generator().manual_seed(9))
    buffers = [torch.empty(p.numel(), device="cuda") for p in model.parameters()]
    first = None
    for step in range(30):
        x = torch.randn(32, 64, generator=generator)
        loss = ((model(x) - x @ target) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        for k, (p, buffer) in enumerate(zip(model.parameters(), buffers)):
            if hang and rank == 1 and step == 5 and k == 7:
                continue
            buffer.copy_(p.grad.reshape(-1))
            dist.all_reduce(buffer, op=dist.ReduceOp.AVG)
        for p, buffer in zip(model.parameters(), buffers):
            p.grad.copy_(buffer.cpu().reshape(p.shape))
        optimizer.step()
        first = first or loss.item()
    if not loss.item() < first:
        raise RuntimeError(f"the loss goes from {first} to {loss.item()}")
    for p in model.parameters():
        results.add(p.detach().contiguous(), None)


def main():
    if "RANK" not in os.environ:
        sys.exit(start_ranks())
    import torch
    import torch.distributed as dist

    rank, results = int(os.environ["RANK"]), Results()
    torch.cuda.set_device(rank)
    torch.set_num_threads(1)
    dist.init_process_group("nccl", init_method="file://" + os.environ["STORE"], rank=rank, world_size=RANKS)
    collectives(torch, dist, rank, results)
    train(torch, dist, rank, results, "--hang" in sys.argv)
    dist.destroy_process_group()
    print(f"rank {rank} results {results.hash:08x}", flush=True)


main()
