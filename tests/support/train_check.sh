# shellcheck shell=bash
# Tests of `sluice train` source this file after command_check.sh. It gives a text in $work/text, train and refuses, which
# put the options of the array `common` before their own, and hash_of. A schedule is named, because planning would be most
# of a short run's work; a test that is about plans names another one after it.
# shellcheck disable=SC2034,SC2154 # code is used by those who source it; sluice and work come from command_check.sh
seq 1 9000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"
common=(--data "$work/text" --context 32 --batch 2 --eval-batches 1 --schedule one_ahead)

train() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 100 "$sluice" train "${common[@]}" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

refuses() { # words of the message, then OPTION...
    local words=$1
    shift
    train "$@"
    check "$* fails" yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
    check "$* says why" yes "$(grep -qi -- "$words" "$work/err" && echo yes)"
}

hash_of() { # FILE: the line of a report that has the hash of the weights
    grep -o '"weights_sha256": "[0-9a-f]*"' "$1"
}
