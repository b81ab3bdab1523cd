#!/usr/bin/env bash
# Runs on a machine with a GPU, in less than 8 minutes: the kernel tests, compute-sanitizer on a few of them, the times
# of every kernel, some steps of GPT-2, a program with kernels of its own, programs that use NCCL, with the shim and
# without it, two ranks that train together. Each part has a limit of its own, so that one that hangs costs only itself. Prints a table and writes one
# JSON file. docs/gpu.md says how to read them.
#
# gpu_check.sh [--small] [--tests REGEX] [--limit S] [--nccl FOLDERS] [--json FILE] [BUILD]
#
# BUILD is a folder that is built already. Without it, the programs are taken from the pack of gpu_pack.sh: where this
# script lies inside it, or from sluice-gpu.tar.xz beside it or in the current folder; without a pack, from build/gpu,
# which is built first, with what is there. --small: sizes that an emulated GPU can afford. --tests: only those whose
# name matches; --limit: the seconds that each may take (120). --nccl: the folders that have libnccl.so.2 and
# libcudart.so.13, with colons between them; for an emulated GPU no others are looked for. Exit code 1: a part failed.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
begin=$(date +%s) most_s=470
small='' json=gpu-check.json build='' pattern=. test_s=120 nccl_folders=''
usage() {
    echo "usage: gpu_check.sh [--small] [--tests REGEX] [--limit S] [--nccl FOLDERS] [--json FILE] [BUILD]" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    --small) small=yes ;;
    --tests)
        [ $# -gt 1 ] || usage
        pattern=$2
        shift
        ;;
    --limit)
        [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || usage
        test_s=$2
        shift
        ;;
    --nccl)
        [ -n "${2:-}" ] || usage
        nccl_folders=$2
        shift
        ;;
    --json)
        [ $# -gt 1 ] || usage
        json=$2
        shift
        ;;
    -*) usage ;;
    *) build=$1 ;;
    esac
    shift
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/log"

# ---- Parts: each has a row ----

