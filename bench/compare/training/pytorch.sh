#!/usr/bin/env bash
# GPT-2 124M in fp32 beside PyTorch, in the same run: alone, dp beside DDP, sdp beside FSDP2 without resharding, fsdp
# beside FSDP2, all over gloo, one thread a rank. Rounds by turns, the median of each, and the ratio of times and
# resident sets. Prints a table ("!" falls short of the aim) and writes bench/results/pytorch.json.
#   bench/compare/training/pytorch.sh [ROUNDS]
# Environment: PYTHON=an interpreter that has torch (else a virtual environment is made for the run and thrown away),
# SLUICE=the command, SIZE, BATCH, CONTEXT, STEPS, RANKS, OUT.
set -euo pipefail
cd "$(dirname "$0")/../../.."
source bench/compare/peers/need_program.sh
source bench/compare/peers/pytorch_environment.sh
source bench/compare/peers/progress.sh
rounds=${1:-3}
sluice=${SLUICE:-build/release/bench/sluice}
size=${SIZE:-small} batch=${BATCH:-4} context=${CONTEXT:-64} steps=${STEPS:-8} ranks=${RANKS:-2}
out=${OUT:-bench/results/pytorch.json}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/runs"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1

shape=(--size "$size" --batch "$batch" --context "$context" --steps "$steps" --threads 1)

theirs() { # round, mode
    local command=("$python")
    [ "$2" = alone ] || command+=(-m torch.distributed.run --standalone --nproc-per-node "$ranks")
    "${command[@]}" bench/compare/peers/pytorch_gpt2.py --mode "$2" "${shape[@]}" >"$work/output" 2>"$work/errors" ||
        { cat "$work/errors" >&2; exit 1; }
    grep '^{' "$work/output" >"$work/runs/$1.pytorch.$2.json"
}

ours() { # round, strategy or alone
    local how=(-n "$ranks" --strategy "$2")
    [ "$2" = alone ] && how=(-n 1 --strategy dp)
    "$sluice" train "${shape[@]}" --eval-batches 0 "${how[@]}" --json "$work/runs/$1.sluice.$2.json" \
        >"$work/output" 2>"$work/errors" || { cat "$work/errors" >&2; exit 1; }
}

need_program "$sluice"
find_pytorch "$work"
for round in $(seq "$rounds"); do
    for pair in alone:alone dp:ddp sdp:fsdp2_keep fsdp:fsdp2; do
        progress "round $round of $rounds: $pair"
        ours "$round" "${pair%:*}"
        theirs "$round" "${pair#*:}"
    done
done
progress ''
"$python" bench/compare/peers/pytorch_table.py "$work/runs" "$out"
