#!/usr/bin/env bash
# The scripts of tests/ keep two rules. One that trains names a schedule: planning would be most of its work, and is
# seldom what it is about. None waits without a limit: command_check.sh has `ends`. A script that breaks a rule is found.
set -euo pipefail
tests=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

faults() { # SCRIPT...: a line for each
    local script code
    for script; do
        code=$(sed 's/^ *#.*//' "$script")
        if grep -qE '((\$sluice|\$0)"|tool|run|line=\() ?train ' <<<"$code" &&
            ! grep -qE -e '--schedule|/(train_check|several_gpus)\.sh"' <<<"$code"; then
            echo "$script: it trains, and names no --schedule"
        fi
        if grep -qE '(^|[;&]) *wait( |$)' <<<"$code"; then
            echo "$script: it waits without a limit; use begin and ends of tests/support/command_check.sh"
        fi
    done
}

planted() { # LINE: a script of it has one fault
    echo "$1" >"$work/planted_test.sh"
    [ "$(faults "$work/planted_test.sh" | wc -l)" = 1 ] || { echo "FAILED: not found: $1"; exit 1; }
}

planted 'timeout 60 "$sluice" train --steps 3'
planted 'run train --steps 3'
planted 'sleep 3 & wait $!'
planted '    wait'
mapfile -t scripts < <(find "$tests" -name '*_test.sh' ! -name scripts_test.sh)
[ ${#scripts[@]} -gt 30 ] || { echo "FAILED: only ${#scripts[@]} scripts were found"; exit 1; }
found=$(faults "${scripts[@]}")
[ -z "$found" ] || { echo "$found"; exit 1; }
echo 'scripts: schedules are named, and waits have limits'
