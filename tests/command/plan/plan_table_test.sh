#!/usr/bin/env bash
# `sluice train` shows what the planner decided, in the table that `sluice plan` prints, in words, with the same numbers
# as in its JSON. It keeps the plan, and runs a kept one to the same bits. A plan that is damaged, or of another job, is
# refused with what differs.
. "$(dirname "$0")/../../support/command_check.sh"
sluice=$(realpath "$sluice")
examples=$(cd "$(dirname "$0")/../../../docs/examples" && pwd)
cd "$work" || exit 1
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >text

tool() { # COMMAND OPTION...: output in out and err, exit code in $code
    timeout 120 "$sluice" "$@" >out 2>err </dev/null
    code=$?
}

train() { # OPTION...
    tool train --data text --context 32 --batch 2 --eval-batches 0 "$@"
}

says() { # what, words, file
    check "$1" yes "$(grep -qF -- "$2" "$3" && echo yes)"
}

refuses() { # words of the message, then OPTION... of train
    local words=$1
    shift
    train --steps 2 "$@"
    check "train $* fails" yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
    says "train $* says \"$words\"" "$words" err
}

table_of() { # file: head, rows, legend and sums of the table in it
    sed -n '/^  layers /,/^schedule /p' "$1"
}

hash_of() {
    grep -o '"weights_sha256": "[0-9a-f]*"' "$1"
}

# A table stays on a screen, whatever the planner mixes.
size_of_table() {
    tool profile --made gpt2-xl --cluster 16xV100-25gbit -o xl.json
    check 'a profile of 48 layers' 0 $code
    tool plan --profile xl.json --budget 60% --strategy mixed --schedule one_ahead
    check 'a plan of 48 layers' 0 $code
    check 'in at most 15 lines' yes "$([ "$(table_of out | wc -l)" -le 15 ] && echo yes)"
    says 'what the strategies are' '  (sdp: optimizer state and gradients are sharded; fsdp: parameters too)' out
    check 'sharded: what it saves and costs' yes \
        "$(grep -q 'fsdp .*sharded: saves [0-9.]* [MG]iB a rank, costs [0-9.]* m\?s of communication' out && echo yes)"
    check 'the rest: what it keeps and saves' yes \
        "$(grep -q 'sdp .*whole: keeps [0-9.]* [MG]iB more, saves [0-9.]* m\?s of communication' out && echo yes)"
    check 'no word of units or slots' '' "$(grep -wE 'units?|slots?' out)"
}

bound() {
    [ "$(default_schedule)" = ilp ] || { skip 'the bound: this build has no solver'; return; }
    tool plan --profile "$examples/three_layers.json" --budget 330MB --effort 0.5
    check 'a plan with a bound' 0 $code
    check 'the bound and the distance in words' yes \
        "$(grep -Eq '^bound +lower bound [0-9.]+ ms; this plan is [0-9.]+ % above' out && echo yes)"
    distance
}

# The parts of the distance to the bound add up, in the file and in the line; --schedule portfolio has no bound.
distance() {
    command -v python3 >/dev/null || { skip 'the parts of the distance: python3 is not installed'; return; }
    tool plan --profile "$examples/three_layers.json" --budget 310MB --effort 0.4 -o parts.json
    check 'a plan of a tight budget' 0 $code
    cat >parts.py <<'P'
import json, re
forecast = json.load(open("parts.json"))["forecast"]
distance, bound = forecast["distance"], forecast["bound_s"]
parts = {key[:-2]: s for key, s in distance.items() if key.endswith("_s")}
assert set(parts) == {"unproven", "choices", "blocks", "order", "latency", "packing", "outside"}, parts
above = max(forecast["step_s"] - bound, 0)
assert min(parts.values()) >= 0 and abs(sum(parts.values()) - above) < 1e-9, (parts, above)
line = re.search("^bound .*$", open("out").read(), re.M)[0]
told = {name: float(share) for share, name in re.findall("([0-9.]+) % ([a-z]+)", line.split(":", 1)[-1])} if ":" in line else {}
assert set(told) == {name for name, s in parts.items() if s >= 0.0005 * bound}, (told, parts)
assert all(abs(share - 100 * parts[name] / bound) < 0.06 for name, share in told.items()), (told, parts)
assert list(told.values()) == sorted(told.values(), reverse=True), told
planning = forecast["planning"]
assert planning["ended"] == "effort" and 0.4 <= planning["effort_s"] < 0.6, planning
P
    says 'why planning ended' ': its effort was spent; more of it may find a faster plan' out
    check 'the parts add up' '' "$(python3 parts.py 2>&1 | tail -1)"
    tool plan --profile "$examples/three_layers.json" --budget 310MB --effort 0.4 --schedule portfolio -o parts.json
    check 'a plan without a bound' 0 $code
    check 'has no parts' '' "$(grep -E '^bound' out)"
    says 'nor in its file' '"bound_s": null, "distance": null' parts.json
}

