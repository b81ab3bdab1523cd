#!/usr/bin/env bash
# Packs what a machine with a GPU needs to run Sluice's programs and tests, where nothing can be installed or built: one
# file, unpacked and run there by bench/gpu_check.sh, which is inside too. docs/gpu.md says how.
#
# bench/gpu_pack.sh [--quick] [-o FILE] [BUILD]: FILE is sluice-gpu.tar.xz unless given. BUILD is a folder that is built;
# without it, build/gpu is built, for which nvcc must be here. --quick packs less tightly.
#
# A program runs with drivers that are as new as the toolkit which built it, or newer. So build/gpu is built by the oldest
# toolkit of CUDA 12 that lies in /usr/local, or where CUDA_PATH says, and by what CMake finds if there is none.
set -euo pipefail
cd "$(dirname "$0")/.."
most_mib=40 # what may be copied to such a machine at once

preset=6 out=sluice-gpu.tar.xz build=''
while [ $# -gt 0 ]; do
    case $1 in
    --quick)
        preset=1
        shift
        ;;
    -o)
        out=${2:?gpu_pack.sh: -o needs a file}
        shift 2
        ;;
    -*)
        echo "usage: bench/gpu_pack.sh [--quick] [-o FILE] [BUILD]" >&2
        exit 2
        ;;
    *)
        build=$1
        shift
        ;;
    esac
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pack=$work/sluice-gpu

if [ -z "$build" ]; then
    build=build/gpu
    toolkit=()
    nvcc=$(ls -d ${CUDA_PATH:+"$CUDA_PATH/bin/nvcc"} /usr/local/cuda-12*/bin/nvcc 2>/dev/null | sort -V | sed -n 1p || true)
    if [ -n "$nvcc" ]; then toolkit=("-DSLUICE_NVCC=$nvcc"); fi
    cmake --preset release -B $build -DSLUICE_CUDA=ON "${toolkit[@]}" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        exit 1
    }
    cmake --build $build -- --quiet
fi
setting() { # NAME: of the build
    sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"
}
case $(setting SLUICE_CUDA) in
ON | EMULATED) ;;
*)
    echo "gpu_pack.sh: $build has no device cuda; configure it with -DSLUICE_CUDA=ON" >&2
    exit 1
    ;;
esac

# The toolkit of the build, and the oldest driver that runs what it makes.
cuda=emulated
if [ "$(setting SLUICE_CUDA)" = ON ]; then
    cuda=$("$(setting SLUICE_NVCC)" --version | sed -n 's/.*, release \([0-9.]*\),.*/\1/p')
    case $cuda in
    12.*) cuda="CUDA $cuda, driver 525 or newer" ;;
    13.*) cuda="CUDA $cuda, driver 580 or newer" ;;
    *) cuda="CUDA $cuda" ;;
    esac
fi

# ---- Programs and tests ----

mkdir -p "$pack/bin" "$pack/tests" "$pack/nccl" "$pack/lib/ucx" "$pack/lib/cxx" "$pack/data"
strip_to() { # FOLDER FILE...
    local folder=$1 file
    shift
    for file in "$@"; do strip --strip-unneeded -o "$folder/${file##*/}" "$file"; done
}
strip_to "$pack/bin" "$build/bench/sluice" "$build/bench/sluice-lab"
strip_to "$pack/lib" "$build"/plugins/transport/libsluice_transport_*.so
for source in lib/kernels/*_test.c lib/kernels/*/*_test.c lib/device/*_test.c; do
    folder=${source#lib/}
    folder=${folder%%/*}
    test=$build/lib/$folder/${folder}_$(basename "$source" .c)
    if [ -x "$test" ]; then strip_to "$pack/tests" "$test"; else echo "${test##*/}" >>"$work/missing"; fi
done
if grep -q 'docs/examples/digits_mlp_cuda:' "$build/build.ninja"; then # the build has it where zlib is
    example=$build/docs/examples/digits_mlp_cuda
    if [ -x "$example" ]; then strip_to "$pack/bin" "$example"; else echo "${example##*/}" >>"$work/missing"; fi
