/* tests/command/recipe/pld_test.sh covers this file. */
#include "bench/train/options/depth_options.h"

#include "lib/base/status.h"
#include "lib/weights/family.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double GAMMA = 0.001; /* DeepSpeed's */

/* Reads "THETA" or "THETA,GAMMA". */
static bool read_pld(const char *text, double *theta, double *gamma)
{
    char *end;
    *gamma = GAMMA;
    *theta = strtod(text, &end);
    if (end == text || (*end && *end != ',')) return false;
    if (!*end) return true;
    const char *rest = end + 1;
    *gamma = strtod(rest, &end);
    return end != rest && !*end;
}

bool slc_depth_options_drop_layers(const slc_training_options *o)
{
    return *o->pld != 0;
}

slc_recipe_depth slc_depth_options_recipe(const slc_training_options *o)
{
    slc_recipe_depth depth = {.least = 1, .gamma = GAMMA, .seed = o->seed};
    if (slc_depth_options_drop_layers(o)) read_pld(o->pld, &depth.least, &depth.gamma);
    return depth;
}

static sluice_status check_model(const slc_training_options *o, const sluice_model_config *model)
{
    const char *name = slc_family_of(model->family)->name;
    if (!strcmp(o->optimizer, "onebit_lamb") && o->onebit_compat)
        return slc_error(
            SLUICE_ERR_UNSUPPORTED,
            "--pld %s with --optimizer onebit_lamb --onebit-compat: it exchanges all layers as one, so that "
            "none can be left out; leave one of them out",
            o->pld);
    if (o->layer_precision)
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "--pld %s with --layer-precision %s: a layer that is left out cannot convert between the "
                         "precisions next to it; leave one of them out",
                         o->pld, o->layer_precision);
    if (!slc_family_of(model->family)->norms_after) return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_UNSUPPORTED,
        "--pld %s: not for a %s whose norms come after the branches: a norm rescales the stream itself, so "
        "that a layer whose branches are left out still changes it; give --norm before, or gpt2, vit or beit",
        o->pld, name);
}

sluice_status slc_depth_options_check_numbers(const slc_training_options *o)
{
    double theta, gamma;
    if (!slc_depth_options_drop_layers(o))
        return o->pld_compat ? slc_error(SLUICE_ERR_ARGUMENT, "--pld-compat: give --pld THETA too") : SLUICE_OK;
    if (!read_pld(o->pld, &theta, &gamma))
        return slc_error(SLUICE_ERR_ARGUMENT, "--pld %s: give THETA or THETA,GAMMA, as 0.5 or 0.5,0.001", o->pld);
    if (!(theta > 0 && theta <= 1))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--pld %s: theta is %g; it must be above 0 and at most 1, which leaves no layer out", o->pld,
                         theta);
    if (!(gamma > 0 && gamma <= 1e6))
        return slc_error(SLUICE_ERR_ARGUMENT, "--pld %s: gamma is %g; give a number above 0, at most 1e6", o->pld,
                         gamma);
    return SLUICE_OK;
}

sluice_status slc_depth_options_check(const slc_training_options *o, const sluice_model_config *model)
{
    sluice_status status = slc_depth_options_check_numbers(o);
    return status || !slc_depth_options_drop_layers(o) ? status : check_model(o, model);
}

void slc_depth_options_drop(slc_training_options *o)
{
    o->pld = "";
    o->pld_compat = 0;
}

void slc_depth_options_words(const slc_training_options *o, uint32_t layers, char *text, size_t bytes)
{
    const slc_recipe_depth depth = slc_depth_options_recipe(o);
    *text = 0;
    if (slc_depth_options_drop_layers(o))
        snprintf(text, bytes, ", of all %u layers at first and of %.4g in the mean later", layers,
                 slc_recipe_depth_mean(depth.least, layers));
}
