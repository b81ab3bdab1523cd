#!/usr/bin/env bash
# 50 steps of GPT-2 on real text end in the same losses and the same weights, to the bit, for every strategy, mix,
# schedule, block size and path, with and without recomputation, at equal numerics settings: on 1, 2 and 4 ranks,
# clipping on and off, both ways to accumulate. And the loss falls.
set -u
sluice=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
steps=${SLUICE_TEST_STEPS:-50}

train() { # ranks, clip, accumulate, strategy, schedule, block, path, recompute: losses and weights in one line
    local direct=on
    [ "$7" = messages ] && direct=off
    SLUICE_COMM_DIRECT=$direct timeout 120 "$sluice" train -n "$1" --size nano --batch 2 --context 32 \
        --micro-batches 2 --steps "$steps" --seed 7 --threads 1 --clip "$2" --accumulate "$3" --strategy "$4" \
        --schedule "$5" --block "$6" --recompute "$8" --json "$work/run.json" >"$work/log" 2>&1 || {
        echo "FAILED: sluice train, $*" >&2
        tail -5 "$work/log" >&2
        return 1
    }
    python3 - "$work/run.json" "$7" "$1" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))["runs"][0]
path, ranks = sys.argv[2], int(sys.argv[3])
if ranks > 1 and run["path"] != path:
    sys.exit(f"FAILED: asked for {path}, ran over {run['path']}")
if run["peak_bytes"] != run["planned_bytes"]:
    sys.exit(f"FAILED: peak {run['peak_bytes']}, planned {run['planned_bytes']}")
if not run["losses"][-1] < run["losses"][0] - 1:
    sys.exit(f"FAILED: the loss does not fall: {run['losses'][0]} -> {run['losses'][-1]}")
print(run["weights_sha256"], *(loss.hex() for loss in run["losses"]))
PY
}

variants() { # strategy schedule block path recompute
    cat <<'LIST'
dp serial 1MiB direct none
dp one_ahead 4096 messages all
oss one_ahead 4096 direct none
oss one_ahead 64KiB messages all
sdp one_ahead 64KiB direct all
sdp serial 1MiB messages none
fsdp one_ahead 1MiB direct none
fsdp one_ahead 4096 messages all
fsdp serial 64KiB direct none
random:1 one_ahead 4096 direct all
random:2 one_ahead 64KiB messages none
LIST
}

compare() { # ranks, clip, accumulate: all variants against the first
    local first= line
    while read -r strategy schedule block path recompute; do
        [ "$1" = 1 ] && [ "$path" = messages ] && continue
        line=$(train "$1" "$2" "$3" "$strategy" "$schedule" "$block" "$path" "$recompute") || { failed=1; continue; }
        first=${first:-$line}
        [ "$line" = "$first" ] && continue
        echo "FAILED: $1 ranks, clip $2, accumulate $3: $strategy $schedule $block $path, recompute $recompute, differs from dp serial"
        failed=1
    done < <(variants)
    echo "$1 ranks, clip $2, accumulate $3: ${first:0:16}"
}

for ranks in 1 2 4; do
    for clip in 0 0.5; do
        for accumulate in last each; do compare $ranks $clip $accumulate; done
    done
done
exit $failed
