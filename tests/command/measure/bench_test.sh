#!/usr/bin/env bash
# `sluice bench` keeps its promises: every combination that fits is run and the others are told, equal weights, results
# that other programs can read, kept when something fails.
. "$(dirname "$0")/../../support/command_check.sh"
need_command bench
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"

bench() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 100 "$sluice" bench --data "$work/text" --context 32 --batch 2 --steps 5 --repeat 1 "$@" \
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
        "$(awk -F, 'NR > 1 && $9 == 1 {print $22}' "$folder/results.csv" | sort -u | wc -l)"
    check 'peaks are as planned' 0 "$(awk -F, 'NR > 1 && $9 == 1 && $11 != $12' "$folder/results.csv" | wc -l)"
    check 'said so' 2 "$(grep -cE '^(weights equal to the bit|peak equals plan): yes' "$work/out")"
    check 'runs in JSON' "$(awk -F, '$9 == 1' "$folder/results.csv" | wc -l)" \
        "$(grep -c '"weights_sha256"' "$folder/results.json")"
    check 'no part is left' '' "$(find "$folder" -name '*part*')"
    command -v gnuplot >/dev/null || { skip 'the picture of a sweep: gnuplot is not installed'; return; }
    check 'a picture' yes "$([ -s "$folder/step_time.svg" ] && [ -s "$folder/step_time.png" ] && echo yes)"
}

# Repetitions: a round of all combinations, then the next; medians and spreads; what does not fit is told once.
repeats() {
    folder=$work/repeats
    bench -n 2 --strategy dp,sdp --schedule serial --budget none,95%,92% --repeat 3 --output "$folder"
    check 'repetitions end well' 0 $code
    check 'each that fits runs three times' 12 "$(awk -F, '$8 ~ /^[123]$/ && $9 == 1' "$folder/results.csv" | wc -l)"
    check 'rounds' '1 1 1 1 2 2 2 2 3 3 3 3' "$(awk -F, 'NR > 1 && $9 == 1 {print $8}' "$folder/results.csv" | paste -sd ' ')"
    check 'a row for each combination' 4 "$(grep -cE '^adamw +(dp|sdp) +serial +(none|95%|92%)' "$work/out")"
    check 'each row has a spread' 4 "$(awk '/^adamw/ && $0 !~ /does not fit/ && $(NF-4) ~ /^[0-9.]+$/' "$work/out" | wc -l)"
    check 'one line of what does not fit' 1 "$(grep -c 'does not fit' "$work/out")"
    check 'which names the budgets' 1 "$(grep -cE '^adamw +dp +serial +does not fit 95%, 92%: it needs [0-9.]+ MiB' "$work/out")"
    check 'rounds are told' 2 "$(grep -cE '^round [12] of 3 is done: .* left$' "$work/err")"
    bench -n 2 --strategy dp,fsdp --schedule one_ahead --budget 2MiB,none --output "$folder.need" # before any run
    check 'the need is that of the text' '2 2' "$(python3 -c 'import json, re, sys
rows = json.load(open(sys.argv[1]))["does_not_fit"]
print(len(rows), sum(row["needed_bytes"] == int(re.search(r"needs (\d+) bytes", row["why"]).group(1)) and
                     row["budget_bytes"] == int(re.search(r"the budget is (\d+)", row["why"]).group(1)) for row in rows))' \
        "$folder.need/results.json")"
    command -v gnuplot >/dev/null || return
    check 'the picture has error bars' yes "$(grep -q 'using 1:2:4:5 with yerrorbars' "$folder/step_time.gp" && echo yes)"
    rm "$folder/step_time.svg"
    (cd / && gnuplot "$folder/step_time.gp") 2>"$work/err"
    check 'the script draws beside itself, wherever it is run' yes "$([ -s "$folder/step_time.svg" ] && echo yes)"
    bench --strategy dp --budget none --output "$folder.one"
    check 'without repetitions it has none' '' "$(grep yerrorbars "$folder.one/step_time.gp")"
}

