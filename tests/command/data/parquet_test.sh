#!/usr/bin/env bash
# The lines of docs/data.md that make JSON lines of a Parquet file give every record as it was, and training reads them.
# Each needs its packages in the Python that SLUICE_TEST_PYTHON names, or in python3.
. "$(dirname "$0")/../../support/command_check.sh"
need_command train
[ -n "$("$sluice" info 2>/dev/null)" ] || { echo 'FAILED: sluice info says nothing'; exit 1; }
page=$(realpath "$(dirname "$0")/../../../docs/data.md")
sluice=$(realpath "$sluice")
export HF_HOME=$work/hf HF_HUB_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1
cd "$work" || exit 1
python=${SLUICE_TEST_PYTHON:-python3}
command -v "$python" >/dev/null || { skip "all of it: $python is not installed"; exit 77; }

blocks() { # the page's blocks of Python that read Parquet, each in a file of its own; says how many
    "$python" - "$page" <<'PY'
import re, sys
found = [b for b in re.findall(r"^```python\n(.*?)^```$", open(sys.argv[1]).read(), re.M | re.S) if "parquet" in b]
for number, block in enumerate(found):
    open(f"block{number}.py", "w").write(block)
print(len(found))
PY
}

write_parquet() {
    "$python" - <<'PY'
import json
import pyarrow, pyarrow.parquet
records = [{"text": f"number {n}, \"quoted\", café\n\t中", "label": ["even", "odd"][n % 2]} for n in range(40)]
pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), "reviews.parquet", row_group_size=16)
open("records.json", "w").write(json.dumps(records))
PY
}

reads() { # BLOCK
    rm -f reviews.jsonl
    "$python" "$1" >out 2>err
    check "$2: the lines of the page" 0 $?
    check "$2: every record is as it was" yes "$("$python" -c '
import json
print("yes" if [json.loads(line) for line in open("reviews.jsonl", encoding="utf-8")] == json.load(open("records.json")) else "no")')"
    timeout 100 "$sluice" train --model bert --size nano --head classes --data reviews.jsonl --context 32 --batch 2 --steps 1 \
        --eval-batches 0 --schedule one_ahead --save-weights "of_$2" >out 2>err </dev/null
    check "$2: training reads them" 0 $?
    check "$2: with their classes" yes "$(grep -q '"1": "odd"' "of_$2/config.json" && echo yes)"
}

if ! "$python" -c 'import pyarrow.parquet' 2>err; then
    skip "all of it: $python: $(tail -n 1 err)"
    exit 77
fi
check 'the page has lines for Parquet' 2 "$(blocks)"
write_parquet 2>err
check 'a Parquet file is made' 0 $?
for block in block*.py; do
    package=$(sed -n 's/^import \([a-z]*\).*/\1/p' "$block" | head -1)
    if "$python" -c "import $package" 2>err; then
        reads "$block" "$package"
    else
        skip "$package: $python: $(tail -n 1 err)"
    fi
done
[ $failed = 0 ] && echo 'Parquet: all as promised'
exit $failed
