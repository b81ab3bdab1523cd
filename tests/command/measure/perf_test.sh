#!/usr/bin/env bash
# `sluice perf` keeps its promises: it checks results, on every path and for several numbers of ranks; nccl-tests'
# columns; JSON. comm.collectives_test has the collectives themselves.
. "$(dirname "$0")/../../support/command_check.sh"

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
        # A row's bandwidth is printed to a hundredth, the mean is made of what was measured.
        check "$operation $*: the mean of its bandwidths" near "$(awk '$1 ~ /^[0-9]/ { sum += $7; n++ }
            /^# Avg bus bandwidth/ { gap = n ? sum / n - $NF : 1; print gap * gap < .006 ^ 2 ? "near" : gap }' "$work/out")"
        check "$operation $*: rows without a wrong element" 3 "$(awk '$1 ~ /^[0-9]/ && $8 == 0' "$work/out" | wc -l)"
    done
}

# Transfers in a ring: each rank's buffer is at the next one, bandwidth is size over time, and a rank alone has nobody.
transfers() {
    local flags
    for flags in '--ranks 2' '--ranks 3' '--ranks 3 --path messages' '--ranks 2 --throttle 4gbit,20us' \
        '--ranks 2 --path messages --throttle 4gbit,20us' '--ranks 2 -d bf16 --in-place'; do
        # shellcheck disable=SC2086
        perf --op send_receive -b 1000 -e 3M -f 50 -c 2 $flags
        check "send_receive $flags" 0 $code
        check "send_receive $flags: rows without a wrong element" 3 \
            "$(awk '$1 ~ /^[0-9]/ && $8 == 0 && $6 == $7 && $4 == "none"' "$work/out" | wc -l)"
    done
    perf --op send_receive --ranks 2 -b 1M -e 1M --copy --json "$work/rows.json"
    check 'send_receive has a copy next to it' '"op": "send_receive" 1' \
        "$(grep -o '"op": "send_receive"' "$work/rows.json") $(grep -cE '"of_copy": [0-9.e-]*[1-9]' "$work/rows.json")"
    perf --op send_receive --ranks 2 -b 1M -e 1M -n 1500 -c 0
    check 'more turns than the queue of a channel holds' 0 $code
    perf --op send_receive --ranks 2 -b 0 -e 1K
    check 'send_receive from 0 on' '0 128 512' "$(awk '$1 ~ /^[0-9]/ {print $1}' "$work/out" | paste -sd ' ')"
    perf --op send_receive --ranks 1
    check 'send_receive needs two ranks' '2 1' "$code $(grep -c 'nobody to send to' "$work/err")"
}

columns() {
    perf --op all_reduce --ranks 2 -b 64K -e 64K --json "$work/rows.json"
    check 'columns' 'size count type redop time algbw busbw #wrong min max' \
        "$(sed -n 's/^# *\(size .*\)/\1/p' "$work/out" | tr -s ' ' | sed 's/ $//')"
    local key
    for key in size count type redop time_us time_min_us time_max_us algbw busbw wrong op throttle in_place iterations \
        warm_up checks device sums host sluice command_line date; do
        check "JSON has $key" 1 "$(grep -c "\"$key\":" "$work/rows.json")"
    done
    perf --ranks 2 -b 64K -e 256K -i 64K
    check 'steps of bytes' '65536 131072 196608 262144' "$(awk '$1 ~ /^[0-9]/ {print $1}' "$work/out" | paste -sd ' ')"
    perf --op all_gather --ranks 2 -b 64K -e 64K --json -
    check 'JSON alone on standard output' '{' "$(head -c 1 "$work/out")"
    perf --op all_gather --ranks 2 -b 64K -e 64K -c 0
    check 'unchecked results are not called right' N/A "$(awk '$1 ~ /^[0-9]/ {print $8}' "$work/out")"
    perf --ranks 2 -b 64K -e 1M
    # The mean counts what lies between two iterations too, so on a busy machine it may be above the greatest.
    check 'the least is below the mean and the greatest' 3 \
        "$(awk '$1 ~ /^[0-9]/ && $9 > 0 && $9 <= $5 && $9 <= $10' "$work/out" | wc -l)"
}