rows=() failed=0
json_text() { # on standard input, into a string of JSON
    tr -d '\000-\010\013-\037' | tr '\t\n' '  ' | sed 's/\\/\\\\/g; s/"/\\"/g; s/ *$//; s/.*/"&"/'
}
row() { # PART RESULT SECONDS NOTE
    local note=$4
    [ "$2" != FAILED ] || failed=$((failed + 1))
    [ ${#note} -le 300 ] || note="${note:0:297}..."
    printf '%-34s %-8s %6s  %s\n' "$1" "$2" "$3" "$note"
    rows+=("$(printf '{"part": %s, "result": %s, "seconds": %s, "note": %s}' "$(json_text <<<"$1")" \
        "$(json_text <<<"$2")" "$3" "$(json_text <<<"$note")")")
}
limit() { # SECONDS: no more than are left of all
    local left=$((begin + most_s - $(date +%s)))
    if [ "$1" -lt $left ]; then left=$1; fi
    echo $((left > 1 ? left : 1))
}
since() { # a time of `now`
    awk -v from="$1" -v to="$(now)" 'BEGIN {printf "%.1f", to - from}'
}
now() {
    date +%s.%N
}
# NAME SECONDS COMMAND...: its output goes to $work/log/NAME, its seconds to NAME.s, its exit code (124: the limit) is
# that of the call
attempt() {
    local name=$1 seconds=$2 code=0 from
    shift 2
    from=$(now)
    timeout -k 5 "$seconds" "$@" >"$work/log/$name" 2>&1 </dev/null || code=$?
    since "$from" >"$work/log/$name.s"
    if [ $code = 137 ]; then code=124; fi
    if [ $code = 124 ]; then echo "it did not end in $seconds s" >>"$work/log/$name"; fi
    return $code
}
seconds_of() {
    cat "$work/log/$1.s"
}
error_line() { # NAME: the line of a log that says best why the command failed
    grep -aE 'rror|FAILED|did not end|SLUICE_ERR|refused|cannot|not found|no GPU' "$work/log/$1" | tail -n 1 | grep . ||
        tail -n 1 "$work/log/$1"
}

# ---- Where the programs are ----

# pack_at and build_at both set sluice, lab, data, example, digits, the shim, the folder of programs that use NCCL, the
# list of tests, and $start, which starts a program with its libraries.
start=$work/start
start_with() { # WORD...: what stands before the program
    printf '#!/usr/bin/env bash\nexec %s "$@"\n' "$(printf '%q ' "$@")" >"$start"
    chmod +x "$start"
}
pack_at() { # FOLDER
    programs="pack of $(cat "$1/built-from")"
    sluice=$1/bin/sluice lab=$1/bin/sluice-lab data=$1/data
    example=$1/bin/digits_mlp_cuda digits=$1/data/digits.csv.gz
    shim=$1/nccl/libsluice_nccl.so nccl_programs=$1/nccl
    tests=("$1"/tests/*_test)
    start_with "$1/run"
}
build_at() { # FOLDER
    programs="build $1"
    sluice=$1/bench/sluice lab=$1/bench/sluice-lab data=$work/data
    example=$1/docs/examples/digits_mlp_cuda digits=$(sed -n 's/^SLUICE_DIGITS:[A-Z]*=//p' "$1/CMakeCache.txt")
    shim=$1/plugins/nccl/shim/libsluice_nccl.so nccl_programs=$1/tests/nccl
    tests=("$1"/lib/kernels/kernels_*_test "$1"/lib/device/device_*_test)
    start_with env "SLUICE_TRANSPORT_PATH=$1/plugins/transport"
    mkdir "$data"
    cat "$here"/../docs/*.md >"$data/text.txt"
}
build_here() {
    local jobs
    jobs=$(nproc)
    cd "$here/.." && cmake --preset release -B build/gpu -DSLUICE_CUDA=ON &&
        cmake --build build/gpu --target sluice_command sluice_lab plugins/transport/all lib/kernels/all \
            lib/device/all docs/examples/all sluice_nccl tests/nccl/all -- -j "$jobs" --quiet
}

tests=() programs=''
if [ -n "$build" ]; then
    build_at "$(cd "$build" && pwd)" || exit 2
elif [ -x "$here/bin/sluice" ]; then
    pack_at "$here"
else
    for file in "$here/sluice-gpu.tar.xz" "$PWD/sluice-gpu.tar.xz"; do
        [ -z "$programs" ] && [ -e "$file" ] || continue
        if attempt unpack 60 tar -C "$work" -xJf "$file"; then
            pack_at "$work/sluice-gpu"
            row "unpack ${file##*/}" ok "$(seconds_of unpack)" "$programs"
        else
            row "unpack ${file##*/}" FAILED "$(seconds_of unpack)" "$(error_line unpack)"
        fi
    done
    if [ -z "$programs" ] && [ -e "$here/../CMakeLists.txt" ]; then
        export -f build_here
        export here
        if attempt build 300 bash -c build_here; then
            build_at "$(cd "$here/.." && pwd)/build/gpu"
            row build ok "$(seconds_of build)" "$programs"
        else
            row build FAILED "$(seconds_of build)" "$(error_line build)"
        fi
    fi
fi

# ---- The machine ----

device='' driver='' cublaslt=''
find_driver() {
    nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 | grep . && return
    sed -n 's/^NVRM version:.*Module *\([0-9.]*\).*/\1/p' /proc/driver/nvidia/version 2>/dev/null | grep . ||
        echo 'not known'
}
look_at_machine() {
    driver=$(find_driver)
    attempt info "$(limit 30)" "$start" "$sluice" info
    device=$(sed -n 's/^gpu *//p' "$work/log/info")
    case $device in
    'device: '*) row GPU ok "$(seconds_of info)" "$device; driver: $driver" ;;
    '') row GPU FAILED "$(seconds_of info)" "$(error_line info)" ;;
    *) row GPU FAILED "$(seconds_of info)" "$device" ;;
    esac
}

