#!/usr/bin/env bash
# `sluice train --data` reads more than text: token files give what the same text gives, images what their classes
# promise; a file that is neither is refused.
# Labels: sanitized
. "$(dirname "$0")/../../support/command_check.sh"
need_command train

train() { # OPTION...: output in $work/out and $work/err, exit code in $code
    timeout 100 "$sluice" train --schedule one_ahead "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

refuses() { # words of the message, then OPTION...
    local words=$1
    shift
    train --steps 1 "$@"
    check "$* fails" yes "$([ $code -ne 0 ] && [ $code -lt 100 ] && echo yes)"
    check "$* says why" yes "$(grep -qi -- "$words" "$work/err" && echo yes)"
}

losses() {
    tr -d ' \n' <"$1" | grep -o '"losses":\[[^]]*\]'
}

below() { # less, more: of the run's last loss and a bound
    awk -v less="$1" -v more="$2" 'BEGIN { print less < more ? "yes" : "no" }'
}

last_loss() {
    losses "$1" | sed 's/.*[[,]//; s/\]//'
}

little_endian() { # NUMBER: as uint32
    printf "\\x$(printf %02x $(($1 & 255)))\\x$(printf %02x $(($1 >> 8 & 255)))"
    printf "\\x$(printf %02x $(($1 >> 16 & 255)))\\x$(printf %02x $(($1 >> 24 & 255)))"
}

tokens() { # MAGIC VERSION COUNT: a file of the text's bytes as uint16
    little_endian "$1" && little_endian "$2" && little_endian "$3"
    head -c 1012 /dev/zero
    iconv -f ISO-8859-1 -t UTF-16LE "$work/text"
}

token_files() {
    seq 1 3000 | sed 's/.*/& bottles of water on the wall,/' >"$work/text"
    local count
    count=$(wc -c <"$work/text")
    tokens 20240520 1 "$count" >"$work/tokens.bin"
    local options=(--steps 6 --context 32 --batch 2 --eval-batches 1)
    train "${options[@]}" --data "$work/text" --json "$work/text.json"
    check 'text is read' 0 $code
    train "${options[@]}" --data "$work/tokens.bin" --json "$work/tokens.json"
    check 'tokens are read' 0 $code
    check 'tokens are the text' "$(losses "$work/text.json")" "$(losses "$work/tokens.json")"
    tokens 20240520 1 $((count + 1)) >"$work/lies.bin"
    refuses 'says that it holds' --data "$work/lies.bin"
    tokens 20240520 3 "$count" >"$work/version.bin"
    refuses 'version 3' --data "$work/version.bin"
    refuses 'files of one kind' --data "$work/tokens.bin" --data "$work/text"
    head -c 2000 "$work/text" >"$work/few"
    mv "$work/few" "$work/text"
    tokens 20240520 1 2000 >"$work/tokens.bin"
    printf '\377\377' | dd of="$work/tokens.bin" bs=1 seek=2024 conv=notrunc 2>/dev/null
    refuses 'token 500 is 65535' --data "$work/tokens.bin" --context 128 --batch 64
}

# Two classes that a model can tell apart: bright on the left, bright on the right.
write_images() { # FOLDER
    mkdir -p "$1/left" "$1/right"
    for i in $(seq 1 40); do
        { printf 'P5 2 2 255\n' && printf "\\x$(printf %02x $((255 - i)))\\x10\\xf0\\x$(printf %02x "$i")"; } >"$1/left/$i.pgm"
        { printf 'P5 2 2 255\n' && printf "\\x$(printf %02x "$i")\\xf0\\x10\\x$(printf %02x $((255 - i)))"; } >"$1/right/$i.pgm"
    done
}

images() {
    write_images "$work/images"
    local model
    for model in vit beit; do
        train --model $model --data "$work/images" --steps 40 --batch 8 --lr 0.001 --json "$work/$model.json"
        check "$model: exit code" 0 $code
        check "$model: two classes are told apart" yes "$(below "$(last_loss "$work/$model.json")" 0.35)"
    done
    train --model beit --head tokens --data "$work/images" --steps 40 --batch 8 --lr 0.001 --json "$work/masked.json"
    check 'masked patches: exit code' 0 $code
    check 'masked patches are guessed better than by chance' yes "$(below "$(last_loss "$work/masked.json")" 3.8)"
    mv "$work/images/right" "$work/images/.right"
    refuses 'one for each class' --model vit --data "$work/images"
    refuses 'whole numbers from 0 to 255' --model vit --data "$work/text"
    refuses 'one file or folder' --model vit --data "$work/text" --data "$work/images"
}

# Names with a comma, a blank and a quote: what is printed to go on is what a shell takes.
odd_names() {
    local folder="$work/it's, mine" more
    mkdir "$folder"
    seq 1 2000 >"$folder/one, two.txt"
    local options=(--context 32 --batch 2 --eval-batches 1 --data "$work/it's\\, mine/one\\, two.txt")
    train "${options[@]}" --steps 1 --save "$folder/run"
    check 'a comma in a name' 0 $code
    more=$(sed -n 's/^saved to .*: go on with \(.*\) --steps N,.*/\1/p' "$work/out" "$work/err")
    check 'it is told how to go on' yes "${more:+yes}"
    eval "train \"\${options[@]}\" --steps 2 --save $(printf %q "$folder/run") $more"
    check 'a shell takes what is printed' 0 $code
    refuses "it's" --context 32 --resume "$folder/run" --save "$folder/run"
    more=$(sed -n 's/.* trained on \(--data .*\); give --data.*/\1/p' "$work/err")
    eval "train $more --context 32 --batch 2 --eval-batches 1 --steps 1"
    check 'and the data that is named' 0 $code
}

token_files
odd_names
images
exit $failed
