#!/usr/bin/env bash
# Sweeps that end at drawn moments go on with the same command: the small form of sweep_ends.py.
. "$(dirname "$0")/../../support/command_check.sh"
need_command bench
python3 "$(dirname "$0")/sweep_ends.py" "$(realpath "$sluice")" 7 1 one_ahead >"$work/out" 2>"$work/err"
check 'every way to end a sweep' 0 $?
grep -E 'FAILED|^SKIP' "$work/out"
exit $failed
