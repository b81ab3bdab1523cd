#!/usr/bin/env bash
# A hundred mistakes of users (tests/command/mistakes.py lists them), each with its exit code and its one message.
# Labels: sanitized
. "$(dirname "$0")/../support/command_check.sh"
need_command train
python3 -B "$(dirname "$0")/mistakes.py" "$(realpath "$sluice")" "$work" || failed=1
exit $failed
