#!/usr/bin/env bash
# All subcommands treat their arguments alike: help in three spellings, one exit code for each kind of mistake, and a
# mistyped name is answered with the one that was probably meant.
. "$(dirname "$0")/../support/command_check.sh"

run() { # ARGUMENT...: output in $work/out and $work/err, exit code in $code
    timeout 60 "$sluice" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

refused() { # WORDS ARGUMENT...: exit code 2, and the words on standard error
    local words=$1
    shift
    run "$@"
    check "$*: exit code" 2 $code
    check "$*: says \"$words\"" yes "$(grep -qF -- "$words" "$work/err" && echo yes)"
    check "$*: nothing on standard output" '' "$(cat "$work/out")"
}

commands=$("$sluice" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
check 'there are commands' yes "$([ "$(wc -w <<<"$commands")" -gt 8 ] && echo yes)"
for command in $commands; do
    run "$command" --help
    check "$command --help" 0 $code
    cp "$work/out" "$work/help"
    run "$command" -h
    check "$command -h" "$(cat "$work/help")" "$(cat "$work/out")"
    run help "$command"
    check "help $command" "$(cat "$work/help")" "$(cat "$work/out")"
    refused 'no option "--no-such-thing"' "$command" --no-such-thing
done

refused 'no command "trian"; did you mean "train"?' trian
refused 'no command "xyzzy"' xyzzy
check 'nothing is like xyzzy' '' "$(grep -o 'did you mean' "$work/err")"
refused 'no command "plam"; did you mean "plan"?' help plam
refused 'no option "--stpes"; did you mean --steps?' profile --stpes=4
refused 'no option "--wrold"; did you mean --world?' plan --profile --wrold --wrold 2
refused 'requires an argument' plan --profile
run run -n 1 -- printf '%s' --no-such-thing
check 'arguments of another command are its own' 0 $code

[ $failed = 0 ] && echo "the command line: all as promised"
exit $failed