# The schedule greedy is measured and draws nothing, so that the same profile gives the same plan again.
same_as_plan() {
    local how=(--strategy fsdp --schedule greedy --recompute all)
    SLUICE_PLAN_FUSE=off train -n 2 --steps 4 "${how[@]}" --plan-out greedy.json --profile-out greedy_profile.json --json run.json
    check 'a run keeps its plan and profile' 0 $code
    table_of out >shown
    says 'it is told what the plan is from' 'plan from measured times' out
    says 'recomputation: what it saves and costs' 'recomputed: saves ' shown
    says 'and that in words' ' a step' shown
    says 'what costs nothing is free' 'sharded: saves 256 B a rank, free' shown
    check 'the table is printed once' 1 "$(grep -c '^  layers ' out)"
    tool plan --profile greedy_profile.json "${how[@]}"
    check 'plan of the same profile' 0 $code
    check 'says what another choice would cost' yes "$(table_of out | grep -q '; next best: sdp, ' && echo yes)"
    check 'prints the same table else' "$(cat shown)" "$(table_of out | sed 's/; next best: [a-z]*, .*//')"
    tool check --profile greedy_profile.json --plan greedy.json
    check 'check takes both files' 0 $code
    tool sim --profile greedy_profile.json --plan greedy.json --json sim.json
    check 'sim takes both files' 0 $code
    tool trace --profile greedy_profile.json --plan greedy.json -o trace.json
    check 'trace takes both files' 0 $code
}

# JSON says what was printed.
same_in_json() {
    command -v python3 >/dev/null || { skip 'whether JSON equals the table: python3 is not installed'; return; }
    cat >compare.py <<'P'
import json, re, sys
run = json.load(open("run.json"))["runs"][0]
plan, table = run["plan"], open("shown").read()
rows = [line for line in table.splitlines() if line.startswith("  ") and not line.startswith("  (")][1:]
sizes = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
cells = [(float(n), sizes[u]) for row in rows for n, u in re.findall(r"^ .{30,}? ([0-9.]+) ([KMG]?i?B)  ", row)]
kept, rounded = sum(n * u for n, u in cells), sum(0.051 * u for n, u in cells)
units = plan["units"]
assert {u["strategy"] for u in units} == {"fsdp"} and plan["measured"] and plan["schedule"] == "greedy", plan
assert sum(u["recomputed"] for u in units) == 4, units
for u in units:  # a row of one unit says what its element says
    row = [r for r in rows if r.split()[0] == u["name"]]
    assert not row or row[0].endswith(u["why"]), (row, u)
assert len(cells) == len(rows) and abs(kept - sum(u["resident_bytes"] for u in units)) <= rounded, (kept, rows)
assert f"({plan['planned_bytes']} bytes)" in table and plan["planned_bytes"] == run["planned_bytes"], plan
assert plan["step_s"] == run["predicted_step_s"] and f"{plan['step_s'] * 1e3:.1f} ms predicted" in table, plan
assert abs(plan["compute_s"] + plan["exposed_s"] + plan["outside_s"] - plan["step_s"]) < 1e-9, plan
sim = json.load(open("sim.json"))
assert abs(sim["step_s"] - plan["step_s"]) < 1e-9, (sim["step_s"], plan["step_s"])
# Layer h.2 by hand: fp32 values, gradients and two states, of which a rank keeps a half under fsdp; under sdp it keeps
# the values whole. Under fsdp it is gathered for forward and for backward, under sdp once, after its update.
profile = json.load(open("greedy_profile.json"))
elements = next(u["parameters"] for u in profile["units"] if u["name"] == "h.2")
layer = next(l for l in profile["layers"] if l["name"] == "h.2")
h2 = next(u for u in units if u["name"] == "h.2")
gather = profile["link"]["all_gather"]
assert elements % 32 == 0 and h2["resident_bytes"] == elements * (4 + 8) // 2, h2
assert h2["sharding_saves_bytes"] == elements * 4 // 2, h2
costs = gather["latency_s"] + elements * 4 / 2 / gather["bytes_per_s"]
assert abs(h2["sharding_costs_s"] - costs) < 1e-3 * costs + 2 * profile["link"]["operation_s"], (h2, costs)
remade = sum(a["bytes"] for a in profile["activations"] if a.get("recomputable") and a["first"] == "forward h.2")
assert remade and h2["recomputing_saves_bytes"] == remade, (h2, remade)
assert abs(h2["recomputing_costs_s"] - layer["recompute_s"]) < 1e-12, (h2, layer)
data = run["data"]
assert data["paths"] == ["text"] and data["files"] == 1 and data["of"] == "bytes", data
P
    check 'JSON equals the table' '' "$(python3 compare.py 2>&1 | tail -1)"
}

