/* Computes the constants of a step, tensor by tensor; kernels do the rest. */
#include "lib/optim/onebit/onebit_adam.h"

#include "lib/base/integer.h"
#include "lib/base/numbers/equal_math.h"
#include "lib/base/status.h"
#include "lib/optim/adam.h"
#include "lib/optim/onebit/freeze.h"

#include <stdlib.h>

static const char name[] = "1-bit Adam";
enum { EXP_AVG, EXP_AVG_SQ };

typedef struct {
    slc_compressed_settings settings;
    slc_freeze freeze;
    uint64_t *frozen_updates; /* of each parameter: those that it had had at the freeze */
    uint32_t parameter_count;
    sluice_stream *stream;
} onebit_adam;

static slc_adamw_settings settings_at(const onebit_adam *o, const sluice_update *u)
{
    slc_adamw_settings s = slc_adam_settings_at(&o->settings.adamw, u);
    if (o->settings.onebit.compat)
        s.bias_correction1 = s.bias_correction2 = 1;
    else if (slc_freeze_phase(&o->freeze, slc_job_step_of(u)) == SLC_ONEBIT_FROZEN)
        s.bias_correction2 = 1 - slc_power(s.beta2, slc_most(1, o->frozen_updates[u->parameter]));
    return s;
}

static slc_frozen_range frozen_range(const onebit_adam *o, const sluice_update *u)
{
    return (slc_frozen_range){.count = u->count,
                              .value = u->value,
                              .momentum = u->state[EXP_AVG],
                              .momentum_dtype = SLUICE_FP32,
                              .exp_avg_sq = u->state[EXP_AVG_SQ],
                              .rounded = u->rounded,
                              .no_decay = u->no_decay,
                              .mask = o->settings.onebit.compat_mask || !o->settings.onebit.compat};
}

/* Updates while the variance stays as it is. */
static sluice_status update_frozen(const onebit_adam *o, const sluice_update *u, uint32_t count)
{
    const void *gradients[SLUICE_OPTIMIZER_RANGES_MAX];
    slc_frozen_range ranges[SLUICE_OPTIMIZER_RANGES_MAX];
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < count; i++) gradients[i] = u[i].gradient, ranges[i] = frozen_range(o, &u[i]);
    for (uint32_t i = 0, alike; !status && i < count; i += alike) {
        const slc_adamw_settings settings = settings_at(o, &u[i]);
        alike = slc_updates_alike(u, i, count, o->frozen_updates, sizeof *o->frozen_updates);
        status = slc_frozen_update_many(slc_adam_stream_of(u, o->stream), &settings, alike, u->gradient_dtype,
                                        gradients + i, ranges + i);
    }
    return status;
}

static sluice_status update_many(const sluice_update *u, size_t count, void *context)
{
    const onebit_adam *o = context;
    const slc_adamw_settings settings = settings_at(o, u);
    slc_adamw_range ranges[SLUICE_OPTIMIZER_RANGES_MAX];
    switch (slc_freeze_phase(&o->freeze, slc_job_step_of(u))) {
    case SLC_ONEBIT_DISCARD: return SLUICE_OK;
    case SLC_ONEBIT_FROZEN: return update_frozen(o, u, (uint32_t)count);
    case SLC_ONEBIT_WARM_UP: break;
    }
    for (size_t i = 0; i < count; i++) ranges[i] = slc_adam_range_of(&u[i]);
    return slc_adamw_many(slc_adam_stream_of(u, o->stream), &settings, (uint32_t)count, ranges);
}

static sluice_status update(const sluice_update *u, void *context)
{
    return update_many(u, 1, context);
}

/* ---- Phases ---- */

static sluice_status commit(void *context, uint32_t ranks, uint32_t count, const slc_compressed_parameter *parameters)
{
    (void)ranks, (void)parameters;
    onebit_adam *o = context;
    o->frozen_updates = calloc(count ? count : 1, sizeof *o->frozen_updates);
    o->parameter_count = count;
    return o->frozen_updates ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%s: %u parameters", name, count);
}

static slc_compressed_phase phase(const void *context, uint64_t step)
{
    const onebit_adam *o = context;
    return (slc_compressed_phase){.compressed = slc_freeze_phase(&o->freeze, step) == SLC_ONEBIT_FROZEN};
}

static slc_step_mode begin_step(void *context, uint64_t step, double learning_rate, bool exchange_now,
                                const uint8_t *roles)
{
    (void)learning_rate, (void)exchange_now, (void)roles;
    return phase(context, step).compressed ? SLC_STEP_EXCHANGE : SLC_STEP_AVERAGE;
}

static uint32_t wants_norms(const void *context, uint64_t step)
{
    const onebit_adam *o = context;
    return slc_freeze_looks(&o->freeze, step) ? 1u << EXP_AVG_SQ : 0;
}

static uint32_t end_step(void *context, uint64_t step, const uint64_t *updates,
                         const double *const norms[SLUICE_OPTIMIZER_STATES_MAX])
{
    onebit_adam *o = context;
    if (!slc_freeze_end_step(&o->freeze, step, o->parameter_count, updates, norms[EXP_AVG_SQ])) return 0;
    slc_freeze_count(&o->freeze, o->parameter_count, updates, o->frozen_updates);
    return SLC_PHASE_CHANGED | SLC_RESET_ERRORS;
}

static uint32_t waits_for(const void *context)
{
    return ((const onebit_adam *)context)->freeze.waits_for;
}

