#!/usr/bin/env bash
# `sluice plan`, `sim` and `trace` plan stages of layers from a profile: a table of them, JSON, a picture, a timeline; and
# what cannot be is refused with what can.
. "$(dirname "$0")/../../support/command_check.sh"

tool() { # COMMAND OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 120 "$sluice" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

says() { # what, words: they are in the output
    check "$1" yes "$(grep -qF -- "$2" "$work/out" && echo yes)"
}

refuses() { # words of the message, then COMMAND OPTION...
    local words=$1
    shift
    tool "$@"
    check "$* fails" 2 $code
    check "$* says \"$words\"" yes "$(grep -qF -- "$words" "$work/err" && echo yes)"
}

number_of() { # key, file: the first number of that name
    sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" "$2" | head -1
}

less() { # what, a, b: a is below b
    check "$1: $2 is less than $3" yes "$(awk -v a="$2" -v b="$3" 'BEGIN { print (a < b) ? "yes" : "no" }')"
}

make() {
    tool profile --made gpt2-small --cluster 2xcpu-1gbit --context 64 --batch 4 --tied split --micro-batches 8 \
        --world 4 -o "$work/profile.json"
    check 'a profile' 0 $code
    tool profile --made gpt2-small --cluster 2xcpu-1gbit --context 64 --batch 4 --tied joint -o "$work/joint.json"
    check 'a profile of a table that is one' 0 $code
    profile=(--profile "$work/profile.json")
}

tables() {
    tool plan "${profile[@]}" --pipeline 4 --json "$work/plan.json"
    check 'plan --pipeline 4' 0 $code
    says 'it counts' '4 ranks: 4 stages of 1 replica, 8 micro-batches, schedule 1f1b'
    check 'it has a row for each stage' 4 "$(grep -cE '^ +[0-3]  (embed|h\.|head)' "$work/out")"
    for word in cuts memory step idle limit bound messages planned; do
        check "plan says $word" 1 "$(grep -c "^$word  *" "$work/out")"
    done
    says 'what crosses a cut' '2.36 MB forward and 2.36 MB back a micro-batch, over 3 cuts'
    check 'the bound holds' yes "$(awk -v b="$(number_of bound_s "$work/plan.json")" \
        -v s="$(number_of step_s "$work/plan.json")" 'BEGIN { print (b > 0 && b <= s) ? "yes" : "no" }')"

    cuts=$(sed -n 's/^cuts  *\([^;]*\);.*/\1/p' "$work/out")
    tool plan "${profile[@]}" --pipeline 4 --pipeline-cuts "$cuts" --json "$work/again.json"
    check 'the cuts that it prints can be given' 0 $code
    check 'and give the same step' "$(number_of step_s "$work/plan.json")" "$(number_of step_s "$work/again.json")"
    tr , '\n' <<<"$cuts" >"$work/cuts"
    tool plan "${profile[@]}" --pipeline 4 --pipeline-cuts "$work/cuts" --json "$work/file.json"
    check 'so can a file of them' "$(number_of step_s "$work/plan.json")" "$(number_of step_s "$work/file.json")"

    tool plan "${profile[@]}" --pipeline 2 --strategy sdp --json -
    check 'two stages of two replicas' 0 $code
    check 'JSON alone on standard output' '{' "$(head -c 1 "$work/out")"
    check 'each stage has two replicas' 2 "$(number_of replicas "$work/out")"
    check 'the table goes to standard error' yes "$(grep -q '2 stages of 2 replicas' "$work/err" && echo yes)"
}

# The schedules differ as they should: in memory, idle time and what they say.
schedules() {
    local name
    for name in gpipe 1f1b interleaved zero_bubble pipedream 2bw; do
        tool plan "${profile[@]}" --pipeline 4 --pipeline-schedule $name --json "$work/$name.json"
        check "plan --pipeline-schedule $name" 0 $code
        cp "$work/out" "$work/$name.txt"
    done
    tool plan "${profile[@]}" --world 2 --pipeline 2 --pipeline-schedule interleaved --json "$work/two.json"
    tool plan "${profile[@]}" --world 2 --pipeline 2 --json "$work/two_1f1b.json"
    less 'a step of interleaved' "$(number_of step_s "$work/two.json")" "$(number_of step_s "$work/two_1f1b.json")"
    less 'a step of 2bw' "$(number_of step_s "$work/2bw.json")" "$(number_of step_s "$work/1f1b.json")"
    less 'the memory of 1f1b' "$(number_of planned_bytes "$work/1f1b.json")" "$(number_of planned_bytes "$work/gpipe.json")"
    check 'interleaved has two chunks' 7 "$(grep -c '"behind"' "$work/interleaved.json")"
    check 'zero_bubble says what it assumes' yes "$(grep -q '^note .*half of a backward' "$work/zero_bubble.txt" && echo yes)"
    for name in pipedream 2bw; do
        check "$name says that its values are older" yes "$(grep -q '^note .*older values' "$work/$name.txt" && echo yes)"
        check "$name counts them" yes "$(grep -q '^memory .*older values' "$work/$name.txt" && echo yes)"
    done
}

budgets() {
    local most
    most=$(sed -n 's/.*at the peak of stage [0-9]* (\([0-9]*\) bytes.*/\1/p' "$work/1f1b.txt")
    tool plan "${profile[@]}" --pipeline 4 --budget "$((most - 1))"
    check 'a budget below the peak of the fastest cuts' yes "$([ $code = 0 ] || [ $code = 2 ] && echo yes)"
    refuses 'the smallest that was found is' plan "${profile[@]}" --pipeline 4 --budget 1MiB
    most=$(sed -n 's/.*the smallest that was found is \([0-9]*\) .*/\1/p' "$work/err")
    tool plan "${profile[@]}" --pipeline 4 --budget "$most"
    check 'the budget that a refusal names works' 0 $code
    tool plan "${profile[@]}" --pipeline 4 --budget 100%
    check 'a share of the least that dp works in without a pipeline' 0 $code
}

# A plan of stages is a file, from which sim and trace say the same; units have strategies of their own.
files() {
    local least
    tool plan "${profile[@]}" --pipeline 2 --json "$work/two.json" -o "$work/stages.json"
    check 'plan --pipeline -o' 0 $code
    check 'its version is 2' 2 "$(number_of version "$work/stages.json")"
    says 'it compares itself with data parallelism' 'a step on 4 ranks without a pipeline, 4 micro-batches each'
    tool sim --profile "$work/profile.json" --plan "$work/stages.json" --json "$work/sim.json"
    check 'sim reads it' 0 $code
    check 'and says the same step' "$(number_of step_s "$work/two.json")" "$(number_of step_s "$work/sim.json")"
    tool trace --profile "$work/profile.json" --plan "$work/stages.json" -o "$work/trace.json"
    check 'trace reads it' 0 $code
    check 'and has both stages' 2 "$(grep -o '"process_name"' "$work/trace.json" | wc -l)"
    refuses "is for 4 ranks" sim --profile "$work/profile.json" --world 8 --plan "$work/stages.json"
    tool check --profile "$work/profile.json" --plan "$work/stages.json" --json "$work/check.json"
    check 'check takes it' 0 $code
    check 'and has a row for each stage' 2 "$(grep -cE '^ +[01] +[0-9]+ +[0-9]+ +[1-9]' "$work/out")"
    check 'whose messages meet' yes "$(python3 -c 'import json, sys
one, two = json.load(open(sys.argv[1]))["stages"]
print("yes" if one["messages"] == two["messages"] > 0 and one["slots"] > 0 and one["arena_bytes"] > 0 else one)' \
        "$work/check.json")"
    sed 's/"replicas": 2/"replicas": 1/' "$work/stages.json" >"$work/broken.json"
    refuses 'broken.json' sim --profile "$work/profile.json" --plan "$work/broken.json"
    refuses 'broken.json' check --profile "$work/profile.json" --plan "$work/broken.json"

    refuses 'the smallest that was found is' plan "${profile[@]}" --pipeline 2 --budget 1MiB
    least=$(sed -n 's/.*the smallest that was found is \([0-9]*\) .*/\1/p' "$work/err")
    tool plan "${profile[@]}" --pipeline 2 --budget "$least"
    check 'the smallest budget of two replicas works' 0 $code
    says 'with gathers in each micro-batch' '; gathered once a step: 0, in each micro-batch: '
    says 'which it counts' 'a micro-batch, '
    tool plan "${profile[@]}" --pipeline 2 --strategy fsdp
    says 'fsdp is held where it fits' ', in each micro-batch: 0'
    tool plan "${profile[@]}" --pipeline 2 --lossy onebit --json "$work/onebit.json"
    check 'stages may exchange compressed momentum' 0 $code
    less 'a step with onebit' "$(number_of step_s "$work/onebit.json")" "$(number_of step_s "$work/two.json")"
}

pictures() {
    tool sim "${profile[@]}" --pipeline 4 --micro-batches 4 --trace "$work/trace.json"
    check 'sim --pipeline' 0 $code
    check 'it draws every stage' 4 "$(grep -cE '^  stage [0-3]   \|[0-9a-z.]*\|$' "$work/out")"
    check 'the first stage begins with a forward' 4 "$(sed -n 's/^  stage 0   |\(.*\)|/\1/p' "$work/out" | tr -cd '0-3' |
        fold -w1 | sort -u | grep -c .)"
    check 'the trace has all stages' 4 "$(grep -o '"process_name"' "$work/trace.json" | wc -l)"
    tool trace "${profile[@]}" --pipeline 4 --pipeline-schedule interleaved --micro-batches 4 -o -
    check 'trace --pipeline' 0 $code
    check 'it has the chunks' yes "$(grep -q '"F 0 chunk 1"' "$work/out" && echo yes)"
    refuses 'give -o FILE' trace "${profile[@]}" --pipeline 4 --picture "$work/step.svg"
    refuses 'leave --plan out' sim "${profile[@]}" --pipeline 4 --plan "$work/plan.json"
    refuses 'leave --spread and --passes out' sim "${profile[@]}" --pipeline 4 --spread 0.1
}

