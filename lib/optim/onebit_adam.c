/* Phases, and the constants of a step; kernels do the rest. */
#include "lib/optim/onebit_adam.h"

#include "lib/base/status.h"
#include "lib/optim/adam.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    slc_onebit_adam_settings settings;
    slc_onebit_progress progress;
    slc_stream *stream;
} onebit_adam;

static slc_onebit_phase phase_of(const onebit_adam *o, uint64_t step)
{
    if (o->settings.compat && step <= 1) return SLC_ONEBIT_DISCARD;
    return o->progress.frozen_at && step > o->progress.frozen_at ? SLC_ONEBIT_FROZEN : SLC_ONEBIT_WARM_UP;
}

static slc_adamw_settings settings_at(const onebit_adam *o, const sluice_update *u)
{
    slc_adamw_settings s = slc_adam_settings_at(&o->settings.adam, u);
    if (o->settings.compat)
        s.bias_correction1 = s.bias_correction2 = 1;
    else if (phase_of(o, u->step) == SLC_ONEBIT_FROZEN)
        s.bias_correction2 = 1 - pow(s.beta2, (double)o->progress.frozen_at);
    return s;
}

static slc_frozen_range frozen_range(const onebit_adam *o, const sluice_update *u)
{
    return (slc_frozen_range){.count = u->count,
                              .value = u->value,
                              .momentum = u->state[0],
                              .momentum_dtype = SLUICE_FP32,
                              .exp_avg_sq = u->state[1],
                              .rounded = u->rounded,
                              .no_decay = u->no_decay,
                              .mask = o->settings.mask || !o->settings.compat};
}

static sluice_status update(const sluice_update *u, void *context)
{
    const onebit_adam *o = context;
    slc_adamw_settings settings = settings_at(o, u);
    slc_onebit_phase phase = phase_of(o, u->step);
    if (phase == SLC_ONEBIT_DISCARD) return SLUICE_OK;
    if (phase == SLC_ONEBIT_FROZEN) {
        slc_frozen_range range = frozen_range(o, u);
        return slc_frozen_update(o->stream, &settings, u->gradient_dtype, u->gradient, &range);
    }
    slc_adamw_range range = slc_adam_range_of(u);
    return slc_adamw_many(o->stream, &settings, 1, &range);
}

sluice_status slc_onebit_adam_create(const slc_onebit_adam_settings *settings, slc_stream *stream,
                                     sluice_optimizer *out)
{
    sluice_status status = slc_adam_check("1-bit Adam", &settings->adam);
    if (status) return status;
    if (!settings->freeze_step && !(settings->freeze_change > 0 && settings->freeze_change < 1))
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "1-bit Adam: freezes at a step above 0, or at a change of the variance's norm between 0 and 1, "
            "not %g",
            settings->freeze_change);
    onebit_adam *o = malloc(sizeof *o);
    if (!o) return slc_error(SLUICE_ERR_MEMORY, "1-bit Adam");
    *o = (onebit_adam){.settings = *settings, .stream = stream};
    *out = (sluice_optimizer){.name = "onebit_adam",
                              .state_count = 2,
                              .state_name = {"exp_avg", "exp_avg_sq"},
                              .update = update,
                              .context = o,
                              .mixed_precision = true};
    return SLUICE_OK;
}

void slc_onebit_adam_destroy(sluice_optimizer *optimizer)
{
    free(optimizer->context);
    optimizer->context = NULL;
}

slc_onebit_phase slc_onebit_adam_phase(const sluice_optimizer *optimizer, uint64_t step)
{
    return phase_of(optimizer->context, step);
}

slc_onebit_progress *slc_onebit_adam_progress(const sluice_optimizer *optimizer)
{
    return &((onebit_adam *)optimizer->context)->progress;
}

/* ---- The freeze ---- */

bool slc_onebit_adam_wants_norm(const sluice_optimizer *optimizer, uint64_t step)
{
    const onebit_adam *o = optimizer->context;
    if (o->settings.freeze_step || phase_of(o, step) != SLC_ONEBIT_WARM_UP) return false;
    uint64_t span = (uint64_t)ceil(1 / (1 - o->settings.adam.beta2) - 1e-6);
    return step >= o->progress.norm_step + span;
}

/* Compares with the last look, then this one is the last. */
static bool has_settled(onebit_adam *o, uint64_t step, double norm)
{
    if (!o->settings.compat) norm /= 1 - pow(o->settings.adam.beta2, (double)step);
    const slc_onebit_progress before = o->progress;
    o->progress.norm_step = step, o->progress.norm = norm;
    return before.norm_step && norm > 0 && fabs(norm - before.norm) <= o->settings.freeze_change * norm;
}

bool slc_onebit_adam_end_step(sluice_optimizer *optimizer, uint64_t step, double variance_norm)
{
    onebit_adam *o = optimizer->context;
    if (phase_of(o, step) != SLC_ONEBIT_WARM_UP) return o->progress.frozen_at != 0;
    bool freeze = o->settings.freeze_step
                      ? step >= o->settings.freeze_step
                      : slc_onebit_adam_wants_norm(optimizer, step) && has_settled(o, step, variance_norm);
    if (freeze) o->progress.frozen_at = step;
    return freeze;
}

/* ---- Around the exchange ---- */

static sluice_status check_frozen(const onebit_adam *o, uint64_t step)
{
    if (phase_of(o, step) == SLC_ONEBIT_FROZEN) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ORDER, "1-bit Adam: step %llu is not compressed; its variance is not frozen yet",
                     (unsigned long long)step);
}

static sluice_status check_count(const sluice_update *update, const slc_compress_shape *shape)
{
    if (update->count == shape->count) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "1-bit Adam: an update of %zu elements, an exchange of %llu", update->count,
                     (unsigned long long)shape->count);
}

sluice_status slc_onebit_adam_compress(const sluice_optimizer *optimizer, const sluice_update *update,
                                       const slc_compress_shape *shape, const slc_residue *worker, void *packets)
{
    const onebit_adam *o = optimizer->context;
    sluice_status status = check_frozen(o, update->step);
    if (!status) status = check_count(update, shape);
    if (status) return status;
    const slc_compress_input input = {.gradient_dtype = update->gradient_dtype,
                                      .momentum_dtype = SLUICE_FP32,
                                      .gradient = update->gradient,
                                      .momentum = update->state[0],
                                      .gradient_factor = update->gradient_factor,
                                      .factor = o->settings.adam.beta1,
                                      .rest = 1 - o->settings.adam.beta1};
    return slc_compress_worker(o->stream, shape, &input, worker, packets);
}

sluice_status slc_onebit_adam_apply(const sluice_optimizer *optimizer, const sluice_update *update,
                                    const slc_compress_shape *shape, const void *results, uint64_t first,
                                    uint64_t count, bool *finite)
{
    const onebit_adam *o = optimizer->context;
    sluice_status status = check_frozen(o, update->step);
    if (!status) status = check_count(update, shape);
    if (status) return status;
    slc_adamw_settings settings = settings_at(o, update);
    slc_frozen_range range = frozen_range(o, update);
    return slc_compress_apply(o->stream, &settings, shape, results, first, count, &range, finite);
}
