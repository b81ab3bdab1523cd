#!/usr/bin/env bash
# The whole of what tests.several_gpus_link_test does of `sluice perf --device cuda`: 1 to 4 ranks, all operations, types,
# sums and places, blocks that a size cuts, and drawn orders of the GPU's work.
# Labels: all_only
. "$(dirname "$0")/../../support/command_check.sh"
. "$(dirname "$0")/../../support/gpu/several_gpus.sh"
. "$(dirname "$0")/../../support/gpu/gpu_perf.sh"

for ranks in 1 2 3 4; do
    for operation in all_reduce reduce_scatter all_gather broadcast reduce_scatter_all_gather; do
        for flags in '-d all -o all' '--in-place' '--sums nccl -d bf16' '--block 4K -c 3'; do
            export SLUICE_EMULATED_SEED=$RANDOM
            rows=3
            [ "${flags#-d}" = "$flags" ] || rows=12
            case $operation in all_gather | broadcast) rows=$((rows > 3 ? 6 : 3)) ;; esac
            # shellcheck disable=SC2086
            perf $ranks --op $operation -b 1000 -e 100K -f 10 $flags
            checked "$operation by $ranks, $flags, seed $SLUICE_EMULATED_SEED" $rows
        done
    done
done
unset SLUICE_EMULATED_SEED
perf 2 --op reduce_scatter_all_gather --ahead 0 -b 64K -e 64K --block 8K --beside
checked 'blocks reduced, then gathered, beside products' 1
[ $failed = 0 ] && echo "sluice perf on GPUs: all as promised"
exit $failed
