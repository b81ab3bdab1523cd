#!/usr/bin/env bash
# The tests of the command fail if the command does not work: every script of tests/ that runs it, and the check of
# the documents, is run with one that fails, one that does nothing, and one of which only --help works. None of them
# may pass, or be skipped, apart from those that are skipped with the command itself too. It runs if scripts or what the
# command begins with have changed (by_change.txt).
. "$(dirname "$0")/../support/command_check.sh"
tests=$(dirname "$0")/..

cat >"$work/only_help" <<TEXT
#!/bin/sh
case \$1 in --help) exec "$(realpath "$sluice")" "\$@" ;; esac
TEXT
chmod +x "$work/only_help"

export work
run_script() { # COMMAND SCRIPT: what it says goes to a file of its own, its code to another
    local interpreter=bash name
    name=$(basename "$2").$(basename "$1")
    case $2 in *.py) interpreter=python3 ;; esac
    timeout 100 "$interpreter" "$2" "$1" >"$work/$name.out" 2>&1 </dev/null
    echo $? >"$work/$name.code"
}

scripts=("$tests/house/docs_check.py")
for script in "$tests"/*/*_test.sh "$tests"/command/*/*_test.sh; do
    case $script in
    */broken_command_test.sh) ;;
    */dev_test.sh | */scripts_test.sh | */api_reference_test.sh | */site_test.sh) ;; # they do not run the command
    *) scripts+=("$script") ;;
    esac
done
if ! command -v python3 >/dev/null; then
    skip 'the check of the documents: python3 is not installed'
    unset 'scripts[0]'
fi
check 'there are scripts to run' yes "$([ ${#scripts[@]} -gt 9 ] && echo yes)"
export -f run_script
commands=(/bin/false /bin/true "$work/only_help")
for command in "${commands[@]}"; do
    printf '%s\0' "${scripts[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'run_script "$@"' run "$command"
    for script in "${scripts[@]}"; do
        name=$(basename "$script").$(basename "$command")
        cp "$work/$name.out" "$work/err"
        code=$(cat "$work/$name.code")
        if [ "$code" = 77 ]; then # what the machine lacks is the same for the command itself
            run_script "$sluice" "$script"
            own=$work/$(basename "$script").$(basename "$sluice")
            if [ "$(cat "$own.code")" = 77 ]; then
                skip "$(basename "$script") with $(basename "$command"): $(sed -n 's/^SKIP: //p' "$own.out" | head -n 1)"
                continue
            fi
        fi
        check "$(basename "$script") with $(basename "$command") fails" yes \
            "$(case $code in 0 | 77) echo "no: $code" ;; *) echo yes ;; esac)"
    done
done
[ $failed = 0 ] && echo "broken commands: none of ${#scripts[@]} scripts passes with one"
exit $failed
