#!/usr/bin/env bash
# The scripts of docs/clusters.md, as they stand there but for paths and the size of the model, on two hosts that are
# network namespaces; srun, scontrol and ssh are stand-ins in the folder cluster. Skipped (77) if namespaces cannot be
# made.
. "$(dirname "$0")/../support/command_check.sh"
need_command train
here=$(realpath "$(dirname "$0")")
export CLUSTER=sluice-cluster-$$ CLUSTER_NOTES=$work/notes
. "$here/../support/hosts/two_hosts.sh"
a=$CLUSTER-first b=$CLUSTER-second
PATH=$here/cluster:$(dirname "$(realpath "$sluice")"):$PATH

remove() {
    local pid
    for pid in $(ip netns pids $a 2>/dev/null) $(ip netns pids $b 2>/dev/null); do kill -KILL "$pid"; done
    remove_hosts
    rm -rf "$work"
}

name_hosts() {
    own_names && printf '10.97.0.1 first\n10.97.0.2 second\n' | tee /etc/netns/$a/hosts >/etc/netns/$b/hosts
}

script_of() { # HEADING STEPS: the block under a heading of the page, with this test's paths
    awk -v heading="## $1" '$0 == heading {here = 1} here && /^```$/ {exit} inside {print}
        here && /^```sh$/ {inside = 1}' "$here/../../docs/clusters.md" |
        sed "s|/shared|$work|g; s|--size small|--schedule one_ahead --context 16 --batch 2 --eval-batches 0|
            s|--steps 20000|--steps $2|"
}

latest() { # the step of the latest checkpoint
    local folders=("$work"/run/step-??????)
    [ ! -e "${folders[0]}" ] || echo $((10#${folders[-1]##*-}))
}

all_gone() {
    [ -z "$(ip netns pids $a)$(ip netns pids $b)" ]
}

stopped_at() { # the step at which rank 0 says that it stopped
    sed -n 's/^0: stopped at step \([0-9]*\) of.*/\1/p' "$work/out"
}

slurm() {
    local step
    script_of 'A script for Slurm' 1000000 >"$work/long"
    script_of 'A script for Slurm' 12 >"$work/short"
    export SLURM_JOB_ID=77 SLURM_JOB_NODELIST=first,second SLURM_NTASKS=2 SLURM_NTASKS_PER_NODE=1 SLURM_CPUS_PER_TASK=2
    SLURM_JOB_END_TIME=$(($(date +%s) + 1)) timeout 100 bash "$work/short" >"$work/out" 2>"$work/err" </dev/null
    check 'Slurm: the end of the job' 75 $?
    step=$(latest)
    check 'Slurm: the last step is saved' "$(stopped_at)" "$step"
    check 'Slurm: the job is requeued' 'requeue 77' "$(cat "$CLUSTER_NOTES")"
    check 'Slurm: two hosts, the CPUs of a task' '0: ranks      2, by messages (ucx), 2 threads each, on cpu' \
        "$(grep '^0: ranks' "$work/out")"
    export SLURM_CPUS_PER_TASK=1 # two threads a rank may be twice what this machine has
    timeout 100 bash "$work/short" >"$work/out" 2>"$work/err" </dev/null
    check 'Slurm: the same script goes on' 0 $?
    check 'Slurm: right after the last step' 1 "$(grep -c "steps $((step + 1)) to 12 of" "$work/out")"
    check 'Slurm: and ends' 12 "$(latest)"
    check 'Slurm: it is not requeued any more' 1 "$(wc -l <"$CLUSTER_NOTES")"
    begin "$work/out" "$work/err" bash "$work/long" # which has become srun's parent, as a batch script is
    comes_true said_or_ended '^0: step ' "$work/out"
    kill -TERM "$(pgrep -P "$process" -f srun)" # as scancel does it, to the step
    ends 'Slurm: scancel'
    check 'Slurm: SIGTERM' 130 "$code"
    check 'Slurm: SIGTERM saves' "$(stopped_at)" "$(latest)"
    unset SLURM_JOB_ID SLURM_JOB_NODELIST SLURM_NTASKS SLURM_NTASKS_PER_NODE SLURM_CPUS_PER_TASK
}

by_ssh() {
    local saved
    export OMP_NUM_THREADS=1 # nproc says so, then
    rm -rf "$work/run"
    script_of 'A script for ssh' 3 >"$work/short"
    script_of 'A script for ssh' 1000000 >"$work/long"
    timeout 100 bash "$work/short" first second >"$work/out" 2>"$work/err" </dev/null
    check 'ssh: two ranks' 0 $?
    check 'ssh: they train' 3 "$(latest)"
    check 'ssh: two hosts' 1 "$(grep -c '^0: ranks      2, by messages (ucx)' "$work/out")"
    begin "$work/out" "$work/err" bash "$work/long" first second
    comes_true said_or_ended '^0: step ' "$work/out"
    kill -TERM $process
    ends 'ssh: the script is stopped'
    comes_true all_gone
    saved=$(latest)
    check 'ssh: they save' yes "$([ "${saved:-0}" -gt 3 ] && echo yes)"
    check 'ssh: the last step is saved' "$(stopped_at)" "$saved"
    sed "s/--steps 1000000/--steps $((saved + 1))/" "$work/long" >"$work/short"
    timeout 100 bash "$work/short" first second >"$work/out" 2>"$work/err" </dev/null
    check 'ssh: started again' 0 $?
    check 'ssh: it goes on' $((saved + 1)) "$(latest)"
}

trap remove EXIT
if ! { make_hosts eth0 10.97.0.1/24 10.97.0.2/24 && name_hosts; } 2>"$work/why"; then
    echo "SKIP: the scripts for clusters: $(head -n 1 "$work/why")"
    exit 77
fi
comes_true are_up
unset UCX_NET_DEVICES UCX_TLS MASTER_ADDR MASTER_PORT SLUICE_JOB_TOKEN
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/book.txt"
slurm
by_ssh
[ $failed = 0 ] && echo 'the scripts for clusters do what the page says'
exit $failed