# The folders in which PyTorch, or the toolkit, keeps cublasLt, NCCL and CUDA's runtime.
library_folders() {
    local site
    echo "${SLUICE_CUDA_LIBRARIES:-}"
    for python in python3 python; do
        command -v $python >/dev/null || continue
        timeout 20 $python -c 'import site, sys
print("\n".join(dict.fromkeys([*site.getsitepackages(), site.getusersitepackages(), *sys.path])))' 2>/dev/null |
            while read -r site; do
                [ -z "$site" ] || printf '%s\n' "$site"/nvidia/{cu13,cublas,nccl}/lib "$site"/torch/lib
            done
    done
    printf '%s\n' /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib
}
find_cublaslt() {
    local from folder name
    from=$(now)
    if [[ $device == 'device: cuda (emulated)'* ]]; then
        cublaslt='emulated'
    elif /sbin/ldconfig -p 2>/dev/null | grep -qE 'libcublasLt\.so\.1[23]'; then
        cublaslt=$(/sbin/ldconfig -p | awk '/libcublasLt\.so\.1[23]/ {print $NF; exit}')
    else
        while read -r folder; do
            for name in libcublasLt.so.13 libcublasLt.so.12; do
                [ -n "$folder" ] && [ -z "$cublaslt" ] && [ -e "$folder/$name" ] || continue
                cublaslt=$folder/$name
                export SLUICE_CUDA_LIBRARIES=$folder
            done
        done < <(library_folders)
    fi
    if [ -n "$cublaslt" ]; then
        row cublasLt ok "$(since "$from")" "$cublaslt"
    else
        row cublasLt FAILED "$(since "$from")" 'not in the path of the loader, nor in PyTorch or /usr/local/cuda'
    fi
}

# ---- Tests ----

