# shellcheck shell=bash
# The tests of the command begin with this file, sourced by a script that got the path of the command, as
# `. "$(dirname "$0")/../../support/command_check.sh"`. It gives $sluice, the developers' $lab next to it, a folder $work
# that goes when the script ends, check, which sets $failed, ways to say what is skipped, and waits that have a limit. A
# command that does not work ends the script at once, as failed.
# shellcheck disable=SC2034 # used by those who source it
set -u
unset OMP_NUM_THREADS SLURM_CPUS_PER_TASK SLURM_CPUS_ON_NODE SLURM_JOB_END_TIME # of whoever runs the test
sluice=$1
lab=${sluice%/*}/sluice-lab
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/.cache # tokens of long texts are kept there
failed=0

# A python3 that is a script, as pyenv's, looks for its interpreter at every start, which takes longer than most of what
# tests do with it: it is asked once.
if command -v python3 >/dev/null && read -r -n 2 start <"$(command -v python3)" && [ "$start" = '#!' ]; then
    interpreter=$(python3 -c 'import sys; print(sys.executable)')
    python3() {
        "$interpreter" "$@"
    }
fi

default_schedule() { # of a build: ilp, or portfolio where there is no solver
    "$sluice" info | sed -n 's/^planner  *schedule: \([a-z]*\);.*/\1/p'
}

# SHARE FILE: writes a budget in bytes: what the program reserves, and SHARE of the rest that dp needs in the run of the
# JSON. No plan makes less of what is reserved; on processors without AVX-512 GEMM has memory of its own.
share_of_dp() {
    python3 - "$@" <<'PY'
import json, sys
run = json.load(open(sys.argv[2]))["runs"][0]
reserved = run["memory"].get("reserved by the program", 0)  # a run that reserves nothing does not list it
print(int(reserved + float(sys.argv[1]) * (run["dp_bytes"] - reserved)))
PY
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

# NAME: true if the command has it; says what is skipped if this build lacks models, for want of oneDNN. A command
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

need_python3() { # without it there is nothing to test
    command -v python3 >/dev/null || { skip 'all of it: python3 is not installed'; exit 77; }
}

# MODULE...: true if SLUICE_TEST_PYTHON names a Python that has them, which is $python then; $lacking says what is missing
# otherwise. Nothing is fetched from Hugging Face.
test_python_has() {
    local modules
    modules=$(printf ', %s' "$@")
    modules=${modules#, }
    python=${SLUICE_TEST_PYTHON:-}
    export HF_HUB_OFFLINE=1
    if [ -z "$python" ]; then
        lacking="SLUICE_TEST_PYTHON names no Python with $modules"
    elif ! "$python" -c "import $modules" 2>"$work/err"; then
        lacking="SLUICE_TEST_PYTHON=$python cannot import $modules: $(tail -n 1 "$work/err")"
    else
        return 0
    fi
    return 1
}

# MODULE...: as test_python_has; without them there is nothing to test, with a command that works.
need_test_python() {
    test_python_has "$@" && return
    check 'sluice info says something' yes "$([ -n "$("$sluice" info 2>"$work/err")" ] && echo yes)"
    skip "$lacking"
    [ $failed = 0 ] && exit 77
    exit 1
}

alive() { # MARK: how many processes have it in their command line (zombies have none)
    local mark=${1// /.}                                             # words are apart by zeros
    grep -las -- "[${mark:0:1}]${mark:1}" /proc/[0-9]*/cmdline | wc -l # the brackets hide this search from itself
}

comes_true() { # COMMAND...: waits until it succeeds, a minute at most on an idle machine, longer on a busy one
    local left=1200
    until "$@"; do
        [ $((left -= 1)) -gt 0 ] || return 1
        sleep 0.05
    done
}

# Both files are emptied here, before the command begins in the background: the shell that runs it would empty them at
# some later time, and who waits for a word in them would find it in what an earlier command said.
begin() { # OUT ERR COMMAND...: its output goes to the two files, its process is $process
    local out=$1 err=$2
    shift 2
    : >"$out"
    : >"$err"
    "$@" >"$out" 2>"$err" </dev/null &
    process=$!
}

ended() { # whether $process has
    ! kill -0 "$process" 2>/dev/null
}

said_or_ended() { # WORDS FILE: whether they are in it, or never will be
    grep -q -- "$1" "$2" || ended
}

ends() { # WHAT: waits until $process has ended; its exit code in $code. One that does not end fails and is killed.
    comes_true ended 2>/dev/null || { check "$1: it ends" yes no; kill -KILL "$process"; }
    wait "$process" 2>/dev/null
    code=$?
}

"$sluice" --help >"$work/help" 2>"$work/err"
check "$sluice --help works" 0 $?
check "$sluice --help lists its commands" yes "$(has_command run && has_command info && echo yes)"
[ $failed = 0 ] || exit 1
"$lab" --help >>"$work/help" 2>"$work/err" # where it is missing, tests of its commands fail
