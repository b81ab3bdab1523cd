#!/usr/bin/env bash
# This script measures how well `sluice train` predicts its steps on a slow link: two ranks in network namespaces,
# joined by a link that a token bucket of a given rate and size shapes, and two ranks of one host whose network is
# throttled. For each strategy, in fp32 and in bf16, it compares the step that the plan predicted before the first one
# with the step that was measured, says which parts were missed, and compares the link that the measurement before the
# plan saw with what plain TCP carries on the same link (throttled: with the rate that was asked for). Rounds run by
# turns, and the median of each counts; the machine's load when a run began is noted. It prints a table ("!" falls short
# of the aim) and writes bench/results/predictions.json.
#   bench/compare/plans/predictions.sh [ROUNDS]      needs root (namespaces.sh) and python3
# Environment: SLUICE=the command, RATES and BURSTS of namespaces ("" leaves them out), THROTTLES, STRATEGIES (as
# auto@60% with a budget), PRECISIONS, MODEL, SIZE, BATCH, STEPS, OPTIONS=more options of `sluice train`, OUT,
# FOLDER=where the runs are kept (out/predictions): what is there already is not run again, so that the same command goes
# on where it was interrupted.
set -euo pipefail
cd "$(dirname "$0")/../../.."
source bench/compare/peers/need_program.sh
source bench/compare/peers/over_link.sh
# shellcheck source=../peers/kept_runs.sh
. bench/compare/peers/kept_runs.sh
work='' # open_folder sets it
rounds=${1:-1}
export SLUICE=${SLUICE:-build/release/bench/sluice}
read -ra rates <<<"${RATES-1gbit 4gbit 10gbit}"
read -ra bursts <<<"${BURSTS-1mb 4mb}"
read -ra throttles <<<"${THROTTLES-1gbit 4gbit 10gbit}"
read -ra strategies <<<"${STRATEGIES:-dp sdp fsdp auto}"
read -ra precisions <<<"${PRECISIONS:-fp32 bf16}"
read -ra options <<<"${OPTIONS:-}"
train=(--model "${MODEL:-vit}" --size "${SIZE:-small}" --batch "${BATCH:-1}" --steps "${STEPS:-16}" --threads 1
    --eval-batches 0 "${options[@]}")
out=${OUT:-bench/results/predictions.json}
export PYTHONDONTWRITEBYTECODE=1

goodput() {
    local result=$link/$round.goodput.json
    seen=$((seen + 1))
    [ ! -e "$result" ] || return 0
    tell_run $total "round $round of $rounds, $rate $burst: plain TCP"
    on_two_hosts python3 bench/compare/peers/tcp_goodput.py --seconds 2
    cp "$work/output" "$result"
}

predict() { # RUNNER...: trains under each strategy and precision on one link
    local precision strategy run how
    for precision in "${precisions[@]}"; do
        for strategy in "${strategies[@]}"; do
            run=$link/$round.$precision.$strategy
            seen=$((seen + 1))
            [ ! -e "$run.json" ] || continue
            tell_run $total "round $round of $rounds, $(basename "$link"): $precision $strategy"
            how=(--precision "$precision" --strategy "${strategy%@*}")
            [[ $strategy != *@* ]] || how+=(--budget "${strategy#*@}")
            cut -d' ' -f1 /proc/loadavg >"$run.load"
            "$@" "$SLUICE" train "${train[@]}" "${how[@]}" --profile-out "$run.profile" --json "$work/result"
            mv "$work/result" "$run.json"
        done
    done
}

need_program "$SLUICE"
open_folder out/predictions "$SLUICE" "${train[@]}"
cells=$((${#precisions[@]} * ${#strategies[@]}))
total=$((rounds * (${#rates[@]} * ${#bursts[@]} * (1 + cells) + ${#throttles[@]} * cells)))
for round in $(seq "$rounds"); do
    for rate in "${rates[@]}"; do
        for burst in "${bursts[@]}"; do
            link=$work/$rate-$burst
            mkdir -p "$link"
            goodput
            predict on_two_hosts
        done
    done
    for rate in "${throttles[@]}"; do
        link=$work/$rate-throttle
        mkdir -p "$link"
        predict keep_output "$SLUICE" run -n 2 -- env SLUICE_COMM_THROTTLE="$rate"
    done
done
end_runs
python3 bench/compare/peers/predictions_table.py "$work" "$out"
