#!/usr/bin/env bash
# `sluice-lab overhead` keeps its promises: it runs plans by hand to the same weights as the engine (it fails by itself
# if not), under every strategy, with late operations and without; a row a plan; JSON. No time is looked at.
. "$(dirname "$0")/../support/command_check.sh"

overhead() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 100 "$lab" overhead --layers 3 --layer 40K --block 4K --slot 20us --rounds 2 --steps 3 "$@" \
        >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

for ranks in 1 2 3; do
    overhead --ranks $ranks --json "$work/rows.json" dp:serial oss:random sdp:random fsdp:random fsdp:one_ahead fsdp:priority:blocks
    check "$ranks ranks" 0 $code
    check "$ranks ranks: a row a plan" 6 "$(grep -c '^  [a-z]*:[a-z_:]* ' "$work/out")"
    for key in engine_share engine_block_s wall_over_same; do
        check "$ranks ranks: $key of every row, and its aim" 7 "$(grep -c "\"$key\"" "$work/rows.json")"
    done
done
overhead sdp
check 'a plan without a schedule is refused' 2 $code
overhead no_such:serial
check 'an unknown strategy is an error' 2 $code
exit $failed
