#!/usr/bin/env bash
# This script measures what `sluice perf` makes of a real network on one machine: two ranks in network namespaces,
# joined by a shaped link. It compares the bus bandwidth of four things with what plain TCP carries in the same run:
# reduce-scatter, all-gather, both pipelined by block, and the pipelined ones beside a thread that computes. Rounds run
# by turns, and the median of each counts. It prints a table ("!" falls short of the aim) and writes
# bench/results/network.json.
#   bench/compare/networks/network.sh [ROUNDS]      needs root (namespaces.sh) and python3
# Environment: SLUICE=the command, RATES, SIZE and BLOCK in bytes, AHEAD, ITERATIONS, BURST, OUT.
set -euo pipefail
cd "$(dirname "$0")/../../.."
source bench/compare/peers/need_program.sh
source bench/compare/peers/progress.sh
source bench/compare/peers/over_link.sh
rounds=${1:-5}
export SLUICE=${SLUICE:-build/release/bench/sluice}
read -ra rates <<<"${RATES:-1gbit 4gbit}"
size=${SIZE:-64M} block=${BLOCK:-1M} ahead=${AHEAD:-4} iterations=${ITERATIONS:-8} burst=${BURST:-128kb}
out=${OUT:-bench/results/network.json}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1

in_namespaces() { # RATE NAME COMMAND...
    local rate=$1 name=$2
    shift 2
    progress "round $round of $rounds, $rate: $name"
    on_two_hosts "$@"
    mv "$work/output" "$work/$rate/$round.$name.json"
}

perf() { # RATE NAME OPERATION [OPTION...]
    in_namespaces "$1" "$2" "$SLUICE" perf --op "$3" -b "$size" -e "$size" --block "$block" --ahead "$ahead" \
        -n "$iterations" -w 2 --json - "${@:4}"
}

need_program "$SLUICE"
for round in $(seq "$rounds"); do
    for rate in "${rates[@]}"; do
        mkdir -p "$work/$rate"
        in_namespaces "$rate" tcp python3 bench/compare/peers/tcp_goodput.py
        perf "$rate" reduce_scatter reduce_scatter
        perf "$rate" all_gather all_gather
        perf "$rate" pipelined reduce_scatter_all_gather
        perf "$rate" beside reduce_scatter_all_gather --beside
    done
done
progress ''
python3 bench/compare/peers/network_table.py "$work" "$out" "$burst" "${rates[@]}"