# By default the planner's own choice runs next to the others, over budgets that are found.
adaptive() {
    folder=$work/adaptive
    bench -n 2 --steps 8 --strategy sdp,auto --budget none,auto:1 --throttle none,4gbit --output "$folder"
    check 'an adaptive sweep ends well' 0 $code
    local planned
    planned=$(default_schedule)
    check 'auto has ilp, the other one_ahead' "auto,$planned sdp,one_ahead" \
        "$(awk -F, 'NR > 1 {print $5 "," $6}' "$folder/results.csv" | sort -u | paste -sd ' ')"
    check 'two budgets, the same for both throttles' 2 "$(column budget | wc -w)"
    check 'auto runs in all of them' 4 "$(grep -c ",auto,$planned,.*,1,1," "$folder/results.csv")"
    check 'within the budget' 0 "$(awk -F, 'NR > 1 && $9 && $10 && $12 > $10' "$folder/results.csv" | wc -l)"
    check 'only its steps are predicted' 'auto' \
        "$(awk -F, 'NR > 1 && $14 > 0 {print $5}' "$folder/results.csv" | sort -u | paste -sd ' ')"
    check 'four predictions' 4 "$(grep -c '"predicted_step_s": [0-9]' "$folder/results.json")"
    check 'a comparison for each budget and throttle' 4 "$(grep -c '^  throttle .* budget [^ ]*  *auto  *[0-9.]* ms, ' "$work/out")"
    check 'a profile' yes "$("$sluice" plan --profile "$folder/profile.json" >/dev/null && echo yes)"
}

# Planning is no step, and neither are those that serve to measure: a median is of three steps under the last plan at
# least, behind two that do not count.
few_steps() {
    folder=$work/few
    bench -n 2 --strategy dp,auto --steps 7 --output "$folder"
    check 'a few steps' 0 $code
    check 'enough for dp' 1 "$(grep -cE '^adamw +dp .* [0-9.]+ +- +[0-9.]+ +[0-9]+ ' "$work/out")"
    check 'not for auto' 1 "$(grep -cE '^adamw +auto .* - +- +- +- ' "$work/out")"
    check 'which is said' 1 "$(grep -c '^no step time in 1 run: .*--steps 8$' "$work/out")"
    check 'an empty field' 1 "$(awk -F, '$5 == "auto" && $15 == "" && $18 == "" && $22 != ""' "$folder/results.csv" | wc -l)"
    timeout 100 "$sluice" train -n 2 --data "$work/text" --context 32 --batch 2 --steps 4 --strategy dp >"$work/out" 2>"$work/err"
    check 'training says so too' 1 "$(grep -c '^time .*(its median takes 8 steps' "$work/out")"
}

tradeoff() {
    folder=$work/tradeoff
    bench -n 2 --steps 8 --tradeoff --shares 3 --throttle 4gbit --output "$folder"
    check 'a trade-off ends well' 0 $code
    check 'a row a share, and the joint plan' 4 "$(($(wc -l <"$folder/tradeoff.csv") - 1))"
    check 'it was run' yes "$(awk -F, '$1 == "joint" && $7 > 0 && $9 > 0 {print "yes"}' "$folder/tradeoff.csv")"
    check 'each choice that fits was run' 0 "$(awk -F, 'NR > 1 && $6 && !($9 > 0)' "$folder/tradeoff.csv" | wc -l)"
    check 'promises kept' 1 "$(grep -c '^weights equal to the bit: yes; within the budget: yes' "$work/out")"
    check 'the shapes are said' 2 "$(grep -cE '^(predicted|measured): the curve is ' "$work/out")"
    check 'and written' 2 "$(grep -cE '"(predicted|measured)_shape": "' "$folder/tradeoff.json")"
    "$sluice" check --profile "$folder/profile.json" --plan "$folder/plan.json" >"$work/out" 2>"$work/err"
    check 'the joint plan is sound' 0 $?
    local before
    before=$(cat "$folder/tradeoff.csv" "$folder/tradeoff.json")
    bench -n 2 --steps 8 --tradeoff --shares 3 --throttle 4gbit --output "$folder"
    check 'the same again shows it' 'yes 0' "$(grep -q 'it is not run again' "$work/out" && echo yes) $code"
    bench -n 2 --steps 8 --tradeoff --shares 4 --throttle 4gbit --output "$folder"
    check 'another trade-off is refused by name' '1 2' "$(grep -c -- 'results of --shares 3' "$work/err") $code"
    check 'what was there stays' yes "$([ "$before" = "$(cat "$folder/tradeoff.csv" "$folder/tradeoff.json")" ] && echo yes)"
    timeout 100 "$sluice" bench --tradeoff --profile "$folder/profile.json" --shares 2 --output "$work/predicted" \
        --json - >"$work/out" 2>"$work/err"
    check 'from a profile' 0 $?
    check 'the document on standard output' yes "$(cmp -s "$work/predicted/tradeoff.json" "$work/out" && echo yes)"
    check 'nothing is measured' 1 "$(grep -c '"measured_shape": null' "$work/predicted/tradeoff.json")"
    command -v gnuplot >/dev/null || { skip 'pictures of a trade-off: gnuplot is not installed'; return; }
    check 'pictures' 4 "$(find "$folder" "$work/predicted" -name 'tradeoff.*g' -size +1k | wc -l)"
}

