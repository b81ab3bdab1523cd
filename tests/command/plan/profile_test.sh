#!/usr/bin/env bash
# `sluice profile` keeps its promises: a file that planning can read, for a model that was trained or for machines that
# one does not have, a summary, and a clear line for what cannot be.
. "$(dirname "$0")/../../support/command_check.sh"
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"

profile() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 120 "$sluice" profile "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

refuses() { # words of the message, then OPTION...
    local words=$1
    shift
    profile "$@" -o "$work/refused.json"
    check "$* fails" yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
    check "$* says why" yes "$(grep -qi -- "$words" "$work/err" && echo yes)"
    check "$* writes nothing" no "$([ -e "$work/refused.json" ] || echo no)"
}

made() {
    profile --made gpt3-175b --cluster 1024xA100-200gbit --batch 1 -o "$work/gpt3.json"
    check 'a made profile' 0 $code
    check 'its layers' 1 "$(grep -c 'h.0 to h.95' "$work/out")"
    check 'its ranks' 1 "$(grep -c '1024 ranks' "$work/out")"
    profile --made gpt2-small --cluster 2xcpu-1gbit --world 4 -o "$work/gpt2.json"
    check 'another world' 1 "$(grep -c ' 4 ranks' "$work/out")"
    check 'parameters of GPT-2 small' 1 "$(grep -c '^124.4' "$work/out")"
    refuses '64xA100-200gbit' --made gpt2-small --cluster abacus
    refuses 'gpt3-175b' --made gpt9 --cluster 2xcpu-1gbit
    refuses 'needs --cluster' --made gpt2-small
    refuses 'go with --made' --cluster 2xcpu-1gbit
    refuses 'number from' --made gpt2-small --cluster 2xcpu-1gbit --world none
}

measured() {
    built_with train || return 0
    local common=(--data "$work/text" --size nano --context 32 --batch 2)
    profile -n 2 "${common[@]}" --strategy fsdp -o "$work/two.json"
    check 'measured on two ranks' 0 $code
    check 'shown once' 1 "$(grep -c 'measured on 2 ranks' "$work/out")"
    for word in reduce-scatter all-gather kappa sigma; do
        check "it says $word" 1 "$(grep -c "$word" "$work/out")"
    done
    check 'every backward took time' 3 "$(awk '/^  (embed|h\.|head)/ && $NF > 0' "$work/out" | wc -l)"
    profile "${common[@]}" --steps 2 -o "$work/one.json"
    check 'measured alone' 0 $code
    profile "${common[@]}" --steps 2 -o "$work/nowhere/one.json"
    check 'a file that cannot be' 2 $code
    check 'it is named' yes "$(grep -q nowhere "$work/err" && echo yes)"
    refuses 'nano, mini, small' --size huge
}

made
measured
check 'nothing half done is left' '' "$(find "$work" -name '*.part*')"
exit $failed
