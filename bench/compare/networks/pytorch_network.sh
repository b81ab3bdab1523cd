#!/usr/bin/env bash
# GPT-2 124M in fp32 beside PyTorch over a real network: two ranks in network namespaces, joined by a link of a given
# rate. dp beside DDP, sdp beside FSDP2 without resharding, fsdp beside FSDP2. In the same run: what plain TCP carries,
# and a step that does not communicate, which give the bound max(compute, wire). Rounds by turns, the median of each.
# Prints a table ("!" falls short of the aim) and writes bench/results/pytorch_network.json.
#   bench/compare/networks/pytorch_network.sh [ROUNDS]      needs root (namespaces.sh)
# Environment: PYTHON=an interpreter that has torch (else a virtual environment is made for the run and thrown away),
# SLUICE=the command, RATES, PAIRS=OURS:THEIRS..., where OURS is STRATEGY, with "+split" behind it for --tied split, with
# @BUDGET behind that (sdp, sdp+split, auto@1400MiB, auto+split@1400MiB), OPTIONS=more options of `sluice train`, SIZE,
# BATCH, CONTEXT, STEPS, BURST, OUT.
set -euo pipefail
cd "$(dirname "$0")/../../.."
source bench/compare/peers/need_program.sh
source bench/compare/peers/pytorch_environment.sh
source bench/compare/peers/progress.sh
source bench/compare/peers/over_link.sh
rounds=${1:-3}
export SLUICE=${SLUICE:-build/release/bench/sluice}
read -ra rates <<<"${RATES:-1gbit 4gbit}"
read -ra pairs <<<"${PAIRS:-dp:ddp sdp:fsdp2_keep fsdp:fsdp2}"
read -ra options <<<"${OPTIONS:-}"
shape=(--size "${SIZE:-small}" --batch "${BATCH:-4}" --context "${CONTEXT:-64}" --steps "${STEPS:-5}" --threads 1)
train=("${shape[@]}" --eval-batches 0 "${options[@]}")
burst=${BURST:-128kb}
out=${OUT:-bench/results/pytorch_network.json}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1

by_itself=(env -u RANK -u WORLD_SIZE -u LOCAL_RANK -u LOCAL_WORLD_SIZE -u MASTER_ADDR -u MASTER_PORT)

goodput() {
    on_two_hosts "$python" bench/compare/peers/tcp_goodput.py
    cp "$work/output" "$work/$rate/$round.tcp.goodput.json"
}

ours() { # STRATEGY[+split][@BUDGET]
    local result=$work/$rate/$round.sluice.$1.json strategy=${1%@*} how=()
    [[ $1 != *@* ]] || how+=(--budget "${1#*@}")
    [[ $strategy != *+split ]] || how+=(--tied split)
    how+=(--strategy "${strategy%+split}")
    on_two_hosts "$SLUICE" train "${train[@]}" "${how[@]}" --json "$result"
}

ours_alone() { # both ranks train, each by itself: what communication cannot hide behind
    # shellcheck disable=SC2016 # $RANK is that of each rank
    on_two_hosts bash -c 'exec "$@" --json "$0-$RANK.sluice.alone.json"' "$work/$rate/$round" "${by_itself[@]}" \
        "$SLUICE" train -n 1 --strategy dp "${train[@]}"
}

theirs() { # MODE: once a round, however many of ours stand beside it
    local prefix=()
    [ ! -e "$work/$rate/$round.pytorch.$1.json" ] || return 0
    [ "$1" != alone ] || prefix=("${by_itself[@]}")
    on_two_hosts "${prefix[@]}" "$python" bench/compare/peers/pytorch_gpt2.py --mode "$1" "${shape[@]}"
    grep '^{' "$work/output" >"$work/$rate/$round.pytorch.$1.json"
}

need_program "$SLUICE"
bench/compare/networks/namespaces.sh -n 2 -- true
find_pytorch "$work"
for round in $(seq "$rounds"); do
    for rate in "${rates[@]}"; do
        mkdir -p "$work/$rate"
        progress "round $round of $rounds, $rate: plain TCP"
        goodput
        progress "round $round of $rounds, $rate: without communication"
        ours_alone
        theirs alone
        for pair in "${pairs[@]}"; do
            progress "round $round of $rounds, $rate: ${pair%:*}"
            ours "${pair%:*}"
            progress "round $round of $rounds, $rate: PyTorch ${pair#*:}"
            theirs "${pair#*:}"
        done
    done
done
progress ''
"$python" bench/compare/peers/pytorch_network_table.py "$work" "$out" "$burst" "${rates[@]}" -- "${pairs[@]}"
