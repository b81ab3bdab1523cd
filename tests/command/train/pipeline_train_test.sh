#!/usr/bin/env bash
# `sluice train --pipeline`: the weights, losses and evaluations of one rank with the same micro-batches, and with R
# replicas of a stage those of R ranks, whatever the schedule and the cuts; results say what each stage did; a checkpoint
# of stages goes on without them; what a pipeline does not do yet is refused by name.
. "$(dirname "$0")/../../support/command_check.sh"
. "$(dirname "$0")/../../support/train_check.sh"

short=(--size nano --micro-batches 3 --steps 2)

numbers_of() { # FILE: what must not depend on the stages
    hash_of "$1"
    grep -E '"(evaluation_loss|final_loss)"' "$1"
}

cuts_of() { # FILE
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["runs"][0]["pipeline"]["cuts"])' "$1"
}

equal_runs() {
    train "${short[@]}" -n 1 --tied split --json "$work/one.json"
    check 'one rank trains' 0 $code
    train "${short[@]}" -n 2 --pipeline 2 --json "$work/two.json"
    check 'two stages train' 0 $code
    check 'the start says so' yes "$(grep -q '^pipeline  *2 stages of 1 replica, schedule 1f1b, cuts h.[0-9] (auto: by sizes' \
        "$work/out" && echo yes)"
    check 'two stages' "$(numbers_of "$work/one.json")" "$(numbers_of "$work/two.json")"
    train "${short[@]}" -n 3 --pipeline 3 --pipeline-schedule gpipe --pipeline-cuts h.1,head --json "$work/three.json"
    printf 'h.1\n head,\n' >"$work/cuts"
    train "${short[@]}" -n 3 --pipeline 3 --pipeline-cuts "$work/cuts" --json "$work/file.json"
    check 'cuts of a file' "$(numbers_of "$work/one.json")" "$(numbers_of "$work/file.json")"
    check 'are those that ran' "['h.1', 'head']" "$(cuts_of "$work/file.json")"
    check 'three stages' "$(numbers_of "$work/one.json")" "$(numbers_of "$work/three.json")"
}

# Cuts by measured times change no bit.
measured_cuts() {
    train --size nano --micro-batches 2 --steps 8 -n 1 --tied split --json "$work/one8.json"
    train --size nano --micro-batches 2 --steps 8 -n 2 --pipeline 2 --json "$work/measured.json"
    check 'cuts are measured' yes "$(grep -q '^pipeline .*(auto: by measured times)$' "$work/out" && echo yes)"
    check 'and change nothing' "$(numbers_of "$work/one8.json")" "$(numbers_of "$work/measured.json")"
    train --size nano --micro-batches 2 --steps 8 -n 2 --pipeline 2 --pipeline-schedule interleaved \
        --json "$work/chunks.json"
    check 'nor with chunks' "$(numbers_of "$work/one8.json")" "$(numbers_of "$work/chunks.json")"
    check 'the end compares the prediction' yes \
        "$(grep -qE '^step    [0-9.]+ ms predicted before the first one, [0-9.]+ ms measured' "$work/out" && echo yes)"
    python3 - "$work/chunks.json" <<'EOF' || failed=1
import json, sys
run = json.load(open(sys.argv[1]))["runs"][0]
pipeline = run["pipeline"]
assert run["predicted_step_s"] == pipeline["predicted_step_s"] == run["prediction"]["predicted"]["step_s"] > 0
assert run["prediction"]["measured"]["step_s"] == pipeline["measured_step_s"] > 0
for stage in pipeline["stages"]:
    parts = stage["predicted"]
    assert min(parts.values()) >= 0 and abs(sum(parts.values()) - pipeline["predicted_step_s"]) < 1e-9, parts
EOF
    local tight=(--size nano --micro-batches 1 --steps 8 -n 2 --pipeline 2) # the step that measures has three
    train "${tight[@]}" --budget 1MiB
    train "${tight[@]}" --budget "$(sed -n 's/.*the smallest that was found is \([0-9]*\) .*/\1/p' "$work/err")"
    check 'a budget without room for the step that measures' 0 $code
    check 'which the start says' 1 "$(grep -c '^pipeline .*(auto: by sizes, as a step that measures does not fit the budget)$' "$work/out")"
}

