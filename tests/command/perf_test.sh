#!/usr/bin/env bash
# `sluice perf` keeps its promises: it checks results, on every path and for several numbers of ranks; nccl-tests'
# columns; JSON. comm.collectives_test has the collectives themselves.
. "$(dirname "$0")/../support/command_check.sh"

perf() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 100 "$sluice" perf -n 2 -w 1 "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

results() { # every operation, some sizes; a table has as many rows as sizes and no wrong element
    local operation
    for operation in all_reduce reduce_scatter all_gather broadcast reduce_scatter_all_gather; do
        perf --op $operation -b 1000 -e 3M -f 50 "$@"
        check "$operation $*" 0 $code
        check "$operation $*: it ends as nccl-tests does" '# Out of bounds values : 0 OK' \
            "$(grep '^# Out of bounds' "$work/out")"
        check "$operation $*: the mean of its bandwidths" "$(awk '$1 ~ /^[0-9]/ { sum += $7; n++ } END { printf "%.1f", sum / n }' \
            "$work/out")" "$(awk '/^# Avg bus bandwidth/ { printf "%.1f", $NF }' "$work/out")"
        check "$operation $*: rows without a wrong element" 3 "$(grep -cE '^ +[0-9].* 0$' "$work/out")"
    done
}

columns() {
    perf --op all_reduce --ranks 2 -b 64K -e 64K --json "$work/rows.json"
    check 'columns' 'size count type redop time algbw busbw #wrong' \
        "$(sed -n 's/^# *\(size .*\)/\1/p' "$work/out" | tr -s ' ' | sed 's/ $//')"
    local key
    for key in size count type redop time_us algbw busbw wrong; do
        check "JSON has $key" 1 "$(grep -c "\"$key\"" "$work/rows.json")"
    done
    perf --ranks 2 -b 64K -e 256K -i 64K
    check 'steps of bytes' '65536 131072 196608 262144' "$(awk '$1 ~ /^[0-9]/ {print $1}' "$work/out" | paste -sd ' ')"
    perf --op all_gather --ranks 2 -b 64K -e 64K --json -
    check 'JSON alone on standard output' '{' "$(head -c 1 "$work/out")"
    perf --op all_gather --ranks 2 -b 64K -e 64K -c 0
    check 'unchecked results are not called right' N/A "$(awk '$1 ~ /^[0-9]/ {print $8}' "$work/out")"
}

pipelined() { # blocks reduced ahead of those gathered: none, some, more than there are
    local ahead
    for ahead in 0 3 100; do
        perf --op reduce_scatter_all_gather --ahead $ahead -b 3M -e 3M -n 3 --block 256K "$@"
        check "ahead $ahead $*" 0 $code
    done
}

beside() {
    perf --op reduce_scatter_all_gather --ranks 2 --path messages -b 256K -e 1M --beside --json "$work/rows.json"
    if ! built_with gemm; then
        check 'there is nothing to compute beside, which is said' yes "$(grep -q 'lacks' "$work/err" && echo yes)"
        return
    fi
    check 'beside' 0 $code
    check 'speed alone' 2 "$(grep -cE '"compute_alone_gflops": [0-9.]*[1-9]' "$work/rows.json")"
    check 'speed beside' 2 "$(grep -c '"compute_beside_gflops"' "$work/rows.json")"
    perf --op all_gather --ranks 2 -b 64K -e 64K --json "$work/rows.json"
    check 'nothing computes unasked' 0 "$(grep -c gflops "$work/rows.json")"
}

forms() { # types and places, with a plain copy next to them
    local operation flags
    for operation in all_reduce reduce_scatter all_gather broadcast reduce_scatter_all_gather; do
        for flags in '--dtype bf16' '--in-place' '--in-place --dtype bf16'; do
            [ $operation = all_reduce ] || [ "$flags" = '--in-place --dtype bf16' ] || continue
            # shellcheck disable=SC2086
            perf --op $operation --ranks 3 -b 1000 -e 3M -f 50 --block 100K --copy $flags --json "$work/rows.json"
            check "$operation $flags" 0 $code
            check "$operation $flags: no wrong element" '# Out of bounds values : 0 OK' \
                "$(grep '^# Out of bounds' "$work/out")"
            check "$operation $flags: each row has a copy" 3 "$(grep -cE '"of_copy": [0-9.e-]*[1-9]' "$work/rows.json")"
        done
    done
    perf --op all_gather --ranks 2 --path messages -b 64K -e 64K --copy --json "$work/rows.json"
    check 'messages have no copy next to them' 1 "$(grep -c '"of_copy": null' "$work/rows.json")"
}

refusals() {
    local option
    for option in '--op reduce' '--path pigeon' '-b 1parsec' '-b 2M -e 1M' '-n 0' '-f 1' '--throttle fast' '--ahead -1' \
        '--dtype fp8' '--copy --beside' \
        '--json /no/such/folder/x'; do
        # shellcheck disable=SC2086
        perf $option
        check "$option fails" yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
        check "$option says why" yes "$([ -s "$work/err" ] && echo yes)"
    done
}

results --ranks 1
results --ranks 2
results --ranks 3 --path messages --block 100K
results --ranks 2 --throttle 4gbit,20us
pipelined --ranks 2
pipelined --ranks 3 --path messages
beside
columns
forms
refusals
[ $failed = 0 ] && echo "sluice perf: all as promised"
exit $failed
