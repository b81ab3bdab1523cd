#!/usr/bin/env bash
# What `sluice bench` promises: every combination that fits is run and the others are told, equal weights, results that
# other programs can read, kept when something fails.
set -u
sluice=$1
"$sluice" --help | grep -q '^  bench ' || exit 0 # built without a model
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"

check() { # what, expected, got
    if [ "$2" = "$3" ]; then return; fi
    printf 'FAILED: %s\n  expected: %s\n  got:      %s\n' "$1" "$2" "$3"
    sed 's/^/  err: /' "$work/err" | head -5
    failed=1
}

bench() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 200 "$sluice" bench --data "$work/text" --context 32 --batch 2 --steps 3 "$@" \
        >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

refuses() { # words of the message, then OPTION...
    local words=$1
    shift
    bench --output "$work/refused" "$@"
    check "$* fails" yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
    check "$* says why" yes "$(grep -qi -- "$words" "$work/err" && echo yes)"
}

column() { # name: its values in results.csv of $folder, sorted, each once
    awk -F, -v name="$1" 'NR == 1 {for (i = 1; i <= NF; i++) if ($i == name) c = i; next} {print $c}' \
        "$folder/results.csv" | sort -u | paste -sd ' '
}

sweep() {
    folder=$work/sweep
    bench -n 2 --strategy dp,fsdp,random:1 --schedule serial,one_ahead --budget none,80% --throttle none,4gbit \
        --output "$folder"
    check 'a sweep ends well' 0 $code
    check 'throttles' '4gbit none' "$(column throttle)"
    check 'strategies' 'dp fsdp random:1' "$(column strategy)"
    check 'budgets' '80% none' "$(column budget)"
    check 'rows' 24 "$(($(wc -l <"$folder/results.csv") - 1))"
    check 'dp does not fit' 4 "$(grep -c ',dp,.*,80%,,0,' "$folder/results.csv")"
    check 'all that ran have the same weights' 1 \
        "$(awk -F, 'NR > 1 && $9 == 1 {print $NF}' "$folder/results.csv" | sort -u | wc -l)"
    check 'peaks are as planned' 0 "$(awk -F, 'NR > 1 && $9 == 1 && $11 != $12' "$folder/results.csv" | wc -l)"
    check 'said so' 2 "$(grep -cE '^(weights equal to the bit|peak equals plan): yes' "$work/out")"
    check 'runs in JSON' "$(awk -F, '$9 == 1' "$folder/results.csv" | wc -l)" \
        "$(grep -c '"weights_sha256"' "$folder/results.json")"
    check 'no part is left' '' "$(find "$folder" -name '*part*')"
    command -v gnuplot >/dev/null || return
    check 'a picture' yes "$([ -s "$folder/step_time.svg" ] && [ -s "$folder/step_time.png" ] && echo yes)"
}

under_a_launcher() {
    folder=$work/launched
    timeout 100 "$sluice" run -n 2 -- "$sluice" bench --data "$work/text" --context 32 --steps 3 --strategy sdp,oss \
        --repeat 2 --output "$folder" >"$work/out" 2>"$work/err"
    check 'as ranks of a launcher' 0 $?
    check 'repetitions' '1 2' "$(column repeat)"
    check 'rows of repetitions' 4 "$(($(wc -l <"$folder/results.csv") - 1))"
    timeout 100 "$sluice" run -n 2 -- "$sluice" bench --throttle none,1gbit >"$work/out" 2>"$work/err"
    check 'two throttles in one world' 1 $?
    check 'are refused' yes "$(grep -q 'a world has one throttle' "$work/err" && echo yes)"
}

without_gnuplot() {
    local command
    command=$(realpath "$sluice")
    mkdir -p "$work/empty"
    PATH=$work/empty "$command" bench --data "$work/text" --context 32 --steps 3 --strategy dp --output "$work/plain" \
        >"$work/out" 2>"$work/err"
    check 'without gnuplot' 0 $?
    check 'it is said' 1 "$(grep -c 'gnuplot is not installed' "$work/out")"
    check 'results are there' yes "$([ -s "$work/plain/results.csv" ] && echo yes)"
}

interrupt() {
    folder=$work/stopped
    "$sluice" bench -n 2 --data "$work/text" --steps 100000 --strategy dp,fsdp --output "$folder" \
        >"$work/out" 2>"$work/err" &
    local pid=$!
    for _ in $(seq 300); do # the table's head shows that it listens
        grep -q '^strategy' "$work/out" && break
        sleep 0.1
    done
    kill -INT $pid
    wait $pid
    check 'Ctrl-C' 130 $?
    check 'what there is is written' 1 "$(grep -c ',dp,[a-z_]*,none,1,1,.*,1,[0-9a-f]*$' "$folder/results.csv")"
}

refusals() {
    refuses 'does not exist' --strategy dp,ddp
    refuses 'not built in this version' --strategy dp,onebit
    refuses 'unknown' --schedule tomorrow
    refuses 'budget' --budget none,12parsecs
    refuses 'bandwidth' --throttle none,fast
    refuses 'bandwidth' --throttle 50us
    refuses 'empty' --strategy ,
    refuses 'whole number' --repeat 0
    refuses 'cannot make the folder' --output "$work/text/below"
    check 'what ran before a failure is kept' dp "$(folder=$work/refused column strategy)"
}

for part in sweep under_a_launcher without_gnuplot interrupt refusals; do $part; done
[ $failed = 0 ] && echo "sluice bench: all as promised"
exit $failed