optimizers() {
    folder=$work/optimizers
    bench -n 2 --steps 12 --optimizer adamw,lamb@0.01 --throttle none,4gbit --repeat 2 --output "$folder"
    check 'a comparison of optimizers ends well' 0 $code
    check 'rows' 8 "$(($(wc -l <"$folder/results.csv") - 1))"
    check 'each under its own strategy' dp "$(column strategy)"
    check 'optimizers' 'adamw lamb' "$(column optimizer)"
    check 'the first is the measure' 2 "$(grep -c '^  adamw  *dp .* 100.00 %' "$work/out")"
    check 'the other beside it' 2 "$(grep -c '^  lamb  *dp .* [0-9.]* %' "$work/out")"
    check 'weights of a kind are equal' 1 "$(grep -c '^weights equal to the bit: yes (8 runs of 2 kinds' "$work/out")"
    check 'each run has its log, with the losses of its row' 8 "$(python3 -c "
import json, sys
folder, good = sys.argv[1], 0
for run in json.load(open(folder + '/results.json'))['runs']:
    steps = [json.loads(line) for line in open(folder + '/' + run['log'] + '/metrics.jsonl')]
    good += [round(step['loss'], 6) for step in steps] == [round(loss, 6) for loss in run['losses']]
print(good)" "$folder" 2>&1)"
    check 'the picture is drawn from them' 48 "$(grep -cE '^[0-9]+ [0-9.]+ [0-9.]+ [0-9]+$' "$folder/losses.dat")"
    command -v gnuplot >/dev/null || { skip 'the picture of losses: gnuplot is not installed'; return; }
    check 'a picture of losses' yes "$([ -s "$folder/losses.svg" ] && [ -s "$folder/losses.png" ] && echo yes)"
}

# Lists of what is not the planner's: each combination is a cell, all settings are columns, and equal values are one.
lists() {
    folder=$work/lists
    bench --strategy dp,dp --batch 2,4,2 --precision fp32,bf16 --recompute none,all --ranks 1,2 --budget 4M,4MiB,40MiB \
        --throttle 4gbit,4000mbit --output "$folder"
    check 'lists end well' 0 $code
    check 'rows: equal values are one' 32 "$(($(wc -l <"$folder/results.csv") - 1))"
    check 'batches, precisions, recomputation, ranks' '2 4|bf16 fp32|all none|1 2' \
        "$(column batch)|$(column precision)|$(column recompute)|$(column world)"
    check 'what a number depends on is there' '32 5 0.001 1 1' \
        "$(column context) $(column steps) $(column lr) $(column seed) $(column threads)"
    check 'the machine and the version' "$(hostname) $("$sluice" --version | cut -d ' ' -f 2)" \
        "$(column host) $(column sluice)"
    check 'each run has a date' yes "$(column date | grep -qE '^20[0-9-]*T[0-9:]*Z' && echo yes)"
    check 'the command line is in the JSON' 1 "$(grep -c '"4M,4MiB,40MiB"' "$folder/results.json")"
    check 'weights of each kind are equal' 1 "$(grep -cE '^weights equal to the bit: yes \([0-9]+ runs of [0-9]+ kinds' "$work/out")"
    check 'rows say in which settings they differ' yes "$(grep -q '^fp32, batch 2, recompute none  *adamw' "$work/out" && echo yes)"
    folder=$work/threads
    OMP_NUM_THREADS=2 bench --strategy dp --output "$folder"
    check 'threads that the environment gives are written down' 2 "$(column threads)"
    folder=$work/rates
    bench --strategy dp --optimizer lamb@0.1,adamw --lr 0.01,0.02 --output "$folder"
    check 'learning rates of one optimizer' '0.01 0.02 0.1' "$(column lr)"
    check '... make a row each' 3 "$(grep -cE '^lr |^adamw|^lamb' <(sed -n '/^settings/,/^$/p' "$work/out"))"
}

