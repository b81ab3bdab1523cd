#!/usr/bin/env bash
# A real Open MPI starts the ranks: they find each other, are told apart by `info`, train one model, and end together.
. "$(dirname "$0")/../support/command_check.sh"
if ! command -v mpirun >/dev/null; then
    echo 'SKIP: mpirun is not installed (openmpi-bin)'
    exit 77
fi
if ! mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
    echo 'SKIP: mpirun is not that of Open MPI'
    exit 77
fi
sluice=$(realpath "$sluice")
cd "$work" || exit 1
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >text
data=(--data text --context 32 --batch 2 --eval-batches 1 --schedule one_ahead)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # containers of tests
export OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo
unset RANK WORLD_SIZE # of whoever runs the tests

launch() { # RANKS COMMAND...: output in out and err, exit code in $code
    timeout -k 10 60 mpirun --oversubscribe -np "$@" >out 2>err </dev/null
    code=$?
}

launch 3 "$sluice" info --json
check 'info' 0 $code
check 'the launcher has a name' 3 "$(grep -c '"name": "Open MPI"' out)"
check 'every rank is there' '0,1,2' "$(sed -n 's/.*"rank": \([0-9]*\).*/\1/p' out | sort | paste -sd,)"

launch 3 "$sluice" perf --ranks 3 --op all_gather -b 48K -e 48K -n 1
check 'perf' 0 $code
check 'one table, no wrong element' 1 "$(grep -cE '^ +49152 .* 0 +[0-9.]+ +[0-9.]+$' out)"
check 'it says how many ranks' 1 "$(grep -c ': 3 ranks' out)"
launch 2 "$sluice" perf --ranks 3 -b 64K -e 64K -n 1
check 'another number of ranks is refused' yes "$([ $code != 0 ] && grep -q 'the launcher started 2' err && echo yes)"

# A token of our own is not needed: Open MPI's job has a name.
check 'no warning of a token' 0 "$(grep -c -i token err)"

if "$sluice" --help | grep -q '^  train '; then
    launch 2 "$sluice" train "${data[@]}" -n 2 --steps 3 --save saved --json mpirun.json
    check 'train' 0 $code
    check 'one job, not two' 1 "$(grep -c '^trained ' out)"
    timeout -k 10 60 "$sluice" train "${data[@]}" -n 2 --steps 3 --json own.json >out 2>err </dev/null
    sum() { grep -o '"weights_sha256": "[0-9a-f]*"' "$1"; }
    check 'the weights of our own launcher' "$(sum own.json)" "$(sum mpirun.json)"
    check 'its world' 1 "$(grep -c '"world": 2' mpirun.json)"
    # A rank that gets SIGTERM, as mpirun hands it on, stops all of them after the step, and they save.
    launch 2 sh -c 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then
            (for _ in $(seq 500); do
                grep -q "step 1/" err || ! kill -0 $$ && break
                sleep 0.1
            done; kill -TERM $$) &
        fi
        exec "$0" train "$@" --steps 1000000 --save stopped --json stopped.json' "$sluice" "${data[@]}"
    check 'a stop' yes "$([ $code != 0 ] && grep -q '"interrupted": true' stopped.json && echo yes)"
    check 'is saved' 1 "$(find stopped -name manifest.json | wc -l)"
fi

# A rank that dies is named by the others, and mpirun ends them.
launch 2 sh -c 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then (sleep 1; kill -KILL $$) & fi
    exec "$0" perf --op all_reduce -b 1M -e 1M -n 1000000' "$sluice"
check 'a death ends the job' yes "$([ $code != 0 ] && [ $code != 124 ] && echo yes)"

[ $failed = 0 ] && echo "mpirun: all as promised"
exit $failed
