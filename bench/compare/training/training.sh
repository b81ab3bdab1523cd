#!/usr/bin/env bash
# One rank, one thread: a training step of GPT-2 beside PyTorch's, in fp32 and in bf16 (PyTorch: autocast), short
# sequences in a batch and one long sequence; time and the largest resident set. Rounds by turns, medians and ratios.
# Both sides are bound to the same cores, and beside a step's ratio stands that of products alone, which both sides leave
# to libraries. Prints a table ("!" falls short of the aim) and writes bench/results/training.json.
#   bench/compare/training/training.sh [ROUNDS]
# Environment: PYTHON=an interpreter that has torch (else a virtual environment is made for the run and thrown away),
# SLUICE=the command, SIZE, SHAPES (BATCHxTOKENS ...), STEPS (8 or more), CORES (those that a side may use, as 0 or 0,1),
# OUT.
set -euo pipefail
cd "$(dirname "$0")/../../.."
source bench/compare/peers/need_program.sh
source bench/compare/peers/pytorch_environment.sh
source bench/compare/peers/progress.sh
rounds=${1:-3}
sluice=${SLUICE:-build/release/bench/sluice}
size=${SIZE:-small} shapes=${SHAPES:-4x64 1x1024} steps=${STEPS:-10}
out=${OUT:-bench/results/training.json} cores=${CORES:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/runs"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1

run() { # NAME COMMAND...
    taskset -c "$cores" "${@:2}" >"$work/output" 2>"$work/errors" || { echo "$1:" >&2; cat "$work/errors" >&2; exit 1; }
}

need_program "$sluice"
find_pytorch "$work"
for round in $(seq "$rounds"); do
    for shape in $shapes; do
        for precision in fp32 bf16; do
            progress "round $round of $rounds: $shape $precision"
            options=(--size "$size" --batch "${shape%x*}" --context "${shape#*x}" --steps "$steps" --threads 1
                --precision "$precision")
            run sluice "$sluice" train "${options[@]}" --eval-batches 0 --strategy dp \
                --json "$work/runs/$round.sluice.$shape.$precision.json"
            run pytorch "$python" bench/compare/peers/pytorch_gpt2.py "${options[@]}"
            grep '^{' "$work/output" >"$work/runs/$round.pytorch.$shape.$precision.json"
        done
    done
done
progress 'products alone'
SLUICE_LAB=${sluice%/*}/sluice-lab run gemm "$python" bench/compare/kernels/gemm.py --json "$work/products.json"
progress ''
"$python" bench/compare/peers/training_table.py "$work/runs" "$work/products.json" "$cores" "$out"
