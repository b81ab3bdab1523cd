#!/usr/bin/env bash
# `sluice-lab overhead` keeps its promises: it trains by hand to the same weights as the engine (it fails by itself if
# not), on one rank and on several; a row; JSON. No time is looked at.
. "$(dirname "$0")/../../support/command_check.sh"

overhead() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 100 "$lab" overhead --layers 3 --layer 40K --block 4K --slot 20us --rounds 2 --steps 3 "$@" \
        >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

for ranks in 1 2 3; do
    overhead --ranks $ranks --json "$work/rows.json"
    check "$ranks ranks" 0 $code
    check "$ranks ranks: a row" 1 "$(grep -c '^  dp:serial ' "$work/out")"
    for key in engine_share engine_block_s wall_over_same; do
        check "$ranks ranks: $key of the row, and its aim" 2 "$(grep -c "\"$key\"" "$work/rows.json")"
    done
done
overhead --layer 40000 --layers 1
check 'a last block that is shorter' 0 $code
exit $failed
