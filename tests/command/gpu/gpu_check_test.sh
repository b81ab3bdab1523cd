#!/usr/bin/env bash
# bench/gpu_pack.sh and bench/gpu_check.sh keep their promises against the emulated GPU: the pack is small and complete,
# what is unpacked runs, the table and the JSON say the same, and a part that fails or hangs costs itself alone.
# Labels: all_only
. "$(dirname "$0")/../../support/command_check.sh"
source=$(cd "$(dirname "$0")/../../.." && pwd)
build=$(cd "${sluice%/*}/.." && pwd)
unset SLUICE_TRANSPORT_PATH # the pack has its own

case $("$sluice" info | sed -n 's/^gpu *//p') in
*'this build has no device cuda'*)
    skip 'bench/gpu_pack.sh: this build has no device cuda'
    exit 77
    ;;
'device: cuda (emulated); '*) emulated=yes ;;
*) emulated=no ;;
esac

part() { # NAME: its result in the table
    sed -n "s/^$1  *\(ok\|FAILED\|not run\)  *[0-9.]* .*/\1/p" "$work/out"
}
check_shim() { # RESULT: of NCCL; where it is "ok", all programs that use it have passed
    local name
    check NCCL "$1" "$(part NCCL)"
    [ "$1" = ok ] || return
    for name in nccl_groups 'nccl_groups, times' 'nccl_graph, times' nccl_collectives nccl_fuzz \
        'nccl_groups, fused' nccl_compressed; do
        check "$name" ok "$(part "$name")"
    done
    check 'what the shim recorded' yes \
        "$(grep -q '^nccl_groups, times .* 1008 operations recorded$' "$work/out" && echo yes)"
}
check_gpu() { # OPTION...: runs the script of the pack
    (cd "$work/elsewhere" && timeout 240 ./gpu_check.sh --small --json check.json "$@") >"$work/out" 2>"$work/err"
    code=$?
}

mkdir "$work/elsewhere"
bash "$source/bench/gpu_pack.sh" --quick -o "$work/elsewhere/sluice-gpu.tar.xz" "$build" >"$work/out" 2>"$work/err"
check 'packing' 0 $?
check 'at most 40 MiB' yes "$([ "$(stat -c %s "$work/elsewhere/sluice-gpu.tar.xz")" -le $((40 << 20)) ] && echo yes)"
pack=$work/sluice-gpu
# Nothing that a program of the pack loads comes from elsewhere, the C library and that of C++ apart.
tar -C "$work" -xJf "$work/elsewhere/sluice-gpu.tar.xz"
check 'libraries from elsewhere' '' "$(find "$pack/bin" "$pack/tests" "$pack/lib" -type f \
    -exec "$pack/run" ldd {} + | awk '$2 == "=>" && $3 !~ /\/sluice-gpu\/lib\// {print $1}' | sort -u |
    grep -vE '^lib(c|m|mvec|dl|rt|pthread|resolv|gcc_s|stdc\+\+)\.so' | xargs)"
check 'those of C++ for machines without' 'libgcc_s.so.1 libstdc++.so.6' \
    "$(find "$pack/lib/cxx" -type f -printf "%f\n" | sort | xargs)"

if [ $emulated = no ]; then
    skip 'bench/gpu_check.sh: it is tested against the emulated GPU'
    [ $failed = 0 ] && echo "gpu_pack.sh: all as promised"
    exit $failed
fi
# Programs that use NCCL load that of the machine, and the shim what every machine has.
needed() { # FILE: the libraries that it asks for
    objdump -p "$1" | awk '$1 == "NEEDED" && $2 !~ /^(ld-linux|libm\.so)/ {print $2}' | sort | xargs
}
check 'what the shim loads' libc.so.6 "$(needed "$pack/nccl/libsluice_nccl.so")"
if [ -x "$build/tests/nccl/nccl_groups" ]; then
    check 'programs that use NCCL' 'nccl_collectives nccl_compressed nccl_fuzz nccl_graph nccl_groups' \
        "$(find "$pack/nccl" -name 'nccl_*' -printf '%f\n' | sort | xargs)"
    check 'what they load' 'libc.so.6 libcudart.so.13 libnccl.so.2' "$(needed "$pack/nccl/nccl_fuzz")"
fi
check 'the first line of a test' 'device cuda (emulated)' \
    "$("$build/lib/device/device_streams_test" 2>"$work/err" | head -n 1)"
cp "$source/bench/gpu_check.sh" "$work/elsewhere"

