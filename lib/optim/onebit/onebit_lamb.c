/* 1-bit LAMB: the calls of kernels, in their order. The numbers that each parameter keeps in addition to its arrays lie
 * in memory that the host and a GPU see: kernels bring them forward in each step, the host reads and writes them with
 * nothing pending. */
#include "lib/optim/onebit/onebit_lamb.h"

#include "lib/base/integer.h"
#include "lib/base/numbers/equal_math.h"
#include "lib/base/status.h"
#include "lib/kernels/compress/flat.h"
#include "lib/kernels/lamb/frozen_lamb.h"
#include "lib/kernels/lamb/lamb_numbers.h"
#include "lib/optim/adam.h"
#include "lib/optim/onebit/freeze.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

static const char name[] = "1-bit LAMB";
enum { EXP_AVG, EXP_AVG_SQ, FRESH, STATES };
enum { NORM_VALUE, NORM_UPDATE, NORMS, FROZEN_MOVE = NORM_VALUE, FROZEN_UPDATE = NORM_UPDATE, FROZEN_RATIO = NORMS };

typedef struct {
    slc_compressed_settings settings;
    sluice_adamw adam;
    slc_freeze freeze;
    slc_lamb_rules rules;
    slc_compressed_parameter *parameters;
    slc_lamb_numbers *numbers; /* of each parameter, in `memory` */
    uint64_t *frozen_updates;  /* of each parameter: those that it had had at the freeze */
    slc_lamb_parameter *told;  /* [count], of the call that runs */
    slc_pinned memory;
    uint32_t count;
    sluice_stream *stream;
} onebit_lamb;

static slc_frozen_lamb_settings settings_at(const onebit_lamb *o, const sluice_update *u)
{
    slc_frozen_lamb_settings s = {.adam = slc_adam_settings_at(&o->adam, u)};
    if (o->settings.onebit.compat) s.adam.bias_correction1 = s.adam.bias_correction2 = 1;
    s.fresh_correction = s.adam.bias_correction2;
    if (!o->settings.onebit.compat && slc_freeze_phase(&o->freeze, slc_job_step_of(u)) == SLC_ONEBIT_FROZEN)
        s.adam.bias_correction2 = 1 - slc_power(o->adam.beta2, slc_most(1, o->frozen_updates[u->parameter]));
    return s;
}

static slc_frozen_lamb_range frozen_range(const onebit_lamb *o, const sluice_update *u)
{
    bool first = u->step == o->frozen_updates[u->parameter] + 1;
    return (slc_frozen_lamb_range){.count = u->count,
                                   .value = u->value,
                                   .momentum = u->state[EXP_AVG],
                                   .fresh = u->state[FRESH],
                                   .exp_avg_sq = u->state[EXP_AVG_SQ],
                                   .fresh_last = u->state[first ? EXP_AVG_SQ : FRESH],
                                   .rounded = u->rounded,
                                   .no_decay = u->no_decay,
                                   .mask = o->settings.onebit.compat_mask || !o->settings.onebit.compat,
                                   .counts_masked = o->settings.onebit.compat};
}

/* True if the trust ratio is 1, so that a tensor's step is Adam's. */
static bool trusts_one(const onebit_lamb *o, bool no_decay)
{
    return no_decay && !o->settings.onebit.compat;
}

/* ---- Numbers of a step ---- */

/* The bounds of the trust ratio in a step of the warm-up. */
static slc_lamb_bounds trust_bounds(const onebit_lamb *o)
{
    const slc_compressed_settings *s = &o->settings;
    if (o->settings.onebit.compat) return (slc_lamb_bounds){0, INFINITY, s->onebit.trust_min, s->onebit.trust_max};
    return (slc_lamb_bounds){s->lamb.norm_min, s->lamb.norm_max, 0, INFINITY};
}

static slc_lamb_rules rules_of(const slc_compressed_settings *s)
{
    slc_lamb_rules rules = {.trust = {0, INFINITY, s->onebit.trust_min, s->onebit.trust_max},
                            .clamps = s->onebit.compat,
                            .beta = s->onebit.coefficient_beta,
                            .least = s->onebit.factor_min,
                            .most = s->onebit.factor_max,
                            .threshold = s->onebit.factor_threshold};
    if (!s->onebit.compat) rules.trust.lowest = s->lamb.norm_min, rules.trust.highest = s->lamb.norm_max;
    return rules;
}

