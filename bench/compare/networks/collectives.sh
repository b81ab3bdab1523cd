#!/usr/bin/env bash
# Collectives through memory next to plain copies of as many bytes, in the same runs: both operations that move parts,
# and the all-reduce, in both types, in place and not, on 2 and 4 ranks. Medians over rounds; prints a table and writes
# bench/results/collectives.json.
#   bench/compare/networks/collectives.sh [ROUNDS]     environment: SLUICE=the command, SIZES, RANKS, TYPES, OUT
set -euo pipefail
cd "$(dirname "$0")/../../.."
source bench/compare/peers/need_program.sh
rounds=${1:-5}
sluice=${SLUICE:-build/release/bench/sluice}
read -ra sizes <<<"${SIZES:-65536 1048576 16777216 67108864}"
read -ra rank_counts <<<"${RANKS:-2 4}"
read -ra types <<<"${TYPES:-fp32 bf16}"
out=${OUT:-bench/results/collectives.json}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

iterations() { # size: about 0.6 GB of them, 10 to 2000
    local count=$((600000000 / $1))
    echo $((count < 10 ? 10 : count > 2000 ? 2000 : count))
}

row() { # ranks, operation, type, place, size -> one line of $work/times
    local count
    count=$(iterations "$5")
    local flags=(--ranks "$1" --op "$2" --dtype "$3" -b "$5" -e "$5" -n "$count" -w $((count / 4 + 3)) -c 0 --copy)
    if [ "$4" = in ]; then flags+=(--in-place); fi
    "$sluice" perf "${flags[@]}" | awk -v key="$*" '$1 ~ /^[0-9]+$/ {print key, $5, $11, $12}' >>"$work/times"
}

measure_round() {
    local ranks type size
    for ranks in "${rank_counts[@]}"; do
        for type in "${types[@]}"; do
            for size in "${sizes[@]}"; do
                row "$ranks" all_reduce "$type" in "$size"
                row "$ranks" reduce_scatter "$type" out "$size"
                row "$ranks" reduce_scatter "$type" in "$size"
                row "$ranks" all_gather "$type" out "$size"
                row "$ranks" all_gather "$type" in "$size"
            done
        done
    done
}

median() { # column, key: over the rounds
    grep "^$2 " "$work/times" | cut -d ' ' -f "$1" | sort -n |
        awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'
}

show() {
    local ranks operation type place size time copy ratio comma=
    printf '%5s %-15s %-5s %-5s %10s %12s %12s %8s\n' ranks operation type place size 'time us' 'copy us' 'of copy'
    while read -r ranks operation type place size; do
        local key="$ranks $operation $type $place $size"
        time=$(median 6 "$key") copy=$(median 7 "$key") ratio=$(median 8 "$key")
        printf '%5d %-15s %-5s %-5s %10d %12.2f %12.2f %8.3f\n' "$ranks" "$operation" "$type" "$place" "$size" \
            "$time" "$copy" "$ratio"
        printf '%s    {"ranks": %d, "op": "%s", "dtype": "%s", "in_place": %s, "size": %d, "time_us": %s, ' \
            "$comma" "$ranks" "$operation" "$type" "$([ "$place" = in ] && echo true || echo false)" "$size" \
            "$time" >>"$work/rows"
        printf '"copy_time_us": %s, "of_copy": %s}' "$copy" "$ratio" >>"$work/rows"
        comma=$',\n'
    done < <(cut -d ' ' -f 1-5 "$work/times" | awk '!seen[$0]++')
}

write_json() {
    mkdir -p "$(dirname "$out")"
    {
        printf '{\n  "rows": [\n%s\n  ],\n  "rounds": %d,\n' "$(cat "$work/rows")" "$rounds"
        printf '  "environment": {"cores": %d, "processor": "%s", "kernel": "%s"}\n}\n' "$(nproc)" \
            "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(uname -r)"
    } >"$out.part"
    mv "$out.part" "$out"
    echo "written: $out"
}

need_program "$sluice"
for _ in $(seq "$rounds"); do measure_round; done
show
write_json
