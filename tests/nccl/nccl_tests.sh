#!/usr/bin/env bash
# Runs programs of nccl-tests, found in the folder that SLUICE_TEST_NCCL_TESTS names, and prints their rows without the
# times. Each must find no wrong value.
#
# nccl_tests.sh OPERATION ARGUMENTS...: of ./OPERATION_perf
set -uo pipefail
folder=${SLUICE_TEST_NCCL_TESTS:-}
[ -n "$folder" ] || { echo 'SKIP: SLUICE_TEST_NCCL_TESTS names no folder of nccl-tests'; exit 77; }
program=$folder/$1_perf
[ -x "$program" ] || { echo "SKIP: $program is not there"; exit 77; }
shift
out=$("$program" "$@" 2>&1) || { echo "$out" >&2; exit 1; }
grep -q '^# Out of bounds values : 0 OK' <<<"$out" || { echo "$out" >&2; exit 1; }
awk '$1 ~ /^[0-9]+$/ && NF == 13 { print $1, $2, $3, $4, $5, "wrong", $9, $13 }' <<<"$out"
