#!/usr/bin/env bash
# The commands by which docs/data.md and docs/training.md have their figures work, in a short form: each ends well and
# prints its line. Their figures are for people. That of transformers needs SLUICE_TEST_PYTHON.
# Labels: all_only
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
need_python3
root=$(realpath "$(dirname "$0")/../../..")
sluice=$(realpath "$sluice")
export PYTHONDONTWRITEBYTECODE=1 TMPDIR=$work HF_HUB_OFFLINE=1

works() { # WORDS PAGE FOLDER/SCRIPT OPTION...: the script prints a line like these words, and the page names it
    local words=$1 page=$2 script=$3
    shift 3
    timeout 300 "${python:-python3}" "$root/bench/compare/$script" --sluice "$sluice" "$@" >"$work/out" 2>"$work/err" </dev/null
    check "$script" 0 $?
    check "$script says" yes "$(grep -Eq "$words" "$work/out" && echo yes)"
    check "docs/$page names $script" yes "$(grep -q "bench/compare/$script" "$root/docs/$page" && echo yes)"
}

works 'first step after [0-9.]+ s, in a later run after [0-9.]+ s; .* for the data$' data.md data/large_records.py --gib 0.07
works 'first step after' data.md data/large_records.py --gib 0.01 --labels --ranks 1
works 'real tokens a second x [0-9.]+, held-out loss x [0-9.]+' data.md data/length_groups.py --size nano --steps 60 --seeds 1
works '^processor time: [-+][0-9.]+ % with a log' training.md training/log_cost.py --size nano --steps 20 --pairs 2
if test_python_has torch transformers tokenizers; then
    works '^chat ' data.md data/documents.py --steps 5
else
    skip "documents.py: $lacking"
fi
exit $failed
