#!/usr/bin/env bash
# The phases of a whole run: `sluice estimate` and `sluice plan` list them for a recipe, they add up, a step with all
# micro-batches takes what the plan says, and one with fewer takes and sends less where something is left out.
. "$(dirname "$0")/../../support/command_check.sh"
need_command plan
need_python3
cat >"$work/recipe.json" <<'JSON'
{"version": 1, "steps": 100, "batch": {"micro_batches": 4, "from": 2, "over": 50}}
JSON

phases() { # FILE: each phase's first step, steps, micro-batches, tokens; then what holds of them
    python3 - "$1" <<'PY'
import json, sys
made = json.load(open(sys.argv[1]))
phases = made["phases"]
for p in phases:
    print(p["first_step"], p["steps"], p["micro_batches"], p["tokens"], end="; ")
steps, sent = [p["predicted_step_s"] for p in phases], [p["bytes_sent"] for p in phases]
print("slower" if steps == sorted(set(steps)) else steps,
      "equal" if len(set(sent)) == 1 else "more" if sent == sorted(set(sent)) else sent,
      all(abs(p["hours"] * 3600 - p["steps"] * p["predicted_step_s"]) < 1e-9 for p in phases))
PY
}

estimate() { # STRATEGY: also writes $work/profile.json
    timeout 100 "$sluice" estimate -n 2 --batch 2 --context 32 --pace 100gflops,20GB --throttle 1gbit,50us \
        --schedule one_ahead --strategy "$1" --recipe "$work/recipe.json" --profile-out "$work/profile.json" \
        --json "$work/estimate.json" >"$work/out" 2>"$work/err" </dev/null
    check "an estimate, $1" 0 $?
}

estimate dp
check 'the phases of an estimate' '1 25 2 6400; 26 25 3 9600; 51 50 4 25600; slower equal True' \
    "$(phases "$work/estimate.json")"
check 'and for people' 1 "$(grep -c '^  26 to 50 .* 3  *0.0096 M ' "$work/out")"
check 'their sum' 1 "$(grep -c '^  all 100 together .* 0.0416 M ' "$work/out")"
estimate fsdp
check 'a micro-batch that is left out gathers nothing' '1 25 2 6400; 26 25 3 9600; 51 50 4 25600; slower more True' \
    "$(phases "$work/estimate.json")"

lengths() { # OPTION...
    timeout 100 "$sluice" estimate -n 2 --batch 2 --context 32 --pace 100gflops,20GB --throttle 1gbit,50us \
        --schedule one_ahead --strategy dp --steps 100 --curriculum 16@40,32 --json "$work/estimate.json" "$@" \
        >"$work/out" 2>"$work/err" </dev/null
    check "an estimate of lengths $*" 0 $?
    check "their phases $*" '1 40 1 2560; 41 60 1 7680; slower equal True' "$(phases "$work/estimate.json")"
}
lengths
check 'for people' 1 "$(grep -c '^  1 to 40 .* 16 .* 1  *0.00256 M ' "$work/out")"
check 'under one plan' 1 "$(grep -c 'phases of this plan; units: ' "$work/out")"
lengths --curriculum-batch fixed --budget 100%
check 'under plans of their own' 1 "$(grep -c 'short steps run under plans of their own within the budget' "$work/out")"
printf '{"version": 1, "steps": 10, "length": {"curriculum": "16@4,32"}}' >"$work/lengths.json"

plan() { # OPTION...
    timeout 100 "$sluice" plan --profile "$work/profile.json" --schedule one_ahead --strategy fsdp \
        --json "$work/plan.json" "$@" >"$work/out" 2>"$work/err" </dev/null
}

plan --recipe "$work/recipe.json"
check 'a plan' 0 $?
check 'its phases' '1 25 2 None; 26 25 3 None; 51 50 4 None; slower more True' "$(phases "$work/plan.json")"
check 'a step of all micro-batches takes what the plan says' True "$(python3 -c '
import json, sys
made = json.load(open(sys.argv[1]))
print(abs(made["phases"][-1]["predicted_step_s"] - made["step_s"]) < 1e-12)' "$work/plan.json")"
printf '{"version": 1, "steps": 10}' >"$work/steps.json"
plan --recipe "$work/steps.json"
check 'one phase where nothing grows' '1 10 4 None; slower equal True' "$(phases "$work/plan.json")"

# Lengths: times of slots follow from the profile's in proportion, or from profiles at shorter lengths. Here they are
# known: .001 + .002 s + .004 s^2 seconds of a forward, s the share of the longest.
# The profiles reserve nothing for the program: on some processors GEMM has memory of its own, which no plan makes
# less, and 90 % of all could be less than any plan needs.
python3 - "$work" <<'PY'
import json, sys
work = sys.argv[1]
for length in (8, 16, 24, 32):
    made, s = json.load(open(work + "/profile.json")), length / 32
    made["reserved_bytes"] = 0
    for i, layer in enumerate(made["layers"]):
        time = (i + 1) * (.001 + .002 * s + .004 * s * s)
        layer.update(forward_s=time, backward_s=2 * time)
        if layer.get("recompute_s"): layer["recompute_s"] = time
    json.dump(made, open(f"{work}/at{length}.json", "w"))
