#!/usr/bin/env bash
# Saves that lie behind steps lose nothing: runs are killed and stopped at drawn moments, and disks of drawn sizes fill up.
# The checkpoint that is left is whole, it is no older than what had been saved before, and a run that goes on from it has
# the weights of one that was never stopped. power_loss_test.c draws losses of power.
# Labels: all_only
. "$(dirname "$0")/../support/command_check.sh"
need_command train
. "$(dirname "$0")/../support/small_disk.sh" 16m "$@"
. "$(dirname "$0")/../support/train_check.sh"
common+=(--eval-batches 0)
kills=40 disks=20 steps=5
RANDOM=${SLUICE_TEST_SEED:-7}
draw() { # N: $drawn becomes a number below it
    drawn=$((RANDOM % $1))
}

draw 10000
python3 "$(dirname "$0")/requeue.py" "$sluice" --kills $kills --seed "$drawn" >"$work/out" 2>"$work/err"
check "$kills runs that are ended go on" 0 $?
[ $failed = 0 ] || cat "$work/out"

if [ -z "$mounted" ]; then
    skip 'full disks: no file system can be mounted here'
    [ $failed = 0 ] && echo 'no save is lost'
    exit $failed
fi
for step in $(seq 2 $((steps + 1))); do
    for ranks in 1 2; do
        train -n $ranks --steps "$step" --json "$work/$ranks-$step.json"
    done
done
train --steps 1 --save "$work/small/run"
bytes=$(du -sb "$work/small/run/step-000001" | cut -f1)
full=0 left=0
for disk in $(seq $disks); do
    draw 2
    ranks=$((1 + drawn))
    draw 2
    way=$([ $drawn = 0 ] && echo stop || echo warn)
    draw 100
    size=$((bytes / 2 + drawn * bytes * 3 / 100))
    what="disk $disk of $size bytes, $ranks ranks, $way"
    rm -rf "$work/small/run"
    mount -o "remount,size=$size" "$work/small"
    train -n $ranks --steps $steps --save "$work/small/run" --save-every 1 --on-save-error "$way"
    [ $code = 0 ] || full=$((full + 1))
    check "$what: it ends, and says why" yes \
        "$([ $code = 0 ] || { [ $code = 1 ] && grep -q 'No space left on device' "$work/err"; } && echo yes)"
    check "$what: nothing half done is left" '' "$(find "$work/small/run" -name '*.partial')"
    last=$(find "$work/small/run" -name 'step-??????' | sort | tail -1 | sed 's/.*step-0*//')
    [ -n "$last" ] || continue
    left=$((left + 1))
    train -n $ranks --resume "$work/small/run" --steps $((last + 1)) --json "$work/after.json"
    check "$what: a run goes on from step $last" 0 $code
    check "$what: with the weights of one that saved nothing" "$(hash_of "$work/$ranks-$((last + 1)).json")" \
        "$(hash_of "$work/after.json")"
done
check 'some disks are full' yes "$([ $full -gt 3 ] && echo yes)"
check 'some leave a checkpoint' yes "$([ $left -gt 3 ] && echo yes)"
[ $failed = 0 ] && echo "no save is lost: $kills ends, $full full disks of $disks"
exit $failed