# A test passes on the host too: one that wants the GPU and did not get it has failed here.
report_test() { # NAME CODE
    local ran
    ran=$(sed -n 's/^kernels on cuda[^:]*: //p' "$work/log/$1" | head -n 1)
    if [ "$2" != 0 ]; then
        row "$1" FAILED "$(seconds_of "$1")" "$(error_line "$1")"
    elif [ -n "$ran" ] && [ "$ran" != run ]; then
        row "$1" FAILED "$(seconds_of "$1")" "on the host alone: $ran"
    else
        row "$1" ok "$(seconds_of "$1")" "${ran:+on the host and on the GPU}"
    fi
}
one_test() { # PROGRAM SECONDS, in a shell of its own
    local name=${1##*/} code=0
    attempt "$name" "$2" "$start" "$1" || code=$?
    echo $code >"$work/log/$name.code"
}
run_tests() {
    local test name matching=() jobs=$((($(nproc) + 1) / 2)) seconds
    seconds=$(limit "$test_s")
    export -f attempt since now one_test
    export work start OMP_WAIT_POLICY=passive
    for test in "${tests[@]}"; do
        if [[ ${test##*/} =~ $pattern ]]; then matching+=("$test"); fi
    done
    if [ ${#matching[@]} = 0 ]; then
        row 'kernel tests' FAILED 0 "none of ${#tests[@]} matches $pattern"
        return
    fi
    printf '%s\0' "${matching[@]}" | timeout -k 5 "$(limit 150)" xargs -0 -n 1 -P "$jobs" bash -c \
        'one_test "$1" "$0"' "$seconds"
    for test in "${matching[@]}"; do
        name=${test##*/}
        if [ -e "$work/log/$name.code" ]; then
            report_test "$name" "$(cat "$work/log/$name.code")"
        else
            row "$name" FAILED 0 'no time was left for it'
        fi
    done
}

# ---- compute-sanitizer ----

# compute-sanitizer ends with code 9 if it has found something, and with another one if it could not run.
sanitize() { # TOOL TEST
    local tool=$1 test=$2 name=$1-${2##*/} code=0
    attempt "$name" "$(limit 30)" "$start" compute-sanitizer --tool "$tool" --error-exitcode 9 "$test" || code=$?
    if grep -qaE 'ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards' "$work/log/$name" && [ $code = 0 ]; then
        row "$tool ${test##*/}" ok "$(seconds_of "$name")" ''
    elif [ $code = 9 ]; then
        row "$tool ${test##*/}" FAILED "$(seconds_of "$name")" "$(grep -a '^=========' "$work/log/$name" | grep -aiE \
            'error|hazard|invalid|uninit|diverg|barrier' | head -n 1)"
    elif [ $code = 124 ]; then
        row "$tool ${test##*/}" 'not run' "$(seconds_of "$name")" "$(tail -n 1 "$work/log/$name")"
    else
        row "$tool ${test##*/}" 'not run' "$(seconds_of "$name")" "$(error_line "$name")"
    fi
}
run_sanitizers() {
    local tool test why=
    if [[ $device == 'device: cuda (emulated)'* ]]; then
        why='the GPU is emulated'
    elif ! command -v compute-sanitizer >/dev/null; then
        if [ -x /usr/local/cuda/bin/compute-sanitizer ]; then
            PATH=$PATH:/usr/local/cuda/bin
        else
            why='compute-sanitizer is not installed'
        fi
    fi
    for tool in memcheck racecheck initcheck synccheck; do
        for test in "${tests[@]}"; do
            case ${test##*/} in kernels_layer_norm_test | kernels_cross_entropy_test) ;; *) continue ;; esac
            if [ -n "$why" ]; then row "$tool ${test##*/}" 'not run' 0 "$why"; else sanitize "$tool" "$test"; fi
        done
    done
}

# ---- Kernels' times, and training ----

below_half() { # of the copy: name, type and share of each, from the JSON
    sed -nE 's/^ *"(op|type|of_copy)": "?([^",]*)"?,*$/\1 \2/p' |
        awk '$1 == "op" {op = $2} $1 == "type" {type = $2} $1 == "of_copy" && $2 < 0.5 {printf "%s %s %.3f\n", op, type, $2}'
}
measure_kernels() {
    if attempt kernels "$(limit 110)" "$start" "$lab" kernels --device cuda ${small:+--small --rounds 3} \
        --json "$work/kernels.json"; then
        below_half <"$work/kernels.json" >"$work/below"
        row 'kernels, times' ok "$(seconds_of kernels)" "$(sed -n 's/^  "measured": \([0-9]*\),*/\1/p' \
            "$work/kernels.json") rows, $(wc -l <"$work/below") below half of the copy; the table is below"
    else
        row 'kernels, times' FAILED "$(seconds_of kernels)" "$(error_line kernels)"
    fi
}
train() {
    local options=(--size small --precision bf16 --batch 8 --context 1024 --steps 20) name='GPT-2 124M, 20 steps'
    if [ -n "$small" ]; then
        options=(--size nano --batch 2 --context 32 --steps 3) name='GPT-2 nano, 3 steps'
    fi
    if attempt train "$(limit 100)" "$start" "$sluice" train --model gpt2 "${options[@]}" --device cuda \
        --data "$data/text.txt" --eval-batches 0 --json "$work/train.json"; then
        row "$name" ok "$(seconds_of train)" "$(sed -nE \
            's/^ *"(step_s|tokens_per_s|final_loss|peak_bytes)": ([^,]*),*$/\1 \2/p' "$work/train.json" |
            paste -sd';' | sed 's/;/; /g')"
    else
        row "$name" FAILED "$(seconds_of train)" "$(error_line train)"
    fi
}

run_example() { # its exit code says whether it has learned
    local name='digits_mlp_cuda, 300 steps'
    if [ ! -x "$example" ]; then
        row "$name" 'not run' 0 'the example is not in this build, which had no zlib'
    elif [ ! -e "$digits" ]; then
        row "$name" 'not run' 0 "digits.csv.gz, python3-sklearn's, was not found where this was built"
    elif attempt example "$(limit 60)" "$start" "$example" "$digits"; then
        row "$name" ok "$(seconds_of example)" "$(tail -n 1 "$work/log/example")"
    else
        row "$name" FAILED "$(seconds_of example)" "$(error_line example)"
    fi
}

# ---- NCCL and the shim ----

nccl='' nccl_path='' ranks=1 # the library, the folders of what programs load, and their ranks: a GPU each, at most 4
nccl_end=0                   # when the programs' time is over, which is 120 s for all
find_library() { # NAME: in the folders of --nccl, or else in the loader's path, PyTorch and the toolkit
    local folder
    if [ -z "$nccl_folders" ]; then
        /sbin/ldconfig -p 2>/dev/null | awk -v name="$1" '$1 == name {print $NF; exit}' | grep . && return
    fi
    while read -r folder; do
        if [ -n "$folder" ] && [ -e "$folder/$1" ]; then
            echo "$folder/$1"
            return
        fi
    done < <(if [ -n "$nccl_folders" ]; then tr : '\n' <<<"$nccl_folders"; else
        tr : '\n' <<<"${LD_LIBRARY_PATH:-}"
        library_folders
    fi)
    return 1
}
count_gpus() {
    if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
        tr , '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c .
    elif nvidia-smi -L >"$work/gpus" 2>/dev/null && grep -q '^GPU ' "$work/gpus"; then
        if grep -q 'MIG ' "$work/gpus"; then echo 1; else grep -c '^GPU ' "$work/gpus"; fi
    elif [[ $device == 'device: cuda (emulated)'* ]]; then
        echo 2
    else
        find /dev -maxdepth 1 -name 'nvidia[0-9]*' | wc -l
    fi
}
nccl_missing() { # why NCCL cannot be had here; nothing where it can
    local where='not in the path of the loader, nor in PyTorch or /usr/local/cuda; --nccl says where it is' cudart
    [ -z "$nccl_folders" ] || where="not in --nccl $nccl_folders"
    if [[ $device != 'device: '* ]]; then
        echo 'there is no GPU'
    elif [[ $device == 'device: cuda (emulated)'* ]] && [ -z "$nccl_folders" ]; then
        echo 'the GPU is emulated, and no --nccl says where an NCCL for it is'
    elif [ ! -x "$nccl_programs/nccl_groups" ]; then
        echo 'this build has no programs that use NCCL; a C++ compiler and python3 are needed to build them'
    elif ! find_library libnccl.so.2 >"$work/nccl"; then
        echo "libnccl.so.2: $where"
    elif ! cudart=$(find_library libcudart.so.13); then
        echo "libcudart.so.13: $where"
    else
        echo "$(dirname "$(cat "$work/nccl")"):${cudart%/*}" >"$work/nccl.path"
    fi
}
on_nccl() { # LOG WORD...: `env WORD...`, with the libraries that were found
    local log=$1 left=$((nccl_end - $(date +%s)))
    shift
    attempt "$log" "$(limit $((left > 40 ? 40 : left)))" env "LD_LIBRARY_PATH=$nccl_path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$start" env "$@"
}
nccl_error() { # LOG: the first line of a program or the shim that says why, without the program's folder
    grep -aE '\.c:[0-9]+: |undefined symbol|did not end|NCCL shim' "$work/log/$1" | head -n 1 |
        sed -E 's,^[^ ]*/([a-z]+\.c:),\1,' | grep . || error_line "$1"
}
results() { # LOG: a line a rank
    grep -aE '^rank [0-9]+ results ' "$work/log/$1" | sort
}
total() { # LIST MEMBER: added up over the list of the shim's report
    awk -v list="\"$1\":" -v member="\"$2\":" \
        '/^  "/ {inside = $1 == list} inside && $1 == member {sum += $2} END {print sum + 0}' "$work/nccl.json"
}
# nccl_fault prints what the records of a run lack, or nothing if they are whole. WANTED is calls_timed (every operation
# must have a time), the name of a count that must not be 0, or empty.
nccl_fault() { # LOG RECORDS WANTED
    local files called recorded
    files=$(find "$2" -name '*.nccl' | wc -l)
    if [ "$files" != "$ranks" ]; then
        echo "$ranks processes left $files records"
    elif ! attempt report "$(limit 20)" "$start" "$sluice" nccl --json "$work/nccl.json" "$2"; then
        echo "sluice nccl: $(error_line report)"
    elif ! attempt watch "$(limit 20)" "$start" "$sluice" nccl --watch "$2"; then
        echo "sluice nccl --watch accuses a program without a fault: $(tail -n 1 "$work/log/watch")"
    else
        called=$(results "$1" | awk '{sum += $NF} END {print sum + 0}') recorded=$(total communicators calls)
        if [ "$recorded" = 0 ] || { [ "$called" != 0 ] && [ "$called" != "$recorded" ]; }; then
            echo "the program called $called operations, the records hold $recorded"
        elif [ "$3" = calls_timed ] && [ "$(total traffic calls_timed)" != "$(total traffic calls)" ]; then
            echo "$(total traffic calls_timed) of $(total traffic calls) operations have a time"
        elif [ -n "$3" ] && [ "$3" != calls_timed ] && [ "$(total communicators "$3")" = 0 ]; then
            echo "$3 is 0: $(nccl_error "$1")"
        fi
    fi
}
# A program runs bare and with the shim. Both times every rank must have the same results, and what the shim recorded
# must be what the program called. WHY says why it is not run; SETTINGS are those of the shim.
nccl_part() { # WHY PART SETTINGS WANTED PROGRAM OPTION...
    local part=$2 settings wanted=$4 log=nccl-${#rows[@]} from fault='' program
    if [ -n "$1" ]; then
        row "$part" 'not run' 0 "$1"
        return
    elif [ "$(date +%s)" -ge $nccl_end ]; then
        row "$part" FAILED 0 'no time was left for it'
        return
    fi
    read -ra settings <<<"$3"
    program=("$nccl_programs/nccl_$5" --processes -n "$ranks" "${@:6}")
    from=$(now)
    mkdir -m 700 "$work/records-$log"
    if ! on_nccl "$log-bare" "${program[@]}"; then
        fault="without the shim: $(nccl_error "$log-bare")"
    elif ! on_nccl "$log" "LD_PRELOAD=$shim" "SLUICE_SHIM_DIR=$work/records-$log" "${settings[@]}" "${program[@]}"; then
        fault="with the shim: $(nccl_error "$log")"
    elif [ "$(results "$log" | wc -l)" != "$ranks" ] || [ "$(results "$log")" != "$(results "$log-bare")" ]; then
        fault="with the shim the results are $(results "$log" | paste -sd';'), without it $(results "$log-bare" |
            paste -sd';')"
    else
        fault=$(nccl_fault "$log" "$work/records-$log" "$wanted")
    fi
    if [ -n "$fault" ]; then
        row "$part" FAILED "$(since "$from")" "$fault"
    else
        row "$part" ok "$(since "$from")" \
            "the same results with the shim and without it, $(total communicators calls) operations recorded"
    fi
}
run_nccl() {
    local why from capability
    from=$(now)
    why=$(nccl_missing)
    case $why in
    '') ;;
    *--nccl\ "$nccl_folders") row NCCL FAILED "$(since "$from")" "$why" && return ;;
    *) row NCCL 'not run' "$(since "$from")" "$why" && return ;;
    esac
    nccl_end=$(($(date +%s) + 120))
    nccl=$(cat "$work/nccl") nccl_path=$(cat "$work/nccl.path") ranks=$(count_gpus)
    if [ "$ranks" -gt 4 ]; then ranks=4; fi
    if [ "$ranks" -lt 1 ]; then ranks=1; fi
    row NCCL ok "$(since "$from")" "$nccl; ranks: $ranks, a GPU each"
    nccl_part '' nccl_groups '' '' groups
    nccl_part '' 'nccl_groups, times' 'SLUICE_SHIM_DONE=1 SLUICE_SHIM_TIME=1' calls_timed groups
    nccl_part '' 'nccl_graph, times' 'SLUICE_SHIM_DONE=1 SLUICE_SHIM_TIME=1' '' graph
    capability=$(sed -n 's/.*; capability: \([0-9]*\)\..*/\1/p' <<<"$device")
    why=''
    if ! grep -qa ncclAlltoAll "$nccl"; then
        why='this NCCL has no ncclAlltoAll; 2.28 has it'
    elif [ "${capability:-0}" -lt 9 ]; then
        why='NCCL reduces numbers of 8 bits from capability 9.0 on'
    fi
    nccl_part "$why" nccl_collectives '' '' collectives
    nccl_part "$why" nccl_fuzz '' '' fuzz --seed 1 --calls ${small:+1}00
    why=''
    if [ "$ranks" = 1 ]; then why='it takes two GPUs'; fi
    nccl_part "$why" 'nccl_groups, fused' 'SLUICE_SHIM_FUSE=1MiB' fused_calls groups
    if [ ! -x "$nccl_programs/nccl_compressed" ]; then why='it is not in this build'; fi
    nccl_part "$why" nccl_compressed 'SLUICE_SHIM_COMPRESS=1KiB' compressed_calls compressed
}

# ---- Several ranks of one training ----

# Prints why several ranks cannot train here. They need an NCCL: the one that SLUICE_COMM_NCCL names, or that of the
# machine.
several_missing() { # why several ranks cannot train here; nothing where they can
    if [[ $device != 'device: '* ]]; then
        echo 'there is no GPU'
    elif [ -z "${SLUICE_COMM_NCCL:-}" ] && [[ $device == 'device: cuda (emulated)'* ]]; then
        echo 'the GPU is emulated, and SLUICE_COMM_NCCL names no NCCL for it'
    elif [ -z "${SLUICE_COMM_NCCL:-}" ] && ! find_library libnccl.so.2 >"$work/comm-nccl"; then
        echo 'libnccl.so.2: not in the path of the loader, nor in PyTorch or /usr/local/cuda; --nccl says where it is'
    fi
}
# NCCL refuses two ranks on one GPU of a host. If there is one GPU alone, both take it by turns, as if of two hosts.
write_rank() { # ENDS: rank 1 is killed after so many seconds; 0: it is not
    {
        printf '#!/usr/bin/env bash\n'
        [ "$(count_gpus)" -gt 1 ] || [[ $device == 'device: cuda (emulated)'* ]] ||
            printf 'export NCCL_HOSTID=rank$RANK NCCL_NET=Socket SLUICE_CUDA_DEVICE=0\n'
        [ "$1" = 0 ] || printf 'if [ $RANK = 1 ]; then (sleep %s; kill -KILL $$) & fi\n' "$1"
        printf 'exec "$@"\n'
    } >"$work/rank"
    chmod +x "$work/rank"
}
on_ranks() { # LOG SECONDS RANKS WORD...: `sluice WORD...` on each rank
    local log=$1 seconds=$2 ranks=$3
    shift 3
    attempt "$log" "$(limit "$seconds")" env "SLUICE_COMM_NCCL=${SLUICE_COMM_NCCL:-$(cat "$work/comm-nccl")}" "$start" \
        "$sluice" run -n "$ranks" -- "$work/rank" "$start" "$sluice" "$@"
}
train_ranks() { # LOG SECONDS RANKS OPTION...
    local log=$1 seconds=$2 ranks=$3
    shift 3
    on_ranks "$log" "$seconds" "$ranks" train --model gpt2 --device cuda --data "$data/text.txt" --eval-batches 0 "$@"
}
losses_of() { # FILE
    tr -d ' \n' <"$1" | sed -n 's/.*"losses":\[\([^]]*\)\].*/\1/p'
}
last_row() { # LOG: the size and the bus bandwidth of the last row
    awk '$2 ~ /^[0-9]+$/ && NF > 8 {size = $2; bus = $8} $1 ~ /^[0-9]+$/ && NF > 8 {size = $1; bus = $7}
        END {if (size) printf "%d MiB at %s GB/s", size / 1048576, bus}' "$work/log/$1"
}
measure_link() {
    local why name='collectives of two ranks' sums note='' sizes=(-b 1M -e 256M -f 4) from options
    why=$(several_missing)
    if [ -n "$why" ]; then
        row "$name" 'not run' 0 "$why"
        return
    fi
    if [ -n "$small" ]; then sizes=(-b 64K -e 1M -f 4 -n 5); fi
    from=$(now)
    write_rank 0
    for sums in ordered nccl; do
        if ! on_ranks "perf-$sums" 60 2 perf --device cuda --op all_reduce --sums "$sums" "${sizes[@]}"; then
            row "$name" FAILED "$(since "$from")" "$sums sums: $(error_line "perf-$sums")"
            return
        fi
        note+="${note:+; }$sums sums: $(last_row "perf-$sums")"
    done
    row "$name" ok "$(since "$from")" "$note"
    name='the link of two ranks' from=$(now) options=(--size small --precision bf16 --context 512 --batch 4)
    if [ -n "$small" ]; then options=(--size nano --context 32 --batch 2); fi
    if on_ranks profile 90 2 profile --model gpt2 --device cuda --data "$data/text.txt" --steps 4 "${options[@]}" \
        -o "$work/profile.json"; then
        row "$name" ok "$(since "$from")" "$(sed -n '/kappa/ {s/^\[0\] *//p; q}' "$work/log/profile")"
    else
        row "$name" FAILED "$(since "$from")" "$(error_line profile)"
    fi
}
train_together() {
    local why name='two ranks train' options=(--size small --precision bf16 --context 512 --steps 6) begins=20 from apart
    why=$(several_missing)
    if [ -n "$why" ]; then
        row "$name" 'not run' 0 "$why"
        return
    fi
    if [ -n "$small" ]; then options=(--size nano --context 32 --steps 4) begins=3; fi
    from=$(now)
    write_rank 0
    if ! train_ranks alone 60 1 "${options[@]}" --batch 4 --json "$work/alone.json"; then
        row "$name" FAILED "$(since "$from")" "one rank: $(error_line alone)"
    elif ! train_ranks together 90 2 "${options[@]}" --batch 2 --json "$work/together.json"; then
        row "$name" FAILED "$(since "$from")" "$(error_line together)"
    else
        apart=$(paste -d, <(losses_of "$work/alone.json" | tr , '\n') <(losses_of "$work/together.json" | tr , '\n') |
            awk -F, '$1 == "" || $2 == "" {bad = 1} {d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > most) most = d}
                END {print bad || NR == 0 ? "missing" : most + 0}')
        if awk -v d="$apart" 'BEGIN {exit !(d != "missing" && d <= 1e-3)}'; then
            row "$name" ok "$(since "$from")" "losses of one rank within $apart"
        else
            row "$name" FAILED "$(since "$from")" "losses apart from one rank's: $apart"
        fi
    fi
    name='a rank is killed' from=$(now)
    write_rank "$begins"
    if train_ranks killed 90 2 "${options[@]}" --batch 2 --steps 1000000; then
        row "$name" FAILED "$(since "$from")" 'the other one went on to its end'
    elif [ "$(seconds_of killed | cut -d. -f1)" -ge $((begins + 30)) ]; then
        row "$name" FAILED "$(since "$from")" 'the other one did not end within 30 s'
    elif grep -qE '^\[0\].*rank 1' "$work/log/killed"; then
        row "$name" ok "$(since "$from")" "$(grep -E '^\[0\].*rank 1' "$work/log/killed" | tail -n 1)"
    else
        row "$name" FAILED "$(since "$from")" "the other one does not name it: $(error_line killed)"
    fi
}

if [ -n "$programs" ]; then
    look_at_machine
    find_cublaslt
    measure_kernels
    train
    run_example
    run_tests
    run_nccl
    measure_link
    train_together
    run_sanitizers
    if [ -s "$work/log/kernels" ]; then
        echo
        cat "$work/log/kernels"
        [ ! -s "$work/below" ] || printf 'below half of the copy: %s\n' "$(paste -sd, "$work/below" | sed 's/,/, /g')"
    fi
else
    row programs FAILED 0 'no BUILD, no pack and no source tree that builds here'
fi

content() { # FILE: what it holds, or null
    if [ -s "$1" ]; then cat "$1"; else echo null; fi
}
{
    printf '{"date": %s,\n"device": %s,\n"driver": %s,\n"cublaslt": %s,\n"programs": %s,\n' \
        "$(date -u +%Y-%m-%dT%H:%M:%SZ | json_text)" "$(json_text <<<"$device")" "$(json_text <<<"$driver")" \
        "$(json_text <<<"$cublaslt")" "$(json_text <<<"$programs")"
    printf '"seconds": %s,\n"failed": %s,\n"parts": [\n' $(($(date +%s) - begin)) $failed
    printf '%s\n' "${rows[@]}" | sed '$!s/$/,/'
    printf '],\n"kernels": %s,\n"train": %s}\n' "$(content "$work/kernels.json")" "$(content "$work/train.json")"
} >"$work/check.json"
cp "$work/check.json" "$json" || failed=1
printf '\n%d parts, %d failed, %d s; %s\n' ${#rows[@]} $failed $(($(date +%s) - begin)) "$json"
[ $failed = 0 ]
