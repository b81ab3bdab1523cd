#!/usr/bin/env bash
# Installs into a folder of its own, then builds a program against it with pkg-config and with the CMake package, and
# runs both on two ranks: install_check.sh CMAKE BUILD SOURCE. The library and its transports must be found without help.
# The NCCL shim, manual pages, completion and documents must be there too, DESTDIR must hold all of it, and components
# divide it. The licence that it states names all that it links.
set -eu
cmake=$1 build=$2 source=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if grep -q '^SLUICE_CUDA:STRING=EMULATED$' "$build/CMakeCache.txt"; then
    if "$cmake" --install "$build" --prefix "$work/place" >"$work/out" 2>&1 || [ -e "$work/place" ] ||
        ! grep -q 'the GPU of this build is emulated' "$work/out"; then
        echo 'an emulated GPU is not refused:'
        cat "$work/out"
        exit 1
    fi
    echo 'a build with an emulated GPU is not installed'
    exit 0
fi
"$cmake" --install "$build" --prefix "$work/place" >/dev/null
pc=$(find "$work/place" -name sluice.pc)
lib=$(dirname "$(dirname "$pc")")

cat >"$work/hello.c" <<'C'
#include <sluice/sluice.h>
#include <stdio.h>

int main(void)
{
    sluice_world *world;
    double sum = 1;
    if (sluice_world_create(NULL, &world) || sluice_world_all_reduce(world, &sum, 1)) {
        fprintf(stderr, "%s\n", sluice_last_error());
        return 1;
    }
    printf("%g ranks, %s, %s %d.%d.%d\n", sum, sluice_world_transport(world), sluice_version(), SLUICE_VERSION_MAJOR,
           SLUICE_VERSION_MINOR, SLUICE_VERSION_PATCH);
    sluice_world_destroy(world);
    return 0;
}
C
version=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --modversion sluice)
expect() { # PROGRAM: both ranks of it say the same
    SLUICE_COMM_DIRECT=off timeout 60 "$work/place/bin/sluice" run -n 2 -- "$1" >"$work/out"
    local line="2 ranks, ucx, $version $version"
    if [ "$(sort "$work/out" | paste -sd,)" != "[0] $line,[1] $line" ]; then
        cat "$work/out"
        return 1
    fi
}

flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs sluice)
# shellcheck disable=SC2086
"${CC:-cc}" -Wall -Werror "$work/hello.c" $flags -o "$work/by_pkg_config"
expect "$work/by_pkg_config"
# README's line for its own example.
line=$(sed -n 's/^\(cc docs\/examples\/digits_mlp.c .* -o \)digits_mlp .*/\1/p' "$source/README.md")
if ! (cd "$source" && PKG_CONFIG_PATH=$(dirname "$pc") bash -ec "$line '$work/digits_mlp'") || [ ! -x "$work/digits_mlp" ]; then
    echo "README.md: its line does not build docs/examples/digits_mlp.c: $line"
    exit 1
fi
if PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --define-variable=rpath= --libs sluice | grep -q rpath; then
    echo 'sluice.pc: --define-variable=rpath= does not leave the run path out'
    exit 1
fi

cat >"$work/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(hello C)
find_package(Sluice 0.1 REQUIRED)
add_executable(by_cmake hello.c)
target_link_libraries(by_cmake Sluice::sluice)
CMAKE
"$cmake" -G Ninja -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/place" >/dev/null
"$cmake" --build "$work/build" >/dev/null
expect "$work/build/by_cmake"

# Each command has a manual page, the completion is for this command, and what help refers to is there.
for command in $("$work/place/bin/sluice" --help | sed -n 's/^  \([a-z]*\) .*/-\1/p') ''; do
    page=$work/place/share/man/man1/sluice$command.1
    if ! head -1 "$page" | grep -qi "^\.TH \"sluice$command\" 1 "; then
        echo "$page: no manual page"
        exit 1
    fi
done
if ! bash -c '. "$1" && complete -p sluice' _ "$work/place/share/bash-completion/completions/sluice" >/dev/null ||
    [ ! -f "$work/place/share/doc/sluice/docs/launching.md" ]; then
    echo 'the completion does not complete sluice, or the documents are missing'
    exit 1
fi

named=$("$work/place/bin/sluice" run --help | sed -n 's/^More: //p')
if [ "$named" != "$(realpath "$work/place/share/doc/sluice/docs/launching.md")" ]; then
    echo "sluice run --help names \"$named\", which is not the page that was installed"
    exit 1
fi

# A packager's staging folder gets the same files.
DESTDIR=$work/stage "$cmake" --install "$build" --prefix /nowhere/sluice >/dev/null
if [ -e /nowhere ] || ! diff <(cd "$work/place" && find . | sort) <(cd "$work/stage/nowhere/sluice" && find . | sort); then
    echo 'DESTDIR: other files than without it, or outside of it'
    exit 1
fi

# A system's prefix needs no run path, and its paths are not among the flags.
DESTDIR=$work/system "$cmake" --install "$build" --prefix /usr >/dev/null
flags=$(PKG_CONFIG_PATH=$(dirname "$(find "$work/system" -name sluice.pc)") pkg-config --cflags --libs sluice)
if [ "$(xargs <<<"$flags")" != -lsluice ]; then
    echo "sluice.pc: under the prefix /usr the flags are \"$flags\""
    exit 1
fi

# Components have all of it, and nothing twice.
has() { # COMPONENT FILE...: these are among its files
    local file component=$1
    for file in "${@:2}"; do
        [ -n "$(find "$work/part/$component" -path "*/$file")" ] || { echo "component $component: no $file" && exit 1; }
    done
}
for component in library development command documentation; do
    "$cmake" --install "$build" --prefix "$work/part/$component" --component $component >/dev/null
