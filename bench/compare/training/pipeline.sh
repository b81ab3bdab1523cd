#!/usr/bin/env bash
# Pipelines of GPT-2 124M in fp32 beside torch.distributed.pipelining over gloo: the same model, micro-batches and ranks,
# on one host and over shaped links in network namespaces. Beside them data parallelism without a pipeline, on the same
# batch, and one rank alone, ours and PyTorch's. Rounds by turns, the median of each. Prints a table ("!" falls short of
# the aim) and writes bench/results/pipeline.json.
#   bench/compare/training/pipeline.sh [ROUNDS]      needs root for links (namespaces.sh)
# Environment: PYTHON=an interpreter that has torch (else a virtual environment is made for the run and thrown away),
# SLUICE=the command, LINKS ("host" is no network: "host 1gbit"), RANKS, OURS=SCHEDULE[:CUTS]..., THEIRS=SCHEDULE...,
# DATA_PARALLEL=STRATEGY..., SIZE, BATCH, CONTEXT, MICRO_BATCHES (of a step), DATA_BATCH (sequences of a micro-batch
# without a pipeline), BUDGET (of each of our ranks; what does not fit is left out), STEPS (8 or more), BURST, OUT.
#   RANKS=4 MICRO_BATCHES=8 DATA_BATCH=4 BUDGET=750MiB DATA_PARALLEL="auto fsdp" THEIRS= LINKS=1gbit OUT=4.json \
#       bench/compare/training/pipeline.sh                                                    four ranks under one budget
set -euo pipefail
cd "$(dirname "$0")/../../.."
source bench/compare/peers/need_program.sh
source bench/compare/peers/pytorch_environment.sh
source bench/compare/peers/progress.sh
rounds=${1:-3}
export SLUICE=${SLUICE:-build/release/bench/sluice}
ranks=${RANKS:-2} micro_batches=${MICRO_BATCHES:-4} burst=${BURST:-128kb} out=${OUT:-bench/results/pipeline.json}
read -ra links <<<"${LINKS:-host 1gbit}"
read -ra ours <<<"${OURS:-1f1b interleaved}"
read -ra theirs <<<"${THEIRS-gpipe 1f1b interleaved zbv}"
read -ra strategies <<<"${DATA_PARALLEL-dp sdp}"
[ "${STEPS:-8}" -ge 8 ] || { echo "STEPS=$STEPS are too few for a median: give 8 or more" >&2; exit 2; }
batch=${BATCH:-2} data_batch=${DATA_BATCH:-${BATCH:-2}} budget=()
whole=$((micro_batches * batch)) # sequences of a step
[ $((whole % (data_batch * ranks))) = 0 ] || {
    echo "DATA_BATCH=$data_batch: $whole sequences of a step are no whole micro-batches of so many on $ranks ranks" >&2
    exit 2
}
[ -z "${BUDGET:-}" ] || budget=(--budget "$BUDGET")
shape=(--size "${SIZE:-small}" --context "${CONTEXT:-64}" --steps "${STEPS:-8}" --threads 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1

on_ranks() { # COMMAND...: rank 0's output in $work/output
    local run=("$SLUICE" run -n "$ranks" --)
    [ "$link" = host ] || run=(bench/compare/networks/namespaces.sh -n "$ranks" --rate "$link" --burst "$burst" --)
    if ! "${run[@]}" "$@" >"$work/output" 2>"$work/errors"; then
        cat "$work/output" "$work/errors" >&2
        [ ${#budget[@]} != 0 ] && grep -qE 'the budget is [0-9]|fit a budget of' "$work/errors" || exit 1
        echo "left out: it does not fit ${budget[1]}" >&2
    fi
    sed -i 's/^\[0\] //' "$work/output"
}

train() { # RESULT OPTION...
    local result=$1
    shift
    on_ranks "$SLUICE" train "${shape[@]}" "${budget[@]}" --eval-batches 0 --no-hash "$@" --json "$result"
}

pytorch() { # RESULT OPTION...
    local result=$1
    shift
    on_ranks "$python" bench/compare/peers/pytorch_pipeline.py "${shape[@]}" --batch "$batch" --micro-batches "$micro_batches" "$@"
    grep '^{' "$work/output" >"$result"
}

alone() { # one rank, without the others
    "$SLUICE" train -n 1 "${shape[@]}" --batch "$batch" --eval-batches 0 --no-hash --tied split --micro-batches "$micro_batches" \
        --json "$1.sluice.alone.json" >"$work/output" 2>"$work/errors" || { cat "$work/errors" >&2; exit 1; }
    [ ${#theirs[@]} = 0 ] || "$python" bench/compare/peers/pytorch_pipeline.py "${shape[@]}" --batch "$batch" \
        --schedule alone --micro-batches "$micro_batches" >"$1.pytorch.alone.json"
}

need_program "$SLUICE"
python=${PYTHON:-python3}
[ ${#theirs[@]} = 0 ] || find_pytorch "$work"
for round in $(seq "$rounds"); do
    for link in "${links[@]}"; do
        mkdir -p "$work/$link"
        prefix=$work/$link/$round
        progress "round $round of $rounds, $link: one rank alone"
        alone "$prefix"
        for strategy in "${strategies[@]}"; do
            progress "round $round of $rounds, $link: $strategy without a pipeline"
            schedule=(--schedule one_ahead) # in a budget, and where strategies are chosen, the planner's own
            { [ "$strategy" != auto ] && [ ${#budget[@]} = 0 ]; } || schedule=()
            train "$prefix.sluice.$strategy.json" --strategy "$strategy" "${schedule[@]}" --tied split \
                --batch "$data_batch" --micro-batches $((whole / data_batch / ranks))
        done
        for one in "${ours[@]}"; do
            progress "round $round of $rounds, $link: $one"
            cuts=auto
            [[ $one != *:* ]] || cuts=${one#*:}
            train "$prefix.sluice.pipeline-${one%%:*}.json" --pipeline "$ranks" --pipeline-schedule "${one%%:*}" \
                --pipeline-cuts "$cuts" --batch "$batch" --micro-batches "$micro_batches"
        done
        for one in "${theirs[@]}"; do
            progress "round $round of $rounds, $link: PyTorch's $one"
            pytorch "$prefix.pytorch.$one.json" --schedule "$one"
        done
    done
done
progress ''
"$python" bench/compare/peers/pipeline_table.py "$work" "$out" "$burst" "$ranks" "${links[@]}"
