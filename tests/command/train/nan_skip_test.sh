#!/usr/bin/env bash
# A run that skips steps says so, ends with an error if it skips for ever, and prints nothing as a result that is not
# finite.
# shellcheck source=../../support/command_check.sh
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
# shellcheck source=../../support/train_check.sh
. "$(dirname "$0")/../../support/train_check.sh"
common+=(--schedule one_ahead --nan skip)

train --steps 30 --lr 1e5 --nan-limit 4 --json "$work/endless.json"
check 'skipping for ever ends the run' 1 $code
check 'after so many steps' yes "$(grep -q 'step 5: 4 steps in a row were skipped' "$work/err" && echo yes)"
check 'the first skip is warned about' 1 "$(grep -c 'warning: step 2 was skipped' "$work/err")"

train --steps 12 --lr 3e2 --nan-limit 100 --json "$work/some.json" --csv "$work/some.csv"
check 'a run that skips some steps' 0 $code
skipped=$(sed -n 's/^ *"skipped_steps": \([0-9]*\),/\1/p' "$work/some.json")
check 'it counts them in JSON' yes "$([ "${skipped:-0}" -gt 0 ] && [ "$skipped" -lt 12 ] && echo yes)"
check 'and in its last line' yes "$(grep -q "^trained.*, $skipped of the steps skipped" "$work/out" && echo yes)"
check 'no result is NaN or infinite' '' "$(grep -iE '[^a-z](nan|inf)([^a-z]|$)' "$work/out" "$work/some.json" "$work/some.csv" |
    grep -v -e '"nan' -e '"--nan')"

train --steps 4 --lr 1e-3
check 'a run without a skip' 0 $code
check 'says nothing of skips' '' "$(grep -h 'skipped' "$work/out" "$work/err")"
exit $failed
