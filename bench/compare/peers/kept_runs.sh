# shellcheck shell=bash
# Sourced by comparisons that take long: their runs are kept in a folder, so that the same command goes on where it was
# interrupted, and one line says how far they are.

# open_folder DEFAULT COMMAND SETTING...: $work becomes $FOLDER, else DEFAULT. A folder with runs of another command or
# of other settings is refused.
open_folder() {
    local settings
    work=${FOLDER:-$1}
    settings=$(printf '%s\n' "${@:3}"; sha256sum <"$2")
    mkdir -p "$work"
    if [ -e "$work/settings" ] && [ "$settings" != "$(<"$work/settings")" ]; then
        echo "$work has runs of another comparison: set FOLDER to another folder, or remove it" >&2
        exit 1
    fi
    printf '%s\n' "$settings" >"$work/settings"
    begun=$SECONDS ran=0 seen=0
}

# tell_run TOTAL TEXT: a run begins. $seen counts all runs, with those that were there already.
tell_run() {
    local left='' spent=$((SECONDS - begun))
    if [ "$ran" -gt 0 ]; then left=", $((spent * ($1 - seen + 1) / ran)) s left"; fi
    if [ -t 2 ]; then printf '\r%-78s\r' "$seen of $1, $spent s$left: $2" >&2; else echo "$seen of $1, $spent s$left: $2" >&2; fi
    ran=$((ran + 1))
}

end_runs() {
    if [ -t 2 ]; then printf '\r%-78s\r' '' >&2; fi
}
