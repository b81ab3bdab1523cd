#!/usr/bin/env bash
# `sluice bench --pipeline`: pipelines stand beside the strategies, on the same batches whatever shares them; the picture
# of micro-batches has a line for each; what cannot be shared is refused before anything runs.
. "$(dirname "$0")/../../support/command_check.sh"
need_command bench
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"
folder=$work/sweep

bench() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 200 "$sluice" bench --data "$work/text" --size nano --context 32 --batch 2 --steps 5 --repeat 1 "$@" \
        >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

# A pipeline's looked-up table is split without a word, as `sluice train --pipeline` has it.
tied_by_itself() {
    bench -n 2 --pipeline 2 --micro-batches 2 --steps 3 --output "$work/tied"
    check 'a pipeline without --tied' '0 1' "$code $(grep -cE '^adamw +pipeline 2 ' "$work/out")"
}

refuses() { # words of the message, then OPTION...
    local words=$1
    shift
    bench --output "$work/refused" "$@"
    check "$* fails" yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
    check "$* says why" yes "$(grep -qi -- "$words" "$work/err" && echo yes)"
}

sweep() {
    bench -n 2 --pipeline off,2 --pipeline-schedule 1f1b,gpipe --strategy dp --schedule one_ahead --tied split \
        --micro-batches 2,4 --output "$folder"
    check 'a sweep with pipelines ends well' 0 $code
    check 'weights and peaks' 2 "$(grep -cE '^(weights equal to the bit|peak equals plan): yes' "$work/out")"
    check 'rows' 6 "$(($(wc -l <"$folder/results.csv") - 1))"
    check 'rows of pipelines' 4 "$(grep -cE '^micro batches [24] +adamw +pipeline 2 ' "$work/out")"
    python3 - "$folder/results.json" <<'EOF' || failed=1
import json, sys
runs = json.load(open(sys.argv[1]))["runs"]
found = {(r["strategy"], r["schedule"], r["step_micro_batches"]): r for r in runs}
assert sorted(found) == sorted((s, k, m) for s, k in (("dp", "one_ahead"), ("pipeline 2", "1f1b"), ("pipeline 2", "gpipe"))
                               for m in (2, 4)), sorted(found)
for (strategy, schedule, number), run in found.items():
    piped = strategy != "dp"
    assert run["settings"]["micro_batches"] == (number if piped else number // 2), run["settings"]
    assert (run["pipeline"] is not None) == piped and (not piped or run["pipeline"]["schedule"] == schedule)
    assert run["label"] == f"micro batches {number}", run["label"]
    same = found["pipeline 2", "1f1b", number]
    # Ranks with one micro-batch each have the sums of one rank with all of them.
    assert number > 2 and not piped or run["weights_sha256"] == same["weights_sha256"], (strategy, schedule, number)
    assert abs(run["losses"][0] - same["losses"][0]) < 1e-5, (strategy, schedule, number)
EOF
    check 'lines of the picture' 3 "$(grep -c '^#' "$folder/micro_batches.dat")"
    check 'points' '2 2 2 4 4 4' "$(grep -oE '^[0-9]+' "$folder/micro_batches.dat" | sort -n | paste -sd ' ')"
    command -v gnuplot >/dev/null || { skip 'the picture of micro-batches: gnuplot is not installed'; return; }
    check 'a picture' yes "$([ -s "$folder/micro_batches.svg" ] && [ -s "$folder/micro_batches.png" ] && echo yes)"
}

refusals() {
    refuses '2 ranks share in dp: give multiples of 2' -n 2 --pipeline off,2 --strategy dp --micro-batches 3
    refuses 'no multiple of 3 stages' -n 2 --pipeline 3
    refuses 'give off, or from 2' -n 2 --pipeline off,x
    refuses 'whose schedules are --pipeline-schedule' -n 2 --pipeline off,2 --schedule serial,one_ahead
    refuses 'runs without --pipeline' -n 2 --pipeline 2 --tradeoff
}

tied_by_itself
sweep
refusals
[ $failed = 0 ] && echo "sluice bench --pipeline: all as promised"
exit $failed