join() {
    bench --strategy dp,fsdp --batch 2 --output "$work/a"
    bench --strategy dp --batch 4 --throttle none,4gbit --output "$work/b"
    folder=$work/joined
    timeout 100 "$sluice" bench --join "$work/a" "$work/b" --output "$folder" >"$work/out" 2>"$work/err"
    check 'two sweeps are joined' 0 $?
    check 'rows of both' 4 "$(($(wc -l <"$folder/results.csv") - 1))"
    check 'each says where it is from' "$work/a $work/b" "$(column source)"
    check 'one table' 'batch 2 batch 4' "$(grep -oE '^batch [24] ' "$work/out" | sort -u | paste -sd ' ' | tr -s ' ' | sed 's/ $//')"
    timeout 100 "$sluice" bench --join "$work/a" --output "$work/b" >"$work/out" 2>"$work/err"
    check 'results that are there stay' '2 1' "$? $(grep -c "$work/b has results" "$work/err")"
    timeout 100 "$sluice" bench --join >"$work/out" 2>"$work/err"
    check 'without a folder there is nothing to join' '2 1' "$? $(grep -c 'name folders' "$work/err")"
    command -v gnuplot >/dev/null || { skip 'the picture of joined sweeps: gnuplot is not installed'; return; }
    check 'one picture' yes "$([ -s "$folder/step_time.svg" ] && grep -q 'batch 4' "$folder/step_time.gp" && echo yes)"
}

tied() {
    folder=$work/tied
    bench -n 2 --strategy sdp,fsdp --tied joint,split --output "$folder"
    check 'joint and split end well' 0 $code
    check 'rows' 4 "$(($(wc -l <"$folder/results.csv") - 1))"
    check 'both' 'joint split' "$(column tied)"
    check 'weights of each are equal' 1 "$(grep -c '^weights equal to the bit: yes (4 runs of 2 kinds' "$work/out")"
    check 'split beside joint' 2 "$(grep -c '^  throttle .* split .* ms, joint .* ms' "$work/out")"
}

under_a_launcher() {
    folder=$work/launched
    timeout 100 "$sluice" run -n 2 -- "$sluice" bench --data "$work/text" --context 32 --steps 3 --strategy sdp,oss \
        --repeat 2 --output "$folder" >"$work/out" 2>"$work/err"
    check 'as ranks of a launcher' 0 $?
    check 'repetitions' '1 2' "$(column repeat)"
    check 'rows of repetitions' 4 "$(($(wc -l <"$folder/results.csv") - 1))"
    timeout 100 "$sluice" run -n 2 -- "$sluice" bench --throttle none,1gbit >"$work/out" 2>"$work/err"
    check 'two throttles in one world' 2 $?
    check 'are refused' yes "$(grep -q 'a world has one throttle' "$work/err" && echo yes)"
}

without_gnuplot() {
    local command
    command=$(realpath "$sluice")
    mkdir -p "$work/empty"
    PATH=$work/empty "$command" bench --data "$work/text" --context 32 --steps 5 --strategy dp --output "$work/plain" \
        >"$work/out" 2>"$work/err"
    check 'without gnuplot' 0 $?
    check 'it is said' 1 "$(grep -c 'gnuplot is not installed' "$work/out")"
    check 'results are there' yes "$([ -s "$work/plain/results.csv" ] && echo yes)"
}

interrupt() {
    folder=$work/stopped
    begin "$work/out" "$work/err" "$sluice" bench -n 2 --data "$work/text" --context 32 --steps 100000 \
        --strategy dp,fsdp --output "$folder"
    comes_true said_or_ended '^optimizer' "$work/out" # the table's head shows that it listens
    kill -INT $process 2>/dev/null
    ends 'a sweep after Ctrl-C'
    check 'Ctrl-C' 130 $code
    check 'what there is is written' 1 "$(grep -c ',dp,[a-z_]*,none,1,1,.*,1,[0-9a-f]*,adamw,' "$folder/results.csv")"
}