# A run begins with lines about its model, data, budget and plan, from rank 0 alone.
first_lines() {
    train -n 2 --steps 4 --budget 95% --optimizer lamb
    check 'a run within a budget' 0 $code
    local dp
    dp=$(sed -n 's/^budget  .* = 95% of the \([0-9.]*\) MiB that dp takes at least$/\1/p' out)
    check 'the budget is a share of the least that dp works in' yes \
        "$(awk -v dp="$dp" -v budget="$(sed -n 's/^budget  *\([0-9.]*\) MiB a rank .*/\1/p' out)" \
            'BEGIN { d = budget - 0.95 * dp; print (d * d < 0.01 ? "yes" : "no") }')"
    says 'the model' 'model      gpt2 nano: 224,640 parameters, fp32' out
    says 'the data' 'data       text: 1 file, ' out
    says 'the ranks' "ranks      2 that share this host's memory, 1 thread each, on cpu" out
    says 'the training' 'training   lamb, learning rate 0.001; 4 steps of 128 tokens' out
    for word in model data ranks training budget plan; do
        check "one line begins with $word" 1 "$(grep -c "^$word  " out)"
    done
    check 'the plan comes after them' yes "$(grep -q '^plan from measured times' out && echo yes)"
    train --steps 2 --strategy dp --schedule serial --json -
    check 'JSON alone on standard output' '{' "$(head -c 1 out)"
    says 'the lines go to standard error then' 'budget     none' err
    says 'and the table' 'one rank: there is nothing to shard' err
    says 'a schedule without times says so' 'its schedule needs no times' err
    train --steps 2 --warmup 1 --lr-schedule cosine
    says 'the course of the rate' 'learning rate 0.001 after a warm-up over 1 step, then cosine to 0 at step 2; 2 steps of 64 tokens' out
    says 'a short run has its first plan' 'plan from sizes: times are known after three steps' out
}

# A run by a kept plan ends with the same weights, and the plan that it runs is the one that was kept.
kept() {
    local least # a share of what dp takes would depend on what the processor's products take
    train -n 2 --steps 6 --budget 1B
    least=$(sed -n 's/.*the smallest that works: --budget \([0-9]*\).*/\1/p' err)
    check 'the smallest budget is told' yes "$([ -n "$least" ] && echo yes)"
    local budget=$((least + least / 50))
    train -n 2 --steps 6 --budget "$budget" --plan-out plan.json --json made.json
    check 'a run whose plan is kept' 0 $code
    check 'something is sharded or recomputed' yes "$(table_of out | grep -qE 'sharded: saves|recomputed: saves' && echo yes)"
    train -n 2 --steps 6 --budget "$budget" --plan plan.json --plan-out again.json --json kept.json
    check 'a run by it' 0 $code
    says 'it says so' 'plan of plan.json' out
    check 'it does not plan again' 0 "$(grep -c '^plan  *follows' out)"
    check 'the weights are equal to the bit' "$(hash_of made.json)" "$(hash_of kept.json)"
    check 'and the plan is the same' "$(grep -v '"forecast"' plan.json)" "$(grep -v '"forecast"' again.json)"
    check 'its decisions too' "$(decisions made.json)" "$(decisions kept.json)"
    train -n 2 --steps 6 --schedule one_ahead --json free.json
    check 'and those of a run without a budget' "$(hash_of free.json)" "$(hash_of kept.json)"
    # many small layers as one, which the plan says and the registration does not
    SLUICE_PLAN_FUSE=4MiB train -n 2 --steps 4 --strategy fsdp --schedule greedy --plan-out fused.json
    check 'a plan of fused layers' yes "$(grep -q '"embed..h' fused.json || grep -q '"h.0..h' fused.json && echo yes)"
    SLUICE_PLAN_FUSE=off train -n 2 --steps 4 --plan fused.json --json fused_run.json
    check 'runs where nothing is fused' 0 $code
    says 'and is shown by its layers' 'sent as one' out
}