# auto weighs the ranks without a pipeline and each number of stages that divides them, all with the same batch; what it
# chooses is the fastest of them, and is planned as if it had been asked for.
weighing() {
    tool plan "${profile[@]}" --pipeline auto --micro-batches 2 --json "$work/auto.json" -o "$work/chosen.json"
    check 'plan --pipeline auto' 0 $code
    check 'a row for each way, one chosen' '5 1' \
        "$(grep -cE '^[* ] +[124]  (-|1f1b|interleaved) ' "$work/out") $(grep -c '^\* ' "$work/out")"
    check 'it says why' 1 "$(grep -c '^chosen .* Without a pipeline compute waits ' "$work/out")"
    python3 - "$work/auto.json" >"$work/way" <<'EOF' || failed=1
import json, sys
plan = json.load(open(sys.argv[1]))
ways = plan["weighed"]
assert [(w["stages"], w["schedule"], w["micro_batches"]) for w in ways] == \
    [(1, None, 2), (2, "1f1b", 4), (2, "interleaved", 4), (4, "1f1b", 8), (4, "interleaved", 8)], ways
chosen = [w for w in ways if w["chosen"]]
assert len(chosen) == 1 and chosen[0]["step_s"] == min(w["step_s"] for w in ways)
assert abs(plan["pipeline"]["step_s"] - chosen[0]["step_s"]) < 1e-9 and plan["pipeline"]["stage_count"] == chosen[0]["stages"]
four = [w for w in ways if w["stages"] == 4 and w["schedule"] == "1f1b"][0]
print(four["step_s"])
EOF
    tool plan "${profile[@]}" --pipeline 4 --micro-batches 8 --json "$work/four.json"
    check 'a way is planned as if it had been asked for' 0 \
        "$(awk -v a="$(cat "$work/way")" -v b="$(number_of step_s "$work/four.json")" 'BEGIN { print ((a - b) ^ 2 > 1e-12) }')"
    tool profile --made gpt2-small --cluster 2xcpu-one-host --context 64 --batch 4 --tied split --world 2 \
        -o "$work/fast.json"
    tool plan --profile "$work/fast.json" --pipeline auto --micro-batches 4 --json "$work/none.json"
    check 'no pipeline is chosen on one host' 1 "$(grep -c '^\* *1  -  ' "$work/out")"
    check 'and what was weighed is told too' '3 [1] False' "$(python3 -c 'import json, sys
plan = json.load(open(sys.argv[1]))
ways = plan["weighed"]
print(len(ways), [w["stages"] for w in ways if w["chosen"]], "pipeline" in plan)' "$work/none.json")"
    refuses 'leave --pipeline-cuts out' plan "${profile[@]}" --pipeline auto --pipeline-cuts h.3
    refuses 'sluice plan weighs pipelines' sim "${profile[@]}" --pipeline auto
    refuses 'nothing fits' plan "${profile[@]}" --pipeline auto --budget 1MiB
}

