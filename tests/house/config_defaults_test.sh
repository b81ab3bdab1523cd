#!/usr/bin/env bash
# The defaults in sluice/config.h are those of sluice_config_init, and every field has one: a program made from the
# header's lines compares them.
. "$(dirname "$0")/../support/command_check.sh"
include=$(cd "$(dirname "$0")/../../include" && pwd)
header=$include/sluice/config.h
library=$(dirname "$sluice")/../lib/sluice
sed -n 's|^ \*   \([a-z0-9_.]* = [^ ]*\).*|\1|p' "$header" >"$work/defaults"

# The preprocessor leaves the header's comments out.
"${CC:-cc}" -E -P -I "$include" "$header" >"$work/header"

fields() { # STRUCT: the names in it
    tr '\n' ' ' <"$work/header" | grep -oE "\{[^{}]*\} *$1;" | tail -n 1 | grep -oE '[a-z0-9_]+( *, *[a-z0-9_]+)*;' |
        tr -d ' ;' | tr , '\n' | grep -vx "$1"
}

all_fields() { # structs inside the configuration are named like their types
    local field inner
    for field in $(fields sluice_config); do
        inner=$(grep -qE "sluice_$field $field;" "$work/header" && fields "sluice_$field" | sed "s|^|$field.|")
        echo "${inner:-$field}"
    done
}
check 'every field has a default in the header' "$(all_fields | sort)" "$(sed 's/ .*//' "$work/defaults" | sort)"

{
    printf '#include <math.h>\n#include <sluice/sluice.h>\n#include <stdio.h>\n#include <string.h>\n'
    printf 'int main(void)\n{\n    sluice_config config;\n    memset(&config, 1, sizeof config);\n'
    printf '    sluice_config_init(&config);\n'
    sed 's|^\([a-z0-9_.]*\) = \(".*"\)$|if (strcmp(config.\1, \2)) puts("\1");|; t
         s|^\([a-z0-9_.]*\) = \(.*\)$|if (config.\1 != \2) puts("\1");|' "$work/defaults"
    printf '}\n'
} >"$work/defaults.c"
"${CC:-cc}" -I "$include" "$work/defaults.c" -L "$library" -lsluice -Wl,-rpath,"$library" -o "$work/defaults" \
    2>"$work/err" || failed=1
check 'defaults that differ from the header' '' "$(timeout 60 "$work/defaults" 2>&1)"
exit $failed
