#!/usr/bin/env bash
# Comparisons that keep their runs go on where they were interrupted and refuse runs of other settings. Those of
# bench/compare do what they say with the smallest model: play_off.py, drift.py's slowed rank, study_ablation.py, recipes.py.
# Labels: all_only
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
compare=$(cd "$(dirname "$0")/../../../bench/compare" && pwd)
export SLUICE=$sluice SLUICE_LAB=$lab
small=(--size nano --batch 1 --context 16)

run() { # FOLDER/SCRIPT OPTION...: output in $work/out and $work/err, exit code in $code
    local name=${1##*/}
    python3 "$compare/$1" --folder "$work/$name.runs" --json "$work/$name.json" "${@:2}" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

rows() { # FILE: the number of its rows
    python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["rows"]))' "$1"
}

play_off=("${small[@]}" --pairs 1 --steps 10 --budgets 100% --throttles none)
run plans/play_off.py "${play_off[@]}"
check 'play_off.py' 0 $code
check 'it has two runs' 2 "$(grep -c ' of 2, ' "$work/err")"
check 'of one cell' 1 "$(rows "$work/play_off.py.json")"
rm "$work/play_off.py.runs/none.100.0.with.json"
run plans/play_off.py "${play_off[@]}"
check 'what was lost runs again' '2 of 2' "$(grep -o '[12] of 2' "$work/err")"
run plans/play_off.py "${play_off[@]}" --steps 11
check 'other settings are refused' 1 $code
check 'and named' yes "$(grep -q 'another comparison (steps)' "$work/err" && echo yes)"

if taskset -c 1 true 2>/dev/null; then
    run plans/drift.py "${small[@]}" --rounds 1 --kinds rank --after 8 --steps 20
    check 'drift.py' 0 $code
    check 'a row of it' 1 "$(rows "$work/drift.py.json")"
else
    skip 'drift.py: there is no second core'
fi

run plans/study_ablation.py --profiles 1 --budgets 2 --effort 0.01
check 'study_ablation.py' 0 $code
check 'two budgets of one profile' 2 "$(rows "$work/study_ablation.py.json")"
check 'three tables' 3 "$(grep -c '^|---' "$work/out")"

parts=(pld@nano:1 curriculum@nano onebit@nano lamb@nano bert@nano forecast@nano)
if "$compare/networks/namespaces.sh" -n 2 --rate 1gbit -- true >/dev/null 2>&1; then
    parts+=(network@nano)
else
    skip "recipes.py's network: namespaces cannot be made here"
fi
run losses/recipes.py --parts "$(IFS=,; echo "${parts[*]}")" --steps 40 --draws 1 --bert-steps 4 --forecast-steps 20 \
    --forecast-gammas 100 --network-steps 12 --megabytes 0.2
check 'recipes.py' 0 $code
check 'rows of all parts' ${#parts[@]} "$(grep -oE '^\| [a-z]+ \| [A-Z]' "$work/out" | sort -u | wc -l)"
exit $failed
