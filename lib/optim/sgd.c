/* SGD: an update is a kernel's range. PyTorch's buffer begins as the first gradient; here it is 0 before step 1, whose
 * gradient enters undampened, which is the same.
 * sgd_optimizer_test.c covers this file. */
#include "lib/optim/sgd.h"

#include "lib/base/status.h"
#include "lib/kernels/sgd/sgd.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    sluice_sgd settings;
    sluice_stream *stream;
} sgd;

static sluice_status update(const sluice_update *u, void *context)
{
    const sgd *o = context;
    const slc_sgd_args args = {.count = u->count,
                               .gradient_dtype = u->gradient_dtype,
                               .gradient = u->gradient,
                               .value = u->value,
                               .buffer = o->settings.momentum > 0 ? u->state[0] : NULL,
                               .rounded = u->rounded,
                               .learning_rate = u->learning_rate,
                               .momentum = o->settings.momentum,
                               .weight_decay = u->no_decay ? 0 : o->settings.weight_decay,
                               .rest = u->step > 1 ? 1 - o->settings.dampening : 1,
                               .gradient_factor = u->gradient_factor,
                               .nesterov = o->settings.nesterov,
                               .words = u->words};
    return slc_sgd(u->stream ? u->stream : o->stream, &args);
}

static sluice_status check(const sluice_sgd *s)
{
    if (!(s->momentum >= 0) || isinf(s->momentum) || !(s->weight_decay >= 0) || isinf(s->weight_decay) ||
        !isfinite(s->dampening))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "SGD: momentum is %g and weight decay %g (must not be below 0), dampening %g", s->momentum,
                         s->weight_decay, s->dampening);
    if (s->nesterov && (!(s->momentum > 0) || s->dampening < 0 || s->dampening > 0))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "SGD: nesterov needs a momentum above 0 and no dampening; they are %g and %g", s->momentum,
                         s->dampening);
    return SLUICE_OK;
}

sluice_status slc_sgd_create(const sluice_sgd *settings, sluice_stream *stream, sluice_optimizer *out)
{
    sluice_status status = check(settings);
    if (status) return status;
    sgd *o = malloc(sizeof *o);
    if (!o) return slc_error(SLUICE_ERR_MEMORY, "SGD");
    *o = (sgd){*settings, stream};
    *out = (sluice_optimizer){.struct_size = sizeof(sluice_optimizer),
                              .name = "sgd",
                              .state_count = settings->momentum > 0,
                              .state_name = {"momentum_buffer"},
                              .update = update,
                              .context = o,
                              .mixed_precision = true,
                              .concurrent = true,
                              .on_stream = true};
    return SLUICE_OK;
}