/* Says what the compressed phase makes of the average of trust ratios. */
static void settle(const onebit_lamb *o, uint32_t number)
{
    slc_lamb_numbers *n = &o->numbers[number];
    const double beta = o->settings.onebit.coefficient_beta;
    if (o->settings.onebit.compat)
        n->settled = n->coefficient;
    else
        n->settled = n->ratios > 0 ? n->coefficient / (1 - slc_power(beta, (uint64_t)n->ratios)) : 1;
}

static slc_lamb_parameter parameter_of(const onebit_lamb *o, uint32_t number, const sluice_step_words *words)
{
    const bool no_decay = o->parameters[number].no_decay;
    return (slc_lamb_parameter){.numbers = &o->numbers[number],
                                .words = words,
                                .decays = o->settings.lamb.weight_decay > 0 && !no_decay,
                                .trusts_one = trusts_one(o, no_decay)};
}

/* ---- Averaged gradients ---- */

static slc_frozen_lamb_tensor frozen_tensor(const onebit_lamb *o, const sluice_update *u)
{
    return (slc_frozen_lamb_tensor){.settings = settings_at(o, u),
                                    .range = frozen_range(o, u),
                                    .gradient_dtype = u->gradient_dtype,
                                    .gradient = u->gradient};
}

static sluice_status measure_frozen(const onebit_lamb *o, const sluice_update *u, size_t count,
                                    const sluice_optimizer_sums *sums)
{
    slc_frozen_lamb_tensor tensors[SLUICE_OPTIMIZER_RANGES_MAX];
    uint32_t measured = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t *const *of = sums[i].of;
        if (trusts_one(o, u[i].no_decay)) continue;
        tensors[measured] = frozen_tensor(o, &u[i]);
        tensors[measured++].sums = (slc_frozen_lamb_sums){of[FROZEN_MOVE], of[FROZEN_UPDATE], of[FROZEN_RATIO]};
    }
    return slc_frozen_lamb_measure_many(slc_adam_stream_of(u, o->stream), measured, tensors);
}

static sluice_status measure_many(const sluice_update *u, size_t count, const sluice_optimizer_sums *sums,
                                  void *context)
{
    const onebit_lamb *o = context;
    slc_adamw_range ranges[SLUICE_OPTIMIZER_RANGES_MAX];
    slc_lamb_bins bins[SLUICE_OPTIMIZER_RANGES_MAX];
    uint32_t measured = 0;
    switch (slc_freeze_phase(&o->freeze, slc_job_step_of(u))) {
    case SLC_ONEBIT_DISCARD: return SLUICE_OK;
    case SLC_ONEBIT_FROZEN: return measure_frozen(o, u, count, sums);
    case SLC_ONEBIT_WARM_UP: break;
    }
    for (size_t i = 0; i < count; i++) {
        if (trusts_one(o, u[i].no_decay)) continue;
        ranges[measured] = slc_adam_range_of(&u[i]);
        bins[measured++] = (slc_lamb_bins){sums[i].of[NORM_VALUE], sums[i].of[NORM_UPDATE]};
    }
    if (!measured) return SLUICE_OK;
    const slc_frozen_lamb_settings settings = settings_at(o, u);
    return slc_lamb_measure(slc_adam_stream_of(u, o->stream), &settings.adam, measured, ranges, bins);
}

static sluice_status measure(const sluice_update *u, int64_t *const sums[SLUICE_OPTIMIZER_NORMS_MAX], void *context)
{
    sluice_optimizer_sums all;
    for (int i = 0; i < SLUICE_OPTIMIZER_NORMS_MAX; i++) all.of[i] = sums[i];
    return measure_many(u, 1, &all, context);
}