# The result has the stages: layers by the cuts, bytes by channel as both ends count them, times that a step has room
# for; the end names the stage that computes longest.
results_have_stages() {
    train --size nano --micro-batches 4 --steps 6 -n 2 --pipeline 2 --pipeline-schedule interleaved \
        --pipeline-cuts h.0,h.1,head --eval-every 1 --json "$work/stages.json"
    check 'stages with chunks train' 0 $code
    check 'the end has a table' 2 "$(grep -cE '^ +[01]  (embed, h.1|h.0, )' "$work/out")"
    check 'and says why' yes "$(grep -qE '^idle    [0-9.]+ % of the step.*because stage [01] computes longest' \
        "$work/out" && echo yes)"
    python3 - "$work/stages.json" <<'EOF' || failed=1
import json, sys
run = json.load(open(sys.argv[1]))["runs"][0]
pipeline = run["pipeline"]
stages = pipeline["stages"]
assert (pipeline["stage_count"], pipeline["replicas"], pipeline["chunks"], pipeline["micro_batches"]) == (2, 1, 2, 4)
assert pipeline["schedule"] == "interleaved" and pipeline["cuts"] == ["h.0", "h.1", "head"], pipeline
assert stages[0]["layers"][0] == "embed" and stages[1]["layers"][0] == "h.0" and stages[1]["layers"][-1] == "head"
assert max(s["peak_bytes"] for s in stages) == run["peak_bytes"]
for number, stage in enumerate(stages):
    assert stage["slots"] == 16 and stage["peak_bytes"] == stage["planned_bytes"] > 0, stage
    # Medians of parts need not add up, but none of them is longer than all of the run's steps.
    for key in ("compute_s", "idle_s", "exposed_s", "end_s"):
        assert 0 <= stage[key] < run["train_s"], (key, stage)
    for end in stage["channels"]:
        others = [o for o in stages[end["stage"]]["channels"]
                  if (o["what"], o["piece"], o["stage"], o["receives"]) ==
                     (end["what"], end["piece"], number, not end["receives"])]
        assert len(others) == 1 and others[0]["bytes"] == end["bytes"] > 0, (end, others)
# A gradient is as large as its activations, beside which a mask goes; evaluations between steps send activations alone.
sent = {(c["what"], c["piece"]): c["bytes"] for s in stages for c in s["channels"]}
for piece in (1, 2, 3):
    assert 1 <= sent["activations", piece] / sent["gradients", piece] < 1.1, sent
assert sent["rows", 0] == sent["gradients of rows", 0], sent
kinds = {(c["what"], c["piece"]) for s in stages for c in s["channels"]}
assert kinds == {(w, p) for w in ("activations", "gradients") for p in (1, 2, 3)} | \
    {("rows", 0), ("gradients of rows", 0)}, kinds
EOF
}

# Samples are those of one rank; a timeline has all stages, in each of which slots run one after another, and no forward
# of a stage's first layer begins before the micro-batch is received.
samples_and_timelines() {
    train "${short[@]}" --steps 4 -n 1 --tied split --sample-every 2 --prompt 'the '
    grep -a '^sample' "$work/err" >"$work/samples"
    check 'two samples' 2 "$(wc -l <"$work/samples")"
    train "${short[@]}" --steps 4 -n 2 --pipeline 2 --sample-every 2 --prompt 'the ' --trace "$work/trace.json"
    check 'stages write samples' 0 $code
    grep -a '^sample' "$work/err" | cmp -s - "$work/samples"
    check 'the same ones' 0 $?
    python3 - "$work/trace.json" <<'EOF' || failed=1
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
assert names == {0: "rank 0: stage 0 of 2", 1: "rank 1: stage 1 of 2"}, names
slices = [e for e in events if e["ph"] == "X"]
of = lambda stage, kind: [e for e in slices if e["pid"] == stage and e["cat"] == kind]
for stage in names:
    slots = sorted(of(stage, "slot"), key=lambda e: e["ts"])
    assert len(slots) > 20
    for one, next_one in zip(slots, slots[1:]):
        assert one["ts"] + one["dur"] <= next_one["ts"] + 0.01, (one, next_one)
    assert len(of(stage, "send")) == len(of(1 - stage, "receive")) > 8, stage
first = [e for e in of(1, "slot") if e["name"].startswith("F ")]
layer = min(first, key=lambda e: e["ts"])["name"].split()[1]
checked = 0
for slot in first:
    if slot["name"].split()[1] != layer:
        continue
    here = [e for e in of(1, "receive") if all(e["args"][k] == slot["args"][k] for k in ("pass", "micro_batch"))]
    assert any(e["ts"] + e["dur"] <= slot["ts"] + 0.01 for e in here), (slot, here)
    checked += 1
assert checked >= 6, checked
EOF
}

