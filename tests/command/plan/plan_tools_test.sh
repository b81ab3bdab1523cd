#!/usr/bin/env bash
# `sluice sim`, `check` and `trace` keep their promises: figures of a plan, a verdict, a timeline, and for every file
# that is not what it should be a line with the place inside it.
. "$(dirname "$0")/../../support/command_check.sh"

tool() { # COMMAND OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 120 "$sluice" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

laboratory() { # the same of sluice-lab
    timeout 120 "$lab" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

refuses() { # words of the message, exit code, then COMMAND OPTION...
    local words=$1 wanted=$2
    shift 2
    tool "$@"
    check "$* fails" "$wanted" $code
    check "$* says \"$words\"" yes "$(grep -qF -- "$words" "$work/err" && echo yes)"
}

number_of() { # key, file: the first number of that name
    sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" "$2" | head -1
}

make() {
    tool profile --made gpt2-small --cluster 2xcpu-1gbit -o "$work/profile.json"
    check 'a profile' 0 $code
    tool plan --profile "$work/profile.json" --strategy fsdp --schedule one_ahead -o "$work/plan.json"
    check 'a plan' 0 $code
    tool plan --profile "$work/profile.json" --strategy fsdp --schedule serial -o "$work/serial.json"
    check 'a serial plan' 0 $code
    files=(--profile "$work/profile.json" --plan "$work/plan.json")
}

# A schedule for which a build has no solver is an error with a way out; the one without an integer program is always
# there.
schedules() {
    tool plan --profile "$work/profile.json" --schedule portfolio --effort 0.1
    check 'plan --schedule portfolio' 0 $code
    check 'and its plan says so' yes "$(grep -q '^schedule   portfolio' "$work/out" && echo yes)"
    tool plan --profile "$work/profile.json" --schedule ilp --effort 0.1
    if [ "$(default_schedule)" = ilp ]; then
        check 'plan --schedule ilp' 0 $code
    else
        check 'no ilp without a solver' 2 $code
        check 'and why' yes "$(grep -q 'this build has no GLPK.*choose one of portfolio' "$work/err" && echo yes)"
    fi
}

# A step of a compressed optimizer: at a middle budget some layers are onebit and others sharded.
compressed() {
    local lossy=(--profile "$work/profile.json" --plan "$work/lossy.json") kind
    tool plan --profile "$work/profile.json" --lossy onebit --budget 90% --recompute none --effort 0.5 -o "$work/lossy.json"
    check 'plan --lossy onebit' 0 $code
    check 'it says why a layer is onebit' yes \
        "$(grep -q ' onebit .*one bit an element: keeps .* more than sdp, exchanged in' "$work/out" && echo yes)"
    check 'others are sharded' yes "$(grep -Eq ' (sdp|fsdp) +-' "$work/out" && echo yes)"
    check 'exchanges are counted' yes "$(grep -q 'compressed exchanges' "$work/out" && echo yes)"
    for kind in sim check; do
        tool $kind "${lossy[@]}"
        check "$kind of a compressed phase" 0 $code
    done
    refuses 'compressed phase' 2 check "${lossy[@]}" --lossy none
    tool plan --profile "$work/profile.json" --world 1 --lossy onebit --schedule one_ahead --strategy auto
    check 'one rank has nobody to exchange with' 0 $code
    check 'so nothing is onebit' '' "$(grep ' onebit ' "$work/out")"
    laboratory study lossy --count 1 --effort 0.01 --json "$work/study.json"
    check 'study lossy' 0 $code
    check 'never slower than a uniform choice' yes \
        "$(grep -q 'slower than a uniform choice: 0 of 10' "$work/out" && echo yes)"
    check 'ten rows' 10 "$(grep -o '"study": "lossy"' "$work/study.json" | wc -l | tr -d ' ')"
}

# Prints the rows of a study, without the command and the date.
rows() {
    sed '/"command_line"/,$d' "$work/study.json" | tr -d ' \n'
}

# goes_on NAME KEPT ARGUMENT...: a study goes on with $work/study.json, in which KEPT rows stay, and adds another. The
# solver's seconds of a row would differ if it were measured again.
goes_on() {
    local name=$1 kept=$2 before
    shift 2
    before=$(rows)
    laboratory "$@" --json "$work/study.json" --go-on
    check "$name goes on" 0 $code
    check "$name: the rows so far are kept" yes \
        "$([[ $(rows) == "${before%]*}"* ]] && echo yes)"
    check "$name: with a row more" $((kept + 1)) "$(grep -c '"study": ' "$work/study.json")"
}

# The other studies of drawn profiles: no plan lies below its bound, adaptive is no slower than uniform, and the checksum
# of a plan is the same whenever it is made.
studies() {
    local sums=() published
    laboratory study budgets --count 1 --effort 0.01
    check 'study budgets' 0 $code
    check 'ten budgets, none slower than uniform' yes "$(grep -qE '^ +[0-9]+ +[0-9.]+ +10 +[0-9.]+ ' "$work/out" && echo yes)"
    for _ in 1 2; do
        laboratory study same --count 3 --effort 0.01 --json "$work/study.json"
        check 'study same' 0 $code
        sums+=("$(grep -o '"checksum": [0-9]*' "$work/study.json")")
    done
    check 'three plans' 3 "$(wc -l <<<"${sums[0]}")"
    check 'the same again' "${sums[0]}" "${sums[1]}"
    if [ "$(default_schedule)" = ilp ]; then
        laboratory study gaps --count 1 --effort 0.01 --json "$work/study.json"
        check 'study gaps' 0 $code
        check 'not below the bound' yes "$(grep -qE '"plan_above_bound": [0-9]' "$work/study.json" && echo yes)"
        goes_on 'study gaps' 1 study gaps --count 2 --effort 0.01
    fi
    laboratory study drawn --count 1 --effort 0.01 --json "$work/study.json"
    check 'study drawn' 0 $code
    check 'the plan for draws is not slower' yes "$(grep -qE 'by (-[0-9.]+|0\.[0-4][0-9]?) % at most' "$work/out" && echo yes)"
    goes_on 'study drawn' 1 study drawn --count 2 --effort 0.01
    published=(study published --model big-lstm --cluster 8xcpu-10gbit --effort 0.01 --json "$work/study.json" --go-on)
    rm -f "$work/study.json"
    laboratory "${published[@]}" --budgets 2
    check 'study published' 0 $code
    check 'it says how far it is' yes "$(grep -qE ' 2/2 ' "$work/out" && echo yes)"
    sums=("$(grep -o '"planning_s": .*' "$work/study.json")")
    laboratory "${published[@]}" --budgets 3
    check 'study published goes on' 0 $code
    check 'with a row more' 3 "$(grep -c '"planning_s"' "$work/study.json")"
    check 'the others are kept' "${sums[0]}" "$(grep -o '"planning_s": .*' "$work/study.json" | head -n 2)"
    check 'none is below a bound' yes "$(grep -qF 'below the bound by more than 0.1 %: 0 ' "$work/out" && echo yes)"
    laboratory study budgets --go-on --json "$work/study.json"
    check 'a short study does not go on' 2 $code
}

figures() {
    tool sim "${files[@]}" --json "$work/sim.json" --trace "$work/sim_trace.json"
    check 'sim' 0 $code
    for word in step compute exposed communication update peak 'where exposed' gather_window; do
        check "sim says $word" yes "$(grep -q "$word" "$work/out" && echo yes)"
    done
    check 'a step is compute and what is exposed' yes \
        "$(awk -v s="$(number_of step_s "$work/sim.json")" -v c="$(number_of compute_s "$work/sim.json")" \
            -v e="$(number_of exposed_s "$work/sim.json")" 'BEGIN { d = s - c - e; print d * d < 1e-12 * s * s ? "yes" : d }')"
    tool sim --profile "$work/profile.json" --plan "$work/serial.json" --json "$work/serial_sim.json"
    check 'one_ahead is faster than serial' yes \
        "$(awk -v a="$(number_of step_s "$work/sim.json")" -v b="$(number_of step_s "$work/serial_sim.json")" \
            'BEGIN { print a < b ? "yes" : a " " b }')"
    tool sim "${files[@]}" --spread 0.2 --seed 1 --json "$work/a.json"
    tool sim "${files[@]}" --spread 0.2 --seed 1 --json "$work/b.json"
    tool sim "${files[@]}" --spread 0.2 --seed 2 --json "$work/c.json"
    for word in a b c; do sed '/"command_line"/,$d' "$work/$word.json" >"$work/$word.found"; done
    check 'a seed repeats' same "$([ -s "$work/a.found" ] && cmp -s "$work/a.found" "$work/b.found" && echo same)"
    check 'another seed differs' differs "$(cmp -s "$work/a.found" "$work/c.found" || echo differs)"
    tool sim "${files[@]}" --json -
    check 'JSON alone on standard output' '{' "$(head -c 1 "$work/out")"

    tool check "${files[@]}" --json "$work/check.json"
    check 'check' 0 $code
    check 'check says valid' yes "$(grep -q 'is a valid plan' "$work/out" && echo yes)"
    check 'both know the arena' "$(number_of arena_bytes "$work/sim.json")" "$(number_of arena_bytes "$work/check.json")"
}

timelines() {
    tool trace "${files[@]}" -o "$work/trace.json" --steps 3
    check 'trace' 0 $code
    local event
    for event in '"ph":"X"' '"ph":"C"' '"ph":"s"' '"ph":"f"' '"name":"compute"' '"name":"communication"' \
        '"name":"updates"' '"F h.3"' '"B h.3"' 'exposed: ' 'reduce_scatter h.3'; do
        check "a timeline has $event" yes "$(grep -qF "$event" "$work/trace.json" && echo yes)"
    done
    check 'sim writes one too' yes "$(grep -qF '"traceEvents"' "$work/sim_trace.json" && echo yes)"
    if command -v python3 >/dev/null; then
        check 'it is JSON' 0 "$(python3 -m json.tool "$work/trace.json" /dev/null >/dev/null 2>&1; echo $?)"
    else
        skip 'whether a timeline is JSON: python3 is not installed'
    fi
    command -v gnuplot >/dev/null || { skip 'pictures of a timeline: gnuplot is not installed'; return; }
    local kind
    for kind in svg png; do
        tool trace "${files[@]}" --picture "$work/step.$kind"
        check "a picture as $kind" 0 $code
        check "it is there ($kind)" yes "$([ -s "$work/step.$kind" ] && echo yes)"
        check "gnuplot has nothing to say ($kind)" '' "$(cat "$work/err")"
    done
}

measured() {
    built_with train || return 0
    seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"
    tool train -n 2 --data "$work/text" --size nano --context 32 --batch 2 --steps 6 --eval-batches 1 --strategy fsdp \
        --schedule one_ahead --trace "$work/run.json" --json "$work/result.json"
    check 'train --trace' 0 $code
    for event in '"rank 0"' '"rank 1"' '"F head"' '"B head"' 'gather_window' 'reduce_scatter' 'update h.0' \
        '"memory, bytes"'; do
        check "a measured timeline has $event" yes "$(grep -qF "$event" "$work/run.json" && echo yes)"
    done
    tool train -n 2 --data "$work/text" --size nano --context 32 --batch 2 --steps 6 --eval-batches 1 --strategy fsdp \
        --schedule one_ahead --json "$work/plain.json"
    check 'recording changes no bit' "$(grep -o '"weights_sha256": "[0-9a-f]*"' "$work/plain.json")" \
        "$(grep -o '"weights_sha256": "[0-9a-f]*"' "$work/result.json")"
    refuses 'cannot write' 2 train --data "$work/text" --size nano --steps 1 --trace /no/such/folder/run.json
}

# Everything is exchanged compressed, compared with dp, on a slow link.
onebit() {
    local step=(--profile "$work/profile.json" --plan "$work/onebit.json") event
    tool plan --profile "$work/profile.json" --strategy onebit --schedule one_ahead -o "$work/onebit.json"
    check 'plan --strategy onebit' 0 $code
    check 'it says how much is exchanged' yes "$(grep -q '15 compressed exchanges' "$work/out" && echo yes)"
    tool sim "${step[@]}" --json "$work/onebit_sim.json"
    tool plan --profile "$work/profile.json" --strategy dp --schedule one_ahead -o "$work/dp.json"
    tool sim --profile "$work/profile.json" --plan "$work/dp.json" --json "$work/dp_sim.json"
    check 'it is faster than dp' yes \
        "$(awk -v a="$(number_of step_s "$work/onebit_sim.json")" -v b="$(number_of step_s "$work/dp_sim.json")" \
            'BEGIN { print a < b ? "yes" : a " " b }')"
    tool trace "${step[@]}" -o "$work/trace.json" --steps 2
    for event in 'compress h.3' 'exchange h.3' 'update h.3'; do
        check "a timeline has $event" yes "$(grep -qF "\"$event\"" "$work/trace.json" && echo yes)"
    done
    refuses '$.job.compressed: the plan is of the compressed phase' 2 sim "${step[@]}" --lossy none
    refuses '--lossy all: use none or onebit' 2 check "${step[@]}" --lossy all
    refuses '--lossy all: use none or onebit' 2 plan --profile "$work/profile.json" --lossy all
    refuses 'onebit is lossy' 2 plan --profile "$work/profile.json" --strategy onebit --lossy none
    sed 's/"accumulate": "last"/"accumulate": "each"/' "$work/profile.json" >"$work/each.json"
    refuses 'added up over micro-batches' 2 plan --profile "$work/each.json" --lossy onebit
}

