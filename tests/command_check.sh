# shellcheck shell=bash
# What the tests of the command begin with: sourced as `. "$(dirname "$0")/command_check.sh"` by a script that got the
# path of the command. Gives $sluice, a folder $work that goes when the script ends, and check, which sets $failed.
# shellcheck disable=SC2034 # used by those who source it
set -u
sluice=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

default_schedule() { # of a build: ilp, or portfolio where there is no solver
    "$sluice" info | sed -n 's/^planner  *schedule: \([a-z]*\);.*/\1/p'
}

check() { # what, expected, got; shows the head of $work/err where they differ
    if [ "$2" = "$3" ]; then return; fi
    printf 'FAILED: %s\n  expected: %s\n  got:      %s\n' "$1" "$2" "$3"
    [ ! -e "$work/err" ] || sed 's/^/  err: /' "$work/err" | head -5
    failed=1
}