/* In the compressed phase `update` finds the coefficient of its step in the place of the first norm. */
static sluice_status agreed(void *context, uint64_t step, uint32_t count, const slc_agreed *parameters)
{
    const onebit_lamb *o = context;
    const slc_onebit_phase phase = slc_freeze_phase(&o->freeze, step);
    for (uint32_t i = 0; i < count; i++) {
        o->told[i] = parameter_of(o, parameters[i].parameter, parameters[i].words);
        o->told[i].norms = o->told[i].product = parameters[i].norms;
    }
    switch (phase) {
    case SLC_ONEBIT_DISCARD: break;
    case SLC_ONEBIT_WARM_UP: return slc_lamb_average(o->stream, &o->rules, count, o->told);
    case SLC_ONEBIT_FROZEN: return slc_lamb_factor(o->stream, &o->rules, count, o->told);
    }
    return SLUICE_OK;
}

static sluice_status update_frozen(const onebit_lamb *o, const sluice_update *u, size_t count)
{
    slc_frozen_lamb_tensor tensors[SLUICE_OPTIMIZER_RANGES_MAX];
    for (size_t i = 0; i < count; i++) {
        tensors[i] = frozen_tensor(o, &u[i]);
        tensors[i].coefficient = u[i].norms;
    }
    return slc_frozen_lamb_update_many(slc_adam_stream_of(u, o->stream), (uint32_t)count, tensors);
}

static sluice_status update_many(const sluice_update *u, size_t count, void *context)
{
    const onebit_lamb *o = context;
    slc_adamw_range ranges[SLUICE_OPTIMIZER_RANGES_MAX];
    const double *norms[SLUICE_OPTIMIZER_RANGES_MAX];
    switch (slc_freeze_phase(&o->freeze, slc_job_step_of(u))) {
    case SLC_ONEBIT_DISCARD: return SLUICE_OK;
    case SLC_ONEBIT_FROZEN: return update_frozen(o, u, count);
    case SLC_ONEBIT_WARM_UP: break;
    }
    for (size_t i = 0; i < count; i++) {
        ranges[i] = slc_adam_range_of(&u[i]);
        norms[i] = trusts_one(o, u[i].no_decay) ? NULL : u[i].norms;
    }
    const slc_frozen_lamb_settings settings = settings_at(o, u);
    const slc_lamb_bounds bounds = trust_bounds(o);
    return slc_lamb_apply_measured(slc_adam_stream_of(u, o->stream), &settings.adam, (uint32_t)count, ranges, norms,
                                   &bounds);
}

static sluice_status update(const sluice_update *u, void *context)
{
    return update_many(u, 1, context);
}

/* ---- Phases ---- */

static sluice_status commit(void *context, uint32_t ranks, uint32_t count, const slc_compressed_parameter *parameters)
{
    (void)ranks;
    onebit_lamb *o = context;
    const size_t most = count ? count : 1;
    o->parameters = calloc(most, sizeof *o->parameters);
    o->told = calloc(most, sizeof *o->told);
    o->frozen_updates = calloc(most, sizeof *o->frozen_updates);
    if (!o->parameters || !o->told || !o->frozen_updates)
        return slc_error(SLUICE_ERR_MEMORY, "%s: %u parameters", name, count);
    sluice_status status = slc_pinned_create(o->stream->device, most * sizeof *o->numbers, &o->memory);
    if (status) return slc_error_context(status, "%s: %u parameters", name, count);
    o->numbers = o->memory.base;
    o->count = count;
    for (uint32_t i = 0; i < count; i++) {
        o->parameters[i] = parameters[i];
        o->numbers[i] = (slc_lamb_numbers){.last_factor = 1, .scaling = 1};
        settle(o, i);
    }
    return SLUICE_OK;
}

static slc_compressed_phase phase(const void *context, uint64_t step)
{
    const onebit_lamb *o = context;
    const bool frozen = slc_freeze_phase(&o->freeze, step) == SLC_ONEBIT_FROZEN;
    return (slc_compressed_phase){
        .compressed = frozen, .fuses = o->settings.onebit.compat, .local_arrays = frozen && o->settings.onebit.compat};
}

static slc_step_mode begin_step(void *context, uint64_t step, double learning_rate, bool exchange_now,
                                const uint8_t *roles)
{
    (void)learning_rate, (void)exchange_now, (void)roles;
    return phase(context, step).compressed ? SLC_STEP_EXCHANGE : SLC_STEP_AVERAGE;
}

