#!/usr/bin/env bash
# Makes plans three times: as the machine is, beside four busy loops, and on one core. All must be equal to the byte:
# those of COUNT drawn profiles from seed SEED on, and those of the four bundled models under three budgets. Prints what
# differs, and how long each of the three took.
#   bench/compare/plans/same_plans.sh [COUNT [SEED]]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${SLUICE_BUILD:-$here/../../../build/release}/bench
count=${1:-40} seed=${2:-41001}
work=$(mktemp -d)
busy=()
stop_busy() {
    if [ ${#busy[@]} -gt 0 ]; then kill "${busy[@]}" 2>/dev/null || true; fi
    busy=()
}
trap 'stop_busy; rm -rf "$work"' EXIT

# The four models, at sizes that people train, on eight ranks.
cat "$here"/../../../docs/*.md >"$work/text"
python3 - "$work/x-images-idx3-ubyte" "$work/x-labels-idx1-ubyte" <<'P'
import struct, sys
with open(sys.argv[1], "wb") as out:
    out.write(struct.pack(">IIII", 0x803, 64, 28, 28) + bytes(i * 37 % 251 for i in range(64 * 784)))
with open(sys.argv[2], "wb") as out:
    out.write(struct.pack(">II", 0x801, 64) + bytes(i % 10 for i in range(64)))
P
make_profile() { # NAME OPTION...
    "$build/sluice" estimate -n 8 --pace 100gflops,20GB --throttle 1gbit,50us --effort 0.01 \
        --profile-out "$work/$1.json" "${@:2}" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
}
make_profile gpt2 --model gpt2 --size small --data "$work/text" --context 128
make_profile bert --model bert --size base --data "$work/text" --context 128
make_profile vit --model vit --size base --data "$work/x-images-idx3-ubyte"
make_profile beit --model beit --size base --data "$work/x-images-idx3-ubyte"

plan_all() { # FILE COMMAND...: the plans' checksums, one a line
    local begin=$SECONDS model budget
    {
        "${@:2}" "$build/sluice-lab" study same --count "$count" --seed "$seed" --json - 2>/dev/null |
            python3 -c 'import json, sys
for row in json.load(sys.stdin)["rows"]: print("seed", row["seed"], "%08x" % row["checksum"])'
        for model in gpt2 bert vit beit; do
            for budget in 40% 60% 80%; do
                "${@:2}" "$build/sluice" plan --profile "$work/$model.json" --budget "$budget" -o "$work/plan" \
                    >"$work/log" 2>&1 || echo refused >"$work/plan"
                echo "$model $budget $(sha256sum <"$work/plan")"
            done
        done
    } >"$1"
    echo "$((SECONDS - begin)) s: $(wc -l <"$1") plans, $(basename "$1")"
}

plan_all "$work/as_it_is"
for _ in 1 2 3 4; do
    (while :; do :; done) &
    busy+=($!)
done
plan_all "$work/beside_busy_loops"
stop_busy
plan_all "$work/on_one_core" taskset -c 0
code=0
for other in beside_busy_loops on_one_core; do
    diff "$work/as_it_is" "$work/$other" >"$work/difference" || { echo "differ $other:" && cat "$work/difference" && code=1; }
done
[ $code != 0 ] || echo "all plans are equal"
exit $code
