#!/usr/bin/env bash
# This script measures what fused units save on a slow link: `sluice train` on two ranks whose network is throttled,
# with each layer a unit of its own, fused as the library chooses, and fused up to a block; rounds by turns, the median
# step of each, and its ratio to the first. All runs of a row must end with the same weights.
#   bench/compare/plans/fusing.sh [ROUNDS]      default 3
# Environment: SLUICE=the command, THROTTLES, PLANS (a list of STRATEGY:SCHEDULE), MODEL, SIZE, STEPS, OPTIONS=more
# options of `sluice train`.
set -euo pipefail
cd "$(dirname "$0")/../../.."
source bench/compare/peers/need_program.sh
rounds=${1:-3}
sluice=${SLUICE:-build/release/bench/sluice}
read -ra throttles <<<"${THROTTLES:-1gbit,50us 1gbit,200us}"
read -ra plans <<<"${PLANS:-sdp:one_ahead fsdp:one_ahead sdp:priority}"
read -ra options <<<"${OPTIONS:-}"
ways=(off auto 1MiB)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

need_program "$sluice"

train_once() { # THROTTLE PLAN WAY ROUND
    SLUICE_PLAN_FUSE=$3 "$sluice" train -n 2 --model "${MODEL:-gpt2}" --size "${SIZE:-nano}" --batch 1 --context 16 \
        --steps "${STEPS:-30}" --threads 1 --eval-batches 0 --strategy "${2%:*}" --schedule "${2#*:}" --throttle "$1" \
        "${options[@]}" --json "$work/$1.$2.$3.$4.json" >"$work/output" 2>"$work/errors" ||
        { cat "$work/output" "$work/errors" >&2; exit 1; }
}

for ((round = 1; round <= rounds; round++)); do
    for throttle in "${throttles[@]}"; do
        for plan in "${plans[@]}"; do
            for way in "${ways[@]}"; do
                if [ -t 2 ]; then printf '\r%-70s\r' "round $round of $rounds: $throttle $plan $way" >&2; fi
                train_once "$throttle" "$plan" "$way" "$round"
            done
        done
    done
done
if [ -t 2 ]; then printf '\r%-70s\r' '' >&2; fi
python3 - "$work" "$rounds" "${throttles[*]}" "${plans[*]}" "${ways[*]}" <<'PYTHON'
import json
import statistics
import sys

work, rounds = sys.argv[1], int(sys.argv[2])
throttles, plans, ways = (text.split() for text in sys.argv[3:])
print(f"{'network':14} {'plan':16} {'fused':6} {'step ms':>8} {'exposed ms':>11} {'ratio':>6}")
for throttle in throttles:
    for plan in plans:
        first, weights = None, set()
        for way in ways:
            runs = []
            for n in range(1, rounds + 1):
                with open(f"{work}/{throttle}.{plan}.{way}.{n}.json", encoding="utf-8") as file:
                    runs.append(json.load(file)["runs"][0])
            weights |= {run["weights_sha256"] for run in runs}
            step = statistics.median(run["step_s"] for run in runs)
            exposed = statistics.median(run["exposed_s"] for run in runs)
            first = first or step
            print(f"{throttle:14} {plan:16} {way:6} {1e3 * step:8.2f} {1e3 * exposed:11.2f} {step / first:6.2f}")
        if len(weights) != 1:
            sys.exit(f"{throttle}, {plan}: the weights differ: {', '.join(sorted(weights))}")
PYTHON
