/* AdamW: the constants of the step are computed once for each range; the kernel does the rest.
 * adamw_optimizer_test.c covers this file. */
#include "lib/optim/adamw.h"

#include "lib/base/numbers/equal_math.h"
#include "lib/base/status.h"
#include "lib/optim/adam.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    sluice_adamw settings;
    sluice_stream *stream;
} adamw;

slc_adamw_settings slc_adam_settings_at(const sluice_adamw *s, const sluice_update *u)
{
    return (slc_adamw_settings){
        .learning_rate = u->learning_rate,
        .beta1 = s->beta1,
        .beta2 = s->beta2,
        .epsilon = s->epsilon,
        .weight_decay = s->weight_decay,
        .gradient_factor = u->gradient_factor,
        .bias_correction1 = 1 - slc_power(s->beta1, u->step),
        .bias_correction2 = 1 - slc_power(s->beta2, u->step),
        .words = u->words,
    };
}

slc_adamw_range slc_adam_range_of(const sluice_update *u)
{
    return (slc_adamw_range){.count = u->count,
                             .gradient_dtype = u->gradient_dtype,
                             .gradient = u->gradient,
                             .value = u->value,
                             .exp_avg = u->state[0],
                             .exp_avg_sq = u->state[1],
                             .rounded = u->rounded,
                             .no_decay = u->no_decay};
}

sluice_stream *slc_adam_stream_of(const sluice_update *u, sluice_stream *own)
{
    return u->stream ? u->stream : own;
}

static sluice_status update_many(const sluice_update *u, size_t count, void *context)
{
    const adamw *a = context;
    slc_adamw_settings settings = slc_adam_settings_at(&a->settings, u);
    slc_adamw_range ranges[SLUICE_OPTIMIZER_RANGES_MAX];
    for (size_t i = 0; i < count; i++) ranges[i] = slc_adam_range_of(&u[i]);
    return slc_adamw_many(slc_adam_stream_of(u, a->stream), &settings, (uint32_t)count, ranges);
}

static sluice_status update(const sluice_update *u, void *context)
{
    return update_many(u, 1, context);
}

sluice_status slc_adam_check(const char *name, const sluice_adamw *s)
{
    if (!(s->beta1 >= 0 && s->beta1 < 1) || !(s->beta2 >= 0 && s->beta2 < 1))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: beta1 is %g and beta2 %g; both must be in [0, 1)", name, s->beta1,
                         s->beta2);
    if (!(s->epsilon > 0) || !(s->weight_decay >= 0) || isinf(s->epsilon) || isinf(s->weight_decay))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: epsilon is %g (must be above 0), weight decay %g (not below 0)",
                         name, s->epsilon, s->weight_decay);
    return SLUICE_OK;
}

sluice_status slc_adamw_create(const sluice_adamw *settings, sluice_stream *stream, sluice_optimizer *out)
{
    sluice_status status = slc_adam_check("AdamW", settings);
    if (status) return status;
    adamw *a = malloc(sizeof *a);
    if (!a) return slc_error(SLUICE_ERR_MEMORY, "AdamW");
    *a = (adamw){*settings, stream};
    *out = (sluice_optimizer){.struct_size = sizeof(sluice_optimizer),
                              .name = "adamw",
                              .state_count = 2,
                              .state_name = {"exp_avg", "exp_avg_sq"},
                              .update = update,
                              .context = a,
                              .mixed_precision = true,
                              .concurrent = true,
                              .on_stream = true,
                              .update_many = update_many};
    return SLUICE_OK;
}

void slc_adam_destroy(sluice_optimizer *optimizer)
{
    free(optimizer->context);
    optimizer->context = NULL;
}
