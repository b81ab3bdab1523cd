#!/usr/bin/env bash
# The API reference is made from the public headers without a warning: every name in them has a comment. A header with a
# function that has none is refused.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
if ! command -v doxygen >/dev/null; then
    echo 'SKIP: doxygen is not installed'
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

make_reference() { # ROOT
    (cd "$1" && { cat docs/api/Doxyfile; echo "OUTPUT_DIRECTORY = $work/out"; } | timeout 120 doxygen - >"$work/log" 2>&1)
}

if ! make_reference "$root"; then
    cat "$work/log"
    echo 'the public headers have names without a comment, or comments that doxygen cannot read'
    exit 1
fi
for name in sluice_config sluice_world_create sluice_model_evaluate; do
    grep -rq "$name" "$work/out/html"/*.html || { echo "the reference lacks $name"; exit 1; }
done

mkdir -p "$work/tree/docs"
cp -r "$root/docs/api" "$work/tree/docs/"
cp -r "$root/include" "$work/tree/"
sed -i 's|^#endif$|\nSLUICE_API void sluice_planted(void);\n#endif|' "$work/tree/include/sluice/trace.h"
if make_reference "$work/tree"; then
    echo 'a function without a comment is not refused'
    exit 1
fi
grep -q sluice_planted "$work/log" || { cat "$work/log"; echo 'the refusal names another thing'; exit 1; }
