#!/usr/bin/env bash
# sluice estimate: what it says is what sluice train then does, in the bytes of every strategy, the smallest budget and a
# budget that fits. It also answers for models and machines that are not here, in little memory, and refuses mistakes.
# shellcheck source=../support/command_check.sh
. "$(dirname "$0")/../support/command_check.sh"
need_command estimate

pace=(--effort 0.1 --pace "100gflops,20GB")

get() { # FILE EXPRESSION: of the JSON `j`
    python3 -c "import json, sys; j = json.load(open('$work/$1')); print($2)" 2>"$work/err"
}

compare_with_train() { # SIZE RANKS STRATEGY RECOMPUTE OPTION..., against $work/estimate.json
    rm -f "$work/train.json"
    "$sluice" train --size "$1" -n "$2" --strategy "$3" --recompute "$4" --schedule serial --steps 1 --eval-batches 0 \
        "${@:5}" --json "$work/train.json" >/dev/null 2>"$work/err"
    check "train --size $1 -n $2 --strategy $3 --recompute $4 ${*:5} works" 0 $?
    check "bytes of $1 on $2 ranks under $3, recompute $4 ${*:5}" "$(get train.json "j['runs'][0]['planned_bytes']")" \
        "$(get estimate.json "[s['bytes'] for s in j['strategies'] if (s['strategy'], s['recompute']) == ('$3', '$4' == 'all')][0]")"
}

compare_all() { # SIZE RANKS
    "$sluice" estimate --size "$1" -n "$2" "${pace[@]}" --json "$work/estimate.json" >/dev/null 2>"$work/err"
    check "estimate --size $1 -n $2 works" 0 $?
    for strategy in dp oss sdp fsdp; do
        for recompute in none all; do compare_with_train "$1" "$2" $strategy $recompute; done
    done
    smallest=$(get estimate.json "j['smallest_budget_bytes']")
    "$sluice" train --size "$1" -n "$2" --budget 1 --steps 1 >/dev/null 2>"$work/err"
    check "the refusal of one byte on $2 ranks, $1, names the same smallest budget" 1 \
        "$(grep -c -- "--budget $smallest," "$work/err")"
    "$sluice" train --size "$1" -n "$2" --budget "$smallest" --steps 1 --eval-batches 0 >/dev/null 2>"$work/err"
    check "the smallest budget of $1 on $2 ranks is enough" 0 $?
}
compare_all nano 1
compare_all nano 2
compare_all mini 2

# What else decides bytes.
compare_options() { # OPTION...
    "$sluice" estimate -n 2 "${pace[@]}" "$@" --json "$work/estimate.json" >/dev/null 2>"$work/err"
    check "estimate -n 2 $* works" 0 $?
    compare_with_train nano 2 fsdp none "$@"
}
compare_options --model bert --precision bf16 --micro-batches 2
compare_options --tied split --accumulate each --micro-batches 2
compare_options --nan skip --block 64KiB --layer-precision h.0=bf16 --optimizer lamb

# One that sends messages needs scratch memory.
"$sluice" estimate -n 2 --ranks-a-host 1 --throttle 1gbit,50us "${pace[@]}" --json "$work/estimate.json" >/dev/null \
    2>"$work/err"
check "estimate of two hosts works" 0 $?
if [ -e "${SLUICE_TRANSPORT_PATH:-/nowhere}/libsluice_transport_ucx.so" ]; then
    export SLUICE_COMM_DIRECT=0
    compare_with_train nano 2 dp none
    compare_with_train nano 2 fsdp none
    unset SLUICE_COMM_DIRECT
else
    skip 'scratch memory of messages: the transport ucx is not built'
fi

# A budget of the user's: the plan keeps to it, and another reader can go on from the profile.
"$sluice" estimate --size mini -n 2 --budget 60% "${pace[@]}" --profile-out "$work/profile.json" \
    --plan-out "$work/plan.json" --json "$work/estimate.json" \
    >"$work/out" 2>"$work/err"
