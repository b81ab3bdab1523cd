#!/usr/bin/env bash
# Pictures of a plan: sluice plan --picture draws memory over the step and by layer, sluice trace --picture the lanes over
# memory, with the budget as a line, recomputation in a shade of its own and marks for what is too short to scale.
. "$(dirname "$0")/../../support/command_check.sh"

tool() { # COMMAND OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 120 "$sluice" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

has() { # what, WORDS, FILE
    check "$1" yes "$(grep -qF -- "$2" "$3" && echo yes)"
}

tool plan --profile "$work/nothing.json" --picture "$work/memory.gif"
check 'a picture of another kind is refused' 2 $code
has '... and says which there are' '.svg or .png' "$work/err"

tool profile --made gpt2-small --cluster 2xcpu-1gbit -o "$work/profile.json"
check 'a profile' 0 $code
if ! command -v gnuplot >/dev/null; then
    tool plan --profile "$work/profile.json" --picture "$work/memory.svg"
    check 'without gnuplot a picture is an error' 1 $code
    has '... that says so' 'gnuplot is not installed' "$work/err"
    skip 'pictures: gnuplot is not installed'
    [ $failed = 0 ] && exit 77
    exit 1
fi

for kind in svg png; do
    tool plan --profile "$work/profile.json" --budget 50% --effort 0.05 --picture "$work/memory.$kind" -o "$work/plan.json"
    check "plan --picture memory.$kind" 0 $code
    check "... is written" yes "$([ -s "$work/memory.$kind" ] && echo yes)"
    tool trace --profile "$work/profile.json" --plan "$work/plan.json" --budget 50% --picture "$work/step.$kind"
    check "trace --picture step.$kind" 0 $code
done

# The line about the peak: in use and planned are the plan's bytes.
tool plan --profile "$work/profile.json" --strategy dp --schedule serial --picture "$work/dp.svg"
planned=$(sed -n 's/^memory .*(\([0-9]*\) bytes).*/\1/p' "$work/out")
used=$(sed -n 's/^picture .*(\([0-9]*\) bytes).*/\1/p' "$work/out")
check 'the plan says its bytes' yes "$([ -n "$planned" ] && echo yes)"
case $(sed -n 's/.*; \(.*\) more planned$/\1/p' "$work/out") in
'0 B') check 'all that is planned is in use at the peak' "$planned" "$used" ;;
*) check 'not more is in use than is planned' yes "$([ "$used" -lt "$planned" ] && echo yes)" ;;
esac

for name in 'memory of gpt2-small' 'peak: ' budget planned activations 'optimizer state' 'by layer, at the peak' h.11; do
    has "the memory picture shows $name" "$name" "$work/memory.svg"
done
for name in recompute backward budget planned 'a line: too short to scale' updates; do
    has "the timeline shows $name" "$name" "$work/step.svg"
done
check 'a picture without a budget has no such line' 0 "$(grep -c '>budget<' "$work/dp.svg")"

tool trace --profile "$work/profile.json" --plan "$work/plan.json" --budget 50% -o "$work/step.json"
check 'a budget without a picture is refused' 2 $code
tool plan --profile "$work/profile.json" --effort 0.05 --picture /nowhere/memory.svg
check 'a picture that cannot be written is an error' 1 $code

exit $failed
