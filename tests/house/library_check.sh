#!/usr/bin/env bash
# The library in a process that is not its own: library_check.sh BUILD SOURCE. A program finds the transports wherever
# the library lies, through a link and in a build too. Of two copies in a process each calls itself. The library may be
# closed with a world open. A compiler that makes enums of other than 4 bytes refuses the headers.
set -eu
build=$1 source=$2
cc=("${CC:-cc}" -Wall -Werror "-I$source/include")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset SLUICE_TRANSPORT_PATH LD_LIBRARY_PATH
code=0

fail() { # WHAT
    echo "$1"
    code=1
}

# ---- Where it lies ----

cat >"$work/transport.c" <<'C'
#include <sluice/sluice.h>
#include <stdio.h>

int main(void)
{
    sluice_world *world;
    if (sluice_world_create(NULL, &world)) {
        printf("%s\n", sluice_last_error());
        return 1;
    }
    printf("%s\n", sluice_world_transport(world));
    sluice_world_destroy(world);
    return 0;
}
C
"${cc[@]}" "$work/transport.c" "-L$build/lib/sluice" -lsluice "-Wl,-rpath-link,$build/lib/sluice" -o "$work/transport"
mkdir "$work/linked"
ln -s "$build/lib/sluice/libsluice.so.0" "$work/linked/libsluice.so.0"
for folder in "$build/lib/sluice" "$work/linked"; do
    if ! SLUICE_COMM_DIRECT=off LD_LIBRARY_PATH=$folder timeout 60 "$build/bench/sluice" run -n 2 -- \
        "$work/transport" >"$work/out" 2>&1 || [ "$(sort "$work/out" | paste -sd,)" != '[0] ucx,[1] ucx' ]; then
        fail "a library in $folder finds no transport:
$(cat "$work/out")"
    fi
done

# ---- Two of it ----

cat >"$work/two.c" <<'C'
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    (void)argc;
    if (dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) && dlopen(argv[2], RTLD_NOW | RTLD_LOCAL)) return 0;
    puts(dlerror());
    return 1;
}
C
"${cc[@]}" "$work/two.c" -o "$work/two"
cp "$build/lib/sluice/libsluice.so.0" "$work/first.so"
cp "$build/lib/sluice/libsluice.so.0" "$work/second.so"
if ! LD_DEBUG=bindings "$work/two" "$work/first.so" "$work/second.so" 2>"$work/bindings"; then
    fail 'two copies of the library do not load into one process'
elif ! grep -q "binding file $work/second.so .* symbol .free'" "$work/bindings"; then
    fail 'the loader does not tell what it binds'
elif grep "binding file $work/second.so .* to $work/first.so " "$work/bindings" >"$work/out"; then
    fail "one copy of the library calls the other by $(wc -l <"$work/out") symbols; the first:
$(head -1 "$work/out")"
fi

# ---- Closed ----

cat >"$work/close.c" <<'C'
#include <dlfcn.h>
#include <sluice/sluice.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    sluice_status (*create)(const sluice_world_config *, sluice_world **) = dlsym(library, "sluice_world_create");
    sluice_status (*barrier)(sluice_world *) = dlsym(library, "sluice_world_barrier");
    sluice_world *world;
    (void)argc;
    if (!library || !create || !barrier || create(NULL, &world) || barrier(world)) return 1;
    dlclose(library);
    usleep(200000); /* the world's thread goes on */
    puts("closed");
    return 0;
}
C
"${cc[@]}" "$work/close.c" -o "$work/close"
if ! timeout 60 "$build/bench/sluice" run -n 2 -- "$work/close" "$build/lib/sluice/libsluice.so.0" >"$work/out" 2>&1 ||
    [ "$(grep -c '^\[[01]\] closed$' "$work/out")" != 2 ]; then
    fail "a program that closes the library with a world open does not end well:
$(cat "$work/out")"
fi

# ---- Enums ----

for header in $(cd "$source/include" && grep -rl '^typedef enum' sluice); do
    for form in 'c -std=c17' 'c++ -std=c++20'; do
        # shellcheck disable=SC2086
        if echo "#include <$header>" | "${cc[@]}" -fsyntax-only -fshort-enums -x $form - 2>"$work/out" ||
            ! grep -q 'compile without -fshort-enums' "$work/out"; then
            fail "$header with enums of 1 byte, -x $form, is not refused:
$(cat "$work/out")"
        fi
    done
done
exit $code
