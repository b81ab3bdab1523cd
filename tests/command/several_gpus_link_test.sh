#!/usr/bin/env bash
# The link between GPUs is measured: `sluice profile --device cuda` by several ranks, and the re-plan of a run by them.
# Labels: sanitized
. "$(dirname "$0")/../support/command_check.sh"
. "$(dirname "$0")/../support/several_gpus.sh"

# FILE: the profile's link is one that was measured between 2 GPUs
link_is_measured() {
    python3 - "$1" <<'PY' 2>"$work/err"
import json, sys
profile = json.load(open(sys.argv[1]))
link = profile["link"]
wrong = []
if profile["world"] != 2 or not profile["source"].startswith("measured on 2 ranks, device, nccl"):
    wrong.append(profile["source"])
for line in ("reduce_scatter", "all_gather"):
    if not link[line]["bytes_per_s"] > 0 or not link[line]["latency_s"] >= 0: wrong.append(link[line])
if not 0 <= link["kappa"] <= link["sigma"] or not link["sigma"] >= 1: wrong.append(link)
if (link["reduce_scatter"]["bytes_per_s"], link["all_gather"]["bytes_per_s"]) == (1e9, 1e9): wrong.append("estimated")
if link["operation_s"] == 5e-6 or link["thread_moves"]: wrong.append(link)
print("yes" if not wrong else wrong)
PY
}

profiles() {
    timeout 100 "$sluice" profile -n 2 --device cuda "${data[@]}" --batch 2 --steps 3 -o "$work/p.json" >"$work/out" \
        2>"$work/err" </dev/null
    check 'profile of 2 GPUs' 0 $?
    check 'its link was measured' yes "$(link_is_measured "$work/p.json")"
    "$sluice" plan --profile "$work/p.json" --world 2 --budget 80% >"$work/out" 2>"$work/err" </dev/null
    check 'plans are made of it' 0 $?
    gpus 2 --strategy auto --schedule "$(default_schedule)" --steps 6 --profile-out "$work/q.json"
    check 'a run that plans with its own link' 0 $code
    check 'it was measured in that run' yes "$(link_is_measured "$work/q.json")"
}

profiles
[ $failed = 0 ] && echo "the link of several GPUs: all as promised"
exit $failed
