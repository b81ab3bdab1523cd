/* LAMB: the constants are AdamW's; the trust ratio comes from the norms that the engine hands back.
 * lamb_optimizer_test.c covers this file. */
#include "lib/optim/lamb.h"

#include "lib/base/status.h"
#include "lib/kernels/lamb/lamb.h"
#include "lib/optim/adam.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    sluice_adamw adam;
    double norm_min, norm_max;
    sluice_stream *stream;
} lamb;

/* Adds up the norms of the parameters with decay. Those without decay have trust 1, which needs no norms. */
static sluice_status measure_many(const sluice_update *u, size_t count, const sluice_optimizer_sums *sums,
                                  void *context)
{
    const lamb *l = context;
    slc_adamw_settings settings = slc_adam_settings_at(&l->adam, u);
    slc_adamw_range ranges[SLUICE_OPTIMIZER_RANGES_MAX];
    slc_lamb_bins bins[SLUICE_OPTIMIZER_RANGES_MAX];
    uint32_t measured = 0;
    for (size_t i = 0; i < count; i++) {
        if (u[i].no_decay) continue;
        ranges[measured] = slc_adam_range_of(&u[i]);
        bins[measured++] = (slc_lamb_bins){sums[i].of[0], sums[i].of[1]};
    }
    if (!measured) return SLUICE_OK;
    return slc_lamb_measure(slc_adam_stream_of(u, l->stream), &settings, measured, ranges, bins);
}

static sluice_status measure(const sluice_update *u, int64_t *const sums[SLUICE_OPTIMIZER_NORMS_MAX], void *context)
{
    const sluice_optimizer_sums all = {{sums[0], sums[1]}};
    return measure_many(u, 1, &all, context);
}

static sluice_status update_many(const sluice_update *u, size_t count, void *context)
{
    const lamb *l = context;
    slc_adamw_settings settings = slc_adam_settings_at(&l->adam, u);
    slc_adamw_range ranges[SLUICE_OPTIMIZER_RANGES_MAX];
    const double *norms[SLUICE_OPTIMIZER_RANGES_MAX];
    for (size_t i = 0; i < count; i++) {
        ranges[i] = slc_adam_range_of(&u[i]);
        norms[i] = u[i].no_decay ? NULL : u[i].norms;
    }
    const slc_lamb_bounds bounds = {l->norm_min, l->norm_max, 0, INFINITY};
    return slc_lamb_apply_measured(slc_adam_stream_of(u, l->stream), &settings, (uint32_t)count, ranges, norms,
                                   &bounds);
}

static sluice_status update(const sluice_update *u, void *context)
{
    return update_many(u, 1, context);
}

sluice_status slc_lamb_check(const char *name, const sluice_lamb *s)
{
    const sluice_adamw adam = {s->beta1, s->beta2, s->epsilon, s->weight_decay};
    sluice_status status = slc_adam_check(name, &adam);
    if (status) return status;
    if (!(s->norm_min >= 0) || !(s->norm_max >= s->norm_min) || !(s->norm_max > 0))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: norms of values are clamped to %g..%g; give 0 or more, and above it the most", name,
                         s->norm_min, s->norm_max);
    return SLUICE_OK;
}

sluice_status slc_lamb_create(const sluice_lamb *settings, sluice_stream *stream, sluice_optimizer *out)
{
    const sluice_lamb *s = settings;
    const sluice_adamw adam = {s->beta1, s->beta2, s->epsilon, s->weight_decay};
    sluice_status status = slc_lamb_check("LAMB", s);
    if (status) return status;
    lamb *l = malloc(sizeof *l);
    if (!l) return slc_error(SLUICE_ERR_MEMORY, "LAMB");
    *l = (lamb){adam, s->norm_min, s->norm_max, stream};
    *out = (sluice_optimizer){.struct_size = sizeof(sluice_optimizer),
                              .name = "lamb",
                              .state_count = 2,
                              .state_name = {"exp_avg", "exp_avg_sq"},
                              .update = update,
                              .context = l,
                              .mixed_precision = true,
                              .concurrent = true,
                              .norm_count = 2,
                              .measure = measure,
                              .on_stream = true,
                              .update_many = update_many,
                              .measure_many = measure_many};
    return SLUICE_OK;
}
