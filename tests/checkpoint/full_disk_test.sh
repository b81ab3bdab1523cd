#!/usr/bin/env bash
# On a disk that is full or read only training's other outputs are written, the reason is the system's, and nothing half
# done is left. This needs a file system of its own: root, or a user namespace that may mount one.
# Labels: sanitized
. "$(dirname "$0")/../support/command_check.sh"
help=$("$sluice" --help) || exit 1
if ! grep -q '^  train ' <<<"$help"; then
    echo 'SKIP: built without a model'
    exit 77
fi
. "$(dirname "$0")/../support/small_disk.sh" 2m "$@"
if [ -z "$mounted" ]; then
    echo 'SKIP: no file system of 2 MiB can be mounted here'
    exit 77
fi
. "$(dirname "$0")/../support/train_check.sh"

for ranks in 1 2; do
    rm -rf "$work/small/run"
    train -n $ranks --steps 3 --save "$work/small/run" --save-every 1 --csv "$work/full.csv" --json "$work/full.json"
    check "$ranks ranks: a full disk fails" 1 $code
    check "$ranks ranks: the next step is saved instead, and the run stops there" 3 "$(wc -l <"$work/full.csv")"
    check "$ranks ranks: which is said" 1 "$(grep -c 'step 1 is not saved: .*; step 2 is saved instead' "$work/err")"
    check "$ranks ranks: its results are written" yes "$(grep -q weights_sha256 "$work/full.json" && echo yes)"
    check "$ranks ranks: a full disk is named" yes \
        "$(grep -q 'sluice train: .*rank-000..slc: No space left on device' "$work/err" && echo yes)"
    check "$ranks ranks: nothing half done is left" '' "$(ls -A "$work/small/run")"
    train -n $ranks --steps 3 --save "$work/small/run" --save-every 1 --csv "$work/full.csv" --on-save-error warn
    check "$ranks ranks, warn: every step was trained" 4 "$(wc -l <"$work/full.csv")"
    check "$ranks ranks, warn: it is an error at the end" 1 $code
done

# Room for the ranks' files, and none for the rest.
mkdir -p "$work/small/run"
mount -o remount,size=16m "$work/small"
train --steps 1 --save "$work/small/run"
bytes=$(stat -c %s "$work/small/run/step-000001/rank-0000.slc")
rm -rf "$work/small/run"
mkdir "$work/small/run"
mount -o remount,size=$((bytes + 4096)) "$work/small" # pages: the last is too small for two files
dd if=/dev/zero of="$work/small/filler" bs=4096 count=1 status=none
train --steps 1 --save "$work/small/run"
check 'a disk that is full at the end of a save fails' 1 $code
check 'and says so' yes "$(grep -q 'sluice train: .*No space left on device' "$work/err" && echo yes)"
check 'nothing half done is left there' '' "$(ls -A "$work/small/run")"

mount -o remount,size=16m "$work/small"
rm "$work/small/filler"
train --steps 2 --save "$work/small/run"
check 'with room it saves' 0 $code
mount -o remount,ro "$work/small"
train --steps 4 --resume "$work/small/run"
check 'a disk that is read only can be gone on from' 0 $code
train --steps 4 --resume "$work/small/run" --save "$work/small/run"
check 'and not be saved to' 2 $code
check 'which is said' yes "$(grep -q 'cannot write to .*Read-only file system' "$work/err" && echo yes)"
check 'before the first step' 0 "$(grep -c 'step 3/' "$work/err")"
exit $failed
