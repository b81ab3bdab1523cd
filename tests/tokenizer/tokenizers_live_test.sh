#!/usr/bin/env bash
# Hugging Face's tokenizers, of the Python that SLUICE_TEST_PYTHON names, and ours make the same of the same texts.
. "$(dirname "$0")/../support/command_check.sh"
need_test_python tokenizers
timeout -k 10 850 "$python" "$(dirname "$0")/live.py" "$lab" "$work" >"$work/out" 2>"$work/err" </dev/null
check 'tokens and texts are those of tokenizers' 0 $?
grep -v '^$' "$work/out"
[ $failed = 0 ] && echo "tokenizers: all as promised"
exit $failed
