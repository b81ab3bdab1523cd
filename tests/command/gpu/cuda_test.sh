#!/usr/bin/env bash
# `--device cuda` trains as the host does, on a GPU or on the emulated one: the same losses, the same bits whatever the
# order in which a GPU does things, checkpoints that go from one to the other, profiles and timelines with times in them.
# Recipes go with it: layers that steps leave out, lengths and batches that grow, stochastic depth, observations.
# Labels: sanitized
. "$(dirname "$0")/../../support/command_check.sh"
. "$(dirname "$0")/../../support/short_recipes.sh"
need_command train
export SLUICE_EMULATED_GUARD=1
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"

run() { # COMMAND OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 200 "$sluice" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

data=(--data "$work/text" --context 32)

train() { # DEVICE OPTION...: as run; JSON in $work/DEVICE.json
    local device=$1
    shift
    run train --device "$device" "${data[@]}" --batch 2 --eval-batches 1 --steps 4 --schedule one_ahead "$@" \
        --json "$work/$device.json"
}

hash_of() { # FILE
    grep -o '"weights_sha256": "[0-9a-f]*"' "$1"
}

share= # of dp's memory: the budget of each device; empty: none
budget_of() { # DEVICE OPTION...: writes that budget in bytes, or a word that is refused if dp does not train
    rm -f "$work/$1.json"
    train "$@" --strategy dp --steps 1
    share_of_dp "$share" "$work/$1.json" 2>>"$work/err" || echo unknown
}

train_within() { # DEVICE OPTION...: as train, within that budget
    local budget=()
    [ -z "$share" ] || budget=(--budget "$(budget_of "$@")")
    train "$@" "${budget[@]}"
}

alike() { # NAME OPTION...: both devices' losses agree to 1e-4, with bf16 to 1e-2
    local name=$1 most=1e-4
    shift
    case " $* " in *' bf16 '*) most=1e-2 ;; esac
    train_within cpu "$@"
    check "$name on the host" 0 $code
    train_within cuda "$@"
    check "$name on cuda" 0 $code
    check "$name: losses and peak" yes "$(python3 - "$work/cpu.json" "$work/cuda.json" $most <<'PY' 2>"$work/err"
import json, sys
host, cuda = [json.load(open(path))["runs"][0] for path in sys.argv[1:3]]
most = float(sys.argv[3])
apart = [abs(a - b) / abs(a) for a, b in zip(host["losses"], cuda["losses"])]
good = len(host["losses"]) == len(cuda["losses"]) == 4 and max(apart) <= most and apart[0] <= most / 100
good = good and abs(host["evaluation_loss"] - cuda["evaluation_loss"]) <= most * host["evaluation_loss"]
print("yes" if good and cuda["peak_bytes"] == cuda["planned_bytes"] else "no: %s" % apart)
PY
)"
}

settings() {
    alike bf16 --precision bf16 --clip 1 "${drops[@]}"
    alike 'fsdp with all recipes' --strategy fsdp --dropout 0.1 --drop-path 0.3 --accumulate each "${drops[@]}" "${grow[@]}"
    [ $whole = yes ] || return
    share=.9 alike 'folded sequences' --curriculum '8@2,32' --curriculum-batch tokens
    alike clipping --clip 0.5
    alike LAMB --optimizer lamb --nan skip
    share=.85 alike 'a budget' --schedule "$(default_schedule)"
    alike 'tensors cut small' --block 4096 --schedule priority --strategy sdp
    alike recomputing --recompute all --strategy sdp --schedule greedy
    alike BERT --model bert
    alike 'BERT with norms before' --model bert --norm before "${drops[@]}" "${grow[@]}"
    data=() # images come with scikit-learn
    alike ViT --model vit "${drops[@]}" --drop-path 0.2
    alike BEiT --model beit --positions shared "${drops[@]}" --micro-batches 2
    data=(--data "$work/text" --context 32)
    observed
}

observed() { # what the papers look at, of the same run on both devices
    local device
    for device in cpu cuda; do
        rm -rf "$work/log.$device"
        train $device "${drops[@]}" --observe 2 --log "$work/log.$device"
        check "observed on $device" 0 $code
    done
    check 'observations of both devices' yes "$(python3 - "$work/log.cpu/observed.csv" "$work/log.cuda/observed.csv" <<'PY' 2>"$work/err"
import csv, sys
host, cuda = (list(csv.DictReader(open(path))) for path in sys.argv[1:])
same = len(host) == len(cuda) == 12
for a, b in zip(host, cuda):
    for key in a:
        if a[key] != b[key]: same = same and abs(float(a[key]) - float(b[key])) <= 1e-3 * abs(float(a[key]))
print("yes" if same else "no")
PY
)"
}

