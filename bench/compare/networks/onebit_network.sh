#!/usr/bin/env bash
# Compressed optimizers over a real network: two ranks in network namespaces, joined by a link of a given rate, train
# GPT-2 124M in fp32, one thread each. A step after the freeze beside the same step without communication (both ranks
# train, each by itself), and beside AdamW under dp. Rounds by turns, the median of each. Prints a table ("!" falls
# short of the aim) and writes bench/results/onebit_network.json.
#   bench/compare/networks/onebit_network.sh [ROUNDS]      needs root (namespaces.sh) and python3
# Environment: SLUICE=the command, RATES, OPTIMIZERS, OPTIONS=more options of `sluice train`, SIZE, BATCH, CONTEXT,
# STEPS, FREEZE=the last step of the warm-up, BURST, OUT.
set -euo pipefail
cd "$(dirname "$0")/../../.."
source bench/compare/peers/need_program.sh
source bench/compare/peers/progress.sh
source bench/compare/peers/over_link.sh
rounds=${1:-3}
export SLUICE=${SLUICE:-build/release/bench/sluice}
read -ra rates <<<"${RATES:-1gbit}"
read -ra optimizers <<<"${OPTIMIZERS:-onebit_adam}"
read -ra options <<<"${OPTIONS:-}"
freeze=${FREEZE:-3} steps=${STEPS:-14} burst=${BURST:-128kb}
shape=(--size "${SIZE:-small}" --batch "${BATCH:-4}" --context "${CONTEXT:-64}" --threads 1 --eval-batches 0
    "${options[@]}")
out=${OUT:-bench/results/onebit_network.json}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1

in_namespaces() { # NAME COMMAND...: rank 0's output in $work/output
    progress "round $round of $rounds, $rate: $1"
    on_two_hosts "${@:2}"
}

train() { # NAME OPTION...
    in_namespaces "$1" "$SLUICE" train "${shape[@]}" "${@:2}" --json "$work/$rate/$round.$1.json"
}

alone() { # what communication cannot hide behind
    # shellcheck disable=SC2016 # $RANK is that of each rank
    in_namespaces alone env -u WORLD_SIZE -u LOCAL_RANK -u LOCAL_WORLD_SIZE -u MASTER_ADDR -u MASTER_PORT \
        bash -c 'json=$0-$RANK.alone.json; unset RANK; exec "$@" --json "$json"' "$work/$rate/$round" \
        "$SLUICE" train "${shape[@]}" -n 1 --strategy dp --steps "$steps"
}

need_program "$SLUICE"
for round in $(seq "$rounds"); do
    for rate in "${rates[@]}"; do
        mkdir -p "$work/$rate"
        in_namespaces tcp python3 bench/compare/peers/tcp_goodput.py
        cp "$work/output" "$work/$rate/$round.tcp.json"
        alone
        for optimizer in "${optimizers[@]}"; do
            train "$optimizer" --optimizer "$optimizer" --strategy onebit --steps "$steps" --freeze-step "$freeze"
        done
        train adamw --optimizer adamw --strategy dp --steps "$steps"
    done
done
progress ''
python3 bench/compare/peers/onebit_network_table.py "$work" "$out" "$burst" "${rates[@]}" -- "${optimizers[@]}" adamw
