#!/usr/bin/env bash
# This script measures what the engine itself costs: `sluice-lab overhead` on one and on two ranks. It prints the tables
# ("!" falls short of an aim) and writes bench/results/overhead.json.
#   bench/compare/training/overhead.sh [ROUNDS]
# Environment: SLUICE_LAB=the command, RANKS ("1 2"), OPTIONS of `sluice-lab overhead`, OUT.
set -euo pipefail
cd "$(dirname "$0")/../../.."
source bench/compare/peers/need_program.sh
rounds=${1:-9}
lab=${SLUICE_LAB:-build/release/bench/sluice-lab} out=${OUT:-bench/results/overhead.json}
read -ra ranks <<<"${RANKS:-1 2}"
read -ra options <<<"${OPTIONS:-}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

need_program "$lab" SLUICE_LAB
for n in "${ranks[@]}"; do
    "$lab" overhead --ranks "$n" --rounds "$rounds" --json "$work/$n.json" "${options[@]}"
done
mkdir -p "$(dirname "$out")"
{
    printf '{"runs": [\n'
    first=1
    for n in "${ranks[@]}"; do
        [ "$first" = 1 ] || printf ',\n'
        first=0
        cat "$work/$n.json"
    done
    printf ']}\n'
} >"$out"
echo "written to $out"
