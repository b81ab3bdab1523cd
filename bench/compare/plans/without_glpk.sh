#!/usr/bin/env bash
# This script measures what planning loses without GLPK: the predicted step of plans by the schedules ilp and portfolio,
# for the same profile and budget, at budgets between the smallest that works and what all layers under sdp need.
#
# bench/compare/plans/without_glpk.sh [SLUICE]: a table on standard output; SECONDS_A_PLAN (3) is what each plan may take.
set -euo pipefail
sluice=${1:-build/release/bench/sluice}
seconds=${SECONDS_A_PLAN:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

plan() { # OPTION...: leaves $work/plan.json; what it says on standard output
    "$sluice" plan --profile "$work/profile.json" --recompute none --effort "$seconds" -o "$work/plan.json" "$@"
}

step_s() { # SCHEDULE BUDGET: the predicted step; nothing: no plan
    plan --budget "$2" --schedule "$1" >/dev/null 2>&1 || return 0
    "$sluice" sim --profile "$work/profile.json" --plan "$work/plan.json" --json - 2>/dev/null |
        sed -n 's/^  "step_s": \([0-9.e-]*\),$/\1/p'
}

printf '%-12s %-18s %9s %12s %14s %9s\n' model cluster budget 'ilp, s' 'portfolio, s' slower
while read -r model cluster; do
    "$sluice" profile --made "$model" --cluster "$cluster" -o "$work/profile.json" >/dev/null
    least=$({ plan --budget 1B 2>&1 || true; } | sed -n 's/.*--budget \([0-9]*\), --strategy.*/\1/p')
    most=$(plan --strategy sdp --schedule one_ahead | sed -n 's/^memory .*(\([0-9]*\) bytes).*/\1/p')
    for tenth in 0 2 4 6 8 10; do
        budget=$((least + (most - least) / 10 * tenth))
        printf '%-12s %-18s %7d %% %12s %14s\n' "$model" "$cluster" $((10 * tenth)) "$(step_s ilp $budget)" \
            "$(step_s portfolio $budget)" | awk '{ printf "%s %8s\n", $0, NF == 6 ? sprintf("%.1f %%", 100 * ($6 / $5 - 1)) : "no plan" }'
    done
done <<'LIST'
gpt2-small 2xcpu-1gbit
gpt2-medium 8xcpu-10gbit
gpt2-xl 16xV100-25gbit
gpt3-6.7b 64xA100-200gbit
LIST