# `sluice perf` takes the flags of nccl-tests as nccl-tests does: types, then sums, then sizes; a size of 0; several
# checks; each printed size is measured once.
nccl_flags() {
    perf --ranks 2 -b 0 -e 2K -f 8 -d all -o all -c 3
    check '-d all -o all' 0 $code
    check 'types and sums in their order' 'float sum float avg bfloat16 sum bfloat16 avg' \
        "$(awk '$1 ~ /^[0-9]/ {print $3, $4}' "$work/out" | uniq | paste -sd ' ')"
    check 'sizes from 0 on' '0 128 1024' "$(awk '$4 == "sum" && $3 == "float" {print $1}' "$work/out" | paste -sd ' ')"
    perf --ranks 3 -b 300 -e 300 -d bfloat16 -o avg --op reduce_scatter
    check 'an average over three ranks, in bf16' '288 bfloat16 avg 0' \
        "$(awk '$1 ~ /^[0-9]/ {print $1, $3, $4, $8}' "$work/out")"
    perf --op broadcast --ranks 2 -b 64K -e 64K -o all
    check 'what does not sum has one row' 'none' "$(awk '$1 ~ /^[0-9]/ {print $4}' "$work/out")"
    perf -b 1 -e 300 -i 1 -n 5 # 300 sizes that are rounded to 4
    check 'sizes are measured as they are printed' '64 128 192 256' \
        "$(awk '$1 ~ /^[0-9]/ {print $1}' "$work/out" | paste -sd ' ')"
    perf -b 17M -n 1
    check '-b above the usual -e' 17825792 "$(awk '$1 ~ /^[0-9]/ {print $1}' "$work/out")"
}

# A size for which the host lacks the memory is refused before any memory is taken, with and without a limit of the
# process.
too_large() {
    local form
    for form in '-b 1T' '-b 1T -e 1T --ranks 2' '-e 1T --op reduce_scatter_all_gather'; do
        # shellcheck disable=SC2086
        perf $form
        check "$form: refused" 2 $code
        check "$form: why" 1 "$(grep -c '^sluice perf: -e: needs .* on this host, but .* available' "$work/err")"
    done
    # A sanitizer's own memory is beyond such a limit.
    (ulimit -v 3000000 && "$sluice" info) >/dev/null 2>&1 || { skip 'a limit of addresses: this build needs more'; return; }
    (ulimit -v 3000000 && perf -b 1G --ranks 2 && exit $code)
    check 'more than a limit of addresses leaves: refused' 2 $?
    check 'more than a limit of addresses leaves: why' 1 "$(grep -c 'limit of addresses' "$work/err")"
}

# A reader that leaves ends all ranks, and what was measured is written.
unread() {
    timeout 100 "$sluice" perf --ranks 2 -b 64K -e 64M -n 50 --json "$work/unread.json" 2>"$work/err" </dev/null |
        head -n 1 >"$work/out"
    check 'nobody reads: exit code' 141 "${PIPESTATUS[0]}"
    check 'nobody reads: said once, and by nobody as a death' '0 1' \
        "$(grep -c 'died\|Broken pipe' "$work/err") $(grep -c 'nobody reads the table' "$work/err")"
    check 'nobody reads: what was measured is there' 1 "$(grep -c '"interrupted": true' "$work/unread.json")"
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
    for option in '--op reduce' '-d half' '-o prod' '-c -1' '-i 0' '--path pigeon' '-b 1parsec' '-b 2M -e 1M' '-n 0' '-f 1' '--throttle fast' '--ahead -1' \
        '--dtype fp8' '--copy --beside' \
        '--op send_receive --device cuda' '--json /no/such/folder/x'; do
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
transfers
pipelined --ranks 2
pipelined --ranks 3 --path messages
beside
columns
nccl_flags
too_large
unread
forms
refusals
[ $failed = 0 ] && echo "sluice perf: all as promised"
exit $failed