done
if ! diff <(cd "$work/place" && find . -not -type d | sort) \
    <(cd "$work/part" && find . -not -type d | sed 's,^\./[a-z]*,.,' | sort); then
    echo 'the components together are not what is installed without naming one, or have a file twice'
    exit 1
fi
has library libsluice.so.0 sluice/libsluice_transport_ucx.so libsluice_nccl.so LICENSE LICENSE-NOTES.md
has development libsluice.so sluice/sluice.h sluice.pc SluiceConfig.cmake
has command bin/sluice man1/sluice.1 completions/sluice
has documentation README.md docs/launching.md

# Every place where one may look says alike whether the library links GLPK, and which licence follows from that.
if readelf -d "$lib/libsluice.so" | grep -q 'NEEDED.*libglpk'; then
    expected='yes, Apache-2.0 AND GPL-3.0-or-later' solver='schedule: ilp; solver: GLPK' in_cmake=ON
else
    expected='no, Apache-2.0' solver='schedule: portfolio; solver: none' in_cmake=OFF
fi
if "$work/place/bin/sluice" info | grep -q '^gpu .*this build has no device cuda'; then
    cuda=no
else
    cuda=yes
    expected+=' AND LicenseRef-NVIDIA-CUDA-EULA'
fi
variable() {
    PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --variable="$1" sluice
}
told="$(variable glpk), $(variable license)"
if [ "$told" != "$expected" ] || ! "$work/place/bin/sluice" info | grep -q "^planner  *$solver" ||
    ! grep -q "^set(Sluice_GLPK $in_cmake)" "$lib/cmake/Sluice/SluiceConfig.cmake" ||
    ! grep -qF "set(Sluice_LICENSE \"${expected#*, }\")" "$lib/cmake/Sluice/SluiceConfig.cmake" ||
    PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --static --libs sluice | grep -q glpk ||
    [ -z "$(find "$work/place" -name LICENSE-NOTES.md)" ]; then
    echo "GLPK: the library says \"$expected\", pkg-config \"$told\", or info, the CMake package or the notes differ"
    exit 1
fi

# They also say alike whether the library has the device cuda, and where it looks for cublasLt.
if [ "$(variable cuda)" != $cuda ] || ! grep -q "^set(Sluice_CUDA $cuda)" "$lib/cmake/Sluice/SluiceConfig.cmake" ||
    { [ $cuda = yes ] && ! variable cublaslt | grep -q 'SLUICE_CUDA_LIBRARIES'; }; then
    echo "device cuda: the command says \"$cuda\", pkg-config \"$(variable cuda)\", or the CMake package differs"
    exit 1
fi

# The notes have each library that is loaded but that of C, and CMake says what may be passed on.
for name in $(ldd "$lib/libsluice.so" "$lib/sluice/"*.so "$lib/libsluice_nccl.so" "$work/place/bin/sluice" |
    sed -n 's/^\t\(lib[A-Za-z0-9_]*\)[.-].*=>.*/\1/p' | sort -u | grep -Ev '^lib(c|m|dl|rt|pthread)$'); do
    if ! grep -qF "\`$name\`" "$work/place/share/doc/sluice/LICENSE-NOTES.md"; then
        echo "LICENSE-NOTES.md does not name $name"
        exit 1
    fi
done
says() { # GLPK CUDA WORDS: CMake says them of such a build
    "$cmake" -DSLUICE_HAVE_GLPK="$1" -DSLUICE_CUDA="$2" -P "$source/cmake/SluiceLicense.cmake" >"$work/out" 2>&1
    grep -qF -- "$3" "$work/out" || { cat "$work/out" && exit 1; }
}
says ON ON 'so it may be used and not passed on'
says ON ON 'Apache-2.0 AND GPL-3.0-or-later AND LicenseRef-NVIDIA-CUDA-EULA'
says ON OFF 'Apache-2.0 AND GPL-3.0-or-later:'
says ON EMULATED 'Apache-2.0 AND GPL-3.0-or-later:'
says OFF ON 'Apache-2.0 AND LicenseRef-NVIDIA-CUDA-EULA:'
says OFF OFF ''
[ "$(cat "$work/out")" = '-- licence of this build: Apache-2.0' ] || { cat "$work/out" && exit 1; }

# The NCCL shim is next to the library. It gives away NCCL's names and dlsym only, and if there is no NCCL it is quiet.
shim=$lib/libsluice_nccl.so
names=$(nm -D --defined-only "$shim" | awk '{print $3}')
if [ -n "$(grep -Ev '^(p?nccl[A-Z][A-Za-z0-9_]*|dlsym)$' <<<"$names")" ] ||
    ! grep -q '^ncclAllReduce$' <<<"$names" || [ "$(LD_PRELOAD=$shim /bin/echo quiet 2>&1)" != quiet ]; then
    echo "$shim: it has other names than NCCL's, lacks them, or says something where there is no NCCL"
    exit 1
fi

# The library gives away its public names only.
names=$(nm -D --defined-only "$lib/libsluice.so" | awk '{print $3}' | grep -v '^sluice_' || true)
if [ -n "$names" ]; then
    echo "libsluice.so exports what is private: $names"
    exit 1
fi
# Each public header stands on its own.
for header in $(cd "$source/include" && find sluice -name '*.h'); do
    echo "#include <$header>" | "${CC:-cc}" -std=c17 -Wall -Wextra -Werror -I"$work/place/include" -fsyntax-only -x c -
done
echo "installed files work from another place"