refusals() {
    refuses 'it is no strategy, nor a file' --strategy dp,ddp
    check 'before anything is trained' no "$([ -e "$work/refused" ] && echo yes || echo no)"
    refuses 'needs a compressed optimizer' --strategy dp,onebit --optimizer adamw
    refuses 'a decimal takes a point, as 4.5MiB' --budget 4,5MiB
    refuses 'whole number' --batch 2,x
    refuses 'give one of each' --batch 2,4 --budget auto:2
    refuses 'takes one --batch' --tradeoff --batch 2,4
    refuses 'learning rate' --optimizer adamw,lamb@fast
    refuses 'have a freeze' --optimizer adamw,lamb --freeze-step 3
    refuses 'exact strategies' --tradeoff --lossy onebit
    refuses 'unknown; use joint,split' --tied joint,nonsense
    refuses 'takes one --tied' --tradeoff --tied joint,split
    refuses 'unknown' --schedule tomorrow
    refuses 'budget' --budget none,12parsecs
    refuses 'bandwidth' --throttle none,fast
    refuses 'bandwidth' --throttle 50us
    refuses 'empty' --strategy ,
    refuses 'whole number' --repeat 0
    refuses 'budget' --budget auto:0
    refuses 'one budget' --tradeoff --budget none,60%
    refuses 'nothing to trade' --tradeoff # one rank shards nothing
    refuses 'whole number' --tradeoff --shares 1
    refuses 'only --tradeoff' --profile "$work/text"
    refuses 'cannot make the folder' --output "$work/text/below"
    echo '{"layers": 7}' >"$work/wrong.json"
    refuses 'layers' --strategy "dp,$work/wrong.json" # its content is known to be wrong when the layers are there
    check 'what ran before a failure is kept' 1 "$(grep -c ',dp,[a-z_]*,none,1,1,' "$work/refused/results.csv")"
    check 'what failed has a row with the reason' 1 "$(grep -c ',1,,.*layers.*must be an object' "$work/refused/results.csv")"
    check 'and is counted' 1 "$(grep -c '^failed: 1 of 2 cells' "$work/out")"
    check 'a failed cell' 1 $code
    bench --budget 1KiB --strategy dp --output "$work/nothing"
    check 'nothing fits' 2 $code
}

# A folder that has results is continued if the settings agree, else refused; nothing is lost unless that is asked for.
continues() {
    folder=$work/continued
    local before
    bench -n 2 --strategy dp,fsdp --output "$folder"
    before=$(sort "$folder/results.csv")
    bench -n 2 --strategy dp,fsdp --output "$folder"
    check 'the same sweep again' 0 $code
    check 'runs nothing again' "$before" "$(sort "$folder/results.csv")"
    check 'and shows all' 2 "$(grep -cE '^adamw +(dp|fsdp) +one_ahead +none +[0-9]' "$work/out")"
    bench -n 2 --strategy fsdp,oss --throttle none,4gbit --output "$folder"
    check 'other cells of the same settings' 0 $code
    check 'are added' "$before" "$(sort "$folder/results.csv" | grep -v -e ,oss, -e ,4gbit,)"
    check 'once each' 5 "$(($(wc -l <"$folder/results.csv") - 1))"
    before=$(cat "$folder/results.csv" "$folder/results.json")
    bench -n 2 --strategy dp --seed 3 --output "$folder"
    check 'other settings' 2 $code
    check 'are refused by name' 1 "$(grep -c -- 'results of --seed 1, and this sweep has --seed 3' "$work/err")"
    bench -n 2 --strategy dp --context 16 --output "$folder"
    check 'the context too' 1 "$(grep -c -- 'results of --context 32' "$work/err")"
    check 'what was there stays' yes "$([ "$before" = "$(cat "$folder/results.csv" "$folder/results.json")" ] && echo yes)"
    bench -n 2 --strategy dp --seed 3 --output "$folder" --overwrite
    check 'it is replaced when asked for' 'dp 0' "$(column strategy) $code"
    rm "$folder/results.json"
    bench -n 2 --strategy dp --seed 3 --output "$folder"
    check 'a table that nobody knows' 1 "$(grep -c 'results.csv without results.json' "$work/err")"
}

