# shellcheck shell=bash
# The tests of the command begin with this file, sourced as `. "$(dirname "$0")/../support/command_check.sh"` by a script
# that got the path of the command. It gives $sluice, the developers' $lab next to it, a folder $work that goes when the
# script ends, check, which sets $failed, and ways to say what is skipped. A command that does not work ends the script at
# once, as failed.
# shellcheck disable=SC2034 # used by those who source it
set -u
sluice=$1
lab=${sluice%/*}/sluice-lab
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

default_schedule() { # of a build: ilp, or portfolio where there is no solver
    "$sluice" info | sed -n 's/^planner  *schedule: \([a-z]*\);.*/\1/p'
}

check() { # what, expected, got; shows the head of $work/err where they differ
    if [ "$2" = "$3" ]; then return; fi
    printf 'FAILED: %s\n  expected: %s\n  got:      %s\n' "$1" "$2" "$3"
    [ ! -e "$work/err" ] || sed 's/^/  err: /' "$work/err" | head -5
    failed=1
}

skip() { # REASON: a part is left out; `./dev test` lists the line
    printf 'SKIP: %s\n' "$1"
}

has_command() { # NAME
    grep -q "^  $1 " "$work/help"
}

# NAME: true where the command has it; says what is skipped where this build lacks models, for want of oneDNN. A command
# that is absent for another reason is a failure.
built_with() {
    if has_command "$1"; then return 0; fi
    check "without sluice $1, sluice info says that there are no models" no \
        "$("$sluice" info 2>"$work/err" | sed -n 's/^models *//p')"
    skip "sluice $1: built without oneDNN"
    return 1
}

need_command() { # NAME: as built_with; without it there is nothing to test
    built_with "$1" && return
    [ $failed = 0 ] && exit 77
    exit 1
}

alive() { # MARK: how many processes have it in their command line (zombies have none)
    local mark=${1// /.}                                             # words are apart by zeros
    grep -las -- "[${mark:0:1}]${mark:1}" /proc/[0-9]*/cmdline | wc -l # the brackets hide this search from itself
}

comes_true() { # COMMAND...: waits until it succeeds, 30 s at most
    for _ in $(seq 300); do
        if "$@"; then return 0; fi
        sleep 0.1
    done
    return 1
}

"$sluice" --help >"$work/help" 2>"$work/err"
check "$sluice --help works" 0 $?
check "$sluice --help lists its commands" yes "$(has_command run && has_command info && echo yes)"
[ $failed = 0 ] || exit 1
"$lab" --help >>"$work/help" 2>"$work/err" # where it is missing, tests of its commands fail
