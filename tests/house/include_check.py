#!/usr/bin/env python3
"""The directions in which the parts of the house, and the folders inside a part, may look, checked on every include.
Headers that say "Private to X" are included from X only, no name is defined in two headers, names of one prefix lie in
one part, sluice.h includes every public header, every header is read once, and no file is in a circle of includes: X.h
and X.c count as one file, so types that two files share lie in a header below both.

`include_check.py [ROOT]` checks a tree; `--self-test` checks that a tree with planted faults is refused."""
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
import tree  # noqa: E402

# part: the parts it may include besides itself, lib/base and the public headers. Arrows are not transitive.
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
    "lib/data": ["lib/tokenizer"],
    "lib/weights": [],
    "lib/tokenizer": [],
    "lib/recipe": [],
    "lib/sluice": ["*"],
    "plugins/nccl": ["lib/kernels"],
    "ilp": ["lib/plan"],
    "sched": ["lib/plan", "ilp", "lib/memory"],
    "bench": ["*"],
    "tests": ["*"],
}
# Folders inside a part: those of the same part that they may include besides themselves and the part's own headers (the
# files that lie beside the folders). A part that is not listed has no folders, or folders that do not see each other.
ROOMS = {
    "bench": {
        "cli": ["cli/help", "cli/output"],
        "cli/options": ["cli", "cli/help"],
        "cli/output": ["cli"],
        "cli/help": [],
        "launch": ["cli", "cli/options"],
        "perf": ["cli", "cli/options", "cli/output", "launch"],
        "plan/words": ["cli", "cli/output"],
        "plan/pictures": ["cli", "cli/options", "cli/output", "plan/words"],
        "plan/comparison": ["plan/words", "plan/pictures"],
        "plan/pipeline": ["cli", "cli/options", "cli/output", "plan/words"],
        "plan/commands": ["cli", "cli/options", "cli/output", "plan/words", "plan/pictures", "plan/comparison",
                          "plan/pipeline", "train/options"],
        "train": ["cli", "cli/options", "cli/output", "launch", "plan/words", "estimate", "eval", "train/run",
                  "train/options", "train/data", "train/checkpoint", "train/log", "train/words"],
        "train/run": ["cli", "cli/output", "launch", "eval", "train", "train/options", "train/data",
                      "train/checkpoint", "train/log", "train/words"],
        "train/log": ["cli", "cli/output", "train", "train/options"],
        "train/options": ["cli", "cli/options", "cli/output"],
        "train/words": ["cli/output", "train", "train/options", "train/data"],
        "train/data": ["cli", "cli/output", "train/options"],
        "train/data/examples": ["cli", "train/options", "train/data"],
        "train/data/images": ["cli", "cli/output", "train/options", "train/data"],
        "train/checkpoint": ["cli", "train/options"],
        "eval": ["cli", "cli/options", "cli/output", "train", "train/options", "train/data"],
        "profile": ["cli", "cli/options", "cli/output", "launch", "plan/words", "train", "train/options",
                    "train/words"],
        "estimate": ["cli", "cli/options", "cli/output", "plan/words", "train/options", "train/data"],
        "sweep": ["cli", "cli/options", "cli/output", "launch", "plan/words", "train", "train/options", "train/data",
                  "train/log", "sweep/folder", "sweep/options", "sweep/figures", "sweep/tradeoff"],
        "sweep/folder": ["train/options"],
        "sweep/options": ["cli", "cli/options", "train/options", "sweep/folder"],
        "sweep/figures": ["cli", "cli/output", "plan/words", "train", "train/options", "sweep"],
        "sweep/tradeoff": ["cli", "cli/output", "plan/words", "train", "train/options", "sweep", "sweep/folder",
                           "sweep/options", "sweep/figures"],
        "nccl": ["cli", "cli/options", "cli/output", "plan/words", "nccl/summary", "nccl/watch", "nccl/profile"],
        "nccl/steps": [],
        "nccl/summary": ["cli", "cli/output", "plan/words", "nccl/steps"],
        "nccl/watch": ["cli", "cli/output"],
        "nccl/profile": ["cli", "cli/output", "nccl/steps"],
        "lab": ["cli"],
        "lab/study": ["cli", "cli/options", "cli/output"],
        "lab/overhead": ["cli", "cli/options", "cli/output", "launch"],
        "lab/pipeline": ["cli", "cli/options", "cli/output", "launch"],
        "lab/kernels": ["cli", "cli/options", "cli/output", "lab"],
        "lab/reading": ["cli", "cli/options"],
        "lab/pictures": ["cli", "cli/options"],
        "lab/tokenize": ["cli", "cli/options"],
        "lab/gemm": ["cli", "cli/options", "cli/output", "lab"],
    },
    "sched": {
        "order": [],
        "simulate": [],
        "layout": ["order", "simulate"],
        "schedulers": ["order", "layout"],
        "search": ["order", "layout", "simulate"],
        "joint": ["order", "layout", "simulate", "schedulers", "search"],
        "planner": ["order", "layout", "simulate", "schedulers", "search", "joint"],
        "pipeline": ["order", "layout", "pipeline/partition", "pipeline/program", "pipeline/simulate"],
        "pipeline/partition": [],
        "pipeline/program": [],
        "pipeline/simulate": ["pipeline/program"],
        "study": ["order", "layout", "simulate", "joint", "planner"],
    },
    "ilp": {"parts": [], "solver": ["parts"], "search": ["parts", "solver"]},
    "lib/base": {"hash": [], "host": ["hash", "text"], "file": ["hash", "host", "text"], "numbers": [], "text": []},
    "plugins/nccl": {
        "record": [],
        "shim": ["record", "shim/library", "shim/measure"],
        "shim/library": ["shim"],
        "shim/measure": ["record", "shim", "shim/library"],
        "shim/transforms": ["record", "shim", "shim/library"],
    },
    "lib/data": {"images": [], "records": [], "tokenizer_files": []},
    "lib/tokenizer": {"unicode": [], "read": ["unicode"]},
    "lib/model": {"batch": [], "blocks": ["batch"], "layers": ["blocks"], "weights": []},
    "lib/optim": {"onebit": []},
    "lib/weights": {"families": [], "safetensors": []},
    "lib/plan": {"effort": [], "json": [], "measured": [], "validate": []},
    "lib/comm": {
        "sockets": [],
        "join": ["sockets"],
        "control": ["sockets", "join"],
        "lane": ["control", "lane/rows"],
        "lane/rows": ["control", "lane"],
        "channel": ["control", "lane"],
        "world": ["sockets", "join", "control", "lane", "channel"],
    },
    "lib/engine": {
        "model": [],
        "writing": [],
        "check": ["model"],
        "measure": ["model"],
        "rows": ["model"],
        "onebit": ["model"],
        "units": ["model", "rows", "onebit"],
        "step": ["model", "writing", "check", "measure", "rows", "onebit"],
        "stages": ["model", "rows", "step"],
        "replan": ["model", "check", "measure", "rows", "onebit", "step", "units"],
        "calls": ["model", "check", "measure", "rows", "onebit", "step", "stages", "replan"],
        "checkpoint": ["model", "writing", "check", "onebit", "step", "replan"],
        "making": ["model", "check", "measure", "rows", "onebit", "step", "units", "replan", "checkpoint"],
    },
}
# Folders that see public headers only, each with what an include must begin with.
PUBLIC_ONLY = {
    "include/sluice/plugin": ["sluice/plugin/", "sluice/status.h", "sluice/dtype.h"],
    "include/sluice": ["sluice/"],
    "plugins/transport": ["sluice/plugin/", "sluice/status.h"],
    "plugins/transport/nccl": ["sluice/plugin/", "sluice/status.h", "plugins/nccl/nccl_abi.h"],
    "docs/examples": ["sluice/"],
}
# The folders that train and that start ranks are written as a user's program could be: with public headers, lib/base,
# lib/data, lib/tokenizer, lib/recipe, the planner's face (what a schedule is called, what a plan needs), the names of
# strategies, and the tables of optimizers and of families. Folder: headers that it may include besides, and why.
CLIENTS = {
    "bench/launch": {},
    "bench/train": {
        "lib/model/shape.h": "an estimate needs no weights",
        "lib/weights/tensors.h": "visual tokens and codebooks are read from safetensors",
        "lib/weights/safetensors/safetensors.h": "visual tokens and codebooks are safetensors",
    },
    "bench/eval": {
        "lib/model/gradient_keeper.h": "eval keeps gradients where an optimizer would use them up",
        "lib/model/batch/inputs.h": "eval reads a model's inputs from safetensors",
        "lib/model/params.h": "eval writes gradients under Hugging Face's names",
        "lib/weights/safetensors/safetensors.h": "eval writes logits and gradients as safetensors",
    },
    "bench/profile": {"sched/study/made_profile.h": "profiles that are made, not measured"},
    "bench/sweep": {
        "lib/plan/": "budgets and the trade-off are found by planning, not by training",
        "sched/joint/simple_plans.h": "the ends between which budgets are found",
        "sched/study/tradeoff.h": "the trade-off is simulated before it is run",
    },
}
CLIENTS_SEE = ["sluice/", "lib/base/", "lib/data/", "lib/tokenizer/", "lib/recipe/", "sched/planner.h", "sched/scheduler.h",
               "lib/optim/optimizers.h", "lib/plan/strategy_names.h", "lib/weights/family.h", "bench/"]
