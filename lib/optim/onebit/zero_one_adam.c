/* Counters between steps, the plan of a step made from them when it begins, and its constants; kernels do the rest. */
#include "lib/optim/onebit/zero_one_adam.h"

#include "lib/base/integer.h"
#include "lib/base/numbers/equal_math.h"
#include "lib/base/status.h"
#include "lib/kernels/zero_one/zero_one.h"
#include "lib/optim/adam.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char name[] = "0/1 Adam";
enum { EXP_AVG, EXP_AVG_SQ };
enum { ACCUMULATOR, KEPT };

/* The numbers that a checkpoint keeps. */
typedef struct {
    uint64_t refresh_interval, refresh_counter; /* K, and refreshes since it changed */
    uint64_t refreshes;                         /* k */
    uint64_t frozen_at;                         /* the last step of phase 1; 0: not yet */
    uint64_t local_interval, local_counter;     /* H, and steps since it changed */
    uint64_t interval_steps;                    /* since the last exchange of phase 2 */
    double rates, decayed;                      /* of these steps: L, and the product of 1 - lr wd */
} counters;

enum { REFRESHES = 2, PROGRESS = 9, WHOLE = 7 }; /* the first WHOLE are counters */
static const char *const progress_name[PROGRESS] = {"refresh_interval", "refresh_counter", "refreshes",
                                                    "frozen_at",        "local_interval",  "local_counter",
                                                    "interval_steps",   "rates",           "decayed"};
static const char parameter_progress_name[] = "refreshes";

/* The counters of a parameter. They count only the steps that have kept the parameter; the counters of an interval only
 * those in which it lay in a onebit unit. */
typedef struct {
    uint64_t refreshes, interval_steps;
    double rates, decayed;
} own_counters;

/* A step as its updates see it, and the counters after it. */
typedef struct {
    slc_step_mode mode; /* of onebit units */
    bool discards, refreshes, frozen;
    counters after;
    own_counters *own_after; /* of each parameter */
    bool *exchanges;         /* of each parameter: the step ends its interval */
} step_plan;

typedef struct {
    slc_compressed_settings settings;
    counters now;
    own_counters *own;  /* [count], now */
    bool *untrained;    /* [count] */
    uint32_t waits_for; /* the first parameter that no refresh has given a variance, when all else was ready for fewer
                           of them; UINT32_MAX: none */
    step_plan plans[2]; /* by the step's parity */
    uint32_t ranks, count;
    sluice_stream *stream;
} zero_one;

static const step_plan *plan_of(const zero_one *o, uint64_t step)
{
    return &o->plans[step % 2];
}

/* ---- Phases ---- */

typedef enum { WARM_UP, REFRESHING, EXCHANGING, MOVING, PHASES } phase_number;

static slc_compressed_phase describe(phase_number number, bool compat)
{
    return (slc_compressed_phase){.compressed = number != WARM_UP,
                                  .refreshes = number == REFRESHING,
                                  .local_arrays = number == MOVING ? (compat ? 1 : 2) : 0};
}

static slc_compressed_phase phase(const void *context, uint64_t step)
{
    const zero_one *o = context;
    (void)step; /* the next one */
    phase_number number = !o->now.frozen_at           ? o->now.refresh_interval > 1 ? REFRESHING : WARM_UP
                          : o->now.local_interval > 1 ? MOVING
                                                      : EXCHANGING;
    return describe(number, o->settings.onebit.compat);
}

/* Returns the first parameter that has had no refresh, UINT32_MAX: none. */
static uint32_t first_without_variance(const zero_one *o, const own_counters *own)
{
    for (uint32_t p = 0; p < o->count; p++)
        if (!o->untrained[p] && !own[p].refreshes) return p;
    return UINT32_MAX;
}

/* Counts a refresh. Steps between refreshes compress, so the first of them comes only when each parameter has had a
 * refresh. */
static void count_refresh(zero_one *o, const own_counters *own, counters *c)
{
    c->refreshes++;
    if (++c->refresh_counter < o->settings.onebit.var_update_scaler) return;
    o->waits_for = first_without_variance(o, own);
    if (o->waits_for != UINT32_MAX) return;
    c->refresh_counter = 0;
    c->refresh_interval *= 2;
}

