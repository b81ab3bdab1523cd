# shellcheck shell=bash
# Recipes of which a run of four steps sees something, as options of `sluice train` with a context of 32; and documents of
# unequal lengths, which documents FILE writes as JSON lines.
# shellcheck disable=SC2034 # used by those who source it
drops=(--pld '0.3,5' --seed 3)
grow=(--curriculum '8@1,16@2,32' --micro-batches 3 --micro-batches-from 1 --micro-batches-over 3)

documents() { # FILE
    local i
    for i in $(seq 100); do printf '{"text": "%s"}\n' "$(seq -s ' ' $((i * 7 % 13 + 1)))"; done >"$1"
}