fi
# Programs that use NCCL load the NCCL and the CUDA of the machine that they run on. A build lacks them if it has no
# CUDA over the host's memory to link them with.
for file in plugins/nccl/shim/libsluice_nccl.so tests/nccl/nccl_{groups,graph,collectives,fuzz,compressed}; do
    grep -q "^build $file:" "$build/build.ninja" || continue
    if [ -x "$build/$file" ]; then strip_to "$pack/nccl" "$build/$file"; else echo "${file##*/}" >>"$work/missing"; fi
done
if [ -s "$work/missing" ]; then
    echo "gpu_pack.sh: $build lacks $(xargs <"$work/missing"); build all of it first" >&2
    exit 1
fi

# ---- Libraries, but for the C library's own and those that come with the GPU ----

uct=$(ldd "$pack/lib/libsluice_transport_ucx.so" | awk '/libuct/ {print $3}')
if [ -e "${uct%/*}/ucx/libuct_cma.so.0" ]; then strip_to "$pack/lib/ucx" "${uct%/*}/ucx/libuct_cma.so.0"; fi
find "$pack" -type f -not -path '*/nccl/*' -print0 | xargs -0 -n 1 ldd |
    awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
    grep -Ev '/lib(c|m|mvec|dl|rt|pthread|resolv|util|cuda|cublas[^/]*|nccl|nvidia[^/]*)\.so' |
    while read -r library; do
        # The libraries of C++ have a folder of their own, for machines that lack them: they want a newer C library than
        # all the others.
        case $library in */libstdc++.so* | */libgcc_s.so*) strip_to "$pack/lib/cxx" "$library" ;;
        *) strip_to "$pack/lib" "$library" ;;
        esac
    done
glibc=$(find "$pack/bin" "$pack/tests" "$pack/nccl" "$pack/lib" -type f -not -path '*/cxx/*' -exec objdump -T {} + |
    grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)

# ---- What runs it ----

cat docs/*.md README.md CONTRIBUTING.md LICENSE >"$pack/data/text.txt" # to train on
digits=$(setting SLUICE_DIGITS) # what digits_mlp_cuda learns, where python3-sklearn is
if [ -e "$digits" ]; then cp "$digits" "$pack/data"; fi
cp bench/gpu_check.sh LICENSE LICENSE-NOTES.md "$pack"
{
    git rev-parse HEAD 2>/dev/null || echo 'no commit'
    setting SLUICE_CUDA
    echo "$glibc"
} | paste -sd' ' >"$pack/built-from"
cat >"$pack/run" <<'RUN'
#!/usr/bin/env bash
# run PROGRAM...: starts it with the libraries that lie here, as run bin/sluice info
here=$(cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
ldconfig=$(PATH=$PATH:/sbin:/usr/sbin type -P ldconfig) || ldconfig=true
if ! "$ldconfig" -p | grep -q 'libstdc++\.so\.6'; then LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$here/lib/cxx; fi
export SLUICE_TRANSPORT_PATH=$here/lib UCX_MODULE_DIR=$here/lib/ucx
case $1 in bin/* | tests/* | nccl/*) set -- "$here/$1" "${@:2}" ;; esac
exec "$@"
RUN
chmod +x "$pack/run"

# The tests have much in common, which xz sees if its window reaches from one to the next.
tar -C "$work" --sort=name --owner=0 --group=0 -cf - sluice-gpu |
    xz -T1 --lzma2=preset=$preset,dict=128MiB >"$work/pack.tar.xz"
bytes=$(stat -c %s "$work/pack.tar.xz")
printf '%s: %s bytes, %d programs, %d libraries, for %s and %s\n' "$out" "$bytes" \
    "$(find "$pack/bin" "$pack/tests" "$pack/nccl" -type f -not -name '*.so' | wc -l)" \
    "$(find "$pack/lib" -type f | wc -l)" "$glibc" "$cuda"
if [ "$bytes" -gt $((most_mib << 20)) ]; then
    echo "gpu_pack.sh: more than $most_mib MiB; the largest: $(find "$pack" -type f -printf '%s %P\n' | sort -rn |
        head -3 | xargs)" >&2
    exit 1
fi
mv "$work/pack.tar.xz" "$out"