/* `open`: some parameter has moved since its last exchange. */
static void count_frozen_step(const zero_one *o, counters *c, bool open)
{
    if (!open) c->interval_steps = 0, c->rates = 0, c->decayed = 1;
    if (++c->local_counter < o->settings.onebit.local_step_scaler) return;
    c->local_counter = 0;
    c->local_interval *= 2;
    if (c->local_interval > o->settings.onebit.local_step_clipper)
        c->local_interval = o->settings.onebit.local_step_clipper;
}

static void end_interval(own_counters *own)
{
    own->interval_steps = 0, own->rates = 0, own->decayed = 1;
}

/* Counts the step for each parameter. A parameter outside of onebit units has no interval; it may have got that of the
 * job, with a checkpoint's numbers. */
static void count_own(const zero_one *o, const step_plan *plan, double learning_rate, const uint8_t *roles)
{
    for (uint32_t p = 0; p < o->count; p++) {
        const uint8_t role = roles ? roles[p] : SLC_IN_ONEBIT;
        const bool kept = !(role & SLC_LEFT_OUT), moves = kept && plan->frozen && role & SLC_IN_ONEBIT;
        own_counters *own = &plan->own_after[p];
        *own = o->own[p];
        if (!(role & SLC_IN_ONEBIT)) end_interval(own);
        own->refreshes += kept && plan->refreshes && !plan->discards;
        plan->exchanges[p] = moves && plan->mode == SLC_STEP_EXCHANGE;
        if (!moves) continue;
        own->interval_steps++;
        own->rates += learning_rate;
        own->decayed *= 1 - learning_rate * o->settings.adamw.weight_decay;
    }
}

static slc_step_mode begin_step(void *context, uint64_t step, double learning_rate, bool exchange_now,
                                const uint8_t *roles)
{
    zero_one *o = context;
    const bool frozen = o->now.frozen_at;
    step_plan *plans = &o->plans[step % 2];
    step_plan plan = {.discards = o->settings.onebit.compat && step == 1,
                      .frozen = frozen,
                      .after = o->now,
                      .own_after = plans->own_after,
                      .exchanges = plans->exchanges};
    if (frozen) {
        plan.after.interval_steps++;
        plan.after.rates += learning_rate;
        plan.after.decayed *= 1 - learning_rate * o->settings.adamw.weight_decay;
        plan.mode = exchange_now || step % o->now.local_interval == 0 ? SLC_STEP_EXCHANGE : SLC_STEP_LOCAL;
    } else {
        plan.refreshes = step % o->now.refresh_interval == 0;
        plan.mode = plan.refreshes || o->now.refresh_interval == 1 ? SLC_STEP_AVERAGE : SLC_STEP_EXCHANGE;
    }
    count_own(o, &plan, learning_rate, roles);
    o->waits_for = UINT32_MAX;
    if (plan.refreshes && !plan.discards) count_refresh(o, plan.own_after, &plan.after);
    *plans = plan;
    return plan.mode;
}

static uint32_t wants_norms(const void *context, uint64_t step)
{
    (void)context, (void)step;
    return 0;
}

/* Takes over the counters of parameters after a step. Returns whether any interval is open. */
static bool end_own(const zero_one *o, const step_plan *plan)
{
    bool open = false;
    for (uint32_t p = 0; p < o->count; p++) {
        o->own[p] = plan->own_after[p];
        if (plan->exchanges[p]) end_interval(&o->own[p]);
        open |= o->own[p].interval_steps > 0;
    }
    return open;
}

static uint32_t end_step(void *context, uint64_t step, const uint64_t *updates,
                         const double *const norms[SLUICE_OPTIMIZER_STATES_MAX])
{
    (void)updates, (void)norms;
    zero_one *o = context;
    const slc_compressed_phase before = phase(o, step);
    const step_plan *plan = plan_of(o, step);
    o->now = plan->after;
    const bool open = end_own(o, plan);
    if (plan->frozen)
        count_frozen_step(o, &o->now, open);
    else if (step >= o->settings.onebit.var_freeze_step + o->settings.onebit.compat) {
        o->waits_for = first_without_variance(o, o->own);
        if (o->waits_for == UINT32_MAX) o->now.frozen_at = step;
    }
    const slc_compressed_phase after = phase(o, step + 1);
    if (before.compressed != after.compressed || before.refreshes != after.refreshes)
        return SLC_PHASE_CHANGED | SLC_RESET_ERRORS;
    return before.local_arrays != after.local_arrays ? SLC_PHASE_CHANGED : 0;
}

