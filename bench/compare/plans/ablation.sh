#!/usr/bin/env bash
# This script measures in real steps what each part of the planner adds, as `sluice-lab study ablation` finds it in the
# simulator: GPT-2 mini on two ranks over throttled links, within budgets between the smallest that works and what sdp
# needs. The arms differ in four things: one strategy for all layers or each layer's own; the order of the fastest
# baseline or a planned one; operations that move a whole layer or base blocks; no layer is recomputed, or those that
# the planner chooses (under baselines: all that can). It prints a table of the arms and writes
# bench/results/ablation.json.
#   bench/compare/plans/ablation.sh [REPEATS]      needs python3
# Environment: SLUICE=the command, THROTTLES, BUDGETS=as auto:3, SCHEDULES=the baselines, WHOLE=a block that no layer
# exceeds, SIZE, STEPS (8 at least), OPTIONS=more of `sluice bench`, OUT, FOLDER=where the sweeps are kept (out/ablation):
# what is there already is not run again, so that the same command goes on where it was interrupted.
set -euo pipefail
cd "$(dirname "$0")/../../.."
source bench/compare/peers/need_program.sh
# shellcheck source=../peers/kept_runs.sh
. bench/compare/peers/kept_runs.sh
work='' # open_folder sets it
repeats=${1:-1}
sluice=${SLUICE:-build/release/bench/sluice}
throttles=${THROTTLES:-1gbit,4gbit,10gbit} budgets=${BUDGETS:-auto:3}
schedules=${SCHEDULES:-serial,one_ahead,bucketed,priority,greedy} whole=${WHOLE:-64MiB}
read -ra options <<<"${OPTIONS:-}"
bench=("$sluice" bench -n 2 --size "${SIZE:-mini}" --batch 4 --context 64 --steps "${STEPS:-12}" --repeat "$repeats"
    --throttle "$throttles" "${options[@]}")
out=${OUT:-bench/results/ablation.json}
export PYTHONDONTWRITEBYTECODE=1

# sweep FOLDER OPTION...: runs a sweep into the folder. Arms that fit no budget are part of the answer, so exit code 2
# is no failure if there are results.
sweep() {
    local folder=$work/$1 code=0
    seen=$((seen + 1))
    tell_run 5 "sweep $1"
    if [ -t 2 ]; then echo >&2; fi
    shift
    "${bench[@]}" "$@" -o "$folder" >&2 || code=$?
    [ $code = 0 ] || { [ $code = 2 ] && [ -e "$folder/results.json" ]; } || exit $code
}

need_program "$sluice"
open_folder out/ablation "$sluice" "${bench[@]}" "$budgets" "$schedules" "$whole"
sweep budgets --strategy sdp --schedule one_ahead --recompute none --budget "$budgets"
budgets=$(python3 bench/compare/peers/ablation_table.py --budgets "$work/budgets")
for blocks in whole cut; do
    block=()
    [ $blocks = cut ] || block=(--block "$whole")
    sweep "$blocks-baselines" --strategy dp,oss,sdp,fsdp,mixed --schedule "$schedules" --recompute none,all \
        --budget "$budgets" "${block[@]}"
    sweep "$blocks-planned" --strategy sdp,fsdp,auto --schedule ilp --recompute none,auto --budget "$budgets" "${block[@]}"
done
python3 bench/compare/peers/ablation_table.py "$work" "$out"