static uint32_t wants_norms(const void *context, uint64_t step)
{
    const onebit_lamb *o = context;
    return (slc_freeze_looks(&o->freeze, step) ? 1u << EXP_AVG_SQ : 0) |
           (slc_freeze_is_possible(&o->freeze, step) ? 1u << EXP_AVG : 0);
}

/* momenta: their norms. */
static void scale_momenta(onebit_lamb *o, const double *momenta)
{
    double sum = 0;
    uint32_t moving = 0;
    for (uint32_t i = 0; i < o->count; i++) {
        const slc_compressed_parameter *p = &o->parameters[i];
        if (p->frozen || !(momenta[i] > 0)) continue;
        sum += momenta[i] / sqrt((double)p->count);
        moving++;
    }
    for (uint32_t i = 0; i < o->count; i++) {
        const slc_compressed_parameter *p = &o->parameters[i];
        double scaling = sum / moving / (momenta[i] / sqrt((double)p->count));
        bool moves = !p->frozen && momenta[i] > 0 && scaling >= (double)FLT_MIN && scaling <= (double)FLT_MAX;
        o->numbers[i].scaling = moves ? scaling : 1;
    }
}

static uint32_t end_step(void *context, uint64_t step, const uint64_t *updates,
                         const double *const norms[SLUICE_OPTIMIZER_STATES_MAX])
{
    onebit_lamb *o = context;
    if (!slc_freeze_end_step(&o->freeze, step, o->count, updates, norms[EXP_AVG_SQ])) return 0;
    slc_freeze_count(&o->freeze, o->count, updates, o->frozen_updates);
    scale_momenta(o, norms[EXP_AVG]);
    for (uint32_t i = 0; i < o->count; i++) settle(o, i);
    return SLC_PHASE_CHANGED | SLC_RESET_ERRORS;
}

static uint32_t waits_for(const void *context)
{
    return ((const onebit_lamb *)context)->freeze.waits_for;
}

/* ---- Checkpoints ---- */

enum { COEFFICIENT, RATIOS, LAST_FACTOR, SCALING, LEARNED, FROZEN_UPDATES = LEARNED, PARAMETER_PROGRESS };

static void progress_save(const void *context, uint32_t number, double *values)
{
    const onebit_lamb *o = context;
    if (number == UINT32_MAX) {
        slc_freeze_save(&o->freeze, values);
        return;
    }
    const slc_lamb_numbers *p = &o->numbers[number];
    values[COEFFICIENT] = p->coefficient, values[RATIOS] = p->ratios;
    values[LAST_FACTOR] = p->last_factor, values[SCALING] = p->scaling;
    values[FROZEN_UPDATES] = (double)o->frozen_updates[number];
}

static sluice_status progress_check(const void *context, const double *job, uint32_t number, const double *values)
{
    const onebit_lamb *o = context;
    uint64_t updates;
    if (number == UINT32_MAX) return slc_freeze_check_progress(name, values);
    bool good = number < o->count && values[RATIOS] == floor(values[RATIOS]) && values[RATIOS] < 0x1p53 &&
                values[LAST_FACTOR] > 0 && values[SCALING] > 0;
    for (int i = 0; i < LEARNED; i++) good = good && values[i] >= 0 && isfinite(values[i]);
    if (!good)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s, parameter %u of %u: coefficient %g, ratios %g, last_factor %g, scaling %g; all must be "
                         "finite and not below 0, ratios whole, the last two above 0",
                         name, number, o->count, values[COEFFICIENT], values[RATIOS], values[LAST_FACTOR],
                         values[SCALING]);
    return slc_freeze_read_updates(name, job, number, values[FROZEN_UPDATES], &updates);
}

static sluice_status load_parameter(onebit_lamb *o, const double *job, uint32_t number, const double *values)
{
    sluice_status status =
        slc_freeze_read_updates(name, job, number, values[FROZEN_UPDATES], &o->frozen_updates[number]);
    slc_lamb_numbers *p = &o->numbers[number];
    p->coefficient = values[COEFFICIENT], p->ratios = values[RATIOS];
    p->last_factor = values[LAST_FACTOR], p->scaling = values[SCALING];
    settle(o, number);
    return status;
}