static uint32_t waits_for(const void *context)
{
    return ((const zero_one *)context)->waits_for;
}

static sluice_status commit(void *context, uint32_t ranks, uint32_t count, const slc_compressed_parameter *parameters)
{
    zero_one *o = context;
    const size_t most = count ? count : 1;
    bool complete = (o->own = calloc(most, sizeof *o->own)) != NULL;
    complete &= (o->untrained = calloc(most, sizeof *o->untrained)) != NULL;
    for (int i = 0; i < 2; i++) {
        complete &= (o->plans[i].own_after = calloc(most, sizeof *o->own)) != NULL;
        complete &= (o->plans[i].exchanges = calloc(most, sizeof *o->plans[i].exchanges)) != NULL;
    }
    if (!complete) return slc_error(SLUICE_ERR_MEMORY, "%s: %u parameters", name, count);
    for (uint32_t p = 0; p < count; p++) {
        end_interval(&o->own[p]);
        o->untrained[p] = parameters[p].frozen;
    }
    o->ranks = ranks;
    o->count = count;
    return SLUICE_OK;
}

/* ---- Averaged gradients ---- */

static const own_counters *own_of(const zero_one *o, const sluice_update *u)
{
    return &plan_of(o, slc_job_step_of(u))->own_after[u->parameter];
}

static slc_adamw_settings settings_at(const zero_one *o, const sluice_update *u)
{
    slc_adamw_settings s = slc_adam_settings_at(&o->settings.adamw, u);
    s.bias_correction2 = 1 - slc_power(s.beta2, slc_most(1, own_of(o, u)->refreshes));
    if (o->settings.onebit.compat) s.bias_correction1 = s.bias_correction2 = 1;
    return s;
}

static bool masks(const zero_one *o)
{
    return o->settings.onebit.compat_mask || !o->settings.onebit.compat;
}

/* Updates values as the other steps do, and the variance too. */
static sluice_status refresh_alike(const zero_one *o, const sluice_update *u, uint32_t count)
{
    const slc_adamw_settings settings = settings_at(o, u);
    slc_adamw_range ranges[SLUICE_OPTIMIZER_RANGES_MAX];
    for (uint32_t i = 0; i < count; i++) ranges[i] = slc_adam_range_of(&u[i]);
    return slc_adamw_many(slc_adam_stream_of(u, o->stream), &settings, count, ranges);
}

static sluice_status move_alike(const zero_one *o, const sluice_update *u, uint32_t count)
{
    const void *gradients[SLUICE_OPTIMIZER_RANGES_MAX];
    slc_frozen_range ranges[SLUICE_OPTIMIZER_RANGES_MAX];
    slc_adamw_settings settings = settings_at(o, u);
    if (o->settings.onebit.compat && o->ranks == 1 && !plan_of(o, slc_job_step_of(u))->frozen) settings.beta1 = 1;
    for (uint32_t i = 0; i < count; i++) {
        gradients[i] = u[i].gradient;
        ranges[i] = (slc_frozen_range){.count = u[i].count,
                                       .value = u[i].value,
                                       .momentum = u[i].state[EXP_AVG],
                                       .momentum_dtype = SLUICE_FP32,
                                       .exp_avg_sq = u[i].state[EXP_AVG_SQ],
                                       .rounded = u[i].rounded,
                                       .no_decay = u[i].no_decay,
                                       .mask = masks(o)};
    }
    return slc_frozen_update_many(slc_adam_stream_of(u, o->stream), &settings, count, u->gradient_dtype, gradients,
                                  ranges);
}

static sluice_status update_many(const sluice_update *u, size_t count, void *context)
{
    const zero_one *o = context;
    const step_plan *plan = plan_of(o, slc_job_step_of(u));
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0, alike; !plan->discards && !status && i < count; i += alike) {
        alike = slc_updates_alike(u, i, (uint32_t)count, &plan->own_after->refreshes, sizeof *plan->own_after);
        status = plan->refreshes ? refresh_alike(o, u + i, alike) : move_alike(o, u + i, alike);
    }
    return status;
}

static sluice_status update(const sluice_update *u, void *context)
{
    return update_many(u, 1, context);
}

/* ---- Onebit units ---- */

