#!/usr/bin/env bash
# The programs of bench/compare/peers still do what the scripts of bench/compare ask of them: attention_times,
# padded_training and head_rows, which a build with tests has beside `sluice`, processor_clock, and openmpi_perf, if Open MPI's
# headers are.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
tree=$(cd "$(dirname "$0")/../../.." && pwd)
peers=${sluice%/*}

printf 'fp32 2 5 2 8 1 0 1\nbf16 1 17 2 8 0 4 1\n' | timeout 60 "$peers/attention_times" >"$work/out" 2>"$work/err"
check 'attention_times' 0 $?
check 'it answers each problem with two times' 2 "$(grep -cE '^[0-9]+\.[0-9]{9} [0-9]+\.[0-9]{9}$' "$work/out")"

int32() { # NUMBER...
    local n
    for n; do
        # shellcheck disable=SC2059 # the bytes are the format
        printf "$(printf '\\x%02x' $((n & 255)) $((n >> 8 & 255)) $((n >> 16 & 255)) $((n >> 24 & 255)))"
    done
}

for step in 1 2; do # four sequences of six tokens, two of them padded; as many targets as words, but one
    int32 $step 2 3 4 5 6 7 8 9 0 0 0 1 2 3 4 5 6 7 8 9 10 0 0
    int32 1 1 1 1 1 1 1 1 1 0 0 0 1 1 1 1 1 1 1 1 1 1 0 0
    int32 2 3 4 5 6 7 8 9 1 -1 -1 -1 2 3 4 5 6 7 8 9 -1 1 -1 -1
done >"$work/batches"

losses() { # RANKS MICRO_BATCHES STRATEGY
    mkdir -p "$work/saved.$1"
    timeout 60 "$sluice" run -n "$1" -- "$peers/padded_training" "$tree/tests/golden/gpt2" "$work/batches" 6 4 "$2" "$3" \
        "$work/saved.$1" 2>"$work/err" | grep -oE '[0-9]+\.[0-9]+$' | cut -c 1-8
}

whole=$(losses 1 1 dp)
check 'padded_training: a loss for each step' 2 "$(wc -l <<<"$whole")"
check 'split between ranks, they are the same' "$whole" "$(losses 2 1 fsdp)"
check 'split into micro-batches too' "$whole" "$(losses 1 2 dp)"
check 'it saves the weights' yes "$([ -s "$work/saved.2/model.safetensors" ] && echo yes)"

check 'head_rows: medians of steps that take turns' 1 "$(timeout 60 "$peers/head_rows" nano 32 2 3 |
    grep -cE '^bert nano, 2 x 32 tokens: [0-9.]+ ms with targets at 15 % of the rows, [0-9.]+ ms with all: -?[0-9.]+ % faster$')"

cc -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -shared -fPIC "$tree/bench/compare/peers/processor_clock.c" \
    -o "$work/processor_clock.so" 2>"$work/err"
check 'processor_clock is compiled' 0 $?
LD_PRELOAD=$work/processor_clock.so timeout 60 python3 -c '
import time

def used(wait):
    clock, processor = time.perf_counter(), time.process_time()
    wait()
    return time.perf_counter() - clock, time.process_time() - processor

asleep, _ = used(lambda: time.sleep(1))
clock, processor = used(lambda: sum(range(2000000)))
print("slept", asleep < 0.5, "worked", 0.5 * processor <= clock <= 2 * processor)' >"$work/out" 2>"$work/err"
check 'it counts work, and no sleep' 'slept True worked True' "$(cat "$work/out")"

if ! mpicc -E "$tree/bench/compare/peers/openmpi_perf.c" >/dev/null 2>&1 || ! mpirun --version | grep -q 'Open MPI'; then
    skip 'openmpi_perf: Open MPI and its headers are not installed (openmpi-bin, libopenmpi-dev)'
    exit $failed
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # containers of tests
export OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo
mpicc -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror "$tree/bench/compare/peers/openmpi_perf.c" -o "$work/openmpi_perf" -lm \
    2>"$work/err"
check 'openmpi_perf is compiled' 0 $?
for operation in all_reduce reduce_scatter all_gather; do
    timeout -k 10 60 mpirun --oversubscribe -np 2 "$work/openmpi_perf" $operation 2 1 4096 65536 >"$work/out" \
        2>"$work/err" </dev/null
    check "$operation" 0 $?
    check "$operation: a line for each size, no element wrong" 2 "$(grep -cE '^(4096|65536) [0-9]+ 0$' "$work/out")"
done
exit $failed