static sluice_status progress_load(void *context, uint32_t number, const double *values)
{
    onebit_lamb *o = context;
    double job[SLC_FREEZE_PROGRESS];
    slc_freeze_save(&o->freeze, job);
    sluice_status status = progress_check(o, job, number, values);
    if (status || number != UINT32_MAX) return status ? status : load_parameter(o, job, number, values);
    slc_freeze_load(&o->freeze, values, o->count, o->frozen_updates);
    return SLUICE_OK;
}

/* ---- Around the exchange ---- */

static slc_compress_input input_of(const void *context, const slc_onebit_unit *unit, uint32_t i)
{
    const onebit_lamb *o = context;
    const sluice_update *u = &unit->tensors[i];
    const double scaling = o->numbers[u->parameter].scaling;
    return (slc_compress_input){.gradient_dtype = u->gradient_dtype,
                                .momentum_dtype = SLUICE_FP32,
                                .gradient = u->gradient,
                                .momentum = u->state[EXP_AVG],
                                .gradient_factor = u->gradient_factor,
                                .factor = o->adam.beta1 * scaling,
                                .rest = (1 - o->adam.beta1) * scaling,
                                .words = u->words};
}

/* Checks that the unit's tensors are there to be exchanged: each by itself, or in the flat array. */
static sluice_status check_unit(const onebit_lamb *o, const slc_onebit_unit *unit)
{
    bool frozen = slc_freeze_phase(&o->freeze, slc_job_step_of(&unit->tensors[0])) == SLC_ONEBIT_FROZEN;
    if (o->settings.onebit.compat) return slc_onebit_check_flat(name, unit, frozen);
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < unit->tensor_count; i++) status = slc_onebit_check(name, unit, i, frozen);
    return status;
}

static sluice_status write_flat(const onebit_lamb *o, const slc_onebit_unit *unit, float *at)
{
    slc_flat_tensor tensors[SLC_ONEBIT_TOGETHER];
    sluice_status status = SLUICE_OK;
    for (uint32_t first = 0; !status && first < unit->tensor_count; first += SLC_ONEBIT_TOGETHER) {
        const uint32_t left = unit->tensor_count - first, own = left < SLC_ONEBIT_TOGETHER ? left : SLC_ONEBIT_TOGETHER;
        for (uint32_t k = 0; k < own; k++) {
            const uint64_t count = unit->tensors[first + k].count;
            tensors[k] = (slc_flat_tensor){count, input_of(o, unit, first + k), at};
            at += count;
        }
        status = slc_flat_write_many(o->stream, own, tensors);
    }
    return status;
}

static sluice_status compress_flat(const onebit_lamb *o, const slc_onebit_unit *unit, uint32_t *bad)
{
    float *flat = unit->local[0][0];
    sluice_status status = write_flat(o, unit, flat);
    if (status) return status;
    /* The words' factor of gradients is in the flat array, which here is the momentum; with `rest` 0 it does no more.
     */
    const slc_compress_input whole = {.gradient = flat, .momentum = flat, .factor = 1, .words = unit->tensors[0].words};
    status = slc_compress_worker(o->stream, &unit->group->shapes[0], &whole, &unit->workers[0], unit->packets,
                                 unit->group->stride);
    return status ? status : slc_onebit_look(o->stream, unit, false, bad);
}

static sluice_status compress(void *context, const slc_onebit_unit *unit, uint32_t *bad)
{
    const onebit_lamb *o = context;
    sluice_status status = check_unit(o, unit);
    if (status) return status;
    return o->settings.onebit.compat ? compress_flat(o, unit, bad)
                                     : slc_onebit_compress_each(o->stream, unit, input_of, o, bad);
}

/* Returns tensor i with its results, and with the sums of a room. */
static slc_frozen_lamb_tensor received_tensor(const onebit_lamb *o, const slc_onebit_unit *unit, uint32_t i,
                                              const slc_compress_results *results, slc_compress_room *room)
{
    const sluice_update *u = &unit->tensors[i];
    slc_frozen_lamb_tensor t = frozen_tensor(o, u);
    t.settings.adam.words = &room->told;
    t.results = *results;
    t.divisor = o->numbers[u->parameter].scaling;
    t.sums = (slc_frozen_lamb_sums){room->bins[0], room->bins[1], &room->most};
    t.coefficient = &room->product;
    return t;
}