decisions() { # file
    grep -oE '"(name|strategy|recomputed|resident_bytes)": [^,]*' "$1" | tr -d '\n'
}

others() {
    refuses '(number of ranks)' --plan plan.json
    refuses '$.job.world: the plan was made for 2, this job has 3' -n 3 --plan plan.json
    refuses '(micro-batches a step)' -n 2 --plan plan.json --micro-batches 2
    refuses '(batch, context' -n 2 --plan plan.json --batch 4
    refuses '(model)' -n 2 --plan plan.json --size mini
    refuses 'precision' -n 2 --plan plan.json --precision bf16
    refuses 'block' -n 2 --plan plan.json --block 64KiB
    refuses 'the optimizer' -n 2 --plan plan.json --clip 1
    refuses 'bytes (' -n 2 --plan plan.json --budget 50%
    refuses 'and --budget is 1048576 (1.0 MiB)' -n 2 --plan plan.json --budget 1MiB
    refuses 'leave --strategy out' -n 2 --plan plan.json --strategy fsdp
    refuses 'leave --recompute out' -n 2 --plan plan.json --recompute none
    refuses 'a plan for each of its phases' -n 2 --plan plan.json --optimizer onebit_adam
    refuses 'measures nothing' -n 2 --plan plan.json --profile-out profile.json
    refuses '--plan nowhere.json' -n 2 --plan nowhere.json
    tool bench --plan plan.json --steps 1
    says 'bench refuses a plan' 'only sluice train' err
    tool profile --plan-out other.json --steps 1
    says 'profile keeps none' 'only sluice train' err
}

damaged() {
    head -c 2000 plan.json >cut.json
    refuses 'plan cut.json: line' -n 2 --plan cut.json
    : >empty.json
    refuses 'plan empty.json' -n 2 --plan empty.json
    sed 's/"version": 1/"version": 7/' plan.json >version.json
    refuses 'version' -n 2 --plan version.json
    sed -E '0,/": "(dp|oss|sdp|fsdp)"/s//": "zero"/' plan.json >strategy.json
    refuses 'is no strategy' -n 2 --plan strategy.json
    sed 's/"arena_bytes": [0-9]*/"arena_bytes": 64/' plan.json >arena.json
    refuses 'give a whole number' -n 2 --plan arena.json
    sed 's/^\( *\["slot",0,0,\)1,/\12,/' plan.json >slot.json
    refuses 'invalid plan' -n 2 --plan slot.json
    sed '0,/"reduce_scatter"/s//"gather_value"/' plan.json >operation.json
    refuses 'plan operation.json' -n 2 --plan operation.json
    refuses 'is unknown' -n 2 --plan greedy_profile.json
}

# A full disk costs the plan, not the run.
full_disk() {
    train -n 2 --steps 4 --strategy fsdp --schedule greedy --plan-out /dev/full --profile-out ok_profile.json --json ok.json
    check 'a plan that cannot be written is an error' 1 $code
    says 'which names it' 'cannot write /dev/full' err
    check 'the rest is written' yes "$([ -s ok_profile.json ] && grep -q '"interrupted": false' ok.json && echo yes)"
    train --steps 2 --strategy dp --schedule serial --plan-out -
    check 'a plan alone on standard output' '{' "$(head -c 1 out)"
}

size_of_table
bound
if built_with train; then
    same_as_plan
    same_in_json
    first_lines
    kept
    others
    damaged
    full_disk
fi
exit $failed
