#!/usr/bin/env bash
# Bus bandwidth of `sluice perf` beside Open MPI's, in the same run: rounds of both by turns, the median of each, and
# the ratio. Prints a table and writes bench/results/openmpi.json.
#   bench/compare/networks/openmpi.sh [ROUNDS]        environment: SLUICE=the command, SIZES, ITERATIONS, RANKS, OUT
set -euo pipefail
cd "$(dirname "$0")/../../.."
source bench/compare/peers/need_program.sh
source bench/compare/peers/progress.sh
rounds=${1:-7}
sluice=${SLUICE:-build/release/bench/sluice}
read -ra sizes <<<"${SIZES:-1048576 16777216}"
iterations=${ITERATIONS:-300}
warm_up=50 # threads find their cores
rank_counts=${RANKS:-2 4}
out=${OUT:-bench/results/openmpi.json}
operations="all_reduce reduce_scatter all_gather"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

aim() { # ranks, operation: the ratio that we want at least
    case "$1 $2" in
    "2 all_reduce" | "4 all_reduce") echo 2 ;;
    "2 reduce_scatter") echo 3 ;;
    "2 all_gather") echo 1.3 ;;
    *) echo null ;;
    esac
}

need_openmpi() {
    command -v mpicc >/dev/null && command -v mpirun >/dev/null && return
    local as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    $as_root apt-get update -qq
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        openmpi-bin libopenmpi-dev gcc libc6-dev >/dev/null
}

ours() { # ranks, operation -> lines "size bytes_per_s"
    local size
    for size in "${sizes[@]}"; do
        "$sluice" perf --op "$2" --ranks "$1" -b "$size" -e "$size" -n "$iterations" -w $warm_up
    done | awk '$1 ~ /^[0-9]+$/ {printf "%s %.0f\n", $1, $7 * 1e9}'
}

theirs() {
    mpirun --allow-run-as-root --oversubscribe -n "$1" "$work/openmpi_perf" "$2" "$iterations" $warm_up "${sizes[@]}" |
        awk '$1 ~ /^[0-9]+$/ {print $1, $2}'
}

measure() {
    local round ranks operation
    for round in $(seq "$rounds"); do
        for ranks in $rank_counts; do
            for operation in $operations; do
                progress "round $round of $rounds: $ranks ranks, $operation"
                ours "$ranks" "$operation" | sed "s/^/sluice $ranks $operation /" >>"$work/times"
                theirs "$ranks" "$operation" | sed "s/^/openmpi $ranks $operation /" >>"$work/times"
            done
        done
    done
    progress ''
}

median() { # who, ranks, operation, size
    awk -v key="$*" '$1 " " $2 " " $3 " " $4 == key {print $5}' "$work/times" | sort -n |
        awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'
}

compare() {
    local ranks operation size a b ratio wanted comma=
    printf '%5s %-15s %10s %12s %12s %7s %6s\n' ranks operation size 'ours GB/s' 'Open MPI' ratio aim
    for ranks in $rank_counts; do
        for operation in $operations; do
            for size in "${sizes[@]}"; do
                a=$(median sluice "$ranks" "$operation" "$size")
                b=$(median openmpi "$ranks" "$operation" "$size")
                ratio=$(awk -v a="$a" -v b="$b" 'BEGIN {printf "%.2f", a / b}')
                wanted=$(aim "$ranks" "$operation")
                awk -v n="$ranks" -v o="$operation" -v s="$size" -v a="$a" -v b="$b" -v r="$ratio" \
                    -v w="$wanted" 'BEGIN {
                    printf "%5d %-15s %10d %12.3f %12.3f %7s %6s%s\n", n, o, s, a / 1e9, b / 1e9, r,
                        w == "null" ? "-" : w, w != "null" && r + 0 < w + 0 ? "  falls short" : ""}'
                printf '%s    {"ranks": %d, "op": "%s", "size": %d, "sluice_busbw": %.3f, "openmpi_busbw": %.3f, ' \
                    "$comma" "$ranks" "$operation" "$size" "$(awk -v x="$a" 'BEGIN {print x / 1e9}')" \
                    "$(awk -v x="$b" 'BEGIN {print x / 1e9}')" >>"$work/rows"
                printf '"ratio": %s, "aim": %s}' "$ratio" "$wanted" >>"$work/rows"
                comma=$',\n'
            done
        done
    done
}

write_json() {
    mkdir -p "$(dirname "$out")"
    {
        printf '{\n  "rows": [\n%s\n  ],\n' "$(cat "$work/rows")"
        printf '  "rounds": %d, "iterations": %d,\n' "$rounds" "$iterations"
        printf '  "environment": {"openmpi": "%s", "cores": %d, "processor": "%s", "kernel": "%s"}\n}\n' \
            "$(mpirun --version | sed -n '1s/.* //p')" "$(nproc)" \
            "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(uname -r)"
    } >"$out.part"
    mv "$out.part" "$out"
    echo "written: $out"
}

need_program "$sluice"
need_openmpi
mpicc -std=c17 -D_GNU_SOURCE -O2 -Wall -Wextra bench/compare/peers/openmpi_perf.c -o "$work/openmpi_perf" -lm
measure
compare
write_json
