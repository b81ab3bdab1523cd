#!/usr/bin/env bash
# sluice estimate: what it says is what sluice train then does, in the bytes of every strategy, the smallest budget and a
# budget that fits. It also answers for models and machines that are not here, in little memory, and refuses mistakes.
# shellcheck source=../../support/command_check.sh
. "$(dirname "$0")/../../support/command_check.sh"
need_command estimate

pace=(--effort 0.02 --pace "100gflops,20GB")

get() { # FILE EXPRESSION: of the JSON `j`
    python3 -c "import json, sys; j = json.load(open('$work/$1')); print($2)" 2>"$work/err"
}

estimate() { # OPTION...: JSON in $work/estimate.json, what it says of strategies in $work/bytes
    timeout 60 "$sluice" estimate "${pace[@]}" "$@" --json "$work/estimate.json" >"$work/out" 2>"$work/err"
    check "estimate $* works" 0 $?
    get estimate.json "'\\n'.join('%s,%s %d' % (s['strategy'], 'all' if s['recompute'] else 'none', s['bytes']) for s in j['strategies'])" \
        >"$work/bytes"
}

compare_with_train() { # STRATEGY RECOMPUTE OPTION..., those that $work/bytes was made with
    rm -f "$work/train.json"
    timeout 60 "$sluice" train --strategy "$1" --recompute "$2" --schedule serial --steps 1 --eval-batches 0 "${@:3}" \
        --json "$work/train.json" >/dev/null 2>"$work/err"
    check "train --strategy $1 --recompute $2 ${*:3} works" 0 $?
    check "bytes of $1, recompute $2, ${*:3}" "$(sed -n 's/^ *"planned_bytes": \([0-9]*\),*$/\1/p' "$work/train.json" | head -n 1)" \
        "$(sed -n "s/^$1,$2 //p" "$work/bytes")"
}

# The smallest budget is what the refusal of one byte names, and it is enough.
smallest_budget() { # OPTION...
    local smallest
    smallest=$(get estimate.json "j['smallest_budget_bytes']")
    timeout 60 "$sluice" train --budget 1B --steps 1 "$@" >/dev/null 2>"$work/err"
    check "the refusal of one byte, $*, names the same smallest budget" 1 "$(grep -c -- "--budget $smallest," "$work/err")"
    timeout 60 "$sluice" train --budget "$smallest" --steps 1 --eval-batches 0 "$@" >/dev/null 2>"$work/err"
    check "the smallest budget of $* is enough" 0 $?
}

for ranks in 1 2; do
    estimate -n $ranks
    for strategy in dp oss sdp fsdp; do
        for recompute in none all; do compare_with_train $strategy $recompute -n $ranks; done
    done
    smallest_budget -n $ranks
done
mini=(--size mini -n 2 --batch 1 --context 32)
estimate "${mini[@]}"
compare_with_train dp none "${mini[@]}"
compare_with_train fsdp all "${mini[@]}"
smallest_budget "${mini[@]}"

# The estimate follows the other options that decide bytes.
compare_options() { # OPTION...
    estimate -n 2 "$@"
    compare_with_train fsdp none -n 2 "$@"
}
compare_options --model bert --precision bf16 --micro-batches 2
compare_options --tied split --accumulate each --micro-batches 2
compare_options --nan skip --block 64KiB --layer-precision h.0=bf16 --optimizer lamb

# A run that sends messages needs scratch memory.
estimate -n 2 --ranks-a-host 1 --throttle 1gbit,50us
if [ -e "${SLUICE_TRANSPORT_PATH:-/nowhere}/libsluice_transport_ucx.so" ]; then
    export SLUICE_COMM_DIRECT=0
    compare_with_train dp none -n 2
    compare_with_train fsdp none -n 2
    unset SLUICE_COMM_DIRECT
else
    skip 'scratch memory of messages: the transport ucx is not built'
fi

