#!/usr/bin/env bash
# docs/quickstart.md: a stranger's first ten minutes, as the page has them (tests/command/quickstart.py runs them).
. "$(dirname "$0")/../support/command_check.sh"
need_command train
[ -n "$("$sluice" info 2>/dev/null)" ] || { echo 'FAILED: sluice info says nothing'; exit 1; }
if [ "$(default_schedule)" != ilp ]; then
    skip "the page shows what a build with a solver prints"
    exit 77
fi
PATH=$(dirname "$(realpath "$sluice")"):$PATH
python3 "$(dirname "$0")/quickstart.py" "$work" || failed=1
exit $failed
