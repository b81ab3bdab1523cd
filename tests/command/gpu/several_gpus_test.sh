#!/usr/bin/env bash
# `--device cuda` with several ranks: in rank order, sums give weights that are equal to the bit under every strategy, the
# losses are the host's, whatever the order in which GPUs do things, also where steps leave layers out or change their
# length; NCCL's own sums repeat. A few drawn cases; tests.several_gpus_matrix_test has all of them.
# Labels: sanitized
. "$(dirname "$0")/../../support/command_check.sh"
. "$(dirname "$0")/../../support/gpu/several_gpus.sh"
. "$(dirname "$0")/../../support/short_recipes.sh"

pick() { # WORD...: one of them, in $picked; the shell that draws must be this one, or each draw would be the first
    local words=("$@")
    picked=${words[RANDOM % $#]}
}

# dp, which the others are compared with, and two more.
strategies=(dp)
pick fsdp mixed
strategies+=("$picked")
pick oss sdp
strategies+=("$picked")
pick '' '--clip 0.5' '--optimizer lamb' '--nan skip' '--micro-batches 2 --accumulate each' '--recompute all'
read -ra drawn <<<"$picked"
pick 2 2 3
ranks=$picked
pick fp32 fp32 bf16
precision=$picked
echo "strategies ${strategies[*]}; $ranks ranks, $precision, ${drawn[*]:-no option}"
most=1e-4
[ "$precision" = fp32 ] || most=1e-2
equal_strategies "$ranks" "$precision" $most "${drawn[@]}"

ended_with=$(hash_of "$work/cuda.json")

recipes() { # one that is drawn, under two strategies
    pick dp oss sdp
    strategies=(fsdp "$picked")
    pick drops grow both documents
    echo "recipe $picked, strategies ${strategies[*]}"
    case $picked in
    drops) follows_recipe "${drops[@]}" --clip 0.5 ;;
    grow) follows_recipe "${grow[@]}" ;;
    both) follows_recipe "${drops[@]}" "${grow[@]}" --dropout 0.1 --drop-path 0.3 ;;
    documents) follows_documents "${drops[@]}" ;;
    esac
}
recipes

nccl_sums() {
    local first
    gpus 2 --strategy fsdp --sums nccl
    check 'sums of NCCL' 0 $code
    reports_sums 'sums of NCCL' "$work/cuda.json" nccl
    first=$(hash_of "$work/cuda.json")
    skewed_gpus 2 --strategy fsdp --sums nccl
    check 'sums of NCCL again' 0 $code
    check 'they repeat' "$first" "$(hash_of "$work/cuda.json")"
}
nccl_sums

refusals() {
    SLUICE_COMM_NCCL=$work/none.so gpus 2
    check 'without NCCL it says so' yes "$([ $code != 0 ] && grep -q "$work/none.so" "$work/err" && echo yes)"
    hosts 2 --sums nccl
    check 'the host has no sums of NCCL' yes \
        "$([ $code != 0 ] && grep -q 'sums nccl is for the transport nccl, on device cuda' "$work/err" && echo yes)"
    gpus 2 --throttle 1gbit
    check 'no network is imitated' yes "$([ $code != 0 ] && grep -q nccl "$work/err" && echo yes)"
}
refusals
[ -n "$ended_with" ] || check 'there were weights' yes no
[ $failed = 0 ] && echo "several GPUs: all as promised"
exit $failed