/* Updates tensors whose rooms' sums are 0: `count` of them, from number `first` on. */
static sluice_status apply_tensors(const onebit_lamb *o, const slc_onebit_unit *unit, uint32_t first, uint32_t count,
                                   const slc_frozen_lamb_tensor *tensors, slc_compress_room *const *rooms)
{
    slc_lamb_parameter parameters[SLC_ONEBIT_TOGETHER];
    for (uint32_t k = 0; k < count; k++) {
        parameters[k] = parameter_of(o, unit->tensors[first + k].parameter, &rooms[k]->told);
        parameters[k].sums = tensors[k].sums;
        parameters[k].product = &rooms[k]->product;
    }
    sluice_status status = slc_frozen_lamb_receive_many(o->stream, count, tensors);
    if (!status) status = slc_lamb_factor(o->stream, &o->rules, count, parameters);
    return status ? status : slc_frozen_lamb_move_many(o->stream, count, tensors);
}

static sluice_status apply_each(const onebit_lamb *o, const slc_onebit_unit *unit)
{
    slc_frozen_lamb_tensor tensors[SLC_ONEBIT_TOGETHER];
    slc_compress_room *rooms[SLC_ONEBIT_TOGETHER];
    sluice_status status = SLUICE_OK;
    for (uint32_t first = 0; !status && first < unit->tensor_count; first += SLC_ONEBIT_TOGETHER) {
        const uint32_t left = unit->tensor_count - first, own = left < SLC_ONEBIT_TOGETHER ? left : SLC_ONEBIT_TOGETHER;
        for (uint32_t k = 0; k < own; k++) {
            const slc_compress_results results = slc_onebit_results(unit, first + k);
            rooms[k] = slc_compress_room_of(&unit->workers[first + k]);
            tensors[k] = received_tensor(o, unit, first + k, &results, rooms[k]);
        }
        status = apply_tensors(o, unit, first, own, tensors, rooms);
    }
    return status;
}

/* Keeps the result of the flat array's padding, which goes into the next exchange. It is read from the last multiple of
 * 8 on, as a read must begin. */
static sluice_status keep_padding(const onebit_lamb *o, const slc_onebit_unit *unit, uint64_t elements)
{
    const slc_compress_shape *shape = &unit->group->shapes[0];
    uint64_t first = elements / 8 * 8;
    const slc_compress_results results = {.shape = shape,
                                          .packets = unit->results,
                                          .stride = unit->group->stride,
                                          .first = first,
                                          .count = shape->count - first};
    return slc_flat_read(o->stream, &results, &slc_compress_room_of(&unit->workers[0])->told,
                         unit->local[0][0] + first);
}

/* Updates the tensors of the flat array one after the other, because they share a room. */
static sluice_status apply_flat(const onebit_lamb *o, const slc_onebit_unit *unit)
{
    slc_compress_room *room = slc_compress_room_of(&unit->workers[0]);
    uint64_t elements = 0;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < unit->tensor_count; elements += unit->tensors[i++].count) {
        const slc_compress_results results = {.shape = &unit->group->shapes[0],
                                              .packets = unit->results,
                                              .stride = unit->group->stride,
                                              .first = elements,
                                              .count = unit->tensors[i].count};
        const slc_frozen_lamb_tensor tensor = received_tensor(o, unit, i, &results, room);
        status = slc_fill_zero(o->stream, room, offsetof(slc_compress_room, product));
        if (!status) status = apply_tensors(o, unit, i, 1, &tensor, &room);
    }
    return status ? status : keep_padding(o, unit, elements);
}

static sluice_status apply(void *context, const slc_onebit_unit *unit, uint32_t *bad)
{
    const onebit_lamb *o = context;
    sluice_status status = check_unit(o, unit);
    if (!status) status = slc_onebit_look(o->stream, unit, true, bad);
    if (status) return status;
    return o->settings.onebit.compat ? apply_flat(o, unit) : apply_each(o, unit);
}

/* ---- Creation ---- */

