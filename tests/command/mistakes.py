"""Makes mistakes, one after the other, and looks at what `sluice` says: mistakes.py SLUICE FOLDER [PATTERN].

A mistake is a row: a command line, the exit code from docs/errors.md, and words that the message must have, which
together say what, where and what to do. Checked of each: the exit code; one message, and one line of the launcher at
most; no name of something internal; nothing on standard output; no file and no process is left. PATTERN: only rows whose
command line has it."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

from data_mistakes import DATA_MISTAKES, prepare_data

SLUICE, WORK = sys.argv[1], sys.argv[2]
PATTERN = sys.argv[3] if len(sys.argv) > 3 else ""
MARK = f"SLUICE_LOG_LEVEL=warn{os.getpid()}"  # in the environment of all that a mistake starts
SHORT = "--data text --context 32 --batch 2 --eval-batches 1 --schedule one_ahead --steps 3"
FREE = SHORT.replace(" --schedule one_ahead", "")  # where a plan says the schedule

# ---- The list: command line, exit code, words; `S` is the path of sluice ----

MISTAKES = [
    # Commands and options
    ("S", 2, ["Usage: sluice COMMAND"], {"usage": True}),
    ("S trian", 2, ['no command "trian"', 'did you mean "train"']),
    ("S help plam", 2, ['no command "plam"', 'did you mean "plan"']),
    ("S train --stpes 3", 2, ['no option "--stpes"', "did you mean --steps", "lists the options"]),
    ("S train --steps", 2, ["--steps", "requires an argument"]),
    ("S train -x", 2, ["x"]),
    ("S train book.txt", 2, ["book.txt"]),
    ("S perf --op all_recude", 2, ["--op all_recude", "all_reduce"]),
    ("S info now", 2, ['"now"', "follows no option"]),
    ("S trace --profile profile.json --plan plan.json", 2, ["-o FILE", "--picture FILE"]),
    ("S eval --weights weights", 2, ["--inputs"]),
    ("S plan", 2, ["--profile", "sluice profile"]),
    ("S run -n 2", 2, ["say what to run"]),
    ("S run -- true", 2, ["how many ranks", "-n N"]),
    # Values
    ("S train --steps 0", 2, ["--steps 0", "from 1"]),
    ("S train --steps 1.5", 2, ["--steps 1.5", "whole number"]),
    ("S train --steps -3", 2, ["--steps -3", "from 1"]),
    ("S train --lr fast", 2, ["--lr fast", "number from 0"]),
    ("S train --lr nan", 2, ["--lr nan", "number from 0"]),
    ("S train --dropout 1", 2, ["--dropout 1", "0.99"]),
    ("S train --model gtp2", 2, ["--model gtp2", "gpt2"]),
    ("S train --size huge", 2, ["huge", "nano"]),
    ("S train --model vit --size medium", 2, ["medium", "nano"]),
    ("S train --head words", 2, ["--head words", "tokens,classes"]),
    ("S train --context 100000", 2, ["--context 100000", "context of"]),
    ("S train --model vit --context 64", 2, ["--context 64", "images"]),
    ("S train --precision fp8", 2, ["--precision fp8", "bf16"]),
    ("S train --precision fp16", 2, ["--precision fp16", "not built"]),
    ("S train --device tpu", 2, ["--device tpu", "cpu"]),
    ("S train --schedule soon", 2, ["--schedule soon", "one_ahead"]),
    ("S train --recompute some", 2, ["--recompute some", "auto,none,all"]),
    ("S train --optimizer lion", 2, ["--optimizer lion", "adamw"]),
    ("S train --optimizer sgd --beta1 0.5", 2, ["--beta1", "sgd has no beta1"]),
    ("S train --nesterov", 2, ["--nesterov", "adamw has no nesterov", "--optimizer sgd"]),
    ("S train --nan ignore", 2, ["--nan ignore", "stop,skip"]),
    ("S train --save-every 5", 2, ["--save-every", "--save"]),
    ("S train --freeze-step 5", 2, ["--freeze-step"]),
    ("S train --onebit colour=red --optimizer onebit_adam", 2, ["colour"]),
    ("S train --layer-precision h.99=bf16 " + SHORT, 2, ["h.99"]),
    ("S train --layer-precision h.0=fp8 " + SHORT, 2, ["fp8"]),
    ("S train -n 0", 2, ["--ranks 0", "from 1"]),
    ("S train -n 5000", 2, ["--ranks 5000", "4095"]),
    ("S train --timeout -1", 2, ["--timeout -1", "from 0"]),
    ("S run -n 0 -- true", 2, ["--ranks 0", "from 1"]),
    ("S run -n 2 --port 99999 -- true", 2, ["--port", "65535"]),
    ("S run -n 2 --limit soon -- true", 2, ["--limit", "soon"]),
    ("S perf -b 4M -e 64K", 2, ["-b", "-e"]),
    ("S perf -n 0", 2, ["--iters 0", "from 1"]),
    ("S perf --path pigeon", 2, ["--path pigeon", "messages"]),
    ("S bench --repeat 0", 2, ["--repeat 0", "from 1"]),
    ("S nccl --stall never", 2, ["--stall"]),
    ("S nccl --watch --timeline x.json", 2, ["--timeline", "--watch"]),
    # Schedules of the learning rate, and other settings of training
    ("S train --lr-schedule sine", 2, ["--lr-schedule sine", "cosine"]),
    ("S train --lr-schedule cosine --lr-min -1", 2, ["--lr-min -1", "from 0"]),
    ("S train --lr-schedule cosine --lr 0.1 --lr-min 0.5", 2, ["--lr-min 0.5", "--lr 0.1"]),
    ("S train --lr-min 0.0001", 2, ["--lr-min", "--lr-schedule"]),
    ("S train --weight-decay -1", 2, ["--weight-decay -1", "from 0"]),
    ("S train --beta1 1.5", 2, ["--beta1 1.5", "from 0"]),
    ("S train --epsilon 0", 2, ["--epsilon 0", "from 1e-30"]),
    ("S train --label-smoothing 1", 2, ["--label-smoothing 1", "from 0"]),
    # Text that is made
    ("S generate --weights weights", 2, ["--prompt"]),
    ("S generate --weights weights --prompt ''", 2, ["prompt is empty"]),
    ("S generate --weights weights --prompt a --tokens 0", 2, ["--tokens", "from 1"]),
    ("S generate --weights weights --prompt a --temperature -1", 2, ["--temperature", "from 0"]),
    ("S generate --weights weights --prompt a --tokens 100000", 2, ["--tokens 100000", "context is"]),
    ("S generate --weights weights a prompt", 2, ['"a"', "--prompt"]),
    ("S generate --weights weights --prompt-tokens 1 --json nowhere/a", 2, ["--json", "nowhere/a", "No such file"]),
    ("S generate --weights weights --prompt-file nowhere", 2, ["--prompt-file", "nowhere", "No such file"]),
    ("S generate --weights weights --prompt a --budget 1KiB", 2, ["1024 bytes", "--budget"]),
    ("S generate --weights weights --prompt a -n 2", 2, ["-n 2", "leave -n out"]),
    # Estimates
    ("S estimate --json nowhere/a", 2, ["--json", "nowhere/a", "No such file"]),
    ("S estimate --plan-out nowhere/a", 2, ["--plan-out", "nowhere/a", "No such file"]),
    ("S estimate --weights nowhere --ranks 2", 2, ["--weights", "nowhere", "No such file"]),
    ("S estimate --model gpt2 --size huge --ranks 2", 2, ["huge", "nano"]),
    ("S estimate --model gpt2 --size small --ranks 0", 2, ["--ranks 0", "from 1"]),
    ("S estimate --model gpt2 --size small --budget lots", 2, ["--budget", "lots"]),
    # Budgets and throttles
    ("S train --budget lots", 2, ["--budget", "lots", "900MiB"]),
    ("S train --budget 0", 2, ["--budget", "0"]),
    ("S train --budget -5MiB", 2, ["--budget", "-5MiB"]),
    ("S train --budget 64KiB " + SHORT, 2, ["65536 bytes", "--budget", "the smallest that works", "largest"]),
    ("S train -n 2 --budget 64KiB " + SHORT, 2, ["65536 bytes", "--budget", "the smallest that works"]),
    ("S train -n 2 --strategy dp --budget 60% " + SHORT, 2, ["60% of the least that dp works in", "--budget"]),
    ("S plan --profile profile.json --budget 1MiB", 2, ["1048576 bytes", "--budget"]),
    ("S plan --profile profile.json --budget lots", 2, ["--budget", "lots"]),
    ("S train --throttle 12parsec", 2, ["--throttle", "12parsec", "1gbit"]),
    ("S train --throttle 1gbit,soon", 2, ["--throttle", "soon", "is not a time"]),
    ("S perf --throttle 12parsec", 2, ["--throttle", "12parsec"]),
    # Data, weights, checkpoints
    ("S train --data nowhere.txt", 2, ["--data", "nowhere.txt", "No such file", "name a"]),
    ("S train -n 3 --data nowhere.txt", 2, ["--data", "nowhere.txt", "No such file", "name a"]),
    ("S train --data empty", 2, ["empty", "text"]),
    ("S train --data short", 2, ["short", "too short", "shorter context"]),
    ("S train -n 3 --data short", 2, ["short", "too short", "shorter context"]),
    ("S train --data hollow", 2, ["hollow"]),
    ("S train --data text/below", 2, ["text/below", "Not a directory"]),
    ("S train --model vit --data text", 2, ["text"]),
    ("S train -n 2 --model vit --data text", 2, ["text"]),
    ("S train --weights nowhere", 2, ["--weights", "nowhere", "No such file"]),
    ("S train -n 2 --weights nowhere", 2, ["--weights", "nowhere", "No such file"]),
    ("S train --weights hollow", 2, ["--weights", "hollow/config.json"]),
    ("S train --weights text", 2, ["--weights", "text"]),
    ("S train --weights weights --model bert", 2, ["--model bert", "weights", "gpt2"]),
    ("S train --weights weights --size mini", 2, ["--size mini", "leave --size out"]),
    ("S train --weights broken_config", 2, ["--weights", "broken_config/config.json"]),
    ("S train --weights cut_weights " + SHORT, 2, ["cut_weights/model.safetensors"]),
    ("S train -n 2 --weights cut_weights " + SHORT, 2, ["cut_weights/model.safetensors"]),
    ("S eval --weights weights text", 2, ['"text"', "--data"]),
    ("S eval --weights weights --data text --json nowhere/a", 2, ["--json", "nowhere/a", "No such file"]),
    ("S eval --weights nowhere --inputs text", 2, ["nowhere", "No such file"]),
    ("S eval --weights weights --inputs nowhere", 2, ["nowhere", "No such file"]),
    ("S eval --weights weights --inputs text", 2, ["text"]),
    ("S train --resume nowhere " + SHORT, 2, ["--resume", "nowhere"]),
    ("S train -n 2 --resume hollow " + SHORT, 2, ["--resume", "no checkpoint in hollow"]),
    ("S train --resume text " + SHORT, 2, ["--resume", "text"]),
    ("S train --resume run " + SHORT + " --model bert", 2, ["--model", "bert", "gpt2"]),
    ("S train --save run " + SHORT, 2, ["--save run", "another run", "--resume run"]),
    ("S train -n 2 --save text/below " + SHORT, 2, ["--save", "text/below", "Not a directory"]),
    ("S train --save-weights text " + SHORT, 2, ["--save-weights text"]),
    ("S train --resume cut_run " + SHORT, 2, ["cut_run/step-000003"]),
    ("S train -n 2 --resume cut_run " + SHORT, 2, ["cut_run/step-000003"]),
    ("S train --model vit --data hollow", 2, ["hollow", "folders"]),
    ("S train --data weights/model.safetensors", 2, ["holds no text", "safetensors"]),
    ("S eval --weights weights --data nowhere", 2, ["nowhere", "No such file"]),
    ("S eval --weights weights --data empty", 2, ["empty"]),
    ("S train --plan nowhere.json " + FREE, 2, ["--plan nowhere.json", "No such file", "--plan-out"]),
    ("S train --plan . " + FREE, 2, ["--plan", "not a regular file"]),
    ("S train --plan text " + FREE, 2, ["plan text"]),
    ("S train -n 2 --plan plan.json " + FREE, 2, ["plan plan.json", "made for"]),
    # Outputs
    ("S train --plan-out nowhere/p.json", 2, ["--plan-out", "nowhere/p.json", "No such file"]),
    ("S train --json nowhere/a.json", 2, ["--json", "cannot write nowhere/a.json", "No such file"]),
    ("S train -n 3 --csv nowhere/a.csv", 2, ["--csv", "cannot write nowhere/a.csv", "No such file"]),
    ("S train --trace hollow", 2, ["--trace", "cannot write hollow", "Is a directory"]),
    ("S train -n 2 --json /dev/full " + SHORT, 1, ["/dev/full", "No space left"], {"output": True}),
    ("S train --csv /dev/full " + SHORT, 1, ["/dev/full", "No space left"], {"output": True}),
    ("S perf --ranks 2 --json nowhere/a.json", 2, ["nowhere/a.json", "No such file"]),
    ("S perf --ranks 2 -b 64K -e 64K --json /dev/full", 1, ["/dev/full", "No space left"], {"output": True}),
    ("S profile -n 2 -o nowhere/p.json", 2, ["nowhere/p.json", "No such file"]),
    ("S profile --made gpt2-small --cluster 2xcpu-1gbit -o nowhere/p.json", 2, ["nowhere/p.json", "No such file"]),
    ("S plan --profile profile.json -o nowhere/p.json", 2, ["nowhere/p.json", "No such file"], {"output": True}),
    ("S plan --profile profile.json -o /dev/full", 1, ["/dev/full", "No space left"], {"output": True}),
    ("S sim --profile profile.json --plan plan.json --json nowhere/a", 2, ["nowhere/a", "No such file"], {"output": True}),
    # Profiles and plans
    ("S plan --profile nowhere.json", 2, ["nowhere.json", "No such file"]),
    ("S plan --profile text", 2, ["text"]),
    ("S plan --profile hollow", 2, ["hollow"]),
    ("S plan --profile /dev/zero", 2, ["/dev/zero", "regular file"]),
    ("S plan --profile newer.json", 2, ["newer.json", "version", "99"]),
    ("S plan --profile profile.json --world 0", 2, ["--world", "from 1"]),
    ("S plan --profile profile.json --strategy nonsense", 2, ["nonsense", "auto, dp"]),
    ("S plan --profile profile.json --schedule nonsense", 2, ["nonsense", "ilp"]),
    ("S plan --profile profile.json --recompute some", 2, ["--recompute some", "auto"]),
    ("S plan --profile profile.json --time-limit 0", 2, ["--time-limit"]),
    ("S plan --profile profile.json --effort 0", 2, ["--effort"]),
    ("S check --profile profile.json --plan nowhere.json", 2, ["nowhere.json", "No such file"]),
    ("S check --profile profile.json --plan broken.json", 2, ["broken.json"]),
    ("S check --profile profile.json --plan profile.json", 2, ["profile.json"]),
    ("S sim --profile profile.json --plan plan.json --world 8", 2, ["world", "2", "8"]),
    ("S trace --profile profile.json --plan plan.json --picture a.gif", 2, ["--picture a.gif", ".svg"]),
    ("S profile --made gpt9 --cluster 2xcpu-1gbit -o x.json", 2, ["gpt9", "gpt2"]),
    ("S profile --made gpt2-small -o x.json", 2, ["--made", "--cluster"]),
    ("S profile --made gpt2-small --cluster heap -o x.json", 2, ["heap", "x"]),
    ("S nccl nowhere", 2, ["nowhere has no records", "SLUICE_SHIM_KEEP=1"]),
    ("S nccl text", 2, ["text"]),
    # Sweeps are looked at as a whole before the first run
    ("S bench -n 2 --strategy dp,dpp --output sweep", 2, ["--strategy dpp", "fsdp"]),
    ("S bench -n 2 --schedule serial,soon --output sweep", 2, ["--schedule soon", "one_ahead"]),
    ("S bench -n 2 --budget none,lots --output sweep", 2, ["--budget", "lots"]),
    ("S bench -n 2 --throttle none,12parsec --output sweep", 2, ["--throttle", "12parsec"]),
    ("S bench -n 2 --optimizer adamw,lion --output sweep", 2, ["--optimizer lion", "lamb"]),
    ("S bench -n 2 --optimizer adamw,lamb --momentum 0.5 --output sweep", 2, ["--momentum", "--optimizer sgd"]),
    ("S bench -n 2 --data nowhere.txt --output sweep", 2, ["--data", "nowhere.txt"]),
    ("S bench -n 2 --json nowhere/a.json --output sweep", 2, ["--json", "nowhere/a.json"]),
    ("S bench -n 2 --output text", 2, ["--output", "text", "Not a directory"]),
    # The environment
    ("S train " + SHORT, 2, ["SLUICE_COMM_DIRECT=perhaps", "on or off"], {"env": {"SLUICE_COMM_DIRECT": "perhaps"}}),
    ("S train -n 2 " + SHORT, 2, ["SLUICE_COMM_DEPTH=deep", "whole number"], {"env": {"SLUICE_COMM_DEPTH": "deep"}}),
    ("S train -n 2 " + SHORT, 2, ["SLUICE_COMM_DEPTH=99", "from 2 to 16"], {"env": {"SLUICE_COMM_DEPTH": "99"}}),
    ("S perf --ranks 2", 2, ["SLUICE_COMM_SPIN_US=x", "whole number"], {"env": {"SLUICE_COMM_SPIN_US": "x"}}),
    ("S run -n 3 -- S info", 2, ["SLUICE_COMM_SPIN_US=x", "whole number"], {"env": {"SLUICE_COMM_SPIN_US": "x"}}),
    ("S train -n 2 " + SHORT, 2, ["transport pigeon", "SLUICE_TRANSPORT_PATH"],
     {"env": {"SLUICE_COMM_TRANSPORT": "pigeon", "SLUICE_COMM_DIRECT": "off"}}),
    ("S train -n 2 " + SHORT, 2, ["SLUICE_ENGINE_CHECK=maybe", "on or off"], {"env": {"SLUICE_ENGINE_CHECK": "maybe"}}),
    ("S train " + SHORT, 2, ["RANK", "WORLD_SIZE"], {"env": {"RANK": "0"}}),
    ("S train " + SHORT, 2, ["RANK", "5"], {"env": {"RANK": "5", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}}),
    ("S train " + SHORT, 2, ["MASTER_PORT", "99999"],
     {"env": {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "99999"}}),
    ("S train " + SHORT, 1, ["1 of 2 ranks did not join", "missing: 1"],
     {"env": {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "SLUICE_COMM_JOIN_TIMEOUT": "1",
              "SLUICE_JOB_TOKEN": "mistakes"}}),
    # Under a launcher that is not the command's own
    ("S run -n 3 -- S train --lr fast", 2, ["--lr fast", "number from 0"]),
    ("S run -n 3 -- S trian", 2, ['no command "trian"', 'did you mean "train"']),
    ("S run -n 3 -- S train --stpes 3", 2, ["--stpes", "did you mean --steps"]),
    ("S run -n 3 -- S train --head words", 2, ["--head words", "tokens,classes"]),
    ("S run -n 3 -- S train --data nowhere.txt", 2, ["nowhere.txt", "No such file"]),
    ("S run -n 3 -- S train --data short", 2, ["short", "too short"]),
    ("S run -n 3 -- S train --weights hollow", 2, ["hollow/config.json"]),
    ("S run -n 3 -- S train --resume hollow " + SHORT, 2, ["no checkpoint in hollow"]),
    ("S run -n 3 -- S train --budget 64KiB " + SHORT, 2, ["65536 bytes", "--budget"]),
    ("S run -n 3 -- S train --strategy nonsense " + SHORT, 2, ["nonsense"]),
    ("S run -n 2 -- S train -n 3 " + SHORT, 2, ["-n 3", "started 2"]),
    ("S run -n 2 -- S perf --ranks 3", 2, ["3", "started 2"]),
    ("S run -n 2 -- S eval --weights weights --inputs text", 2, ["one rank evaluates", "without a launcher"]),
    ("S run -n 2 -- S generate --weights weights --prompt a", 2, ["one rank generates", "without a launcher"]),
    ("S run -n 2 -- S bench --throttle none,1gbit", 2, ["a world has one throttle"]),
    ("S run -n 2 -- ./nobody", 127, ["cannot run ./nobody", "No such file"], {"who": "sluice run"}),
    ("S run -n 2 -- ./text", 126, ["cannot run ./text", "Permission denied"], {"who": "sluice run"}),
    # One rank alone has the mistake
    ("S run -n 3 -- sh -c 'if [ $RANK = 1 ]; then exec S train --lr fast; fi; exec S train " + SHORT + "'", 2,
     ["--lr fast", "[1]"]),
    ("S run -n 3 -- sh -c 'if [ $RANK = 2 ]; then set -- --seed 2; fi; exec S train " + SHORT + " \"$@\"'", 2,
     ["rank 2 has another --seed than rank 0"]),
    ("S run -n 3 -- sh -c 'if [ $RANK = 1 ]; then cd hollow; fi; exec S train " + SHORT + "'", 2,
     ["text", "No such file", "[1]"]),
    ("S run -n 3 -- sh -c 'if [ $RANK = 1 ]; then export SLUICE_COMM_DEPTH=8; fi; exec S train " + SHORT + "'", 2,
     ["SLUICE_COMM_DEPTH is", "rank 1"]),
    # The run itself fails
    ("S train -n 2 --lr 1e6 " + SHORT.replace("--steps 3", "--steps 40"), 1, ["NaN or infinity", "--nan skip"],
     {"output": True}),
    *DATA_MISTAKES,
]


# ---- The files that mistakes are made with ----


def run(line, env=None, limit=120):
    command = shlex.split(re.sub(r"(?<![\w./-])S(?![\w./-])", SLUICE, line))
    return subprocess.run(command, cwd=WORK, env=environment(env), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", timeout=limit)


def environment(more):
    names = ("PATH", "HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS",
             "LD_LIBRARY_PATH", "SLUICE_TRANSPORT_PATH")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    name, value = MARK.split("=")
    return {**kept, name: value, **(more or {})}


def write(name, content):
    path = os.path.join(WORK, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def read(name):
    with open(os.path.join(WORK, name), "rb") as file:
        return file.read()


def prepare():
    write("text", "".join(f"{n} bottles of water on the wall,\n" for n in range(1, 9000)))
    write("empty", "")
    prepare_data(write)
    write("short", "short\n")
    write("broken.json", '{"version": 1, "job"')
    os.mkdir(os.path.join(WORK, "hollow"))
    for line in ("S profile --made gpt2-small --cluster 2xcpu-1gbit -o profile.json",
                 "S plan --profile profile.json --strategy fsdp --schedule one_ahead -o plan.json",
                 f"S train {SHORT} --save run --save-weights weights"):
        done = run(line)
        if done.returncode:
            sys.exit(f"FAILED: {line}: {done.stderr}")
    shutil.copytree(os.path.join(WORK, "run"), os.path.join(WORK, "cut_run"))
    part = "cut_run/step-000003/rank-0000.slc"
    write(part, read(part)[:5000])
    newer = json.loads(read("profile.json"))
    newer["version"] = 99
    write("newer.json", json.dumps(newer))
    write("broken_config/config.json", '{"model_type": "gpt2", "n_layer": ')
    write("cut_weights/config.json", read("weights/config.json"))
    whole = read("weights/model.safetensors")
    write("cut_weights/model.safetensors", whole[:len(whole) // 2])


# ---- Looking at one ----

LAUNCHER = re.compile(r"^sluice run: (rank|ranks|all) ")
HINT = re.compile(r"^(\[\d+\] )?(Try `|`sluice.*` lists|information\.$)")
BESIDE = re.compile(r"^(\[\d+\] )?(sluice(\[\d+\])? warning: |step \d+/|round \d+ of |$)")
INTERNAL = re.compile(r"\bslc_|\bsluice_[a-z]|\bconfig\.(?!json)[a-z_]+|SLUICE_ERR|\.c:\d"
                      r"|^(\[\d+\] )?sluice \w+: (argument|io|format|budget|memory|mismatch|order|system|unsupported): ")


def files():
    return {os.path.join(folder, name) for folder, _, names in os.walk(WORK) for name in names}


def processes():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if MARK.encode() in file.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            continue
    return found


def left_running():
    """Returns the processes that still run; waits up to five seconds, because a killed process may take a moment to
    go."""
    for _ in range(50):
        if not processes():
            return []
        time.sleep(0.1)
    return processes()


def faults(done, code, words, more, before):
    lines = done.stderr.splitlines()
    launcher = [line for line in lines if LAUNCHER.match(line)]
    messages = [line for line in lines if not (LAUNCHER.match(line) or HINT.match(line) or BESIDE.match(line))]
    text = "\n".join(lines)
    if done.returncode != code:
        yield f"the exit code is {done.returncode}, not {code}"
    if not more.get("usage") and len(messages) != 1:
        yield f"{len(messages)} messages"
    if len(launcher) > 1:
        yield f"{len(launcher)} lines of the launcher"
    if more.get("early") and launcher:
        yield "ranks had started"
    for word in words:
        if word not in text:
            yield f'the message lacks "{word}"'
    for line in messages:
        found = INTERNAL.search(line)
        if found:
            yield f'the message names something internal: "{found.group()}"'
    if done.stdout and not more.get("output"):
        yield "something is on standard output"
    if files() != before:
        yield f"files are left: {', '.join(sorted(files() ^ before))}"
    if re.search(r"Sanitizer|runtime error", text):
        yield "a sanitizer has a finding"


def try_one(row):
    line, code, words, more = (*row, {})[:4]
    before = files()
    try:
        done = run(line, more.get("env"))
    except subprocess.TimeoutExpired:
        return ["it does not end"], ""
    found = list(faults(done, code, words, more, before))
    for path in files() - before:
        os.remove(path)
    return found, done.stderr


def interrupted(signal_number, ranks, save):
    """Stops a long run after its first steps: one line says where, the exit code is 130."""
    line = f"S train {SHORT.replace('--steps 3', '--steps 1000000')} {ranks} {'--save stopped' if save else ''}"
    command = shlex.split(line.replace("S ", SLUICE + " ", 1))
    begun = subprocess.Popen(command, cwd=WORK, env=environment({}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    said = begun.stderr.readline()
    while said and "step " not in said:
        said = begun.stderr.readline()
    begun.send_signal(signal_number)
    out, err = begun.communicate(timeout=120)
    where = [text for text in (out + err).splitlines() if "stopped at step" in text]
    if begun.returncode != 130:
        yield f"the exit code is {begun.returncode}, not 130"
    if len(where) != 1:
        yield f"{len(where)} lines say where it stopped: {where}"
    elif ("saved to stopped" if save else "not saved") not in where[0]:
        yield f"it says nothing of saving: {where[0]}"
    if re.search(r"^(\[\d+\] )?sluice train: ", err, re.M):
        yield f"an error is told: {err}"


def main():
    prepare()
    failed = tried = 0
    scale = float(os.environ.get("SLUICE_TEST_SCALE", "1"))  # builds with sanitizers try a share of them
    for i, row in enumerate(MISTAKES):
        if PATTERN not in row[0] or int(i * scale) == int((i - 1) * scale) and i:
            continue
        tried += 1
        found, err = try_one(row)
        if found:
            failed += 1
            print(f"FAILED: {row[0]} {row[3].get('env', '') if len(row) > 3 else ''}")
            print("".join(f"  {fault}\n" for fault in found) + "".join(f"  err: {x}\n" for x in err.splitlines()[:8]),
                  end="")
    for number, ranks, save in ((signal.SIGINT, "", False), (signal.SIGINT, "-n 2", True), (signal.SIGTERM, "-n 2", False)):
        if PATTERN:
            break
        tried += 1
        for fault in interrupted(number, ranks, save):
            failed += 1
            print(f"FAILED: signal {number} {ranks}: {fault}")
    if left_running():
        failed += 1
        print(f"FAILED: processes are left: {left_running()}")
    print(f"{tried} mistakes, {failed} of them answered otherwise than promised")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
