#!/usr/bin/env bash
# Hugging Face's tokenizers, of the Python that SLUICE_TEST_PYTHON names, and ours make the same of the same texts.
. "$(dirname "$0")/../support/command_check.sh"
[ -n "$("$sluice" info 2>/dev/null)" ] || { echo 'FAILED: sluice info says nothing'; exit 1; }
python=${SLUICE_TEST_PYTHON:-}
if [ -z "$python" ]; then
    echo 'SKIP: SLUICE_TEST_PYTHON names no Python with tokenizers'
    exit 77
fi
if ! "$python" -c 'import tokenizers' 2>"$work/err"; then
    echo "SKIP: SLUICE_TEST_PYTHON=$python cannot import tokenizers: $(tail -n 1 "$work/err")"
    exit 77
fi
timeout -k 10 850 "$python" "$(dirname "$0")/live.py" "$lab" "$work" >"$work/out" 2>"$work/err" </dev/null
check 'tokens and texts are those of tokenizers' 0 $?
grep -v '^$' "$work/out"
[ $failed = 0 ] && echo "tokenizers: all as promised"
exit $failed
