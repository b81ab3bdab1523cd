#!/usr/bin/env bash
# A real torchrun starts the ranks, with the Python that SLUICE_TEST_PYTHON names.
. "$(dirname "$0")/../support/command_check.sh"
need_test_python torch.distributed.run
sluice=$(realpath "$sluice")
cd "$work" || exit 1
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >text
data=(--data text --context 32 --batch 2 --eval-batches 1 --schedule one_ahead)
unset RANK WORLD_SIZE

torchrun() { # RANKS COMMAND...: on a free port of this machine; output in out and err, exit code in $code
    timeout -k 10 300 "$python" -m torch.distributed.run --nproc-per-node "$1" --rdzv-backend c10d \
        --rdzv-endpoint 127.0.0.1:0 --no-python "${@:2}" >out 2>err </dev/null
    code=$?
}

torchrun 2 "$sluice" info --json
check 'info' 0 $code
check 'the launcher has a name' 2 "$(grep -c '"name": "torchrun"' out)"
check 'every rank is there' '0,1' "$(sed -n 's/.*"rank": \([0-9]*\).*/\1/p' out | sort | paste -sd,)"

torchrun 2 "$sluice" perf --ranks 2 --op all_gather -b 64K -e 64K -n 1
check 'perf' 0 $code
check 'one table, no wrong element' 1 "$(grep -cE '^ +65536 .* 0 +[0-9.]+ +[0-9.]+$' out)"
# The agent that starts alone has the port of MASTER_PORT itself.
timeout -k 10 300 "$python" -m torch.distributed.run --nproc-per-node 2 --standalone --no-python "$sluice" perf --ranks 2 \
    --op all_gather -b 64K -e 64K -n 1 >out 2>err </dev/null
check 'standalone' 0 $?
torchrun 2 "$sluice" perf --ranks 3 -b 64K -e 64K -n 1
check 'another number of ranks is refused' yes "$([ $code != 0 ] && grep -q 'the launcher started 2' err && echo yes)"

if "$sluice" --help | grep -q '^  train '; then
    # One mistake is one message here too, whether the parser finds it, a rank before the world, or a rank in it.
    for mistake in '--lr fast' '--head words' '--data nowhere' '--data empty' '--budget 64KiB'; do
        : >empty
        # shellcheck disable=SC2086
        torchrun 3 "$sluice" train $mistake
        check "$mistake fails" yes "$([ $code != 0 ] && echo yes)"
        check "$mistake is told once" 1 "$(grep -c '^sluice train: ' err)"
    done
    torchrun 2 "$sluice" train "${data[@]}" -n 2 --steps 3 --json torchrun.json
    check 'train' 0 $code
    check 'one job, not two' 1 "$(grep -c '^trained ' out)"
    timeout -k 10 200 "$sluice" train "${data[@]}" -n 2 --steps 3 --json own.json >out 2>err </dev/null
    sum() { grep -o '"weights_sha256": "[0-9a-f]*"' "$1"; }
    check 'the weights of our own launcher' "$(sum own.json)" "$(sum torchrun.json)"
fi
[ $failed = 0 ] && echo "torchrun: all as promised"
exit $failed
