# shellcheck shell=bash disable=SC2154
# Sourced by the scripts that compare over a link, which set $rate, $burst and the folder $work.

keep_output() { # COMMAND...: its output in $work/output; a command that fails says why and ends the script
    "$@" >"$work/output" 2>"$work/errors" || { cat "$work/output" "$work/errors" >&2; exit 1; }
}

on_two_hosts() { # COMMAND...: runs on two hosts over the link; rank 0's output is kept
    keep_output bench/compare/networks/namespaces.sh -n 2 --rate "$rate" --burst "$burst" --only 0 -- "$@"
}
