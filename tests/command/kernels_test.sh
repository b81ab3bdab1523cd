#!/usr/bin/env bash
# `sluice-lab kernels` and `sluice-lab gemm` keep their promises: a row for each kernel or product and type, the same
# rows as JSON, with figures that are numbers above zero. No time is looked at.
. "$(dirname "$0")/../support/command_check.sh"

run_one() { # COMMAND OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 200 "$lab" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

positive() { # KEY, how many: of $work/rows.json
    check "$1 of every row" "$2" "$(sed -n "s/^ *\"$1\": \([0-9.e+-]*\),*$/\1/p" "$work/rows.json" |
        awk '$1 > 0 {n++} END {print n + 0}')"
}

kernels() {
    local rows key type
    run_one kernels --size 16KiB --rounds 1 --json "$work/rows.json"
    check 'kernels' 0 $code
    rows=$(grep -c '^  [a-z]' "$work/out")
    check 'there are rows' yes "$([ "$rows" -ge 60 ] && echo yes)"
    for type in fp32 bf16; do
        check "half of them are $type" $((rows / 2)) "$(grep -c "^  [a-z_]*  *$type " "$work/out")"
    done
    check 'each once' "$rows" "$(awk '/^  [a-z]/ {print $1, $2}' "$work/out" | sort -u | wc -l)"
    for key in element_bytes time_us algbw copybw of_copy best_of_copy; do positive $key "$rows"; done
    run_one kernels --op gelu_forward --dtype bf16 --size 16KiB --rounds 3 --threads 2 --channels 64 --json -
    check 'one kernel' 'gelu_forward bf16' \
        "$(sed -n 's/^ *"\(op\|type\)": "\(.*\)",$/\2/p' "$work/out" | xargs)"
    run_one kernels --op no_such
    check 'an unknown kernel is refused' yes "$([ $code -ne 0 ] && grep -q no_such "$work/err" && echo yes)"
    run_one kernels --op gelu_forward --size 16KiB --rounds 1 --json /dev/full
    check 'a full disk is an error' 1 $code
}

products() {
    local rows key
    built_with gemm || return
    run_one gemm --rows 8 --rounds 1 --json "$work/rows.json"
    check 'gemm' 0 $code
    rows=$(grep -cE '^(fp32|bf16) ' "$work/out")
    check 'as many products of each type' "$(grep -c '^fp32 ' "$work/out")" "$(grep -c '^bf16 ' "$work/out")"
    check 'there are rows' yes "$([ "$rows" -ge 50 ] && echo yes)"
    for key in m n k gflops; do positive $key "$rows"; done
    run_one gemm --rows 0
    check 'no rows are refused' yes "$([ $code -ne 0 ] && [ -s "$work/err" ] && echo yes)"
}

kernels
products
[ $failed = 0 ] && echo "sluice-lab kernels, sluice-lab gemm: all as promised"
exit $failed
