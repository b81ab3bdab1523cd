#!/usr/bin/env bash
# A rank on a GPU is killed, stops or falls silent at 40 drawn moments, while ranks plan, inside a group of collectives,
# between groups and while they save: every other rank names it and ends, and nothing is left (gpu_losses.py).
# tests.several_gpus_faults_test has a few such moments under `sluice run`.
# Labels: all_only
. "$(dirname "$0")/../support/command_check.sh"
. "$(dirname "$0")/../support/gpu/several_gpus.sh"

TMPDIR=$work python3 "$(dirname "$0")/gpu_losses.py" "$sluice" "$nccl" --moments "${SLUICE_TEST_MOMENTS:-40}" 2>"$work/err"
check 'every loss is named' 0 $?
check 'nothing is left' 0 "$(alive "--data $work")"
exit $failed
