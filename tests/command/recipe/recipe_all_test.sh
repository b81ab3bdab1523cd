#!/usr/bin/env bash
# Recipes with everything at once - layers that are dropped, lengths that grow, stochastic depth and dropout - end with the
# same bits however their steps are run. The recipe is drawn, and so are ways to run it: strategies, schedules, budgets,
# recomputation, lanes of updates, and a stop on the way; on 1, 2 and 4 ranks. SLUICE_TEST_SCALE draws more of them.
. "$(dirname "$0")/../../support/command_check.sh"
. "$(dirname "$0")/../../support/train_check.sh"
need_command train
rounds=$(awk -v scale="${SLUICE_TEST_SCALE:-1}" 'BEGIN {n = int(3 * scale); print n < 1 ? 1 : n}')

draw() { # VALUE...: one of them, in $drawn
    state=$((state * 6364136223846793005 + 1442695040888963407))
    shift $(((state >> 33 & 0x7fffffff) % $#))
    drawn=$1
}

# The recipe, and what else decides the weights, in $recipe. Branches are scaled and batches grow in each; all of the
# others have their turn.
draw_recipe() {
    recipe=(-n "$ranks" --steps 8 --micro-batches 3 --micro-batches-from 1 --micro-batches-over 5 --pld '0.3,0.4'
        --drop-path 0.3 --dropout 0.1 --lr 0.002)
    draw gpt2 gpt2 'bert --norm before'
    # shellcheck disable=SC2206 # options are words
    recipe+=(--model $drawn)
    draw 8:32:5:1:8 8@2,16@4,24@6,32
    recipe+=(--curriculum "$drawn")
    draw fixed tokens
    recipe+=(--curriculum-batch "$drawn")
    draw 'adamw --clip 0.5' 'adamw --clip 0.5' 'lamb --clip 0'
    # shellcheck disable=SC2206
    recipe+=(--optimizer $drawn)
    draw stop skip
    recipe+=(--nan "$drawn")
    draw joint split
    recipe+=(--tied "$drawn")
    draw fp32 bf16
    recipe+=(--precision "$drawn")
    draw last each
    recipe+=(--accumulate "$drawn")
}

# A way to run it, in $way; settings in $lane and $lives.
draw_way() {
    draw oss sdp fsdp fsdp random:4 random:5
    way=(--strategy "$drawn")
    draw serial one_ahead bucketed priority greedy random
    way+=(--schedule "$drawn")
    draw none all
    way+=(--recompute "$drawn")
    draw communication compute
    lane=$drawn
    draw off on
    lives=$drawn
}

weights() { # OPTION...: trains; the hash of what it ends with
    rm -f "$work/run.json"
    SLUICE_PLAN_UPDATES=$lane SLUICE_ENGINE_CHECK=$lives train "${recipe[@]}" "$@" --json "$work/run.json"
    [ "$code" = 0 ] || { echo "exit code $code: $(tail -n 1 "$work/err")"; return; }
    hash_of "$work/run.json"
}

for ((round = 1; round <= rounds; round++)); do
    state=$((round + 340))
    ranks=$((1 << round % 3))
    draw_recipe
    lane=communication
    lives=off
    whole=$(weights --strategy dp --schedule serial --recompute none)
    check "round $round, ${recipe[*]}: a run ends with weights" 84 ${#whole}
    draw_way
    check "round $round, ${recipe[*]}, ${way[*]}, $lane $lives" "$whole" "$(weights "${way[@]}")"
    check "round $round, ${recipe[*]}, a budget" "$whole" "$(weights --budget $((98 - ranks * 2))% --schedule "$(default_schedule)")"
    draw_way
    rm -rf "$work/stopped"
    weights "${way[@]}" --steps 3 --save "$work/stopped" >/dev/null
    draw_way
    check "round $round, ${recipe[*]}, stopped, then ${way[*]}, $lane $lives" "$whole" \
        "$(weights "${way[@]}" --resume "$work/stopped")"
done
[ "$rounds" -lt 3 ] || [ "$whole" != "$(recipe+=(--pld '0.3,0.5'); weights --strategy dp)" ] || check 'a recipe acts' different same
exit $failed
