/* tests/command/recipe/recipe_test.sh covers this file. */
#include "bench/train/options/batch_options.h"

#include "lib/base/status.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long whole;

static slc_recipe_rule rule_of(const slc_training_options *o)
{
    return !strcmp(o->lr_rule, "linear") ? SLC_RECIPE_RULE_LINEAR
           : !strcmp(o->lr_rule, "sqrt") ? SLC_RECIPE_RULE_SQRT
                                         : SLC_RECIPE_RULE_NONE;
}

static sluice_status check_growth(const slc_training_options *o)
{
    if (!o->micro_batches_from != !o->micro_batches_over)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--%s: give --%s too: with how many it begins, and over how many steps they "
                         "grow to --micro-batches",
                         o->micro_batches_from ? "micro-batches-from" : "micro-batches-over",
                         o->micro_batches_from ? "micro-batches-over" : "micro-batches-from");
    if (o->micro_batches_from > o->micro_batches)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--micro-batches-from %llu is above --micro-batches %llu, to which they grow; give fewer",
                         (whole)o->micro_batches_from, (whole)o->micro_batches);
    if (o->micro_batches_from && o->first_batch && o->first_batches > 1)
        return slc_error(SLUICE_ERR_ARGUMENT, "--first-batches %llu: steps that grow have no equal batches; give 1",
                         (whole)o->first_batches);
    return SLUICE_OK;
}

sluice_status slc_batch_options_check(const slc_training_options *o)
{
    const bool rule = rule_of(o) != SLC_RECIPE_RULE_NONE;
    if (rule && !o->lr_batch)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--lr-rule %s: give --lr-batch too, the sequences of a step for which --lr was found",
                         o->lr_rule);
    if (!rule && o->lr_batch)
        return slc_error(SLUICE_ERR_ARGUMENT, "--lr-batch %llu: give --lr-rule linear or sqrt too", (whole)o->lr_batch);
    return check_growth(o);
}

slc_recipe_batch slc_batch_options_growth(const slc_training_options *o)
{
    return (slc_recipe_batch){.first = o->micro_batches_from ? o->micro_batches_from : o->micro_batches,
                              .most = o->micro_batches,
                              .over = o->micro_batches_over};
}

bool slc_batch_options_grow(const slc_training_options *o)
{
    return o->micro_batches_from && o->micro_batches_from < o->micro_batches;
}

double slc_batch_options_rate_factor(const slc_training_options *o, uint64_t sequences)
{
    return slc_recipe_rule_factor(rule_of(o), sequences, o->lr_batch);
}

void slc_batch_options_drop(slc_training_options *o)
{
    o->micro_batches_from = o->micro_batches_over = o->lr_batch = 0;
    o->lr_rule = "none";
}

void slc_batch_options_rule_words(const slc_training_options *o, char *text, size_t bytes)
{
    const bool root = rule_of(o) == SLC_RECIPE_RULE_SQRT;
    *text = 0;
    if (rule_of(o) != SLC_RECIPE_RULE_NONE)
        snprintf(text, bytes, ", times %ssequences / %llu%s", root ? "sqrt(" : "", (whole)o->lr_batch, root ? ")" : "");
}

void slc_batch_options_words(const slc_training_options *o, char *text, size_t bytes)
{
    *text = 0;
    if (slc_batch_options_grow(o))
        snprintf(text, bytes, ", growing from %llu to %llu micro-batches over %llu step%s",
                 (whole)o->micro_batches_from, (whole)o->micro_batches, (whole)o->micro_batches_over,
                 o->micro_batches_over == 1 ? "" : "s");
}
