#!/usr/bin/env bash
# A project that adds this tree, and flags that are given: added_tree_check.sh CMAKE SOURCE [build]. The project links Sluice::sluice,
# decides on flags, and gets neither tests nor files to install. Flags of a build type that are given to this tree itself
# stay too. With `build` the project is built, and its program runs on two ranks.
set -eu
cmake=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset SLUICE_TRANSPORT_PATH CFLAGS
configure() { # SOURCE FOLDER OPTION...
    if ! timeout 100 "$cmake" -G Ninja -S "$1" -B "$work/$2" -DCMAKE_BUILD_TYPE=Release -DSLUICE_CUDA=OFF \
        "${@:3}" >"$work/out" 2>&1; then
        cat "$work/out"
        exit 1
    fi
}
compiled_with() { # FOLDER FLAGS: these, and no others of a build type, compile the library's files
    local commands
    commands=$(grep '"command":.*/slc_base\.dir/status\.c\.o ' "$work/$1/compile_commands.json")
    if [ "$(grep -oE ' (-O[0-9]|-g|-DNDEBUG|-DADDED)\b' <<<"$commands" | xargs)" != "$2" ]; then
        echo "$1: the library is not compiled with \"$2\": $commands"
        exit 1
    fi
}

cat >"$work/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(app C)
add_subdirectory("$source" sluice EXCLUDE_FROM_ALL)
add_executable(app app.c)
target_link_libraries(app Sluice::sluice)
CMAKE
cat >"$work/app.c" <<'C'
#include <sluice/sluice.h>
#include <stdio.h>

int main(void)
{
    sluice_world *world;
    if (sluice_world_create(NULL, &world)) return puts(sluice_last_error()), 1;
    printf("%s\n", sluice_world_transport(world));
    sluice_world_destroy(world);
    return 0;
}
C

if [ "${3:-}" = build ]; then
    configure "$work" built '-DCMAKE_C_FLAGS_RELEASE=-O3 -g' # with which a compiler cache has most files
    "$cmake" --build "$work/built" --target app sluice_command >"$work/out" || { cat "$work/out" && exit 1; }
    SLUICE_COMM_DIRECT=off timeout 60 "$work/built/sluice/bench/sluice" run -n 2 -- "$work/built/app" >"$work/out" ||
        true
    if [ "$(sort "$work/out" | paste -sd,)" != '[0] ucx,[1] ucx' ]; then
        echo 'the program of the project that adds this tree does not run'
        cat "$work/out"
        exit 1
    fi
    exit 0
fi

configure "$work" added '-DCMAKE_C_FLAGS_RELEASE=-O1 -DADDED'
compiled_with added '-O1 -DADDED'
if ! ninja -C "$work/added" -t inputs app | grep -q 'libsluice_transport_ucx\.so'; then
    echo 'a program that links Sluice::sluice is built without the transports'
    exit 1
fi
if [ -n "$(ninja -C "$work/added" -t targets all | grep -E '^(test_seconds|sluice/tests/)')" ] ||
    "$cmake" --install "$work/added" --prefix "$work/place" | grep -q 'Installing:'; then
    echo 'the project that adds this tree builds its tests, or installs it'
    exit 1
fi

configure "$source" given -DSLUICE_TESTS=OFF '-DCMAKE_C_FLAGS_RELEASE=-O2 -DNDEBUG'
compiled_with given '-O2 -DNDEBUG'
configure "$source" given
compiled_with given '-O2 -DNDEBUG'
# A tree may have been configured before flags were obeyed: its cache then has CMake's own flags.
sed -i '/^SLUICE_FLAGS_OBEYED/d' "$work/given/CMakeCache.txt"
configure "$source" given
compiled_with given '-O3 -g'
configure "$source" usual -DSLUICE_TESTS=OFF
compiled_with usual '-O3 -g'