static sluice_status check_settings(const slc_compressed_settings *s)
{
    if (s->onebit.compat && s->onebit.freeze_step == 1)
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "%s: freeze_step 1 in compat: the original discards the first step's gradient and would freeze "
            "a variance of 0; give a freeze_step of 2 or more, or leave compat out",
            name);
    if (!(s->onebit.coefficient_beta >= 0 && s->onebit.coefficient_beta < 1) || !(s->onebit.trust_min >= 0) ||
        !(s->onebit.trust_max >= s->onebit.trust_min) || !(s->onebit.trust_max > 0) || isinf(s->onebit.trust_max))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: the trust ratio is clamped to %g..%g (not below 0) and averaged with beta %g (in [0, 1))",
                         name, s->onebit.trust_min, s->onebit.trust_max, s->onebit.coefficient_beta);
    if (!(s->onebit.factor_min > 0) || !(s->onebit.factor_max >= s->onebit.factor_min) || isinf(s->onebit.factor_max) ||
        !(s->onebit.factor_threshold > 0 && s->onebit.factor_threshold < 1))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: its factor is clamped to %g..%g (above 0) and changes by a share of %g (between 0 and 1)",
                         name, s->onebit.factor_min, s->onebit.factor_max, s->onebit.factor_threshold);
    return SLUICE_OK;
}

static void destroy(void *context)
{
    onebit_lamb *o = context;
    slc_pinned_destroy(&o->memory);
    free(o->parameters);
    free(o->told);
    free(o->frozen_updates);
    free(o);
}

static const slc_compressed functions = {
    .optimizer = {.name = "onebit_lamb",
                  .state_count = STATES,
                  .state_name = {"exp_avg", "exp_avg_sq", "exp_avg_sq_fresh"},
                  .update = update,
                  .mixed_precision = true,
                  .norm_count = NORMS,
                  .maximum_count = 1,
                  .measure = measure,
                  .on_stream = true,
                  .update_many = update_many,
                  .measure_many = measure_many},
    .local_name = {"flat"},
    .phase_count = 2,
    .phases = {{.compressed = false}, {.compressed = true}},
    .commit = commit,
    .phase = phase,
    .agreed = agreed,
    .begin_step = begin_step,
    .compress = compress,
    .apply = apply,
    .wants_norms = wants_norms,
    .end_step = end_step,
    .waits_for = waits_for,
    .progress_count = SLC_FREEZE_PROGRESS,
    .progress_name = {SLC_FREEZE_PROGRESS_NAMES},
    .parameter_progress_count = PARAMETER_PROGRESS,
    .counted_progress_count = PARAMETER_PROGRESS - LEARNED,
    .parameter_progress_name = {"coefficient", "ratios", "last_factor", "scaling", SLC_FREEZE_UPDATES_NAME},
    .progress_save = progress_save,
    .progress_check = progress_check,
    .progress_load = progress_load,
    .destroy = destroy,
};

sluice_status slc_onebit_lamb_create(const slc_compressed_settings *settings, sluice_stream *stream,
                                     slc_compressed *out)
{
    const slc_compressed_settings *s = settings;
    const sluice_adamw adam = {s->lamb.beta1, s->lamb.beta2, s->lamb.epsilon, s->lamb.weight_decay};
    const slc_freeze_settings freeze = {s->onebit.freeze_step, s->onebit.freeze_change, adam.beta2, s->onebit.compat};
    sluice_status status = slc_lamb_check(name, &s->lamb);
    if (!status) status = slc_freeze_check(name, &freeze);
    if (!status) status = check_settings(s);
    if (status) return status;
    onebit_lamb *o = malloc(sizeof *o);
    if (!o) return slc_error(SLUICE_ERR_MEMORY, name);
    *o = (onebit_lamb){.settings = *s,
                       .adam = adam,
                       .freeze = {.settings = freeze, .waits_for = UINT32_MAX},
                       .rules = rules_of(s),
                       .stream = stream};
    *out = functions;
    out->phases[0].fuses = out->phases[1].fuses = s->onebit.compat;
    out->phases[1].local_arrays = s->onebit.compat;
    out->context = out->optimizer.context = o;
    return SLUICE_OK;
}
