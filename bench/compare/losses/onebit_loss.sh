#!/usr/bin/env bash
# This script measures what compression costs in quality: GPT-2 mini on real text with AdamW and with each compressed
# optimizer, on 2 and on 4 ranks with the same global batch. It compares the final loss (the mean of the last tenth of
# the steps) and the held-out loss with AdamW's, and those of 1-bit LAMB also with LAMB's. It goes on where it was
# stopped, by checkpoints. It prints a table ("!" falls short of the aim) and writes bench/results/onebit_loss.json.
#   bench/compare/losses/onebit_loss.sh [STEPS]      default 1000
# Environment: SLUICE=the command, OPTIMIZERS, RANKS (a list), SIZE, SEQUENCES (of all ranks), CONTEXT, LR, LAMB_LR,
# WARMUP, FREEZE=the last step of the warm-up, CHUNK=steps between checkpoints, SEED, DATA, OPTIONS=more options of
# `sluice train`, WORK=folder of what is done (out/onebit_loss), OUT.
set -euo pipefail
cd "$(dirname "$0")/../../.."
source bench/compare/peers/need_program.sh
steps=${1:-1000}
sluice=${SLUICE:-build/release/bench/sluice}
read -ra optimizers <<<"${OPTIMIZERS:-adamw onebit_adam zero_one_adam lamb onebit_lamb}"
read -ra worlds <<<"${RANKS:-2 4}"
read -ra options <<<"${OPTIONS:-}"
sequences=${SEQUENCES:-16} chunk=${CHUNK:-250} freeze=${FREEZE:-$((steps / 4))}
work=${WORK:-out/onebit_loss}
out=${OUT:-bench/results/onebit_loss.json}
common=(--size "${SIZE:-mini}" --context "${CONTEXT:-64}" --warmup "${WARMUP:-$((steps / 20))}" --seed "${SEED:-1}"
    --threads 1 "${options[@]}")
[ -z "${DATA:-}" ] || common+=(--data "$DATA")

# begin refuses a work folder whose runs had other settings: their results cannot stand in one table with new ones.
begin() {
    local settings="$steps $sequences $freeze ${LR:-} ${LAMB_LR:-} ${common[*]}"
    mkdir -p "$work"
    if [ -f "$work/settings" ] && [ "$(cat "$work/settings")" != "$settings" ]; then
        echo "$work holds runs with other settings; give another WORK, or remove it" >&2
        exit 1
    fi
    echo "$settings" >"$work/settings"
}

run() { # RANKS OPTIMIZER: in chunks, each of which leaves a checkpoint and its results
    local folder=$work/$1.$2 end result strategy=dp lr=${LR:-0.001} more=()
    case $2 in *lamb) lr=${LAMB_LR:-0.01} ;; esac
    case $2 in onebit* | zero*) strategy=onebit more=(--freeze-step "$freeze") ;; esac
    mkdir -p "$folder"
    for ((end = chunk; end < steps + chunk; end += chunk)); do
        ((end < steps)) || end=$steps
        result=$folder/$(printf %06d "$end").json
        [ ! -f "$result" ] || continue
        [ -z "$(ls "$folder/run" 2>/dev/null)" ] || more+=(--resume "$folder/run")
        if [ -t 2 ]; then printf '\r%-70s\r' "$2 on $1 ranks: step $end of $steps" >&2; fi
        "$sluice" train -n "$1" --batch $((sequences / $1)) --optimizer "$2" --strategy $strategy --lr "$lr" \
            "${common[@]}" "${more[@]}" --steps "$end" --save "$folder/run" --json "$result" --eval-batches 16 \
            >"$folder/output" 2>"$folder/errors" || { cat "$folder/errors" >&2; exit 1; }
    done
    rm -rf "$folder/run"
}

need_program "$sluice"
begin
for ranks in "${worlds[@]}"; do
    for optimizer in "${optimizers[@]}"; do run "$ranks" "$optimizer"; done
done
if [ -t 2 ]; then printf '\r%-70s\r' '' >&2; fi
PYTHONDONTWRITEBYTECODE=1 python3 bench/compare/peers/onebit_loss_table.py "$work" "$out" "${worlds[@]}" -- "${optimizers[@]}"
