#!/usr/bin/env bash
# Help, manual pages, completion and the parsers are made from the same tables: what one has, all have. The short help is
# short, lines fit the terminal, and the examples are made of options that exist.
. "$(dirname "$0")/../support/command_check.sh"
PATH=$(dirname "$(realpath "$sluice")"):$PATH # examples start `sluice`

options_in() { # reads help: the options that have a row of their own, one in a line
    sed -nE 's/^  (-.,|   ) --([a-zA-Z0-9_-]+).*/--\2/p'
}

# ---- Each command ----

compare_forms() { # COMMAND: everything that --help-all lists is elsewhere too
    local command=$1 all
    all=$(options_in <"$work/all" | sort)
    check "$command: there are options" yes "$([ -n "$all" ] && echo yes)"
    check "$command: none is listed twice" '' "$(uniq -d <<<"$all")"
    check "$command: the manual page has the options of --help-all" "$all" \
        "$("$sluice" "$command" --help=man | sed -nE 's/\\-/-/g; s/^(\\fB-.\\fR, )?\\fB(--[^\\]+)\\fR.*/\2/p' | sort)"
    check "$command: docs/command.md has them" "$all" \
        "$("$sluice" "$command" --help=markdown | sed -nE 's/^\| (`-.`, )?`(--[a-zA-Z0-9_-]+).*/\2/p' | sort)"
    check "$command: --usage has them" "$all" \
        "$("$sluice" "$command" --usage | grep -oE '\[--[a-zA-Z0-9_-]+' | tr -d '[' | sort)"
    check "$command: completion offers them and help" "$(printf '%s\n' "$all" --help --help-all | sort -u)" \
        "$(complete_words sluice "$command" -- | { cat; echo --help-all; } | sort -u)"
    known_to_parser "$command" $all && return
    for option in $all; do
        known_to_parser "$command" "$option"
        check "$command: the parser knows $option" 0 $?
    done
}

known_to_parser() { # COMMAND OPTION...: all at once, each with a value if it takes one
    local command=$1 options=() option
    shift
    for option; do
        if grep -qE "^  (-.,|   ) $option [A-Z0]" "$work/all"; then option+='=1'; fi
        options+=("$option")
    done
    "$sluice" "$command" "${options[@]}" --help >"$work/out" 2>"$work/err"
}

check_text() { # COMMAND: what its help must say
    local command=$1 page
    check "$command: a usage line" yes "$(grep -q "^Usage: sluice $command" "$work/all" && echo yes)"
    check "$command: exit codes" yes "$(grep -q '^Exit codes: ' "$work/all" && echo yes)"
    page=$(sed -n 's/^More: //p' "$work/all")
    check "$command: names the page to read on" yes \
        "$([ -n "$page" ] && [ -f "$(dirname "$0")/../../$page" ] && echo yes)"
    check "$command: no option begins with Of, What or How" '' \
        "$(grep -E '^ {2,28}(-.*[a-zA-Z] {2,})?(Of|What|How) ' "$work/all")"
}

check_width() { # COMMAND: lines of text fit, lines that are kept (examples) may not
    local command=$1
    for width in 40 80 100; do
        check "$command: fits $width columns" '' "$(COLUMNS=$width "$sluice" "$command" --help-all |
            sed '/^Examples:$/,/^$/d; /^  [^- ]/d' | awk -v width=$width 'length > width && / .* /' | grep -v '://')"
    done
}

check_examples() { # COMMAND: from two to six, of options that there are
    local command=$1 lines line part args
    lines=$(sed -n '/^Examples:$/,/^$/s/^  //p' "$work/all")
    check "$command: two to six examples, not $(wc -l <<<"$lines")" yes \
        "$([ "$(wc -l <<<"$lines")" -ge 2 ] && [ "$(wc -l <<<"$lines")" -le 6 ] && echo yes)"
    check "$command: the short help has the same examples" "$lines" \
        "$("$sluice" "$command" --help | sed -n '/^Examples:$/,/^$/s/^  //p')"
    while read -r line; do
        while read -r part; do
            eval "args=($part)" # with their quotes
            "${args[@]}" --help >"$work/out" 2>"$work/err"
            check "$command: the example \"$part\" parses" 0 $?
            check "$command: the example \"$part\" is of a command" yes "$(grep -q '^Usage: ' "$work/out" && echo yes)"
        done <<<"$(sed 's/ && /\n/g; s/^\(sluice run .*\) -- \(sluice .*\)/\1\n\2/; s/^\(sluice run .*\) -- .*/\1/' <<<"$line")"
    done <<<"$lines"
}

# ---- Completion ----

complete_words() { # WORD...: what the completion offers where the cursor is after the last one
    bash --norc -c '
        . "$1"; shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        compopt() { :; }
        _sluice
        printf "%s\n" "${COMPREPLY[@]}"' _ "$work/completion" "$@"
}