# Each part of the planner by itself, and the trade-off. Under a baseline more to choose from never costs time: each
# layer's own strategy next to one for all, recomputation next to none.
studies() {
    laboratory study ablation --seed 2 --count 1 --budgets 2 --effort 0.01 --json "$work/ablation.json"
    check 'study ablation' 0 $code
    check 'all arms have a row' 16 "$(sed -n '/^arm /,/^more/p' "$work/out" | grep -c ' [0-9]*\.[0-9]*$')"
    check 'all parts have two' 8 "$(sed -n '/^mean speed-up/,$p' "$work/out" | grep -cE '^(strategies|order|blocks|recomputation) .* (-|[0-9]+\.[0-9]+)')"
    cp "$work/ablation.json" "$work/study.json"
    goes_on 'study ablation' 2 study ablation --seed 2 --count 1 --budgets 3 --effort 0.01
    laboratory study tradeoff --count 1 --budgets 1 --effort 0.01 --json "$work/tradeoff.json"
    check 'study tradeoff' 0 $code
    check 'three curves have a shape' yes "$(grep -Eq '^shape +[a-zU]' "$work/out" && echo yes)"
    command -v python3 >/dev/null || { skip 'the rows of both studies: python3 is not installed'; return; }
    cat >"$work/studies.py" <<'P'
import itertools, json, sys
def rows(name):
    return json.load(open(f"{sys.argv[1]}/{name}.json"))["rows"]
parts = ("strategies", "order", "blocks", "recomputation")
def arm(*which):
    return ", ".join(p for p in parts if p in which) or "none of them"
found = rows("ablation")
assert len(found) == 2 and all(len(row["step_s"]) == 16 for row in found), found
assert found[0]["limit_bytes"] < found[1]["limit_bytes"] and found[1]["step_s"][arm()] is not None, found
for row, others in itertools.product(found, ((), ("blocks",), ("recomputation",), ("blocks", "recomputation"))):
    none, own = row["step_s"][arm(*others)], row["step_s"][arm("strategies", *others)]
    assert none is None or own <= none, (others, row)
    if "recomputation" not in others and none is not None:
        assert row["step_s"][arm("recomputation", *others)] <= none, (others, row)
found = rows("tradeoff")
assert len(found) == 9 and [row["asked"] for row in found] == [k / 8 for k in range(9)], found
assert found[0]["share"] == 0 and found[0]["both"] == found[0]["strategies"] == found[8]["schedule"], found
assert found[0]["schedule"] is None and found[8]["both"] is None, found
P
    check 'the rows of both studies' '' "$(python3 "$work/studies.py" "$work" 2>&1 | tail -1)"
}

