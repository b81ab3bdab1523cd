/* tests/command/recipe/pld_test.sh covers this file. */
#include "bench/train/run/depth.h"

#include "bench/train/options/depth_options.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

sluice_status slc_training_depth_begin(const slc_training_options *options, sluice_model *model, slc_training_depth *d)
{
    *d = (slc_training_depth){.on = slc_depth_options_drop_layers(options),
                              .compat = options->pld_compat,
                              .moves_apart = !strcmp(options->optimizer, "zero_one_adam"),
                              .recipe = slc_depth_options_recipe(options),
                              .model = model,
                              .layers = sluice_model_get_config(model)->layers};
    if (!d->on) return SLUICE_OK;
    d->left_out = calloc(d->layers, sizeof *d->left_out);
    d->drawn = calloc(d->layers, sizeof *d->drawn);
    d->keeps = calloc(d->layers, sizeof *d->keeps);
    if (!d->left_out || !d->drawn || !d->keeps)
        return slc_error(SLUICE_ERR_MEMORY, "%u layers to leave out", d->layers);
    for (uint32_t l = 0; l < d->layers; l++) d->drawn[l] = sluice_model_block(model, l);
    return SLUICE_OK;
}

void slc_training_depth_end(slc_training_depth *d)
{
    free(d->left_out);
    free(d->drawn);
    free(d->keeps);
}

/* Between exchanges 0/1 Adam has other weights on each rank, and those of a layer that is left out would stay apart. */
static bool keeps_all(const slc_training_depth *d, bool exchange)
{
    return exchange && d->moves_apart;
}

sluice_status slc_training_depth_take(slc_training_depth *d, uint64_t step, bool exchange)
{
    const double theta = slc_recipe_depth_theta(&d->recipe, step);
    sluice_status status = SLUICE_OK;
    d->left_out_count = 0;
    for (uint32_t l = 0; d->on && !status && l < d->layers; l++) {
        const double p = d->keeps[l] = slc_recipe_depth_keeps(theta, d->layers, l);
        if (keeps_all(d, exchange))
            status = sluice_model_scale_branches(d->model, l, 1);
        else if (!slc_recipe_depth_draw(&d->recipe, step, l, p))
            d->left_out[d->left_out_count++] = d->drawn[l];
        else
            status = sluice_model_scale_branches(d->model, l, slc_recipe_depth_factor(theta, d->layers, l, d->compat));
    }
    return status;
}