PY
of_lengths() { # OPTION...: predicted steps of the phases, and the phases
    plan --profile "$work/at32.json" --recipe "$work/lengths.json" "$@"
    check "lengths $*" 0 $?
    phases "$work/plan.json" | sed 's/; [^;]*$//'
}
step_of() { # JSON-PATH, as Python indexes it: milliseconds, rounded
    python3 -c 'import json, sys; print(round(eval("json.load(open(sys.argv[1]))" + sys.argv[2])["step_s" if sys.argv[2] == "" else "predicted_step_s"] * 1e3, 3))' \
        "$work/plan.json" "$1"
}
printf '{"version": 1, "steps": 10, "length": {"curriculum": "8@2,24@6,32"}}' >"$work/lengths.json"
shorter=(--shorter "8=$work/at8.json,16=$work/at16.json")
check 'phases of lengths' '1 2 4 None; 3 4 4 None; 7 4 4 None' "$(of_lengths)"
check 'in proportion' 1 "$(grep -c 'in proportion to that of the profile, 32 tokens' "$work/out")"
check 'phases of lengths, fitted' '1 2 4 None; 3 4 4 None; 7 4 4 None' "$(of_lengths "${shorter[@]}")"
check 'from three profiles' 1 "$(grep -c 'fitted to those of 3 profiles' "$work/out")"
fitted="$(step_of '["phases"][0]') $(step_of '["phases"][1]') $(step_of '["phases"][2]')"
measured=$(for length in 8 24 32; do
    plan --profile "$work/at$length.json"
    step_of ''
done | paste -sd' ')
check 'steps are those of profiles at these lengths' "$measured" "$fitted"
check 'within a budget' '1 2 4 None; 3 4 4 None; 7 4 4 None' "$(of_lengths "${shorter[@]}" --strategy auto --budget 90%)"
check 'short steps have plans of their own' 1 "$(grep -c 'short steps run under plans of their own' "$work/out")"
refuses() { # WORDS OPTION...
    local words=$1
    shift
    plan "$@"
    check "$*" '2 1' "$? $(grep -c -F -e "$words" "$work/err")"
}
refuses 'give a length below 32' --recipe "$work/lengths.json" --shorter "32=$work/at8.json"
refuses 'is no LENGTH=FILE' --recipe "$work/lengths.json" --shorter "$work/at8.json"
refuses 'give --recipe FILE too' --shorter "8=$work/at8.json"
refuses 'give a --recipe whose lengths change' --recipe "$work/steps.json" --shorter "8=$work/at8.json"
python3 -c 'import json, sys
made = json.load(open(sys.argv[1]))
text = json.dumps(made).replace("h.0", "other")
open(sys.argv[2], "w").write(text)' "$work/at8.json" "$work/other.json"
refuses 'has other layers than --profile' --recipe "$work/lengths.json" --shorter "8=$work/other.json"
printf '{"version": 1, "batch": {"from": 1, "over": 3}}' >"$work/wrong.json"
plan --recipe "$work/wrong.json"
check 'a run without a length' '2 1' "$? $(grep -c 'wrong.json: steps: say how many the run has' "$work/err")"
printf '{"version": 1, "steps": 10, "batch": {"from": 5, "over": 3}}' >"$work/wrong.json"
plan --recipe "$work/wrong.json"
check 'a run that begins with too many' '2 1' \
    "$? $(grep -c 'wrong.json: --micro-batches-from 5 is above --micro-batches 4' "$work/err")"

# Layers that are dropped take less and send less, the more the longer the run is; the first phase ends where the mean
# depth has fallen by a twentieth of all layers.
printf '{"version": 1, "steps": 6000, "depth": {"pld": "0.4,0.001"}}' >"$work/depth.json"
plan --recipe "$work/depth.json"
check 'a run that drops layers' 0 $?
check 'its phases follow the depth' 'True True True True 6000' "$(python3 - "$work/plan.json" <<'PY'
import json, math, sys
phases = json.load(open(sys.argv[1]))["phases"]
layers, step, sent = ([p[k] for p in phases] for k in ("layers", "predicted_step_s", "bytes_sent"))
blocks, last = 4, 4 - 3 * (1 - 0.4) / 2
mean = lambda t: blocks - 3 * (1 - (0.6 * math.exp(-0.001 * t) + 0.4)) / 2
ends = next(t for t in range(6000) if mean(t) <= blocks - 0.05 * (blocks + 2))
print(phases[0]["steps"] == ends, layers[0] > layers[-1] and abs(layers[-1] - 2 - last) < 0.35,
      step[0] > step[-1], sent[0] > sent[-1], sum(p["steps"] for p in phases))
PY
)"
check 'for people' 1 "$(grep -c '^  1 to [0-9]*, [0-9.]* layers ' "$work/out")"
printf '{"version": 1, "steps": 10, "depth": {"pld": "2"}}' >"$work/wrong.json"
plan --recipe "$work/wrong.json"
check 'a theta that cannot be' '2 1' "$? $(grep -c 'wrong.json: --pld 2: theta is 2' "$work/err")"
exit $failed
