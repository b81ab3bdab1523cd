#!/usr/bin/env bash
# `sluice-lab kernels` and `sluice-lab gemm` keep their promises: a row for each kernel or product and type, the same
# rows as JSON, with figures that are numbers above zero. No time is looked at.
. "$(dirname "$0")/../../support/command_check.sh"

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
    run_one kernels --size 16KiB --copy 1MiB --rounds 1 --json "$work/rows.json"
    check 'kernels' 0 $code
    rows=$(grep -c '^  [a-z]' "$work/out")
    check 'there are rows' yes "$([ "$rows" -ge 60 ] && echo yes)"
    for type in fp32 bf16; do
        check "half of them are $type" $((rows / 2)) "$(grep -c "^  [a-z_]*  *$type " "$work/out")"
    done
    check 'each once' "$rows" "$(awk '/^  [a-z]/ {print $1, $2}' "$work/out" | sort -u | wc -l)"
    for key in element_bytes time_us algbw copybw of_copy best_of_copy; do positive $key "$rows"; done
    run_one kernels --op gelu_forward --dtype bf16 --size 16KiB --copy 1MiB --rounds 3 --threads 2 --channels 64 --json -
    check 'one kernel' 'gelu_forward bf16' \
        "$(sed -n 's/^ *"\(op\|type\)": "\(.*\)",$/\2/p' "$work/out" | xargs)"
    run_one kernels --op no_such
    check 'an unknown kernel is refused' yes "$([ $code -ne 0 ] && grep -q no_such "$work/err" && echo yes)"
}

# Every kernel that the tree has for a GPU is measured, on a GPU or the emulated one.
gpu_kernels() {
    local rows folder name kind
    run_one kernels --device cuda --small --rounds 1 --json "$work/rows.json"
    case $(cat "$work/err") in
    *'is not in this build'* | *'no GPU on this machine'*)
        check 'without a GPU' 1 $code
        skip "sluice-lab kernels --device cuda: $(sed 's/^[^:]*: [^:]*: //' "$work/err")"
        return
        ;;
    esac
    check 'kernels on the GPU' 0 $code
    rows=$(grep -c '^  [a-z]' "$work/out")
    check 'all are rows of the file' "$rows" "$(grep -c '^ *"op": ' "$work/rows.json")"
    check 'as many as are counted' "$rows" "$(sed -n 's/^  "measured": \(.*\),$/\1/p' "$work/rows.json")"
    check 'none failed' 0 "$(sed -n 's/^  "failed": \(.*\),$/\1/p' "$work/rows.json")"
    for folder in "$(dirname "$0")"/../../../lib/kernels/*/*_cuda.cu; do
        folder=$(basename "$(dirname "$folder")")
        [ "$folder" != gemm ] || has_command gemm || continue
        [ "$folder" != progress ] || continue # it moves eight bytes
        check "a kernel of lib/kernels/$folder" yes \
            "$(grep -q "^ *\"kernel\": \"$folder" "$work/rows.json" && echo yes)"
    done
    for name in time_us copybw; do positive $name "$rows"; done
    positive of_copy "$(grep -c '"bytes": ' "$work/rows.json")"
    positive tflops_per_s "$(grep -c '"flops": ' "$work/rows.json")"
    kind=$(sed -n 's/^  "device": "\(.*\)",$/\1/p' "$work/rows.json")
    check 'who ran them' "$("$sluice" info | sed -n 's/^gpu *device: \([^;]*\);.*/\1/p')" "$kind"
    if [ "$kind" = 'cuda (emulated)' ]; then
        check 'no registers are known of an emulated GPU' 0 "$(grep -c '"registers"' "$work/rows.json")"
    else
        positive registers "$(grep -c '"blocks": ' "$work/rows.json")"
    fi
    run_one kernels --device cuda --small --op attention_backward --dtype bf16 --json -
    check 'one kernel on the GPU' 'attention_backward bf16' \
        "$(sed -n 's/^ *"\(op\|type\)": "\(.*\)",$/\2/p' "$work/out" | xargs)"
    run_one kernels --device cuda --op no_such
    check 'an unknown kernel is refused there too' yes \
        "$(grep -q 'no_such: use one of .*gemm' "$work/err" && echo yes)"
    run_one kernels --device cuda --size 1MiB
    check 'sizes of the host are refused' 2 $code
    run_one kernels --small
    check 'small sizes are refused on the host' 2 $code
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
gpu_kernels
products
[ $failed = 0 ] && echo "sluice-lab kernels, sluice-lab gemm: all as promised"
exit $failed