# SLUICE_TEST_SEED changes the seeds of the emulated GPU's orders. If tests are scaled down, under sanitizers,
# tests.models_cuda_test has the models that are left out here.
RANDOM=${SLUICE_TEST_SEED:-1}
whole=$(awk -v scale="${SLUICE_TEST_SCALE:-1}" 'BEGIN { print (scale >= 0.5 ? "yes" : "no") }')
seeds=2
[ $whole = no ] || seeds=8

same_bits() { # OPTION...: several seeds give the same weights after 8 steps
    local hashes='' seed
    for _ in $(seq "$seeds"); do
        seed=$((RANDOM * 32768 + RANDOM))
        SLUICE_EMULATED_SEED=$seed train cuda --steps 8 "$@"
        check "$* with seed $seed" 0 $code
        echo "seed $seed: $(hash_of "$work/cuda.json")"
        hashes+=$(hash_of "$work/cuda.json")$'\n'
    done
    check "$*: all seeds give the same weights" 1 "$(printf '%s' "$hashes" | sort -u | wc -l)"
}

orders() { # other orders of threads, blocks and streams change no bit
    [ "$("$sluice" info | grep -c 'cuda (emulated)')" != 0 ] || return
    same_bits --strategy fsdp --clip 1 --dropout 0.1 --drop-path 0.3 "${drops[@]}"
    [ $whole = yes ] || return
    same_bits --model bert --norm before "${drops[@]}" "${grow[@]}"
    data=() # images come with scikit-learn
    same_bits --model vit "${drops[@]}"
    same_bits --model beit "${drops[@]}"
    data=(--data "$work/text" --context 32)
}

checkpoints() { # host to cuda to host: the same bits, and either goes on from them
    train cpu --save "$work/first"
    check 'a checkpoint of the host' 0 $code
    train cuda --resume "$work/first" --steps 5 --save "$work/second"
    check 'cuda goes on' 0 $code
    train cpu --resume "$work/second" --steps 6 --save "$work/third"
    check 'the host goes on' 0 $code
    train cuda --resume "$work/third" --steps 7
    check 'and cuda again' 0 $code
}

tools() {
    run profile --device cuda --steps 3 --batch 2 --context 32 --data "$work/text" -o "$work/profile.json"
    check 'a profile' 0 $code
    check 'slots take time' yes "$(python3 - "$work/profile.json" <<'PY' 2>"$work/err"
import json, sys
profile = json.load(open(sys.argv[1]))
def numbers(of, name):
    if isinstance(of, dict):
        for key, value in of.items():
            if key == name: yield value
            else: yield from numbers(value, name)
    elif isinstance(of, list):
        for value in of: yield from numbers(value, name)
times = list(numbers(profile, "forward_s")) + list(numbers(profile, "backward_s"))
print("yes" if times and all(0 < t < 60 for t in times) else "no: %s" % times)
PY
)"
    [ $whole = yes ] || return
    train cuda --trace "$work/timeline.json" --strategy fsdp --schedule one_ahead
    check 'a timeline' 0 $code
    check 'everything in it has a beginning and takes time' yes "$(python3 - "$work/timeline.json" <<'PY' 2>"$work/err"
import json, sys
events = json.load(open(sys.argv[1]))
events = [e for e in (events["traceEvents"] if isinstance(events, dict) else events) if e.get("ph") == "X"]
bad = [e for e in events if not (e["ts"] >= 0 and e["dur"] >= 0)]
print("yes" if len(events) > 20 and not bad else "no: %d %s" % (len(events), bad[:2]))
PY
)"
    run bench --device cuda --budget 100%,70% --steps 3 --batch 2 --context 32 --data "$work/text" --output "$work/sweep"
    check 'a sweep' 0 $code
}

refusals() {
    SLUICE_COMM_TRANSPORT=ucx run train -n 2 --device cuda --data "$work/text" --steps 2
    check 'two ranks by ucx are refused' yes \
        "$(grep -q 'device "cuda": 2 ranks with memory of GPUs need a transport with collectives there' "$work/err" && echo yes)"
    train cuda --lr 1e6 --steps 10 --precision bf16
    check 'a gradient that is not finite stops it' yes \
        "$([ $code != 0 ] && grep -q 'holds NaN or infinity' "$work/err" && echo yes)"
}

run train --device cuda --steps 1 --batch 1 --context 8 --data "$work/text"
case $(cat "$work/err") in
*'is not in this build'* | *'not built in'* | *'no GPU on this machine'*)
    check 'without a GPU' yes "$([ $code != 0 ] && echo yes)"
    skip "training on cuda: $(tail -n 1 "$work/err")"
    [ $failed = 0 ] && exit 77
    exit 1
    ;;
esac
check 'it trains' 0 $code
settings
orders
checkpoints
tools
refusals
[ $failed = 0 ] && echo "--device cuda: all as promised"
exit $failed