replicas() {
    train "${short[@]}" -n 2 --tied split --save-weights "$work/weights" --json "$work/ranks.json"
    check 'two ranks train' 0 $code
    train "${short[@]}" -n 4 --pipeline 2 --strategy fsdp --save-weights "$work/piped" --json "$work/both.json"
    check 'two stages of two replicas train' 0 $code
    check 'the start says that too' yes "$(grep -q '^pipeline  *2 stages of 2 replicas,' "$work/out" && echo yes)"
    check 'two stages of two replicas' "$(numbers_of "$work/ranks.json")" "$(numbers_of "$work/both.json")"
    check 'their weights' yes "$(cmp "$work/weights/model.safetensors" "$work/piped/model.safetensors" && echo yes)"
}

# Replicas that exchange their momentum compressed; both phases are reported.
compressed() {
    local onebit=(--size nano --micro-batches 3 --steps 4 --freeze-step 2 --strategy onebit)
    train "${onebit[@]}" --optimizer onebit_adam -n 2 --tied split --json "$work/ranks.json"
    check 'two ranks compress' 0 $code
    train "${onebit[@]}" --optimizer onebit_adam -n 4 --pipeline 2 --json "$work/both.json"
    check 'two stages of two replicas compress' 0 $code
    check 'as two ranks do' "$(numbers_of "$work/ranks.json")" "$(numbers_of "$work/both.json")"
    check 'phases are told' 2 "$(grep -cE '^  (warm-up  .* steps 1-2:|compressed  .* steps 3-4:)' "$work/out")"
    refuses 'leave compat out' -n 4 --pipeline 2 "${onebit[@]}" --optimizer onebit_lamb --onebit-compat
}

going_on() {
    train "${short[@]}" -n 2 --pipeline 2 --save "$work/stages"
    check 'stages are saved' 0 $code
    train "${short[@]}" -n 1 --tied split --resume "$work/stages" --steps 3 --json "$work/resumed.json"
    check 'one rank goes on' 0 $code
    check 'without a warning' no "$(grep -q 'does not go on as it would' "$work/err" && echo yes || echo no)"
    train "${short[@]}" -n 1 --tied split --steps 3 --json "$work/whole.json"
    check 'as if there had been one' "$(hash_of "$work/whole.json")" "$(hash_of "$work/resumed.json")"
}

# A plan of stages from a file is the one that runs, and changes no bit.
plans_in_files() {
    local common=(--data "$work/text" --context 32 --batch 2 --eval-batches 1)
    SLUICE_PLAN_FUSE=off "$sluice" profile --size nano --micro-batches 3 --tied split -n 2 --context 32 --batch 2 \
        -o "$work/profile.json" >/dev/null 2>&1
    check 'a profile' 0 $?
    "$sluice" plan --profile "$work/profile.json" --pipeline 2 --world 2 --micro-batches 3 --pipeline-schedule gpipe \
        --pipeline-cuts head -o "$work/staged.json" >/dev/null
    check 'its plan of stages' 0 $?
    train "${short[@]}" -n 2 --pipeline 2 --plan "$work/staged.json" --json "$work/planned.json"
    check 'the plan runs' 0 $code
    check 'the start says so' yes "$(grep -q '^pipeline .*schedule gpipe, cuts head (as the plan says)' "$work/out" &&
        echo yes)"
    check 'and changes nothing' "$(numbers_of "$work/one.json")" "$(numbers_of "$work/planned.json")"
    refuses 'with --pipeline P' -n 2 "${short[@]}" --tied split --plan "$work/staged.json"
    refuses 'the plan is of 2 stages' -n 3 "${short[@]}" --pipeline 3 --plan "$work/staged.json"
    refuses 'leave --pipeline-cuts out' -n 2 --pipeline 2 --pipeline-cuts head --plan "$work/staged.json"
    refuses 'the budget has 100000' -n 2 "${short[@]}" --pipeline 2 --budget 100000 --plan "$work/staged.json"
}

refusals() {
    refuses 'give off, or from 2' --pipeline 1
    refuses 'a file with such names, or auto' -n 2 --pipeline 2 --pipeline-cuts "$work/nothing"
    refuses 'goes with --pipeline P' --pipeline-cuts h.1
    refuses 'not built in this version' -n 2 --pipeline 2 --pipeline-schedule 2bw
    refuses 'not with --plan-out yet' -n 2 --pipeline 2 --plan-out "$work/plan"
    refuses 'start more ranks' -n 1 --pipeline 2
    refuses 'use tied split' -n 2 --pipeline 2 --tied joint
}

equal_runs
measured_cuts
results_have_stages
samples_and_timelines
replicas
compressed
going_on
plans_in_files
refusals
[ $failed = 0 ] && echo "sluice train --pipeline: all as promised"
exit $failed
