#!/usr/bin/env python3
"""The directions in which the parts of the house may look, checked on every include.

`include_check.py [ROOT]` checks a tree; `--self-test` checks that a tree with planted faults is refused."""
import os
import re
import sys
import tempfile

# part: the parts it may include besides itself, lib/base and the public headers. Not transitive.
ARROWS = {
    "lib/base": [],
    "lib/plan": [],
    "lib/device": [],
    "lib/memory": ["lib/plan", "lib/device"],
    "lib/kernels": ["lib/device"],
    "lib/comm": ["lib/device", "lib/kernels"],
    "lib/optim": ["lib/device", "lib/kernels"],
    "lib/engine": ["lib/plan", "lib/memory", "lib/comm", "lib/optim", "lib/device", "lib/kernels"],
    "lib/model": ["lib/kernels", "lib/weights"],
    "lib/data": [],
    "lib/weights": [],
    "lib/sluice": ["*"],
    "ilp": ["lib/plan"],
    "sched": ["lib/plan", "ilp", "lib/memory"],
    "bench": ["*"],
    "tests": ["*"],
}
# Folders that see public headers only, each with what an include must begin with.
PUBLIC_ONLY = {
    "include/sluice/plugin": ["sluice/plugin/", "sluice/status.h"],
    "include/sluice": ["sluice/"],
    "plugins/transport": ["sluice/plugin/", "sluice/status.h"],
    "plugins/nccl_shim": ["sluice/"],
    "docs/examples": ["sluice/"],
}
SOURCE = re.compile(r"\.(c|h|cu|cuh|inc)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
OURS = ("lib/", "sched/", "ilp/", "bench/", "tests/", "plugins/", "include/", "sluice/")


def part_of(path, parts):
    inside = [p for p in parts if path.startswith(p + "/")]
    return max(inside, key=len) if inside else None


def refuse_public_only(target, allowed, local):
    if local and "/" not in target:
        return None  # beside it, in the same folder
    if any(target == a or (a.endswith("/") and target.startswith(a)) for a in allowed):
        return None
    return "may only include " + " and ".join(allowed) if target.startswith(OURS) else None


def refuse(path, target, local):
    """Why the file may not include the target; None where it may."""
    folder = part_of(path, PUBLIC_ONLY)
    if folder:
        return refuse_public_only(target, PUBLIC_ONLY[folder], local)
    part = part_of(path, ARROWS)
    if part is None:
        return "lies in no part of the house: name its folder in tests/include_check.py"
    if local and "/" not in target:
        return "writes an include without its folder: write it from the root"
    if path.endswith(("_test.c", "_fuzz.c")) or "*" in ARROWS[part] or not target.startswith(OURS):
        return None
    if target.startswith("sluice/"):
        return "may not see the plugins' header" if target.startswith("sluice/plugin/") and part != "lib/comm" else None
    wanted = part_of(target, ARROWS)
    if wanted in (part, "lib/base") or wanted in ARROWS[part]:
        return None
    return f"{part} may not look at {wanted or target}"


def check(root):
    faults, files = [], 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in ("build", "out"))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), root)
            if not SOURCE.search(name):
                continue
            files += 1
            with open(os.path.join(folder, name), encoding="utf-8") as source:
                for number, line in enumerate(source, 1):
                    found = INCLUDE.match(line)
                    why = found and refuse(path, found[2], found[1] == '"')
                    if why:
                        faults.append(f"{path}:{number}: {found[2]}: {why}")
    return faults, files


def self_test():
    good = {
        "lib/engine/step/step.c": '#include "lib/plan/plan.h"\n#include <sluice/runtime.h>\n#include <stdio.h>\n',
        "lib/engine/step_test.c": '#include "sched/serial.h"\n',
        "plugins/transport/ucx/ucx.c": '#include <sluice/plugin/transport_v1.h>\n#include "own.h"\n',
        "lib/sluice/runtime.c": '#include "sched/scheduler.h"\n#include "lib/engine/engine.h"\n',
    }
    bad = {
        "lib/engine/plan.c": '#include "sched/scheduler.h"\n',
        "sched/run.c": '#include "lib/engine/engine.h"\n',
        "ilp/solve.c": '#include "lib/memory/pack.h"\n',
        "lib/memory/pack.c": '#  include "lib/comm/comm.h"\n',
        "lib/base/log.c": '#include "status.h"\n',
        "lib/model/model.c": '#include "lib/engine/engine.h"\n',
        "plugins/transport/ucx/thread.c": '#include "lib/base/log.h"\n',
        "include/sluice/runtime.h": '#include "lib/plan/plan.h"\n',
        "lib/engine/wire.c": '#include <sluice/plugin/transport_v1.h>\n',
        "attic/old.c": '#include "lib/base/log.h"\n',
    }
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**good, **bad}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write(text)
        faults, _ = check(root)
    found = {fault.split(":")[0] for fault in faults}
    wrong = sorted(found ^ set(bad))
    for path in wrong:
        print(f"include_check self-test: {path}: " + ("refused" if path in good else "not refused"))
    return not wrong


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if self_test() else 1
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    faults, files = check(root)
    print("\n".join(faults) if faults else f"include directions: {files} files, all as the house allows")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
