# shellcheck shell=bash
# Tests of `sluice train --device cuda` with several ranks source this file after command_check.sh: a rank has an emulated
# GPU of its own, and they reach each other by the small NCCL of tests. It gives gpus and hosts, which train with the
# options of the array `common` before their own, and comparisons of what they report.
# shellcheck disable=SC2034,SC2154 # code is used by those who source it; sluice and work come from command_check.sh
need_command train
gpu=$("$sluice" info 2>"$work/err" | sed -n 's/^gpu *//p')
check 'sluice info has a line of the GPU' yes "$([ -n "$gpu" ] && echo yes)"
[ $failed = 0 ] || exit 1
nccl=${sluice%/bench/*}/tests/nccl/bed/hostnccl/emulated/libnccl.so.2
if [ ! -e "$nccl" ]; then
    skip "several GPUs: this build has no small NCCL over an emulated GPU"
    exit 77
fi
export SLUICE_COMM_NCCL=$nccl SLUICE_EMULATED_LOADED=2
RANDOM=${SLUICE_TEST_SEED:-1}
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"
common=(--batch 2 --eval-batches 1 --steps 4 --schedule one_ahead)
data=(--data "$work/text" --context 32)

# RANKS OPTION...: JSON in $work/cuda.json, output in $work/out and $work/err, exit code in $code
gpus() {
    local ranks=$1
    shift
    timeout 200 "$sluice" train -n "$ranks" --device cuda "${data[@]}" "${common[@]}" "$@" --json "$work/cuda.json" \
        >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

# RANKS OPTION...: as gpus, with a drawn seed for each rank's GPU, and ranks that begin at drawn times.
skewed_gpus() {
    local ranks=$1 seed=$((RANDOM * 32768 + RANDOM))
    shift
    echo "seed $seed"
    SEED=$seed timeout 200 "$sluice" run -n "$ranks" -- bash -c '
        sleep "0.$(((SEED >> LOCAL_RANK) % 4))"
        SLUICE_EMULATED_SEED=$((SEED + LOCAL_RANK)) exec "$@"' _ \
        "$sluice" train --device cuda "${data[@]}" "${common[@]}" "$@" --json "$work/cuda.json" \
        >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

hosts() { # RANKS OPTION...: the same on the host; JSON in $work/cpu.json
    local ranks=$1
    shift
    timeout 200 "$sluice" train -n "$ranks" "${data[@]}" "${common[@]}" "$@" --json "$work/cpu.json" \
        >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

hash_of() { # FILE
    grep -o '"weights_sha256": "[0-9a-f]*"' "$1"
}

# WHAT MOST: the losses of $work/cuda.json and $work/cpu.json are at most so far apart, and the peak is what was planned
losses_agree() {
    check "$1: losses and peak" yes "$(python3 - "$work/cpu.json" "$work/cuda.json" "$2" <<'PY' 2>"$work/err"
import json, sys
host, cuda = [json.load(open(path))["runs"][0] for path in sys.argv[1:3]]
most = float(sys.argv[3])
apart = [abs(a - b) / abs(a) for a, b in zip(host["losses"], cuda["losses"])]
good = len(host["losses"]) == len(cuda["losses"]) > 0 and max(apart) <= most
good = good and abs(host["evaluation_loss"] - cuda["evaluation_loss"]) <= most * host["evaluation_loss"]
good = good and cuda["peak_bytes"] == cuda["planned_bytes"] and cuda["world"] == host["world"]
good = good and cuda["path"] == "device" and cuda["transport"].startswith("nccl") and cuda["device"].startswith("cuda")
print("yes" if good else "no: %s, peak %s, planned %s, path %s, transport %s"
      % (apart, cuda["peak_bytes"], cuda["planned_bytes"], cuda["path"], cuda["transport"]))
PY
)"
}

# WHAT FILE SUMS: the report has this kind of sums
reports_sums() {
    check "$1: the report says how sums are made" "\"sums\": \"$3\"" "$(grep -o '"sums": "[a-z]*"' "$2" | sort -u)"
}

# Ranks, precision, the most that losses may be apart, OPTION...: every strategy gives the same weights to the bit, and
# dp the host's losses. The strategies are those of the array `strategies`.
strategies=(dp oss sdp fsdp mixed)
equal_strategies() {
    local ranks=$1 precision=$2 most=$3 strategy first='' options=()
    shift 3
    local what="$ranks ranks, $precision, $*"
    hosts "$ranks" --strategy dp --precision "$precision" "$@"
    check "$what, on the host" 0 $code
    for strategy in "${strategies[@]}"; do
        options=()
        [ "$strategy" != mixed ] || options=(--budget 80%)
        gpus "$ranks" --strategy "$strategy" --precision "$precision" "${options[@]}" "$@"
        check "$what, $strategy" 0 $code
        losses_agree "$what, $strategy" "$most"
        reports_sums "$what, $strategy" "$work/cuda.json" ordered
        [ -n "$first" ] || first=$(hash_of "$work/cuda.json")
        check "$what: weights under $strategy are those under ${strategies[0]}" "$first" "$(hash_of "$work/cuda.json")"
    done
}

# OPTION...: a recipe gives the host's losses under each of the array `strategies`, and the same weights to the bit, though
# every run has orders and delays of its own.
follows_recipe() {
    local strategy first=''
    hosts 2 --strategy "${strategies[0]}" "$@"
    check "$*, on the host" 0 $code
    for strategy in "${strategies[@]}"; do
        skewed_gpus 2 --strategy "$strategy" "$@"
        check "$*, $strategy" 0 $code
        losses_agree "$*, $strategy" 1e-4
        [ -n "$first" ] || first=$(hash_of "$work/cuda.json")
        check "$*: weights under $strategy are those under ${strategies[0]}" "$first" "$(hash_of "$work/cuda.json")"
    done
}

# OPTION...: as follows_recipe, with documents of unequal lengths.
follows_documents() {
    local kept=("${data[@]}")
    documents "$work/documents.jsonl"
    data=(--data "$work/documents.jsonl" --sequences documents --context 32)
    follows_recipe "$@"
    data=("${kept[@]}")
}