# A family of names belongs to one part, or to one folder of it: what a header defines as slc_PREFIX_... lies there.
PREFIXES = {
    "apply": "lib/model",
    "arena": "lib/memory",
    "bench": "bench/sweep",
    "buffer": "lib/plan",
    "channel": "lib/comm",
    "channels": "lib/comm",
    "check": "lib/engine",
    "comm": "lib/comm",
    "compress": "lib/kernels",
    "control": "lib/comm",
    "device": "lib/device",
    "engine": "lib/engine",
    "family": "lib/weights",
    "flow": "ilp",
    "gemm": "lib/kernels",
    "images": "lib/data",
    "manifest": "lib/engine",
    "measure": "lib/engine",
    "moment": "lib/engine",
    "nccl": "bench/nccl plugins/nccl/record",
    "op": "lib/comm",
    "option": "bench/cli bench/train",
    "optimizer": "lib/optim",
    "order": "sched",
    "output": "bench/launch",
    "recipe": "lib/recipe",
    "record": "plugins/nccl/record",
    "setting": "lib/base",
    "shim": "plugins/nccl/shim",
    "tensor": "lib/weights",
    "training": "bench/train",
    "validate": "lib/plan",
    "words": "lib/tokenizer",
    "world": "lib/comm",
}
PREFIXED = re.compile(r"slc_([a-z0-9]+)_", re.I)
KERNEL = re.compile(r"(lib/kernels/\w+)/")
PRIVATE = re.compile(r"Private to ([\w/]+)(?: and (\w+/[\w/]+))?")
WHOLE = "include/sluice/sluice.h"
FIRST_COMMENT = re.compile(r"/\*.*?\*/", re.S)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# A header defines struct bodies, types that end a body, enumerators, functions and macros. "typedef struct x x;"
# only announces a type whose body is elsewhere.
DEFINITIONS = (
    re.compile(r"^(?:typedef )?(?:struct|enum|union) ((?:slc|sluice)_\w+) \{", re.M),
    re.compile(r"^\} ((?:slc|sluice)_\w+);", re.M),
    re.compile(r"^typedef enum [^;]*\} ((?:slc|sluice)_\w+);", re.M),
    re.compile(r"^(?:[a-z][\w ]*[ *])((?:slc|sluice)_\w+)\(", re.M),
    re.compile(r"^typedef [\w ]+ \**((?:slc|sluice)_\w+)\(", re.M),
)
ENUM = re.compile(r"\benum\b[^{;]*\{([^}]*)\}")
ENUMERATOR = re.compile(r"\b((?:SLC|SLUICE)_\w+)\s*(?:=[^,]*)?(?:,|$)")
SOURCE = re.compile(r"\.(c|h|cu|cuh|inc)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
OURS = ("lib/", "sched/", "ilp/", "bench/", "tests/", "plugins/", "include/", "sluice/")


def part_of(path, parts):
    inside = [p for p in parts if path.startswith(p + "/")]
    return max(inside, key=len) if inside else None


def refuse_public_only(target, allowed, local):
    if local and "/" not in target:
        return None  # in the same folder
    if any(target == a or (a.endswith("/") and target.startswith(a)) for a in allowed):
        return None
    return "may only include " + " and ".join(allowed) if target.startswith(OURS) else None


def room_of(part, path):
    inside = [room for room in ROOMS[part] if path.startswith(f"{part}/{room}/")]
    return max(inside, key=len) if inside else None


def refuse_room(part, path, target):
    """Arrows between the folders of one part. Files that lie beside the folders may include all of them."""
    if part not in ROOMS or path.count("/") == part.count("/") + 1:
        return None
    room, wanted = room_of(part, path), room_of(part, target)
    if room is None:
        return f"lies in no folder of {part}: name it in ROOMS of tests/house/include_check.py"
    if wanted in (None, room) or wanted in ROOMS[part][room]:
        return None
    return f"{part}/{room} may not look at {part}/{wanted}"


def is_test(path):
    return path.startswith("tests/") or path.endswith(("_test.c", "_fuzz.c", "_fuzz.h"))


def refuse_private(path, target, owners):
    """A header whose first comment says "Private to X" (or "to X and Y/Z") is for files of X, and for tests."""
    owner = owners.get(target)
    if not owner or is_test(path) or path.startswith(tuple(folder + "/" for folder in owner)):
        return None
    return "is private to " + " and ".join(owner)


def refuse_client(path, target):
    folder = part_of(path, CLIENTS)
    if not folder or is_test(path) or not target.startswith(OURS):
        return None
    if target.startswith((*CLIENTS_SEE, *CLIENTS[folder])):
        return None
    return f"{folder} sees public headers, lib/base, lib/data and the planner only, as a user's program would"


def defined_names(text):
    text = COMMENT.sub("", text)
    names = {name for pattern in DEFINITIONS for name in pattern.findall(text)}
    for body in ENUM.findall(text):
        names.update(ENUMERATOR.findall(body.strip()))
    return names


def refuse_twins(headers):
    """One name means one thing: no header defines a name that another one defines."""
    seen = {}
    for path, text in sorted(headers.items()):
        for name in sorted(defined_names(text)):
            if name in seen:
                yield f"{path}:1: {name}: defined in {seen[name]} too"
            seen.setdefault(name, path)


def refuse_prefixes(headers):
    """A header of another part defines no name of a family in PREFIXES."""
    for path, text in sorted(headers.items()):
        for name in sorted(defined_names(text)):
            found = PREFIXED.match(name)
            owners = found and PREFIXES.get(found[1].lower(), "").split()
            if owners and not path.startswith(tuple(owner + "/" for owner in owners)):
                yield f"{path}:1: {name}: this prefix belongs to {' and '.join(owners)}"


def refuse(path, target, local):
    """Why the file may not include the target; None if it may."""
    folder = part_of(path, PUBLIC_ONLY)
    if folder:
        return refuse_public_only(target, PUBLIC_ONLY[folder], local)
    part = part_of(path, ARROWS)
    if part is None:
        return "lies in no part of the house: name its folder in tests/house/include_check.py"
    if local and "/" not in target:
        return "writes an include without its folder: write it from the root"
    if is_test(path) or not target.startswith(OURS):
        return None
    if "*" in ARROWS[part]:
        return refuse_room(part, path, target) if part_of(target, ARROWS) == part else None
    if target.startswith("sluice/"):
        return "may not see the plugins' header" if target.startswith("sluice/plugin/") and part != "lib/comm" else None
    wanted = part_of(target, ARROWS)
    if wanted == part:
        return refuse_room(part, path, target)
    if wanted == "lib/base" or wanted in ARROWS[part]:
        return None
    return f"{part} may not look at {wanted or target}"


def node_of(path):
    """X for X.h and X.c; in lib/kernels the folder of an operation, all of whose forms share NAME.h, its contract."""
    operation = KERNEL.match(path)
    return operation[1] if operation and not is_test(path) else os.path.splitext(path)[0]


def path_of(path, target, local):
    """The path from the root of what a file includes."""
    if local and "/" not in target:
        return os.path.join(os.path.dirname(path), target)
    return f"include/{target}" if target.startswith("sluice/") else target


def graph_of(texts):
    """Node -> {another node that it includes: the file that does so}."""
    graph = {node_of(path): {} for path in texts}
    for path, text in texts.items():
        for line in text.splitlines():
            found = INCLUDE.match(line)
            target = found and path_of(path, found[2], found[1] == '"')
            if target in texts and node_of(target) != node_of(path):
                graph[node_of(path)].setdefault(node_of(target), path)
    return graph


def way_back(graph, start):
    """The shortest way from a node to itself, with each node once; [] if there is none."""
    came_from, row = {}, [start]
    for node in row:
        for after in sorted(graph[node]):
            if after == start:
                way = [node]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if after not in came_from:
                came_from[after] = node
                row.append(after)
    return []


def refuse_circles(texts):
    """Each file that includes itself in a circle is named once, with the shortest circle that it is in."""
    graph = graph_of(texts)
    told = set()
    for node in sorted(graph):
        way = way_back(graph, node)
        if way and not told.issuperset(way):
            told.update(way)
            yield f"{graph[node][(way + way)[1]]}:1: a circle of includes: {' -> '.join([*way, node])}"


def sources(root):
    """Paths from the root, and texts."""
    for path in tree.files(root):
        if SOURCE.search(path):
            with open(os.path.join(root, path), encoding="utf-8") as source:
                yield path, source.read()


def refuse_incomplete(headers):
    """A program that includes sluice/sluice.h has every public header."""
    whole = headers.get(WHOLE, "")
    for path in sorted(headers):
        name = path.removeprefix("include/")
        if path != WHOLE and re.fullmatch(r"sluice/[^/]+\.h", name) and f"#include <{name}>" not in whole:
            yield f"{WHOLE}: it does not include <{name}>"


def refuse_guards(texts):
    """Public headers have guards, since a user's tree may hold them twice; all others `#pragma once`."""
    for path in sorted(path for path in texts if path.endswith((".h", ".cuh"))):
        if path.startswith("include/") == ("\n#pragma once\n" in "\n" + texts[path]):
            yield f"{path}: " + ("a public header has a guard" if path.startswith("include/") else "it needs #pragma once")


def check(root):
    faults, texts = [], dict(sources(root))
    headers = {path: text for path, text in texts.items() if path.endswith(".h") and not is_test(path)}
    owners = {}
    for path, text in headers.items():
        comment = FIRST_COMMENT.search(text)
        private = comment and PRIVATE.search(comment[0].replace("\n *", ""))
        if private:
            owners[path] = [folder for folder in private.groups() if folder]
    for path, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            found = INCLUDE.match(line)
            why = found and (
                refuse(path, found[2], found[1] == '"')
                or refuse_private(path, found[2], owners)
                or refuse_client(path, found[2])
            )
            if why:
                faults.append(f"{path}:{number}: {found[2]}: {why}")
    named = [*refuse_twins(headers), *refuse_prefixes(headers), *refuse_incomplete(headers), *refuse_circles(texts),
             *refuse_guards(texts)]
    return faults + named, len(texts)


def self_test():
    good = {
        "lib/engine/step/step.c": '#include "lib/plan/plan.h"\n#include <sluice/runtime.h>\n#include <stdio.h>\n',
        "lib/engine/step_test.c": '#include "sched/serial.h"\n',
        "plugins/transport/ucx/ucx.c": '#include <sluice/plugin/transport_v1.h>\n#include "own.h"\n',
        "plugins/transport/nccl/nccl.c": '#include "plugins/nccl/nccl_abi.h"\n',
        "lib/sluice/runtime.c": '#include "sched/scheduler.h"\n#include "lib/engine/engine.h"\n',
        "sched/planner/strategies.c": '#include "sched/layout/make_plan.h"\n#include "sched/scheduler.h"\n',
        "lib/plan/json/reader.h": "/* Reading. Private to\n * lib/plan. */\ntypedef struct {\n    int a;\n} slc_reader;\n",
        "lib/plan/json/read.c": '#include "lib/plan/json/reader.h"\n',
        "include/sluice/model.h": "#include <sluice/runtime.h>\n",
        "lib/plan/opaque.h": "typedef struct slc_reader slc_reader;\n",
        "lib/comm/lane/lane.h": "void slc_comm_attach(void);\nenum { SLC_OP_SUM };\n",
        "lib/comm/lane/messages.h": "typedef struct slc_message slc_message;\n",
        "lib/comm/lane/work.h": '#include "lib/comm/lane/scratch.h"\n',
        "lib/comm/lane/scratch.h": "char *slc_scratch_part(int peer);\n",
        "lib/comm/lane/scratch.c": '#include "lib/comm/lane/messages.h"\n',
        "lib/kernels/sum/sum.c": '#include "lib/kernels/sum/sum_cpu.h"\n',
        "lib/kernels/sum/sum_cpu.h": '#include "lib/kernels/sum/sum.h"\n',
        "lib/kernels/sum/sum.h": "#include <stdint.h>\n",
        "bench/train/train.c": '#include "sched/planner.h"\n#include <sluice/runtime.h>\n',
    }
    bad = {
        "lib/engine/plan.c": '#include "sched/scheduler.h"\n',
        "sched/run.c": '#include "lib/engine/engine.h"\n',
        "ilp/solve.c": '#include "lib/memory/pack.h"\n',
        "lib/memory/pack.c": '#  include "lib/comm/comm.h"\n',
        "lib/base/log.c": '#include "status.h"\n',
        "lib/model/model.c": '#include "lib/engine/engine.h"\n',
        "plugins/transport/ucx/thread.c": '#include "lib/base/log.h"\n',
        "plugins/transport/ucx/abi.c": '#include "plugins/nccl/nccl_abi.h"\n',
        "plugins/transport/nccl/record.c": '#include "plugins/nccl/record/record.h"\n',
        "include/sluice/runtime.h": '#include "lib/plan/plan.h"\n',
        "include/sluice/sluice.h": "#include <sluice/runtime.h>\n",
        "lib/engine/wire.c": '#include <sluice/plugin/transport_v1.h>\n',
        "attic/old.c": '#include "lib/base/log.h"\n',
        "sched/layout/claims.c": '#include "sched/joint/joint.h"\n',
        "sched/cellar/old.c": '#include "sched/joint/joint.h"\n',
        "bench/cli/median.c": '#include "bench/train/run.h"\n',
        "bench/train/run.c": '#include "lib/engine/engine.h"\n',
        "bench/launch/launch.c": '#include "lib/comm/comm.h"\n',
        "sched/planner/peek.c": '#include "lib/plan/json/reader.h"\n',
        "lib/engine/lanes.h": "int slc_op_count(void);\n",
        "plugins/nccl/shim/calls.h": "enum { SLC_COMM_KEY };\n",
        "plugins/nccl/record/record.h": '#include "plugins/nccl/shim/calls.h"\n',
        "lib/comm/lane/messages.c": '#include "lib/comm/lane/work.h"\n',
        "lib/plan/twin.h": "typedef enum { SLC_A } slc_reader;\n",
        "lib/plan/twice.h": "void slc_plan_twice(void);\n",
        "include/sluice/once.h": "#pragma once\n",
    }
    for path in [path for path in (*good, *bad) if path.endswith(".h")]:
        if not path.startswith("include/") and path != "lib/plan/twice.h":
            (good if path in good else bad)[path] += "#pragma once\n"
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
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    faults, files = check(root)
    print("\n".join(faults) if faults else f"include directions: {files} files, all as the house allows")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