refusals() {
    refuses '4 ranks are no multiple of 3 stages; with 4 ranks 2, 4 work' plan "${profile[@]}" --pipeline 3
    refuses '1 rank is no multiple of 2 stages; give more ranks, as --world 2' plan "${profile[@]}" --world 1 --pipeline 2
    refuses 'up to 14 stages work' plan "${profile[@]}" --world 15 --pipeline 15
    refuses '8 and 12 work' plan "${profile[@]}" --pipeline 4 --pipeline-schedule interleaved --micro-batches 10
    refuses '4 and more work' plan "${profile[@]}" --pipeline 4 --pipeline-schedule 2bw --micro-batches 3
    refuses 'several go with the schedule interleaved' plan "${profile[@]}" --pipeline 4 --pipeline-chunks 2
    refuses '--pipeline-cuts: "h.3,h.6" has 2 names; 4 pieces of the model need 3' \
        plan "${profile[@]}" --pipeline 4 --pipeline-cuts h.3,h.6
    refuses '--pipeline-cuts: no layer is called "h.x"; the first layers of further stages are h.0 to head' \
        plan "${profile[@]}" --pipeline 2 --pipeline-cuts h.x
    refuses '--pipeline-cuts: "h.3" does not come after "h.6"; from "h.7" on every layer does' \
        plan "${profile[@]}" --pipeline 4 --pipeline-cuts h.6,h.3,head
    refuses '--tied split' plan --profile "$work/joint.json" --pipeline 2
    refuses '2bw keeps older values whole' plan "${profile[@]}" --pipeline 2 --pipeline-schedule 2bw --strategy fsdp
    refuses 'give auto, dp, oss, sdp, fsdp or onebit' plan "${profile[@]}" --pipeline 2 --strategy mixed
    refuses 'give off, from 2 to 1024 stages, or auto' plan "${profile[@]}" --pipeline 1
    refuses 'give off, from 2 to 1024 stages, or auto' plan "${profile[@]}" --pipeline many
    refuses '--micro-batches goes with --pipeline P' plan "${profile[@]}" --micro-batches 4
    refuses '--pipeline-cuts goes with --pipeline P' sim "${profile[@]}" --pipeline-cuts h.3
    refuses 'leave --picture out' plan "${profile[@]}" --pipeline 2 --picture "$work/stages.svg"
    tool plan "${profile[@]}" --pipeline 4 --micro-batches 1
    check 'fewer micro-batches than stages' 0 $code
    says 'are warned about' '1 micro-batch for 4 stages: 75 % of the time of equal stages is idle'
    tool plan "${profile[@]}" --pipeline off --effort 0.05
    check 'without a pipeline all is as before' 0 $code
    check 'and there are no stages' 0 "$(grep -c '  stage ' "$work/out")"
}

make
tables
schedules
budgets
files
weighing
pictures
refusals
[ $failed = 0 ] && echo "sluice plan, sim, trace with --pipeline: all as promised"
exit $failed
