#!/usr/bin/env bash
# `sluice-lab pipeline` has a row for each number of micro-batches, with the formula where stages are equal, and writes
# JSON. No time is looked at.
. "$(dirname "$0")/../../support/command_check.sh"

idle() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 100 "$lab" pipeline --layers 1 --forward 200us --backward 300us --steps 2 "$@" \
        >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

idle --micro-batches 2,3 --json "$work/rows.json"
check 'two stages' 0 $code
check 'two stages: rows with the formula' '2 3 ' "$(awk '/^ .* 33.33 %| 25.00 %/ { printf "%s ", $1 }' "$work/out")"
python3 - "$work/rows.json" <<'EOF' || failed=1
import json, sys
found = json.load(open(sys.argv[1]))
assert found["stages"] == 2 and [r["micro_batches"] for r in found["rows"]] == [2, 3], found
for row in found["rows"]:
    # Messages make the simulated share a little longer than the formula's.
    assert row["formula"] <= row["simulated"] < 1 and 0 < row["measured"] < 1 and row["cpu_a_message_s"] > 0, row
EOF
idle --ranks 3 --micro-batches 3 --pipeline-schedule interleaved --factor 2
check 'unequal stages with chunks' 0 $code
check 'unequal stages have no formula' 1 "$(grep -cE '^ +3 .* \| +- ' "$work/out")"
idle --micro-batches 4,
check 'a list that ends with a comma' 0 $code
idle --micro-batches x
check 'no list' yes "$([ $code -ne 0 ] && grep -q 'give numbers with commas' "$work/err" && echo yes)"
exit $failed