static slc_zero_one_range range_of(const zero_one *o, const slc_onebit_unit *unit, uint32_t i)
{
    const sluice_update *u = &unit->tensors[i];
    const step_plan *plan = plan_of(o, slc_job_step_of(u));
    const bool begins = plan->frozen && own_of(o, u)->interval_steps == 1;
    const bool inside = plan->frozen && (plan->mode == SLC_STEP_LOCAL || !begins);
    return (slc_zero_one_range){.count = u->count,
                                .value = u->value,
                                .exp_avg = u->state[EXP_AVG],
                                .exp_avg_sq = u->state[EXP_AVG_SQ],
                                .rounded = u->rounded,
                                .accumulator = inside ? unit->local[ACCUMULATOR][i] : NULL,
                                .kept = inside && !o->settings.onebit.compat ? unit->local[KEPT][i] : NULL,
                                .no_decay = u->no_decay,
                                .decay_moves = o->settings.onebit.compat,
                                .mask = plan->mode == SLC_STEP_LOCAL ? !o->settings.onebit.compat : masks(o),
                                .begins = begins,
                                .number = u->parameter};
}

/* The gradient itself, or u D with this step's move in it: (u - lr wd w) D - lr/c1 (b1 m + (1-b1) g). */
static slc_compress_input input_of(const void *context, const slc_onebit_unit *unit, uint32_t i)
{
    const zero_one *o = context;
    const sluice_update *u = &unit->tensors[i];
    const slc_zero_one_range range = range_of(o, unit, i);
    const slc_adamw_settings s = settings_at(o, u);
    const double rate = -s.learning_rate / s.bias_correction1;
    const bool decays = o->settings.onebit.compat && s.weight_decay > 0 && !u->no_decay;
    slc_compress_input input = {.gradient_dtype = u->gradient_dtype,
                                .momentum_dtype = SLUICE_FP32,
                                .gradient = u->gradient,
                                .gradient_factor = u->gradient_factor,
                                .rest = 1,
                                .words = u->words};
    if (!plan_of(o, slc_job_step_of(u))->frozen) return input;
    input.momentum = range.exp_avg;
    input.factor = rate * s.beta1, input.rest = rate * (1 - s.beta1);
    if (!range.begins || decays)
        input.moves = (slc_compress_moves){.exp_avg_sq = range.exp_avg_sq,
                                           .accumulator = range.accumulator,
                                           .value = decays ? range.value : NULL,
                                           .decay = s.learning_rate * s.weight_decay,
                                           .rescale = 1 / sqrt(s.bias_correction2),
                                           .epsilon = s.epsilon};
    return input;
}

static sluice_status check_unit(const zero_one *o, const slc_onebit_unit *unit)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < unit->tensor_count; i++)
        status =
            slc_onebit_check(name, unit, i, plan_of(o, slc_job_step_of(&unit->tensors[i]))->mode == SLC_STEP_EXCHANGE);
    return status;
}

static sluice_status compress(void *context, const slc_onebit_unit *unit, uint32_t *bad)
{
    const zero_one *o = context;
    sluice_status status = check_unit(o, unit);
    return status ? status : slc_onebit_compress_each(o->stream, unit, input_of, o, bad);
}

static slc_zero_one_tensor tensor_of(const zero_one *o, const slc_onebit_unit *unit, uint32_t i)
{
    const sluice_update *u = &unit->tensors[i];
    return (slc_zero_one_tensor){.settings = settings_at(o, u),
                                 .gradient_dtype = u->gradient_dtype,
                                 .gradient = u->gradient,
                                 .range = range_of(o, unit, i)};
}

/* Returns tensor i as it is after an exchange. */
static slc_zero_one_tensor exchanged_tensor(const zero_one *o, const slc_onebit_unit *unit, uint32_t i)
{
    const own_counters *own = own_of(o, &unit->tensors[i]);
    slc_zero_one_tensor t = tensor_of(o, unit, i);
    t.settings.words = &slc_compress_room_of(&unit->workers[i])->told;
    t.results = slc_onebit_results(unit, i);
    if (!plan_of(o, slc_job_step_of(&unit->tensors[i]))->frozen) return t;
    /* The next interval would begin without reading u; but whoever reads it in between finds that nothing has moved. */
    t.range.clears = t.range.accumulator != NULL;
    t.momentum_factor = own->rates > 0 ? -t.settings.bias_correction1 / own->rates : 0;
    t.value_factor = o->settings.onebit.compat ? 1 : own->decayed;
    return t;
}