check_completion() {
    check 'commands' 'plan profile' "$(complete_words sluice p | grep -v perf | sort | paste -sd' ')"
    check 'choices' 'bert beit' "$(complete_words sluice train --model be | paste -sd' ')"
    check 'choices after =' 'bert beit' "$(complete_words sluice train --model = be | paste -sd' ')"
    check 'all choices after =' 'last each' "$(complete_words sluice train --accumulate = | paste -sd' ')"
    check 'a list' 'dp,sdp' "$(complete_words sluice bench --strategy dp,sd | paste -sd' ')"
    check 'nothing where a number is due' '' "$(complete_words sluice train --steps '' | paste -sd' ')"
    mkdir -p "$work/place/folder with a space"
    touch "$work/place/file"
    check 'files' "$work/place/file $work/place/folder with a space" \
        "$(complete_words sluice plan --profile "$work/place/f" | sort | paste -sd' ')"
    check 'folders' "$work/place/folder with a space" \
        "$(complete_words sluice train --save "$work/place/f" | paste -sd' ')"
    check 'another command' yes "$(complete_words sluice run -n 2 -- tru | grep -qx true && echo yes)"
    check 'help' train "$(complete_words sluice help tr | grep -v trace)"
    if command -v shellcheck >/dev/null; then
        check 'shellcheck finds nothing' '' "$(shellcheck -s bash "$work/completion")"
    else
        skip 'shellcheck of the completion: it is not installed'
    fi
}

# ---- Manual pages ----

check_manual() {
    if ! command -v groff >/dev/null; then
        skip 'whether manual pages are without warnings: groff is not installed'
        return
    fi
    for page in '' $commands; do
        # shellcheck disable=SC2086 # no word if there is no command
        "$sluice" $page --help=man >"$work/page.1"
        check "sluice $page: groff warns of nothing" '' "$(groff -man -Tascii -ww -z "$work/page.1" 2>&1)"
        check "sluice $page: has the sections of a manual page" 'NAME SYNOPSIS DESCRIPTION EXIT STATUS' \
            "$(sed -n 's/^\.SH //p' "$work/page.1" | grep -E '^(NAME|SYNOPSIS|DESCRIPTION|EXIT STATUS)$' | paste -sd' ')"
    done
}

# ---- What differs between commands ----

default_of() { # COMMAND OPTION: as its help says
    COLUMNS=1000 "$sluice" "$1" --help-all | sed '/^Examples:/,$d' | tr -s ' \n' ' ' |
        sed -nE "s/.* --$2 [A-Z]+ [^(]*([(][^d)][^)]*[)][^(]*)*[(]default ([^)]*)[)].*/\2/p"
}

refused() { # COMMAND OPTION...: it has none of them, and says why
    local command=$1
    shift
    for option; do
        check "$command --help-all has no $option" '' "$("$sluice" "$command" --help-all | options_in | grep -x -- "$option")"
        "$sluice" "$command" "$option" 1 >"$work/out" 2>"$work/err"
        check "$command $option" 2 $?
        check "$command $option: says so" yes "$(grep -q "^sluice $command: $option: ." "$work/err" && echo yes)"
    done
}

check_differences() {
    built_with train || return
    for command in train bench profile; do
        count=$("$sluice" $command --help | options_in | wc -l)
        check "$command --help has about 20 options, not $count" yes "$([ "$count" -ge 15 ] && [ "$count" -le 27 ] && echo yes)"
        check "$command --help counts those of --help-all" "$("$sluice" $command --help-all | options_in | wc -l)" \
            "$("$sluice" $command --help | sed -n 's/.*--help-all. explains all \([0-9]*\) options.*/\1/p')"
    done
    check 'steps of train' 100 "$(default_of train steps)"
    check 'steps of bench' 12 "$(default_of bench steps)"
    check 'steps of profile' 8 "$(default_of profile steps)"
    check 'strategy of train' auto "$(default_of train strategy)"
    check 'strategy of bench' dp,oss,sdp,fsdp,auto "$(default_of bench strategy)"
    check 'schedule of bench' usual "$(default_of bench schedule)"
    check 'eval-batches of train' 4 "$(default_of train eval-batches)"
    check 'eval-batches of bench' 0 "$(default_of bench eval-batches)"
    refused bench --save --save-every --on-save-error --resume --save-weights --trace --first-batch --plan --plan-out
    refused profile --plan-out --first-batch --save --resume --save-weights --trace --json --csv --schedule --eval-every --eval-batches
}

commands=$("$sluice" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
"$sluice" --help=bash >"$work/completion" 2>"$work/err"
check 'sluice --help=bash' 0 $?
check 'bash reads it' 0 "$(bash -n "$work/completion" 2>"$work/err"; echo $?)"
for command in $commands; do
    "$sluice" "$command" --help-all >"$work/all" 2>"$work/err"
    check "$command --help-all" 0 $?
    compare_forms "$command"
    check_text "$command"
    check_width "$command"
    check_examples "$command"
done
check_completion
check_manual
check_differences
"$sluice" train --help=pdf >"$work/out" 2>"$work/err"
check '--help=pdf is refused' 2 $?

[ $failed = 0 ] && echo "help, manual, completion and parsers agree"
exit $failed
