#!/usr/bin/env bash
# The site of the documents is made without a warning and needs no network. A link that leads nowhere, a heading that is
# not there and a public name that no header has are refused, each with file and line.
# Labels: all_only
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
python=
for candidate in /usr/bin/python3 "$root/build/docs-python/bin/python"; do
    if "$candidate" -c 'import breathe, furo, myst_parser, sphinx' 2>/dev/null; then python=$candidate; fi
done
if [ -z "$python" ] || ! command -v doxygen >/dev/null; then
    echo 'SKIP: Sphinx with myst-parser, breathe and furo, or doxygen, is not installed: ./dev docs does that'
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fails() {
    cat "$work/log"
    echo "$1"
    exit 1
}

"$python" -B "$root/docs/site/make.py" "$work/site" >"$work/log" 2>&1 || fails 'the site cannot be made'
html=$work/site/html
for page in "$root"/docs/*.md; do
    name=$(basename "$page" .md)
    [ -s "$html/docs/$name.html" ] || fails "the site lacks docs/$name.md"
    [ "$name" = README ] || grep -q "href=\"docs/$name.html\"" "$html/index.html" || fails "no navigation to docs/$name.md"
done
for name in sluice_config sluice_world_create sluice_model_evaluate sluice_transport_v1 SLUICE_ERR_PEER; do
    grep -rq "id=\"c\.[a-z_.]*$name\"" "$html/api" || fails "the reference lacks $name"
done
grep -q 'href="../api/sluice-config.html#c.sluice_config_init"' "$html/docs/guide.html" ||
    fails 'a name in the guide does not lead to its place in the reference'
grep -q sluice_runtime_commit "$html/searchindex.js" || fails 'the search does not know the functions'
if grep -rnE '<(script|link|img)[^>]*(src|href)="(https?:)?//' "$html" --include='*.html' >"$work/log"; then
    fails 'pages load something from the network'
fi

mkdir "$work/tree"
for entry in "$root"/*; do
    case $(basename "$entry") in
    build | out) ;;
    docs) cp -r "$entry" "$work/tree/" ;;
    *) ln -s "$entry" "$work/tree/" ;;
    esac
done
line=$(($(wc -l <"$work/tree/docs/guide.md") + 2))
printf '\n[a](nowhere.md) [b](engine.md#no-such-heading) [c](../include/sluice/none.h) `sluice_worlds_create`\n' \
    >>"$work/tree/docs/guide.md"
if "$python" -B "$work/tree/docs/site/make.py" "$work/bad" >"$work/log" 2>&1; then
    fails 'links that lead nowhere are not refused'
fi
for fault in nowhere.md engine.md#no-such-heading sluice-none sluice_worlds_create; do
    grep -q "^docs/guide.md:$line: .*$fault" "$work/log" || fails "the refusal does not name $fault with its line"
done