static sluice_status apply(void *context, const slc_onebit_unit *unit, uint32_t *bad)
{
    const zero_one *o = context;
    const bool frozen = plan_of(o, slc_job_step_of(&unit->tensors[0]))->frozen;
    slc_zero_one_tensor tensors[SLC_ONEBIT_TOGETHER];
    sluice_status status = check_unit(o, unit);
    if (!status) status = slc_onebit_look(o->stream, unit, true, bad);
    for (uint32_t first = 0; !status && first < unit->tensor_count; first += SLC_ONEBIT_TOGETHER) {
        const uint32_t left = unit->tensor_count - first, own = left < SLC_ONEBIT_TOGETHER ? left : SLC_ONEBIT_TOGETHER;
        for (uint32_t k = 0; k < own; k++) tensors[k] = exchanged_tensor(o, unit, first + k);
        status = frozen ? slc_zero_one_exchanged_many(o->stream, own, tensors)
                        : slc_zero_one_gradient_many(o->stream, own, tensors);
    }
    return status;
}

static sluice_status local(void *context, const slc_onebit_unit *unit, uint32_t *bad)
{
    const zero_one *o = context;
    slc_zero_one_tensor tensors[SLC_ONEBIT_TOGETHER];
    sluice_status status = SLUICE_OK;
    for (uint32_t first = 0; !status && first < unit->tensor_count; first += SLC_ONEBIT_TOGETHER) {
        const uint32_t left = unit->tensor_count - first, own = left < SLC_ONEBIT_TOGETHER ? left : SLC_ONEBIT_TOGETHER;
        for (uint32_t k = 0; k < own; k++) {
            const sluice_update *u = &unit->tensors[first + k];
            if (plan_of(o, slc_job_step_of(u))->mode != SLC_STEP_LOCAL)
                return slc_error(SLUICE_ERR_ORDER, "%s: step %llu is not local", name,
                                 (unsigned long long)slc_job_step_of(u));
            tensors[k] = tensor_of(o, unit, first + k);
            tensors[k].range.bad = bad;
        }
        status = slc_zero_one_local_many(o->stream, own, tensors);
    }
    return status;
}

/* ---- Checkpoints ---- */

static void progress_save(const void *context, uint32_t parameter, double *values)
{
    const zero_one *o = context;
    const counters *c = &o->now;
    if (parameter != UINT32_MAX) {
        values[0] = (double)o->own[parameter].refreshes;
        return;
    }
    const double saved[PROGRESS] = {(double)c->refresh_interval,
                                    (double)c->refresh_counter,
                                    (double)c->refreshes,
                                    (double)c->frozen_at,
                                    (double)c->local_interval,
                                    (double)c->local_counter,
                                    (double)c->interval_steps,
                                    c->rates,
                                    c->decayed};
    memcpy(values, saved, sizeof saved);
}

static counters counters_of(const double *values)
{
    return (counters){.refresh_interval = (uint64_t)values[0],
                      .refresh_counter = (uint64_t)values[1],
                      .refreshes = (uint64_t)values[REFRESHES],
                      .frozen_at = (uint64_t)values[3],
                      .local_interval = (uint64_t)values[4],
                      .local_counter = (uint64_t)values[5],
                      .interval_steps = (uint64_t)values[6],
                      .rates = values[7],
                      .decayed = values[8]};
}

static sluice_status check_counters(const double *values)
{
    for (int i = 0; i < PROGRESS; i++)
        if (!(values[i] >= 0 && values[i] < 0x1p53) || (i < WHOLE && !slc_is_counter(values[i])))
            return slc_error(SLUICE_ERR_ARGUMENT, "%s: %s is saved as %g", name, progress_name[i], values[i]);
    const counters saved = counters_of(values);
    if (!saved.refresh_interval || !saved.local_interval)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s: a saved interval between refreshes or exchanges is 0", name);
    return SLUICE_OK;
}

static sluice_status read_refreshes(const double *job, uint32_t parameter, const double *values, uint64_t *refreshes)
{
    return slc_read_own_count(name, parameter_progress_name, parameter, values[0], (uint64_t)job[REFRESHES], refreshes);
}