refusals() {
    local command
    for command in sim check 'trace -o -'; do
        # shellcheck disable=SC2086
        refuses '--plan FILE is missing' 2 $command --profile "$work/profile.json"
        # shellcheck disable=SC2086
        refuses 'cannot read' 2 $command --profile "$work/nowhere.json" --plan "$work/plan.json"
    done
    local broken=(check --profile "$work/profile.json" --plan "$work/broken.json")
    refuses 'cannot read' 2 "${broken[@]}"
    head -c 1000 "$work/plan.json" >"$work/broken.json"
    refuses "$work/broken.json" 2 "${broken[@]}"
    sed 's/"version": *1/"version": 99/' "$work/plan.json" >"$work/broken.json"
    refuses '$.version' 2 "${broken[@]}"
    refuses '99' 2 "${broken[@]}"
    sed 's/"h.3"/"h.99"/' "$work/plan.json" >"$work/broken.json"
    refuses '$.' 2 "${broken[@]}"
    sed 's/"version": *1/"version": 99/' "$work/profile.json" >"$work/other.json"
    refuses '$.version' 2 sim --profile "$work/other.json" --plan "$work/plan.json"
    tool profile --made gpt2-small --cluster 2xcpu-1gbit --world 4 -o "$work/other.json"
    refuses 'world' 2 check --profile "$work/other.json" --plan "$work/plan.json"
    refuses 'world' 2 sim "${files[@]}" --world 8
    tool profile --made gpt2-medium --cluster 2xcpu-1gbit -o "$work/other.json"
    refuses '$.job' 2 sim --profile "$work/other.json" --plan "$work/plan.json"
    refuses '.svg or .png' 2 trace "${files[@]}" --picture "$work/step.gif"
    refuses 'give -o FILE' 2 trace "${files[@]}"
    refuses 'from 0 to 0.99' 2 sim "${files[@]}" --spread 1
    refuses 'whole number' 2 sim "${files[@]}" --world none
    refuses 'cannot write' 2 sim "${files[@]}" --json /no/such/folder/x
    refuses 'cannot write' 2 trace "${files[@]}" -o /no/such/folder/x
}

make
schedules
figures
compressed
studies
timelines
measured
onebit
studies
refusals
check 'nothing half done is left' '' "$(find "$work" -name '*.part*')"
[ $failed = 0 ] && echo "sluice sim, check, trace: all as promised"
exit $failed