# A budget of the user's: the plan keeps to it, and another reader can go on from the profile.
estimate "${mini[@]}" --budget 60% --profile-out "$work/profile.json" --plan-out "$work/plan.json"
check "it says that the budget fits" 1 "$(grep -c '^--budget 60% fits' "$work/out")"
check "its plan keeps to the budget" True "$(get estimate.json "j['plan']['planned_bytes'] <= j['plan']['budget_bytes']")"
"$sluice" plan --profile "$work/profile.json" --budget 60% --effort 0.02 >"$work/out" 2>"$work/err"
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
(
    ulimit -v 2000000
    timeout 60 "$sluice" estimate --weights "$work/model" -n 64 --batch 8 --context 1024 --machines 64xA100-200gbit \
        --ranks-a-host 8 --effort 0.02 --json "$work/large.json" >"$work/out" 2>"$work/err"
)
check "estimate --weights FOLDER" 0 $?
check "the parameters of GPT-2 XL, and fsdp keeps less than dp" "1557611200 True" "$(get large.json \
    "j['parameters'], j['strategies'][6]['bytes'] < j['strategies'][0]['bytes'] > 4 * 4 * j['parameters']" | tr -d '(,)')"
if [ -r /proc/self/status ]; then
    check "a model of 25 GB, named by its config.json, is estimated in less than 200 MB" True \
        "$(python3 - "$sluice" "$work/model/config.json" 2>"$work/err" <<'E2'
import resource, subprocess, sys
subprocess.run([sys.argv[1], "estimate", "--weights", sys.argv[2], "--effort", "0.02", "--pace", "1tflops,1TB"],
               stdout=subprocess.DEVNULL, check=True, timeout=60)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 200 << 10)
E2
)"
fi

machines=(--machines 8xcpu-10gbit --effort 0.02)
"$sluice" estimate "${machines[@]}" --json "$work/all.json" >"$work/out" 2>"$work/err"
check "without -n all ranks of the machines train" "0 8" "$? $(get all.json "j['world']")"
"$sluice" estimate "${machines[@]}" -n 2 --json "$work/few.json" >"$work/out" 2>"$work/err"
check "-n takes some of them" "0 2" "$? $(get few.json "j['world']")"
check "... and a line says so" 1 "$(grep -c '2 ranks of the 8 that --machines has' "$work/out")"

# A budget that is refused between hosts is refused with the command that says so beforehand, and its figure is the same.
small=(--schedule serial --context 32 --batch 2 --eval-batches 0 --budget 1MiB)
SLUICE_COMM_DIRECT=off timeout 100 "$sluice" train -n 2 "${small[@]}" >"$work/out" 2>"$work/err" </dev/null
check "train on several hosts with a small budget ends with" 2 $?
smallest=$(sed -n 's/.*smallest that works: --budget \([0-9]*\).*/\1/p' "$work/err")
command=$(sed -n 's/.*`sluice \(estimate[^`]*\)`.*/\1/p' "$work/err")
check "it names the estimate" 'estimate -n 2 --ranks-a-host 1 --throttle 10gbit,20us' "$command"
# shellcheck disable=SC2086 # words of a command
timeout 100 "$sluice" $command "${small[@]}" --pace 1tflops,1TB --effort 0.02 >"$work/out" 2>"$work/err" </dev/null
check "the estimate refuses too" 2 $?
check "the same budget would do" 1 "$(grep -c "smallest that works: --budget $smallest," "$work/err")"
timeout 100 "$sluice" train -n 2 "${small[@]}" >"$work/out" 2>"$work/err" </dev/null
check "on one host nothing is said of it" 0 "$(grep -c 'sluice estimate' "$work/err")"

refused() { # EXIT PATTERN OPTION...
    "$sluice" estimate "${@:3}" >"$work/out" 2>"$work/err"
    check "estimate ${*:3} ends with" "$1" $?
    check "estimate ${*:3} says why" 1 "$(grep -c -- "$2" "$work/err")"
}
refused 2 '--pace fast: give what' --pace fast
refused 2 '--machines: no cluster "mine"; choose one of' --machines mine
refused 2 '-n 9: --machines 8xcpu-10gbit has 8 ranks' --machines 8xcpu-10gbit -n 9
refused 2 'there are 8 ranks' -n 8 --ranks-a-host 9
refused 2 'say how fast their network is' -n 4 --ranks-a-host 2 --pace 1tflops,1TB
refused 2 'knows no compressed phases' --strategy onebit
refused 2 'only sluice train keeps' --save "$work/run"
refused 2 '"word" follows no option' word
refused 2 'cannot read' --weights "$work/nothing"
[ ! -e "$work/run" ] || check "nothing was saved" absent present

exit $failed