nccl=()
export SLUICE_COMM_NCCL=$build/tests/nccl/bed/hostnccl/emulated/libnccl.so.2
export HOSTCUDA_KERNELS=$build/plugins/nccl/shim/transforms/libnccl_shim_kernels.so
if [ -x "$pack/nccl/nccl_groups" ]; then nccl=(--nccl "$build/tests/nccl/bed/hostnccl:$build/tests/nccl/bed/hostcuda"); fi
check_gpu --tests 'pool_test|lanes_test|device_streams_test' "${nccl[@]}"
check 'the exit code' 0 $code
check 'collectives of two ranks' ok "$(part 'collectives of two ranks')"
check 'their bandwidth' yes "$(grep -q '^collectives of two ranks .* GB/s; nccl sums: .* GB/s$' "$work/out" && echo yes)"
check 'the link of two ranks' ok "$(part 'the link of two ranks')"
check 'its figures' yes "$(grep -q '^the link of two ranks .*kappa' "$work/out" && echo yes)"
check 'two ranks train' ok "$(part 'two ranks train')"
check 'a rank is killed' ok "$(part 'a rank is killed')"
if [ ${#nccl[@]} = 2 ]; then
    check_shim ok
else
    skip 'programs that use NCCL: they are not in this build'
    check_shim 'not run'
fi
for name in 'unpack sluice-gpu.tar.xz' GPU cublasLt 'kernels, times' kernels_pool_test kernels_lanes_test \
    device_streams_test; do
    check "$name" ok "$(part "$name")"
done
check 'training' ok "$(part 'GPT-2 nano, 3 steps')"
if [ -e "$pack/bin/digits_mlp_cuda" ] && [ -e "$pack/data/digits.csv.gz" ]; then
    check 'a program of a user' ok "$(part 'digits_mlp_cuda, 300 steps')"
    check 'where it ran' yes \
        "$(grep -q '^digits_mlp_cuda.* right: [0-9.]* % on cuda (emulated)$' "$work/out" && echo yes)"
else
    check 'a program of a user without its digits' 'not run' "$(part 'digits_mlp_cuda, 300 steps')"
fi
check 'what compute-sanitizer does' 'not run' "$(part 'racecheck kernels_layer_norm_test')"
check 'the kernels are in the table' yes "$(grep -q '^  adamw  *bf16 ' "$work/out" && echo yes)"
check 'what is slow is named' yes "$(grep -q '^below half of the copy: .*, adamw bf16 0\.' "$work/out" && echo yes)"
check 'what only the host runs is told apart' yes \
    "$(grep '^kernels_lanes_test ' "$work/out" | grep -qv 'GPU' && echo yes)"
check 'the GPU ran the tests' yes "$(grep '^kernels_pool_test ' "$work/out" | grep -q 'on the GPU$' && echo yes)"
if command -v python3 >/dev/null; then
    parts=$(grep -cE '^[^ #].* (ok|FAILED|not run)  *[0-9.]+ ' "$work/out")
    check 'the file says the same' "$parts cuda (emulated) ok" \
        "$(python3 - "$work/elsewhere/check.json" <<'PY' 2>"$work/err"
import json, sys
all = json.load(open(sys.argv[1]))
training = [part["result"] for part in all["parts"] if part["part"].startswith("GPT-2")]
assert all["failed"] == sum(part["result"] == "FAILED" for part in all["parts"])
assert all["kernels"]["measured"] == len(all["kernels"]["rows"]) > 50
assert all["date"] and all["driver"] and all["device"].startswith("device: cuda (emulated); name: ")
assert (all["train"] is None) == (training != ["ok"])
print(len(all["parts"]), all["kernels"]["device"], *training)
PY
        )"
else
    skip 'the JSON of gpu_check.sh: python3 is not installed'
fi

# A machine without a GPU, and a test that hangs.
rm "$work/elsewhere/sluice-gpu.tar.xz"
mv "$pack/bin" "$pack/tests" "$pack/lib" "$pack/nccl" "$pack/data" "$pack/run" "$pack/built-from" "$work/elsewhere"
printf '#!/bin/sh\nsleep 100\n' >"$work/elsewhere/tests/kernels_hangs_test"
chmod +x "$work/elsewhere/tests/kernels_hangs_test"
SLUICE_EMULATED_DEVICES=0 check_gpu --limit 2 --tests 'pool_test|hangs_test'
check 'without a GPU' 1 $code
check 'the GPU that is missing' FAILED "$(part GPU)"
if [ -e "$work/elsewhere/data/digits.csv.gz" ]; then
    check 'a program of a user that needs it' FAILED "$(part 'digits_mlp_cuda, 300 steps')"
fi
check_shim 'not run'
check 'ranks without GPUs' 'not run' "$(part 'two ranks train')"
check 'why' yes "$(grep '^GPU ' "$work/out" | grep -q 'no GPU on this machine' && echo yes)"
check 'a test that the host alone has run' FAILED "$(part kernels_pool_test)"
check 'a test that hangs' FAILED "$(part kernels_hangs_test)"
check 'its limit' yes "$(grep '^kernels_hangs_test ' "$work/out" | grep -q 'did not end in 2 s' && echo yes)"
# A pack without the shim fails, as does a program whose results are others each time, and one that does not run at all.
if [ ${#nccl[@]} = 2 ]; then
    rm "$work/elsewhere/nccl/libsluice_nccl.so"
    printf '#!/bin/sh\nfor r in 0 1; do echo rank $r results $$ calls 1; done\n' >"$work/elsewhere/nccl/nccl_graph"
    printf '#!/bin/sh\necho "../a/ranks.c:50: no GPU"\nexit 1\n' >"$work/elsewhere/nccl/nccl_fuzz"
    check_gpu --tests pool_test "${nccl[@]}"
    check 'the exit code where programs of NCCL fail' 1 $code
    check 'NCCL itself' ok "$(part NCCL)"
    check 'no shim' FAILED "$(part nccl_groups)"
    check 'why it failed' yes \
        "$(grep -q '^nccl_groups  *FAILED .* 2 processes left 0 records$' "$work/out" && echo yes)"
    check 'other results' yes \
        "$(grep -q '^nccl_graph, times  *FAILED .* with the shim the results are rank 0' "$work/out" && echo yes)"
    check 'a program that fails' yes \
        "$(grep -q '^nccl_fuzz  *FAILED .* without the shim: ranks.c:50: no GPU$' "$work/out" && echo yes)"
fi
rm -r "$work/elsewhere/bin"
check_gpu
check 'without programs' 1 $code
check 'what is missing' FAILED "$(part programs)"
[ $failed = 0 ] && echo "gpu_pack.sh, gpu_check.sh: all as promised"
exit $failed
