# shellcheck shell=bash
# Sourced by the scripts that run a program of the build.

need_program() { # PATH [VARIABLE]: ends the script where there is no such program; VARIABLE is how another one is given
    [ -x "$1" ] || { echo "$1 is not there: run ./dev build, or set ${2:-SLUICE}" >&2; exit 1; }
}