static void progress_save(const void *context, uint32_t parameter, double *values)
{
    const onebit_adam *o = context;
    if (parameter == UINT32_MAX)
        slc_freeze_save(&o->freeze, values);
    else
        values[0] = (double)o->frozen_updates[parameter];
}

static sluice_status progress_check(const void *context, const double *job, uint32_t parameter, const double *values)
{
    uint64_t updates;
    (void)context;
    return parameter == UINT32_MAX ? slc_freeze_check_progress(name, values)
                                   : slc_freeze_read_updates(name, job, parameter, values[0], &updates);
}

static sluice_status progress_load(void *context, uint32_t parameter, const double *values)
{
    onebit_adam *o = context;
    double job[SLC_FREEZE_PROGRESS];
    slc_freeze_save(&o->freeze, job);
    if (parameter != UINT32_MAX)
        return slc_freeze_read_updates(name, job, parameter, values[0], &o->frozen_updates[parameter]);
    sluice_status status = slc_freeze_check_progress(name, values);
    if (!status) slc_freeze_load(&o->freeze, values, o->parameter_count, o->frozen_updates);
    return status;
}

static void destroy(void *context)
{
    free(((onebit_adam *)context)->frozen_updates);
    free(context);
}

/* ---- Around the exchange ---- */

static slc_compress_input input_of(const void *context, const slc_onebit_unit *unit, uint32_t i)
{
    const onebit_adam *o = context;
    const sluice_update *u = &unit->tensors[i];
    return (slc_compress_input){.gradient_dtype = u->gradient_dtype,
                                .momentum_dtype = SLUICE_FP32,
                                .gradient = u->gradient,
                                .momentum = u->state[EXP_AVG],
                                .gradient_factor = u->gradient_factor,
                                .factor = o->settings.adamw.beta1,
                                .rest = 1 - o->settings.adamw.beta1,
                                .words = u->words};
}

static sluice_status check_unit(const onebit_adam *o, const slc_onebit_unit *unit)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < unit->tensor_count; i++)
        status = slc_onebit_check(name, unit, i, phase(o, slc_job_step_of(&unit->tensors[i])).compressed);
    return status;
}

static sluice_status compress(void *context, const slc_onebit_unit *unit, uint32_t *bad)
{
    const onebit_adam *o = context;
    sluice_status status = check_unit(o, unit);
    return status ? status : slc_onebit_compress_each(o->stream, unit, input_of, o, bad);
}

static slc_compress_update update_of(const onebit_adam *o, const slc_onebit_unit *unit, uint32_t i)
{
    const sluice_update *u = &unit->tensors[i];
    slc_compress_update update = {settings_at(o, u), slc_onebit_results(unit, i), frozen_range(o, u)};
    update.settings.words = &slc_compress_room_of(&unit->workers[i])->told;
    return update;
}

static sluice_status apply(void *context, const slc_onebit_unit *unit, uint32_t *bad)
{
    const onebit_adam *o = context;
    slc_compress_update updates[SLC_ONEBIT_TOGETHER];
    sluice_status status = check_unit(o, unit);
    if (!status) status = slc_onebit_look(o->stream, unit, true, bad);
    for (uint32_t first = 0; !status && first < unit->tensor_count; first += SLC_ONEBIT_TOGETHER) {
        const uint32_t left = unit->tensor_count - first, own = left < SLC_ONEBIT_TOGETHER ? left : SLC_ONEBIT_TOGETHER;
        for (uint32_t k = 0; k < own; k++) updates[k] = update_of(o, unit, first + k);
        status = slc_compress_apply_many(o->stream, own, updates);
    }
    return status;
}

sluice_status slc_onebit_adam_create(const slc_compressed_settings *settings, sluice_stream *stream,
                                     slc_compressed *out)
{
    const slc_freeze_settings freeze = {settings->onebit.freeze_step, settings->onebit.freeze_change,
                                        settings->adamw.beta2, settings->onebit.compat};
    sluice_status status = slc_adam_check(name, &settings->adamw);
    if (!status) status = slc_freeze_check(name, &freeze);
    if (status) return status;
    onebit_adam *o = malloc(sizeof *o);
    if (!o) return slc_error(SLUICE_ERR_MEMORY, name);
    *o =
        (onebit_adam){.settings = *settings, .freeze = {.settings = freeze, .waits_for = UINT32_MAX}, .stream = stream};
    *out = (slc_compressed){.optimizer = {.name = "onebit_adam",
                                          .state_count = 2,
                                          .state_name = {"exp_avg", "exp_avg_sq"},
                                          .update = update,
                                          .context = o,
                                          .mixed_precision = true,
                                          .on_stream = true,
                                          .update_many = update_many},
                            .phase_count = 2,
                            .phases = {{.compressed = false}, {.compressed = true}},
                            .commit = commit,
                            .phase = phase,
                            .begin_step = begin_step,
                            .compress = compress,
                            .apply = apply,
                            .wants_norms = wants_norms,
                            .end_step = end_step,
                            .waits_for = waits_for,
                            .progress_count = SLC_FREEZE_PROGRESS,
                            .progress_name = {SLC_FREEZE_PROGRESS_NAMES},
                            .parameter_progress_count = 1,
                            .counted_progress_count = 1,
                            .parameter_progress_name = {SLC_FREEZE_UPDATES_NAME},
                            .progress_save = progress_save,
                            .progress_check = progress_check,
                            .progress_load = progress_load,
                            .destroy = destroy,
                            .context = o};
    return SLUICE_OK;
}
