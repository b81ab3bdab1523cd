#!/usr/bin/env bash
# `sluice info` keeps its promises: facts of this build and this machine, as text and as JSON, that follow the settings
# and the launcher; a table of the settings.
# Labels: sanitized
. "$(dirname "$0")/../support/command_check.sh"
unset RANK WORLD_SIZE SLUICE_KERNELS_ISA

info() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 60 "$sluice" info "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

fact() { # NAME: its value in the text
    sed -n "s/^$1 *//p" "$work/out"
}

info
check 'exit code' 0 $code
check 'facts' 'version transports devices gpu instruction_set processors planner models gemm launcher' \
    "$(cut -d' ' -f1 "$work/out" | xargs)"
check 'version' "$("$sluice" --version)" "sluice $(fact version)"
check 'processors' "$(getconf _NPROCESSORS_ONLN)" "$(fact processors)"
check 'every transport works' 'ucx: works; throttle: works' "$(fact transports | sed 's/; nccl: .*//')"
case $(fact transports) in
*'; nccl: works' | *'; nccl: nccl: no NCCL is here ('*) said=yes ;;
*) said=$(fact transports) ;;
esac
check 'NCCL works or is not here' yes "$said"
check 'the host is a device' yes "$(grep -q '^devices *cpu' "$work/out" && echo yes)"
case $(fact gpu) in
'none: this build has no device cuda (SLUICE_CUDA=OFF)' | 'none: device "cuda": '*) listed=cpu ;;
'device: cuda (emulated); name: emulated; number: 0; capability: 9.0; '*'; memory_bytes: 1073741824; '*)
    listed='cpu, cuda (emulated)'
    check 'the emulated GPU that was asked for' 'capability: 8.6' \
        "$(SLUICE_EMULATED_CAPABILITY=86 info; fact gpu | grep -o 'capability: [0-9.]*')"
    SLUICE_EMULATED_DEVICES=0 info
    why='no GPU on this machine (no CUDA-capable device is detected); use --device cpu'
    check 'why there is no GPU' "none: device \"cuda\": $why" "$(fact gpu)"
    check 'a device without a GPU is not listed' cpu "$(fact devices)"
    info
    ;;
'device: cuda; name: '*'; memory_bytes: '*) listed='cpu, cuda' ;;
*) listed='not this' ;;
esac
check 'the GPU, and the devices that work' "$listed" "$(fact devices)"
check 'models' "$(has_command train && echo yes || echo no)" "$(fact models)"
if has_command gemm; then
    check 'products of both types' yes "$(grep -q '^gemm *fp32: [^;]*; bf16: ' "$work/out" && echo yes)"
fi
check 'no launcher' 'name: none; rank: 0; size: 1' "$(fact launcher)"
best=$(fact instruction_set)
SLUICE_KERNELS_ISA=baseline info
check 'the instruction set that was asked for' baseline "$(fact instruction_set)"
check 'oneDNN keeps to it' yes "$(fact gemm | grep -q 'avx\|amx' || echo yes)"
check 'not the best there is, unless there is no other' yes \
    "$(case $(uname -m)/$best in */avx2 | */avx512) echo yes ;; x86_64/baseline) grep -q avx2 /proc/cpuinfo || echo yes ;;
        *) echo yes ;; esac)"
RANK=2 WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=20000 info
check 'what a launcher said' yes "$(fact launcher | grep -q '^name: .*RANK; rank: 2; size: 3$' && echo yes)"
RANK=many WORLD_SIZE=3 info
check 'what a launcher said wrongly' yes "$(fact launcher | grep -q 'error: .*RANK' && echo yes)"
check 'JSON' yes "$(info --json; grep -q '"instruction_set": "'"$best"'"' "$work/out" && echo yes)"
if command -v python3 >/dev/null; then
    info --json
    check 'the same facts' 'version transports devices gpu instruction_set processors planner models gemm launcher command_line variables date' \
        "$(python3 -c 'import json, sys; print(*json.load(sys.stdin))' <"$work/out")"
else
    skip 'whether the facts are JSON: python3 is not installed'
fi
info --settings
check 'settings' yes "$(grep -q '^| `SLUICE_KERNELS_ISA` |' "$work/out" && echo yes)"
timeout 60 "$sluice" info >/dev/full 2>"$work/err"
check 'a full disk is an error' 1 $?
info too many
check 'arguments are refused' yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
[ $failed = 0 ] && echo "sluice info: all as promised"
exit $failed