static sluice_status progress_check(const void *context, const double *job, uint32_t parameter, const double *values)
{
    uint64_t refreshes;
    (void)context;
    return parameter == UINT32_MAX ? check_counters(values) : read_refreshes(job, parameter, values, &refreshes);
}

/* Takes the job's counters. All parameters take over the numbers of refreshes and of the interval, unless the job has
 * these numbers already: then parameters go on with their own. */
static void take_counters(zero_one *o, const counters *loaded)
{
    const counters *now = &o->now;
    const bool refreshed = loaded->refreshes != now->refreshes;
    const bool moved =
        loaded->interval_steps != now->interval_steps || loaded->rates != now->rates || loaded->decayed != now->decayed;
    for (uint32_t p = 0; p < o->count; p++) {
        own_counters *own = &o->own[p];
        if (refreshed) own->refreshes = loaded->refreshes;
        if (moved)
            own->interval_steps = loaded->interval_steps, own->rates = loaded->rates, own->decayed = loaded->decayed;
    }
    o->now = *loaded;
}

static sluice_status progress_load(void *context, uint32_t parameter, const double *values)
{
    zero_one *o = context;
    double job[PROGRESS];
    progress_save(o, UINT32_MAX, job);
    if (parameter != UINT32_MAX) return read_refreshes(job, parameter, values, &o->own[parameter].refreshes);
    sluice_status status = check_counters(values);
    if (status) return status;
    const counters loaded = counters_of(values);
    take_counters(o, &loaded);
    return SLUICE_OK;
}

static sluice_status check(const slc_compressed_settings *s)
{
    sluice_status status = slc_adam_check(name, &s->adamw);
    if (status) return status;
    if (!s->onebit.var_freeze_step || !s->onebit.var_update_scaler || !s->onebit.local_step_scaler ||
        !s->onebit.local_step_clipper)
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "%s: var_freeze_step %llu, var_update_scaler %llu, local_step_scaler %llu, local_step_clipper "
            "%llu: each must be above 0",
            name, (unsigned long long)s->onebit.var_freeze_step, (unsigned long long)s->onebit.var_update_scaler,
            (unsigned long long)s->onebit.local_step_scaler, (unsigned long long)s->onebit.local_step_clipper);
    return SLUICE_OK;
}

static void destroy(void *context)
{
    zero_one *o = context;
    for (int i = 0; i < 2; i++) {
        free(o->plans[i].own_after);
        free(o->plans[i].exchanges);
    }
    free(o->own);
    free(o->untrained);
    free(o);
}

sluice_status slc_zero_one_adam_create(const slc_compressed_settings *settings, sluice_stream *stream,
                                       slc_compressed *out)
{
    sluice_status status = check(settings);
    if (status) return status;
    zero_one *o = malloc(sizeof *o);
    if (!o) return slc_error(SLUICE_ERR_MEMORY, name);
    *o = (zero_one){.settings = *settings,
                    .now = {.refresh_interval = 1, .local_interval = 1, .decayed = 1},
                    .waits_for = UINT32_MAX,
                    .stream = stream};
    *out = (slc_compressed){.optimizer = {.name = "zero_one_adam",
                                          .state_count = 2,
                                          .state_name = {"exp_avg", "exp_avg_sq"},
                                          .update = update,
                                          .context = o,
                                          .mixed_precision = true,
                                          .on_stream = true,
                                          .update_many = update_many},
                            .local_name = {"accumulator", "kept"},
                            .phase_count = settings->onebit.local_step_clipper > 1 ? PHASES : MOVING,
                            .commit = commit,
                            .phase = phase,
                            .begin_step = begin_step,
                            .compress = compress,
                            .apply = apply,
                            .local = local,
                            .exchange_rounds = settings->onebit.compat,
                            .wants_norms = wants_norms,
                            .end_step = end_step,
                            .waits_for = waits_for,
                            .progress_count = PROGRESS,
                            .parameter_progress_count = 1,
                            .counted_progress_count = 1,
                            .parameter_progress_name = {parameter_progress_name},
                            .progress_save = progress_save,
                            .progress_check = progress_check,
                            .progress_load = progress_load,
                            .destroy = destroy,
                            .context = o};
    for (uint32_t i = 0; i < out->phase_count; i++) out->phases[i] = describe(i, settings->onebit.compat);
    memcpy(out->progress_name, progress_name, sizeof progress_name);
    return SLUICE_OK;
}
