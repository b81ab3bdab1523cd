#!/usr/bin/env bash
# `sluice plan --force` and `--compare` tell what changes, layer by layer, with the figures of `sluice sim`; each row of
# a plan's table says what the next best choice would cost; and what cannot be is refused with what to do.
. "$(dirname "$0")/../../support/command_check.sh"
sluice=$(realpath "$sluice")
examples=$(cd "$(dirname "$0")/../../../docs/examples" && pwd)
cd "$work" || exit 1
profile=$examples/three_layers.json

tool() { # COMMAND OPTION...: output in out and err, exit code in $code
    timeout 120 "$sluice" "$@" >out 2>err </dev/null
    code=$?
}

says() { # what, words, file
    check "$1" yes "$(grep -qF -- "$2" "$3" && echo yes)"
}

refuses() { # words of the message, then OPTION... of plan
    local words=$1
    shift
    tool plan --profile "$profile" "$@"
    check "plan $* fails" yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
    says "plan $* says \"$words\"" "$words" err
}

# The example of docs/planning.md: of three layers one must be sharded within 330 MB.
next_best() {
    tool plan --profile "$profile" --budget 330MB --effort 0.3 --json best.json
    check 'a plan' 0 $code
    check 'a row whose other choice does not fit says by how much' yes \
        "$(grep -Eq ' fsdp .*; no other fits: sdp needs [0-9.]+ [KM]iB above the budget$' out && echo yes)"
    check 'a row whose other choice fits says how much slower' yes \
        "$(grep -Eq ' sdp .*; next best: fsdp, [0-9.]+ ms \([0-9.]+ %\) slower$' out && echo yes)"
    tool plan --profile "$profile" --budget 330MB --effort 0.3 --time-limit 60
    check 'within a time limit' 0 $code
    check 'nothing else is planned' '' "$(grep -E 'next best|no other' out)"
    tool plan --profile "$profile" --world 1 --budget 600MB
    check 'one rank' 0 $code
    check 'has no other choice' '' "$(grep -E 'next best|no other' out)"
    command -v python3 >/dev/null || { skip 'the next best in JSON: python3 is not installed'; return; }
    cat >best.py <<'P'
import json
plan = json.load(open("best.json"))
best = {u["name"]: u["next_best"] for u in plan["units"]}
assert all(n is not None for n in best.values()), best
for u in plan["units"]:
    n = u["next_best"]
    assert n["strategy"] != u["strategy"] and n["strategy"] in ("sdp", "fsdp"), u
    assert n["fits"] == (n["over_budget_bytes"] == 0) == (n["step_s"] is not None), n
    assert n["fits"] == (n["planned_bytes"] <= plan["budget_bytes"]), n
    if n["fits"]: assert abs(n["slower_s"] - (n["step_s"] - plan["step_s"])) < 1e-12, n
    else: assert n["planned_bytes"] - plan["budget_bytes"] == n["over_budget_bytes"], n
P
    check 'the next best in JSON' '' "$(python3 best.py 2>&1 | tail -1)"
}

