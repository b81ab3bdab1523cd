#!/usr/bin/env bash
# --observe writes each N steps a row for each layer, the same figures under every strategy and in stages, changes no
# weight, goes on where a run goes on, and draws a picture.
. "$(dirname "$0")/../../support/command_check.sh"
. "$(dirname "$0")/../../support/train_check.sh"
need_python3

weights_of() { # OPTION...
    train --json "$work/run.json" "$@"
    [ $code = 0 ] || { echo "exit code $code: $(tail -n 1 "$work/err")"; return; }
    hash_of "$work/run.json"
}

observe() { # NAME OPTION...: a run of 6 steps that is observed each 2 steps, into $work/NAME
    local name=$1
    shift
    weights_of -n 2 --steps 6 --dropout 0.1 --observe 2 --log "$work/$name" "$@"
}

# The figures of two files, of which sums over ranks may be rounded otherwise.
alike() { # A B
    python3 - "$work/$1/observed.csv" "$work/$2/observed.csv" <<'PY'
import csv, math, sys
a, b = (list(csv.DictReader(open(path))) for path in sys.argv[1:])
same = len(a) == len(b) > 0
for x, y in zip(a, b):
    for key in x:
        if x[key] != y[key]:
            same = same and key not in ("step", "layer") and math.isclose(float(x[key]), float(y[key]), rel_tol=1e-6)
print("yes" if same else "no")
PY
}

figures() {
    local plain
    plain=$(weights_of -n 2 --steps 6 --dropout 0.1)
    check 'weights are those of a run that nobody observes' "$plain" "$(observe dp --strategy dp)"
    check 'rows of each second step' 'embed h.0 h.1 h.2 h.3 head: 2 4 6' "$(python3 - "$work/dp/observed.csv" <<'PY'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
layers = list(dict.fromkeys(r["layer"] for r in rows))
good = all((float(r["norm_ratio"]) > 0.5 and -1 <= float(r["cosine"]) <= 1) if r["layer"].startswith("h.")
           else r["norm_ratio"] == r["cosine"] == "" for r in rows)
good = good and all(float(r["variance_norm"]) >= float(r["variance_largest"]) > 0 for r in rows)
print(*layers if good else ["wrong figures"], end=": ")
print(*dict.fromkeys(r["step"] for r in rows))
PY
)"
    for strategy in sdp fsdp auto; do
        check "$strategy: weights" "$plain" "$(observe $strategy --strategy $strategy --recompute all)"
        check "$strategy: figures" yes "$(alike dp $strategy)"
    done
    train -n 1 --steps 2 --observe 2 --log "$work/csv" --csv -
    check 'results on standard output stay alone' '3 0' "$(grep -c ',' "$work/out") $(grep -vc ',' "$work/out")"
    check 'a picture is drawn' yes "$(! command -v gnuplot >/dev/null || { [ -s "$work/dp/observed.svg" ] && [ -s "$work/dp/observed.png" ]; } && echo yes)"
}

stages() {
    local options=(--steps 4 --micro-batches 3 --tied split --observe 2)
    check 'stages: weights' "$(weights_of -n 1 "${options[@]}" --log "$work/one")" \
        "$(weights_of -n 2 "${options[@]}" --pipeline 2 --log "$work/two")"
    check 'stages: figures' yes "$(alike one two)"
}

going_on() {
    weights_of -n 2 --steps 3 --dropout 0.1 --observe 2 --log "$work/parts" --save "$work/run" >/dev/null
    weights_of -n 2 --steps 6 --dropout 0.1 --observe 2 --log "$work/parts" --resume "$work/run" >/dev/null
    check 'a run that goes on' yes "$(alike dp parts)"
    check 'SGD has no second moment' 'h.0,,' "$(weights_of --steps 2 --optimizer sgd --observe 2 --log "$work/sgd" >/dev/null
        sed -n 's/^2,\(h.0\),.*\(,,\)$/\1\2/p' "$work/sgd/observed.csv")"
}

figures
stages
going_on
refuses 'give a folder with --log' --observe 5
exit $failed
