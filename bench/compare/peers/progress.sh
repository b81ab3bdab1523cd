# shellcheck shell=bash
# Sourced by scripts that run for minutes: progress TEXT rewrites one line of a terminal; where there is none it says nothing.

progress() {
    if [ -t 2 ]; then printf '\r%-70s\r%s' '' "$1" >&2; fi
}