# --compare says of two plans what --force said when it made one of them, and both have the figures of `sluice sim`.
force() {
    tool plan --profile "$profile" --budget 330MB --effort 0.3 -o free.json
    check 'the plan without' 0 $code
    tool plan --profile "$profile" --budget 330MB --effort 0.3 --force b=fsdp,c=fsdp --json force.json -o forced.json
    check 'plan --force' 0 $code
    says 'it names both' 'B           with --force b=fsdp,c=fsdp' out
    check 'a layer that changes says how' yes "$(grep -Eq '^  [abc].* sdp -> fsdp ' out && echo yes)"
    check 'forced layers are what they must be' 2 "$(grep -cE '"(b|c)": "fsdp"' forced.json)"
    tool plan --profile "$profile" --compare free.json forced.json --json compare.json
    check 'plan --compare' 0 $code
    says 'it names the files' 'A           free.json' out
    local which
    for which in free forced; do
        tool sim --profile "$profile" --plan $which.json --json $which.sim
        check "sim of the $which plan" 0 $code
    done
    tool plan --profile "$profile" --compare free.json free.json
    says 'a plan does not differ from itself' 'no layer differs' out
    tool plan --profile "$profile" --compare free.json forced.json --json -
    check 'JSON alone on standard output' '{' "$(head -c 1 out)"
    command -v python3 >/dev/null || { skip 'the figures of a comparison: python3 is not installed'; return; }
    cat >force.py <<'P'
import json
force, compare = (json.load(open(f + ".json"))["comparison"] for f in ("force", "compare"))
assert force["layers"] == compare["layers"], (force, compare)
for which, plan in zip(("free", "forced"), compare["plans"]):
    sim = json.load(open(which + ".sim"))
    for key in ("step_s", "exposed_s", "compute_s", "communication_s"):
        assert abs(plan[key] - sim[key]) < 1e-12, (which, key, plan, sim)
    assert plan["planned_bytes"] == sim["arena_bytes"], (plan, sim)
for k, which in enumerate(("free", "forced")):
    sim = json.load(open(which + ".sim"))
    of_layers = sum(layer["waits_s"][k] for layer in compare["layers"])
    assert abs(of_layers - sum(e["s"] for e in sim["exposed"])) < 1e-9, (of_layers, sim["exposed"])
    strategies = json.load(open(which + ".json"))["strategies"]
    told = {layer["name"]: layer["strategy"][k] for layer in compare["layers"][:-1]}
    assert told == strategies, (told, strategies)
P
    check 'the figures of a comparison' '' "$(python3 force.py 2>&1 | tail -1)"
}

# --force goes over what a file of strategies says, and leaves the rest of it.
over_a_file() {
    printf '{"layers": {"a": "fsdp", "*": "sdp"}}' >file.json
    tool plan --profile "$profile" --strategy file.json --schedule one_ahead --force c=dp -o over.json
    check 'a file and --force' 0 $code
    check 'the file holds for the others' yes "$(grep -q '"a": "fsdp"' over.json && grep -q '"b": "sdp"' over.json && echo yes)"
    check '--force for its own' yes "$(grep -q '"c": "dp"' over.json && echo yes)"
}

refusals() {
    refuses '--force: "h.99": there is no such layer or tied parameter; there are a, b, c' --force h.99=fsdp
    refuses '--force: "a": "zero" is not a strategy of a layer; choose dp, oss, sdp, fsdp or onebit' --force a=zero
    refuses '--force: "a" is no LAYER=STRATEGY; give a list such as a=fsdp' --force a
    refuses '--force: "a": onebit is a choice only in a step of a compressed optimizer' --force a=onebit
    refuses '--force a=dp,b=dp,c=dp: strategy auto' --budget 330MB --effort 0.1 --force a=dp,b=dp,c=dp
    says 'and what works' 'the smallest that works: --budget ' err
    refuses '--compare free.json: the plan to compare it with is missing' --compare free.json
    refuses 'leave --budget out' --compare free.json forced.json --budget 330MB
    refuses 'leave --force out' --compare free.json forced.json --force a=dp
    refuses '"forced.json" follows no option; two plans are compared by --compare A B' forced.json
    refuses '"third.json" follows no option; --compare takes two plans' --compare free.json forced.json third.json
    refuses 'nowhere.json' --compare free.json nowhere.json
    refuses 'cannot both write to standard output' --json - -o -
    sed 's/"arena_bytes": [0-9]*/"arena_bytes": 64/' free.json >broken.json
    refuses 'broken.json' --compare free.json broken.json
    tool profile --made gpt2-small --cluster 2xcpu-1gbit -o other_profile.json
    tool plan --profile other_profile.json --strategy sdp --schedule serial -o other.json
    refuses '$.job' --compare free.json other.json
    refuses 'other.json' --compare free.json other.json
    refuses 'cannot write' --compare free.json forced.json --json /no/such/folder/x
}

next_best
force
over_a_file
refusals
exit $failed