check "estimate --budget 60% works" 0 $?
check "it says that the budget fits" 1 "$(grep -c '^--budget 60% fits' "$work/out")"
check "its plan keeps to the budget" True "$(get estimate.json "j['plan']['planned_bytes'] <= j['plan']['budget_bytes']")"
"$sluice" plan --profile "$work/profile.json" --budget 60% >"$work/out" 2>"$work/err"
check "sluice plan reads the profile" 0 $?
"$sluice" check --profile "$work/profile.json" --plan "$work/plan.json" >"$work/out" 2>"$work/err"
check "sluice check accepts the plan" 0 $?
"$sluice" estimate -n 2 --budget 2MiB "${pace[@]}" --json "$work/small.json" >"$work/out" 2>"$work/err"
check "a budget that is too small fails" 2 $?
check "... after the other answers" 1 "$(grep -c '^smallest budget' "$work/out")"
check "... with what would work" 1 "$(grep -c 'the smallest that works' "$work/err")"
check "... and JSON that says so" None "$(get small.json "j['plan']")"

# Models and machines that are not here: a config.json without weights, and 64 ranks of a large model, in 200 MB.
mkdir "$work/model"
cat >"$work/model/config.json" <<'E2'
{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 48, "n_embd": 1600, "n_head": 25,
 "n_positions": 1024, "vocab_size": 50257}
E2
for path in "$work/model" "$work/model/config.json"; do
    (
        ulimit -v 2000000
        "$sluice" estimate --weights "$path" -n 64 --batch 8 --context 1024 --machines 64xA100-200gbit --ranks-a-host 8 \
            --effort 0.2 --json "$work/large.json" >"$work/out" 2>"$work/err"
    )
    check "estimate --weights ${path##*/}" 0 $?
    check "the parameters of GPT-2 XL" 1557611200 "$(get large.json "j['parameters']")"
    check "fsdp keeps less than dp" True \
        "$(get large.json "j['strategies'][6]['bytes'] < j['strategies'][0]['bytes'] > 4 * 4 * j['parameters']")"
done
if [ -r /proc/self/status ]; then
    check "a model of 25 GB is estimated in less than 200 MB" True "$(python3 - "$sluice" "$work/model" 2>"$work/err" <<'E2'
import resource, subprocess, sys
subprocess.run([sys.argv[1], "estimate", "--weights", sys.argv[2], "--effort", "0.2", "--pace", "1tflops,1TB"],
               stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 200 << 10)
E2
)"
fi

machines=(--machines 8xcpu-10gbit --effort 0.1)
"$sluice" estimate "${machines[@]}" --json "$work/all.json" >"$work/out" 2>"$work/err"
check "without -n all ranks of the machines train" "0 8" "$? $(get all.json "j['world']")"
"$sluice" estimate "${machines[@]}" -n 2 --json "$work/few.json" >"$work/out" 2>"$work/err"
check "-n takes some of them" "0 2" "$? $(get few.json "j['world']")"
check "... and a line says so" 1 "$(grep -c '2 ranks of the 8 that --machines has' "$work/out")"

refused() { # EXIT PATTERN OPTION...
    "$sluice" estimate "${@:3}" >"$work/out" 2>"$work/err"
    check "estimate ${*:3} ends with" "$1" $?
    check "estimate ${*:3} says why" 1 "$(grep -c -- "$2" "$work/err")"
}
refused 2 '--pace fast: give what' --pace fast
refused 2 '--machines: no cluster "mine"; choose one of' --machines mine
refused 2 '-n 9: --machines 8xcpu-10gbit has 8 ranks' --machines 8xcpu-10gbit -n 9
refused 2 'say how fast their network is' -n 4 --ranks-a-host 2 --pace 1tflops,1TB
refused 2 'knows no compressed phases' --strategy onebit
refused 2 'only sluice train keeps' --save "$work/run"
refused 2 '"word": options only' word
refused 2 'cannot read' --weights "$work/nothing"
[ ! -e "$work/run" ] || check "nothing was saved" absent present

exit $failed
