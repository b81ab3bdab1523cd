#!/usr/bin/env bash
# The link between GPUs is measured: `sluice profile --device cuda` by several ranks, the re-plan of a run by them, and
# `sluice perf --device cuda`, whose results are checked. Other ranks, sizes and forms are in
# tests.several_gpus_perf_test.
# Labels: sanitized
. "$(dirname "$0")/../../support/command_check.sh"
. "$(dirname "$0")/../../support/gpu/several_gpus.sh"
. "$(dirname "$0")/../../support/gpu/gpu_perf.sh"

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
    # A run that plans takes long under a sanitizer, which has seen the same measurement above.
    [ "$(awk -v scale="${SLUICE_TEST_SCALE:-1}" 'BEGIN { print (scale >= 0.3 ? "yes" : "no") }')" = yes ] || return
    gpus 2 --strategy auto --schedule "$(default_schedule)" --steps 6 --profile-out "$work/q.json"
    check 'a run that plans with its own link' 0 $code
    check 'it was measured in that run' yes "$(link_is_measured "$work/q.json")"
}

perfs() {
    perf 2 --op all_reduce -b 1000 -e 300K -f 17 --json "$work/rows.json"
    checked 'all_reduce' 3
    check 'the columns are those of the host, which are those of nccl-tests' \
        'size count type redop time algbw busbw #wrong min max' \
        "$(sed -n 's/^# *\(size .*\)/\1/p' "$work/out" | tr -s ' ' | sed 's/ $//')"
    check 'the report says what moved the data' 'cuda device nccl ordered' "$(python3 - "$work/rows.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
print(*(report[key].split()[0] for key in ("device", "path", "transport", "sums")))
PY
)"
    check 'each time lies between the least and the greatest' 3 \
        "$(awk '$1 ~ /^[0-9]/ && $9 > 0 && $9 <= $5 && $5 <= $10 * 1.01' "$work/out" | wc -l)"
    perf 2 --op reduce_scatter -b 100K -e 100K -d bf16 --sums nccl --block 16K
    checked 'reduce_scatter, bf16, sums of NCCL' 1
    perf 2 --op all_gather -b 200K -e 200K --beside --json "$work/rows.json"
    checked 'all_gather beside products' 1
    check 'products were counted' 2 "$(grep -cE '"compute_(alone|beside)_gflops": [0-9.e-]*[1-9]' "$work/rows.json")"
}

refusals() {
    local option
    for option in '--path messages' '--throttle 1gbit' '--copy' '-b 0' '-n 1000000'; do
        # shellcheck disable=SC2086
        perf 2 $option
        check "$option is refused" yes "$([ $code != 0 ] && [ $code -lt 100 ] && [ -s "$work/err" ] && echo yes)"
    done
    timeout 60 "$sluice" perf --ranks 2 --sums nccl >"$work/out" 2>"$work/err" </dev/null
    check 'the host has no sums of NCCL' yes \
        "$([ $? != 0 ] && grep -q "NCCL's sums are for GPUs" "$work/err" && echo yes)"
    perf 2 -b 1T
    check 'more than there is' yes "$([ $code != 0 ] && grep -q '^sluice perf: -e: needs' "$work/err" && echo yes)"
}

profiles
perfs
refusals
[ $failed = 0 ] && echo "the link of several GPUs: all as promised"
exit $failed
