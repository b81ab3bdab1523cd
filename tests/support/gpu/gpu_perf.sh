# shellcheck shell=bash
# Tests of `sluice perf --device cuda` source this file after command_check.sh.
# shellcheck disable=SC2154 # sluice and work come from command_check.sh

perf() { # RANKS OPTION...: output in $work/out and $work/err, exit code in $code
    local ranks=$1
    shift
    timeout 100 "$sluice" perf --device cuda --ranks "$ranks" -w 1 -n 4 "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

checked() { # WHAT ROWS: perf has written so many rows, and no element is wrong
    check "$1" 0 "$code"
    check "$1: the verdict" '# Out of bounds values : 0 OK' "$(grep '^# Out of bounds' "$work/out")"
    check "$1: rows without a wrong element" "$2" "$(awk '$1 ~ /^[0-9]/ && $8 == 0 && $5 > 0' "$work/out" | wc -l)"
}