# Without --output each sweep has a folder of its own, named for the day and what is swept.
default_folder() {
    local command today
    command=$(realpath "$sluice")
    mkdir -p "$work/here"
    today=$(date +%F)
    run_here() {
        (cd "$work/here" && sluice=$command bench --strategy dp,fsdp "$@")
    }
    run_here
    run_here
    run_here --seed 3
    [ "$today" = "$(date +%F)" ] || return # it became midnight
    check 'folders' "$today-gpt2-nano-1-rank-strategy $today-gpt2-nano-1-rank-strategy-2" \
        "$(find "$work/here/out/bench" -mindepth 1 -printf '%f\n' -type d -prune | sort | paste -sd ' ')"
    check 'the second sweep continued the first' 3 "$(wc -l <"$work/here/out/bench/$today-gpt2-nano-1-rank-strategy/results.csv")"
}

rows_or_ended() { # COUNT
    [ "$(cat "$folder/results.csv" 2>/dev/null | wc -l)" -gt "$1" ] || ended
}

# Whatever ends a sweep, what has run is in both files, and the same command makes the rest.
killed() {
    folder=$work/killed
    local sweep=(-n 2 --data "$work/text" --context 32 --batch 2 --steps 150 --repeat 1 --strategy "dp,oss,sdp,fsdp" --output "$folder") one
    begin "$work/out" "$work/err" "$sluice" bench "${sweep[@]}"
    comes_true rows_or_ended 1
    kill -KILL $process
    ends 'a sweep that is killed'
    one=$(sed -n 2p "$folder/results.csv")
    check 'a sweep that was killed has its first run' 1 "$(grep -c ',dp,[a-z_]*,none,1,1,' <<<"$one")"
    check 'in both files' yes "$(grep -q '"weights_sha256": "[0-9a-f]' "$folder/results.json" && echo yes)"
    begin "$work/out" "$work/err" "$sluice" bench "${sweep[@]}"
    comes_true rows_or_ended 2
    kill -KILL "$(pgrep -P $process | head -1)" # rank 0
    ends 'a sweep whose rank 0 is killed'
    check 'a rank that is killed' 1 $code
    check 'fails its cell alone' '1 3' "$(grep -c 'killed by signal 9' "$folder/results.csv") $(grep -c ',none,1,1,' "$folder/results.csv")"
    "$sluice" bench "${sweep[@]}" >"$work/out" 2>"$work/err"
    check 'the same command again' 0 $?
    check 'makes the rest' 'dp fsdp oss sdp' "$(column strategy)"
    check 'and no more' 4 "$(grep -c ',none,1,1,' "$folder/results.csv")"
    check 'what was there is kept' "$one" "$(sed -n 2p "$folder/results.csv")"
    begin "$work/out" "$work/err" "$sluice" bench "${sweep[@]}" --steps 100000 --overwrite --cell-timeout 1 --strategy dp
    ends 'a run that takes too long'
    check 'a run that takes too long' 1 $code
    check 'is told' 1 "$(grep -c 'took longer than --cell-timeout 1' "$folder/results.csv")"
    begin "$work/out" "$work/err" "$sluice" bench "${sweep[@]}" --steps 100000 --overwrite
    comes_true said_or_ended '^optimizer' "$work/out"
    timeout 100 "$sluice" bench "${sweep[@]}" --steps 100000 >"$work/second" 2>&1
    check 'two sweeps at once' 2 $?
    check 'are refused by name' 1 "$(grep -c 'another sweep is writing into' "$work/second")"
    kill -INT $process 2>/dev/null
    ends 'the first of them'
    check 'an interrupted sweep says how far it is' 1 "$(grep -c '^stopped: 0 of 4 cells are finished' "$work/out")"
}

for part in sweep repeats adaptive few_steps tradeoff optimizers lists join tied under_a_launcher without_gnuplot interrupt \
    refusals continues default_folder killed; do $part; done
[ $failed = 0 ] && echo "sluice bench: all as promised"
exit $failed
