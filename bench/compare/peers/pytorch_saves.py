"""GPT-2 in plain PyTorch that saves model and AdamW while it trains; run by bench/compare/training/saves.py.

    pytorch_saves.py --way save|async --size NAME --context N --threads N --steps N --every N --folder DIR

save: torch.save, fsync, rename, removal of the checkpoint before. async: torch.distributed.checkpoint.async_save, with
the one before awaited and removed. Prints one line of JSON: the end and the length of each step, and how long the last
save took, which is awaited."""
import argparse
import json
import os
import shutil
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from pytorch_gpt2 import GPT2, SIZES


def state_of(model, optimizer):
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}


def save_at_once(state, folder, step):
    path, draft = f"{folder}/step-{step}", f"{folder}/draft"
    with open(draft, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(draft, path)
    place = os.open(folder, os.O_RDONLY)
    os.fsync(place)
    os.close(place)
    for name in os.listdir(folder):
        if name != f"step-{step}":
            os.remove(f"{folder}/{name}")
    return None


class Async:
    def __init__(self):
        self.under_way = self.before = None

    def save(self, state, folder, step):
        self.wait()
        if self.before:
            shutil.rmtree(self.before)
        self.before = f"{folder}/step-{step}"
        self.under_way = dcp.async_save(state, checkpoint_id=self.before)

    def wait(self):
        if self.under_way:
            self.under_way.result()
        self.under_way = None


def main():
    parser = argparse.ArgumentParser()
    for name in ("way", "size", "folder"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("context", "threads", "steps", "every"):
        parser.add_argument(f"--{name}", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    if args.way == "async":
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 20000))
        dist.init_process_group("gloo", rank=0, world_size=1)
    model = GPT2(*SIZES[args.size])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    behind, steps, last = Async(), [], 0
    for step in range(1, args.steps + 1):
        start = time.time()
        tokens = torch.randint(256, (1, args.context + 1))
        model(tokens[:, :-1], tokens[:, 1:]).backward()
        optimizer.step()
        optimizer.zero_grad()
        steps.append((time.time(), time.time() - start))
        if step % args.every == 0:
            start = time.time()
            if args.way == "save":
                save_at_once(state_of(model, optimizer), args.folder, step)
            else:
                behind.save(state_of(model, optimizer), args.folder, step)
            if step == args.steps:
                behind.wait()
            last = time.time() - start
    print(json.dumps({"steps": steps, "last": last}))
    if args.way == "async":
        dist.destroy_process_group()


main()
