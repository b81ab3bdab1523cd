#!/usr/bin/env bash
# A run of `sluice train --go-on` that is ended and begins again comes to the weights of one that was never ended, and
# loses no step that was saved: requeue.py with a few ends. Options that do not fit are refused before the first step.
. "$(dirname "$0")/../support/command_check.sh"
need_command train
. "$(dirname "$0")/../support/train_check.sh"
common+=(--eval-batches 0)

python3 "$(dirname "$0")/requeue.py" "$sluice" --kills "${SLUICE_TEST_KILLS:-6}" >"$work/out" 2>"$work/err"
check 'runs that are ended go on' 0 $?
[ $failed = 0 ] || cat "$work/out"

train --go-on "$work/run" --steps 3 --stop-after 1s --save-every 1
check 'no time at all: one step, and 75' 75 $code
check 'it says why' 1 "$(grep -c "^stopped at step 1 of 3 to be in time (--stop-after 1s), saved to $work/run" "$work/out")"
train --go-on "$work/run" --steps 3 --stop-after 1h
check 'it goes on' 0 $code
train --go-on "$work/run" --steps 3
check 'a run that is done has nothing to do' 1 "$(grep -c "nothing to train: $work/run is at step 3 of 3" "$work/out")"
check 'and is no error' 0 $code
SLURM_JOB_END_TIME=$(date +%s) train --go-on "$work/run" --steps 9
check "Slurm's end of the job: 75" 75 $code
SLURM_JOB_END_TIME=$(date +%s) train --steps 3
check "Slurm's end of the job is nothing where nothing is saved" 0 $code

refuses 'leave --save out' --go-on "$work/run" --save "$work/other"
refuses 'leave --resume out' --go-on "$work/run" --resume "$work/other"
refuses 'is not a time' --stop-after tomorrow
refuses 'was saved with --size "nano", this run has "mini"' --go-on "$work/run" --size mini --steps 5
# Ranks that do not see one folder, of which one holds a checkpoint.
mkdir -p "$work/apart/0" "$work/apart/1"
cp -r "$work/run" "$work/apart/0/run"
timeout 120 "$sluice" run -n 2 -- bash -c 'cd "$0/$RANK" && exec "$@"' "$work/apart" "$sluice" train "${common[@]}" \
    --steps 9 --go-on run >"$work/out" 2>"$work/err" </dev/null
check 'ranks that see different folders' 2 $?
check 'it says which rank sees nothing' 1 "$(grep -c 'rank 0 finds a checkpoint there and rank 1 finds none' "$work/err")"

# The number of ranks changes.
train -n 2 --go-on "$work/run" --steps 5
check 'the global batch is named' 1 \
    "$(grep -c 'ranks was 1 and is 2.*was 2 and is 4; --batch 1 --micro-batches 1 keeps it' "$work/err")"
train -n 2 --go-on "$work/run" --steps 7 --batch 2
check 'nothing is said while they stay' 0 "$(grep -c 'ranks was' "$work/err")"

# Threads, as a batch system says them.
ranks_line() {
    sed -n 's/^ranks  *//p' "$work/out"
}
SLURM_CPUS_PER_TASK=2 OMP_NUM_THREADS=3 train --steps 1
check "Slurm's CPUs of a task" '1, 2 threads, on cpu' "$(ranks_line)"
OMP_NUM_THREADS=2 train --steps 1
check 'OMP_NUM_THREADS' '1, 2 threads, on cpu' "$(ranks_line)"
OMP_NUM_THREADS=2 train --steps 1 --threads 1
check '--threads' '1, 1 thread, on cpu' "$(ranks_line)"
SLURM_CPUS_PER_TASK=all refuses 'SLURM_CPUS_PER_TASK=all: it is no number of threads' --steps 1
core=$(taskset -cp $$ | sed 's/.*[ ,-]//')
timeout 100 taskset -c "$core" "$sluice" train "${common[@]}" --steps 1 --threads 2 >"$work/out" 2>"$work/err" </dev/null
check 'a core that is taken twice' \
    'cores      1 thread more than there are cores for them, so cores are taken twice (1 for this rank); --threads 1 fits' \
    "$(grep '^cores' "$work/out")"
timeout 100 taskset -c "$core" "$sluice" train "${common[@]}" --steps 1 >"$work/out" 2>"$work/err" </dev/null
check 'nothing is idle, and nothing is said' '' "$(grep '^cores' "$work/out")"
[ $failed = 0 ] && echo 'runs go on after every end'
exit $failed
