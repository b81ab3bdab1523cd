/* AdamW: what depends on the step is worked out once a range; the rest is the kernel's. */
#include "lib/optim/adamw.h"

#include "lib/base/status.h"
#include "lib/kernels/adamw/adamw.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    sluice_adamw settings;
    slc_stream *stream;
} adamw;

static sluice_status update(const sluice_update *u, void *context)
{
    const adamw *a = context;
    slc_adamw_settings settings = {
        .learning_rate = u->learning_rate,
        .beta1 = a->settings.beta1,
        .beta2 = a->settings.beta2,
        .epsilon = a->settings.epsilon,
        .weight_decay = u->no_decay ? 0 : a->settings.weight_decay,
        .gradient_factor = u->gradient_factor,
        .bias_correction1 = 1 - pow(a->settings.beta1, (double)u->step),
        .bias_correction2 = 1 - pow(a->settings.beta2, (double)u->step),
    };
    return slc_adamw(a->stream, &settings, u->count, u->gradient_dtype, u->gradient, u->value, u->state[0], u->state[1],
                     u->rounded);
}

static sluice_status check(const sluice_adamw *s)
{
    if (!(s->beta1 >= 0 && s->beta1 < 1) || !(s->beta2 >= 0 && s->beta2 < 1))
        return slc_error(SLUICE_ERR_ARGUMENT, "AdamW: beta1 is %g and beta2 %g; both must be in [0, 1)", s->beta1,
                         s->beta2);
    if (!(s->epsilon > 0) || !(s->weight_decay >= 0) || isinf(s->epsilon) || isinf(s->weight_decay))
        return slc_error(SLUICE_ERR_ARGUMENT, "AdamW: epsilon is %g (must be above 0), weight decay %g (not below 0)",
                         s->epsilon, s->weight_decay);
    return SLUICE_OK;
}

sluice_status slc_adamw_create(const sluice_adamw *settings, slc_stream *stream, sluice_optimizer *out)
{
    sluice_status status = check(settings);
    if (status) return status;
    adamw *a = malloc(sizeof *a);
    if (!a) return slc_error(SLUICE_ERR_MEMORY, "AdamW");
    *a = (adamw){*settings, stream};
    *out = (sluice_optimizer){.name = "adamw",
                              .state_count = 2,
                              .state_name = {"exp_avg", "exp_avg_sq"},
                              .update = update,
                              .context = a,
                              .mixed_precision = true};
    return SLUICE_OK;
}

void slc_adamw_destroy(sluice_optimizer *optimizer)
{
    free(optimizer->context);
    optimizer->context = NULL;
}
