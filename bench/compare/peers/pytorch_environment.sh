# shellcheck shell=bash
# Sourced by the scripts that run PyTorch. find_pytorch FOLDER sets `python` to an interpreter that has it: $PYTHON if
# that is set, else one of a virtual environment that is made in FOLDER.

find_pytorch() { # FOLDER
    python=${PYTHON:-}
    [ -z "$python" ] || return 0
    if ! python3 -m venv "$1/venv" >/dev/null 2>&1; then
        local as_root=
        [ "$(id -u)" = 0 ] || as_root=sudo
        $as_root apt-get update -qq
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            python3 python3-venv >/dev/null
        rm -rf "$1/venv"
        python3 -m venv "$1/venv"
    fi
    "$1/venv/bin/pip" install -q torch numpy
    python=$1/venv/bin/python
}
