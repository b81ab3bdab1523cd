/* bench/train/train_run_test.c and tests/command/recipe/recipe_test.sh cover this file. */
#include "bench/train/run/rates.h"

#include "bench/train/options/batch_options.h"
#include "bench/train/options/length_options.h"
#include "bench/train/options/onebit_options.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/recipe/layer_decay.h"

#include <math.h>
#include <stdlib.h>

void slc_run_rates_init(slc_run_rates *rates, const slc_training_options *options, const slc_run_place *place)
{
    *rates = (slc_run_rates){.options = options, .place = place, .sizes = slc_length_options_sizes(options, 1)};
}

void slc_run_rates_set_model(slc_run_rates *rates, const sluice_model_config *model)
{
    rates->sizes.whole = sluice_model_tokens(model, rates->place->length);
}

bool slc_run_rates_vary(const slc_run_rates *r)
{
    return r->sizes.length.most > 0;
}

void slc_run_rates_fini(slc_run_rates *rates)
{
    free(rates->group);
}

/* Returns the fewest steps that have, together, the tokens of `micro_batches` whole micro-batches. */
static uint64_t steps_with(const slc_run_rates *r, double micro_batches)
{
    const double tokens = micro_batches * r->sizes.whole,
                 least = slc_run_rates_vary(r) ? r->sizes.length.least : r->sizes.whole;
    uint64_t fewer = 0, enough = (uint64_t)fmin(ceil(tokens / least), 0x1p40);
    while (fewer + 1 < enough) {
        const uint64_t middle = fewer + (enough - fewer) / 2;
        if ((double)slc_recipe_tokens(&r->sizes, 0, middle) < tokens)
            fewer = middle;
        else
            enough = middle;
    }
    return enough;
}

uint64_t slc_run_rates_count_steps(const slc_run_rates *r, double pass)
{
    return steps_with(r, fmax(1, ceil(r->options->epochs / pass - 1e-9)));
}

/* Returns where the clock of the learning rates stands before a step. A run that goes on after one with another batch
 * counts the tokens that it has seen. */
static double clock_before(const slc_run_rates *r, uint64_t step)
{
    if (!r->schedule.tokens) return (double)step;
    const uint64_t tokens = slc_recipe_tokens(&r->sizes, r->begun.steps, step);
    return (double)(r->begun_tokens + tokens * slc_run_place_round(r->place));
}

double slc_run_rates_at(const slc_run_rates *r, uint64_t step)
{
    const uint64_t sequences = slc_recipe_batch_at(&r->sizes.batch, step) * slc_run_place_round(r->place);
    return slc_recipe_rate_at(&r->schedule.rate, clock_before(r, step), clock_before(r, step + 1)) *
           slc_batch_options_rate_factor(r->options, sequences);
}

static void warn_of_warmup(const slc_run_rates *r, double end)
{
    const slc_training_options *o = r->options;
    if (end < r->schedule.rate.warmup)
        slc_log(SLC_LOG_WARN, "--warmup %.10g: the run ends after %.10g %s, before the learning rate has come to --lr",
                r->schedule.rate.warmup, end, o->lr_over);
    if (o->freeze_step && !r->schedule.tokens && o->freeze_step < o->warmup)
        slc_log(SLC_LOG_WARN,
                "--freeze-step %llu lies inside the learning rate's warm-up of %llu steps, in which gradients still "
                "change quickly: the variance that is frozen there is too early; give %llu or more",
                (unsigned long long)o->freeze_step, (unsigned long long)o->warmup, (unsigned long long)o->warmup);
}

static void warn_of_freeze(const slc_training_options *o)
{
    char line[400];
    const bool freezes = slc_training_is_compressed(o->optimizer);
    slc_length_options_doubt(o, freezes ? slc_training_freeze_step(o) : 0, line, sizeof line);
    if (*line) slc_log(SLC_LOG_WARN, "%s", line);
}

static sluice_status make_groups(slc_run_rates *r, const sluice_model_config *model)
{
    if (r->options->layer_decay == 1) return SLUICE_OK;
    r->group_count = slc_recipe_layer_groups(model->layers);
    r->group = malloc(r->group_count * sizeof *r->group);
    if (!r->group) return slc_error(SLUICE_ERR_MEMORY, "rates of %u layers", r->group_count);
    slc_recipe_layer_rates(r->options->layer_decay, model->layers, r->group);
    return SLUICE_OK;
}

sluice_status slc_run_rates_begin(slc_run_rates *r, const sluice_model_config *model,
                                  const slc_training_position *begun, bool windows, uint64_t tokens_per_step)
{
    const slc_training_options *o = r->options;
    r->begun = *begun;
    r->begun_tokens = windows && begun->tokens ? begun->tokens : begun->sequences * r->sizes.whole;
    sluice_status status = make_groups(r, model);
    if (!status) status = slc_lr_schedule_make(o, tokens_per_step, &r->schedule);
    if (status) return status;
    if (begun->steps >= o->steps) return SLUICE_OK;
    if (r->place->rank == 0) warn_of_warmup(r, clock_before(r, o->steps));
    if (r->place->rank == 0) warn_of_freeze(o);
    return slc_lr_schedule_check_last(&r->schedule, clock_before(r, o->steps - 1));
}
