#!/usr/bin/env bash
# This script runs one training on real text in fp32 and in bf16, and compares how far apart the losses end: the
# held-out loss, and the mean loss of the last 20 steps. The aim is a difference of at most 0.02. It writes
# bench/results/precision.json.
#   bench/compare/losses/precision.sh [STEPS]
# Environment: SLUICE=the command, SIZE, BATCH, CONTEXT, SEEDS (a list), DATA, OUT.
set -euo pipefail
cd "$(dirname "$0")/../../.."
source bench/compare/peers/need_program.sh
steps=${1:-300}
sluice=${SLUICE:-build/release/bench/sluice}
out=${OUT:-bench/results/precision.json}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

need_program "$sluice"
for seed in ${SEEDS:-1 2 3}; do
    for precision in fp32 bf16; do
        "$sluice" train --size "${SIZE:-mini}" --batch "${BATCH:-8}" --context "${CONTEXT:-128}" --steps "$steps" \
            --seed "$seed" --warmup 20 --lr 0.001 --eval-batches 16 --strategy dp --precision "$precision" \
            ${DATA:+--data "$DATA"} --json "$work/$seed.$precision.json" >"$work/output" 2>"$work/errors" ||
            { cat "$work/errors" >&2; exit 1; }
    done
done
PYTHONDONTWRITEBYTECODE=1 python3 bench/compare/peers/precision_table.py "$work" "$out"
