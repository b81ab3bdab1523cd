/* 0/1 Adam through the engine gives what the optimizer makes of the same gradients, under any plan: refreshes,
 * exchanges and local steps. Replicas are equal to the bit after every exchange, and while they are not, nothing reads
 * them. In compat, if roundings keep them apart, all ranks read the owners' values. */
#include "lib/base/element.h"
#include "lib/engine/model/param_arrays.h"
#include "lib/engine/runtime.h"
#include "tests/support/optim/onebit_exchange.h"
#include "lib/optim/onebit/zero_one_adam.h"
#include "tests/support/draw.h"
#include "tests/support/onebit_model.h"
#include "tests/support/scale.h"

#include <sys/mman.h>

#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <setjmp.h>
#include <cmocka.h>

static void passes(int ranks, rank_function function, const trial *t)
{
    assert_int_equal(run_ranks(ranks, function, (void *)(uintptr_t)t, 240), 0);
}

/* The schedule for var_freeze_step 12, scaler 3, local scaler 5 and clipper 4: it refreshes every step up to 3, every
 * second up to 8, then every fourth; it exchanges every step from 13, every second from 18, every fourth from 23. */
enum { FREEZE = 12, STEPS = 34 };

static bool is_local(uint64_t step)
{
    uint64_t interval = step < 18 ? 1 : step < 23 ? 2 : 4;
    return step > FREEZE && step % interval;
}

static trial short_phases(trial t)
{
    t.optimizer = "zero_one_adam";
    t.var_freeze_step = FREEZE, t.var_update_scaler = 3, t.local_step_scaler = 5, t.local_step_clipper = 4;
    return t;
}

static bool exchanges_now(uint64_t step)
{
    return step == 27 || step == STEPS;
}

/* ---- The engine compared with the optimizer alone ---- */

/* The model's description, and everything that rank 0 holds after each step that leaves replicas equal. */
typedef struct {
    float value[STEPS + 1][PARAMS_MAX][COUNT_MAX];
    bool onebit[STEPS + 1][PARAMS_MAX]; /* in the plan after the step */
    bool readable[STEPS + 1];
    known params[PARAMS_MAX];
    uint32_t param_count;
    trial trial;
} record;

static int run_recorded(int rank, int size, void *context)
{
    record *all = context;
    model m;
    if (model_world(&all->trial, rank, size, &m) || model_build(&m)) return 1;
    for (uint64_t step = 1; step <= STEPS; step++) {
        m.exchange = exchanges_now(step);
        if (model_step(&m, NULL)) return 1;
        bool readable;
        (void)sluice_runtime_replicas_equal(m.rt, &readable);
        RANK_CHECK(all->trial.leaves_out || readable || is_local(step));
        RANK_CHECK(readable || !m.exchange);
        if (!rank) all->readable[step] = readable;
        for (uint32_t p = 0; p < m.param_count; p++) {
            float x[COUNT_MAX];
            const bool onebit = model_is_onebit(&m.params[p]);
            if (readable) RANK_CHECK(!sluice_param_read(m.params[p].param, 0, m.params[p].count, x));
            if (!rank) memcpy(all->value[step][p], x, sizeof x);
            if (!rank) all->onebit[step][p] = onebit;
        }
    }
    if (!rank) memcpy(all->params, m.params, sizeof m.params);
    if (!rank) all->param_count = m.param_count;
    return model_leave(&m);
}

/* The arrays of one parameter on all ranks. */
typedef struct {
    float *value[MOST_RANKS], *state[MOST_RANKS][2], *local[MOST_RANKS][2], *gradient[MOST_RANKS];
    test_exchange exchange;
} replica_set;

static void replicas_init(replica_set *s, const record *all, uint32_t ranks, uint32_t p)
{
    const uint64_t count = all->params[p].count;
    test_exchange_init(&s->exchange, 1, &(slc_compress_shape){.count = count, .ranks = ranks});
    for (uint32_t r = 0; r < ranks; r++) {
        s->value[r] = test_floats(count), s->gradient[r] = test_floats(count);
        for (uint64_t i = 0; i < count; i++) s->value[r][i] = noise(all->trial.seed + p, i);
        for (int a = 0; a < 2; a++)
            s->state[r][a] = test_zeroed(count * sizeof(float)), s->local[r][a] = test_zeroed(count * sizeof(float));
    }
}

static void replicas_fini(replica_set *s, uint32_t ranks)
{
    for (uint32_t r = 0; r < ranks; r++) {
        test_release(s->value[r]), test_release(s->gradient[r]);
        for (int a = 0; a < 2; a++) test_release(s->state[r][a]), test_release(s->local[r][a]);
    }
    test_exchange_fini(&s->exchange);
}

/* Adds up over micro-batches; if the step averages, every rank gets the average. */
static void make_gradients(replica_set *s, const record *all, uint32_t ranks, uint32_t p, uint64_t step, bool averaged)
{
    const uint32_t batches = all->trial.micro_batches ? all->trial.micro_batches : 1;
    model m = {.t = &all->trial};
    memcpy(m.params, all->params, sizeof m.params);
    for (uint64_t i = 0; i < all->params[p].count; i++) {
        float sum = 0;
        for (uint32_t r = 0; r < ranks; r++) {
            s->gradient[r][i] = 0;
            for (uint32_t b = 0; b < batches; b++)
                s->gradient[r][i] += model_added(&m, p, i, step, b, (int)r, s->value[r][i]);
            sum += s->gradient[r][i];
        }
        for (uint32_t r = 0; averaged && r < ranks; r++) s->gradient[r][i] = sum * (float)(1.0 / (ranks * batches));
    }
}

typedef struct {
    sluice_update tensor;
    float *locals[2];
    slc_onebit_unit unit;
} rank_unit;

static bool leaves_out(const record *all, uint64_t step, uint32_t p)
{
    return !exchanges_now(step) && model_leaves_out(&all->trial, step, all->params[p].layer);
}

/* The parameter's updates up to this step. */
static uint64_t updates_of(const record *all, uint64_t step, uint32_t p)
{
    uint64_t updates = 0;
    for (uint64_t s = 1; s <= step; s++) updates += !leaves_out(all, s, p);
    return updates;
}

static void describe(rank_unit *u, replica_set *s, const record *all, uint32_t p, uint32_t rank, uint64_t step)
{
    const uint32_t batches = all->trial.micro_batches ? all->trial.micro_batches : 1;
    u->tensor = (sluice_update){.value = s->value[rank],
                                .gradient = s->gradient[rank],
                                .state = {s->state[rank][0], s->state[rank][1]},
                                .count = all->params[p].count,
                                .step = updates_of(all, step, p),
                                .job_step = step,
                                .learning_rate = 0.01,
                                .gradient_factor = 1.0 / batches,
                                .no_decay = all->params[p].no_decay,
                                .parameter = p};
    u->locals[0] = s->local[rank][0], u->locals[1] = s->local[rank][1];
    u->unit = (slc_onebit_unit){.tensor_count = 1,
                                .tensors = &u->tensor,
                                .local = {&u->locals[0], &u->locals[1]},
                                .group = &s->exchange.group,
                                .workers = s->exchange.worker[rank],
                                .packets = s->exchange.packets[rank],
                                .results = s->exchange.results};
}

static void alone(const slc_compressed *o, sluice_stream *stream, const record *all, uint32_t ranks, replica_set *s,
                  uint32_t p, uint64_t step, slc_step_mode how)
{
    const bool averaged = how == SLC_STEP_AVERAGE || !all->onebit[step - 1][p];
    uint32_t bad = UINT32_MAX;
    rank_unit u;
    make_gradients(s, all, ranks, p, step, averaged);
    for (uint32_t r = 0; r < ranks; r++) {
        describe(&u, s, all, p, r, step);
        if (averaged) u.tensor.gradient_factor = 1;
        sluice_status status = averaged                   ? o->optimizer.update(&u.tensor, o->optimizer.context)
                               : how == SLC_STEP_EXCHANGE ? o->compress(o->context, &u.unit, &bad)
                                                          : o->local(o->context, &u.unit, &bad);
        assert_int_equal(status, SLUICE_OK);
    }
    if (averaged || how != SLC_STEP_EXCHANGE) return;
    test_exchange_run(&s->exchange, stream);
    for (uint32_t r = 0; r < ranks; r++) {
        describe(&u, s, all, p, r, step);
        assert_int_equal(o->apply(o->context, &u.unit, &bad), SLUICE_OK);
    }
}

static void check_record(const record *all, uint32_t ranks)
{
    static const double *const none[SLUICE_OPTIMIZER_STATES_MAX];
    replica_set sets[PARAMS_MAX];
    sluice_stream stream = test_stream(1);
    slc_compressed o;
    const trial *t = &all->trial;
    const slc_compressed_settings settings = {.adamw = model_config(t).adamw,
                                              .onebit.var_freeze_step = t->var_freeze_step,
                                              .onebit.var_update_scaler = t->var_update_scaler,
                                              .onebit.local_step_scaler = t->local_step_scaler,
                                              .onebit.local_step_clipper = t->local_step_clipper};
    slc_compressed_parameter parameters[PARAMS_MAX] = {{0}};
    assert_int_equal(slc_zero_one_adam_create(&settings, &stream, &o), SLUICE_OK);
    assert_int_equal(o.commit(o.context, ranks, all->param_count, parameters), SLUICE_OK);
    for (uint32_t p = 0; p < all->param_count; p++) replicas_init(&sets[p], all, ranks, p);
    for (uint64_t step = 1; step <= STEPS; step++) {
        uint8_t roles[PARAMS_MAX];
        for (uint32_t p = 0; p < all->param_count; p++)
            roles[p] = (all->onebit[step - 1][p] ? SLC_IN_ONEBIT : 0) | (leaves_out(all, step, p) ? SLC_LEFT_OUT : 0);
        slc_step_mode how = o.begin_step(o.context, step, 0.01, exchanges_now(step) || ranks == 1, roles);
        for (uint32_t p = 0; p < all->param_count; p++) {
            if (!leaves_out(all, step, p)) alone(&o, &stream, all, ranks, &sets[p], p, step, how);
            if (!all->readable[step]) continue;
            for (uint64_t i = 0; i < all->params[p].count; i++)
                if (memcmp(&all->value[step][p][i], &sets[p].value[0][i], sizeof(float)))
                    fail_msg("step %llu, parameter %u, element %llu: %.9g through the engine, %.9g without",
                             (unsigned long long)step, p, (unsigned long long)i, (double)all->value[step][p][i],
                             (double)sets[p].value[0][i]);
        }
        bool resets = o.end_step(o.context, step, NULL, none) & SLC_RESET_ERRORS;
        for (uint32_t p = 0; resets && p < all->param_count; p++)
            for (uint32_t r = 0; r < ranks; r++) {
                memset(sets[p].exchange.worker_memory[r], 0, slc_compress_group_worker_bytes(&sets[p].exchange.group));
                memset(sets[p].exchange.server_memory[r], 0, slc_compress_group_server_bytes(&sets[p].exchange.group));
            }
    }
    for (uint32_t p = 0; p < all->param_count; p++) replicas_fini(&sets[p], ranks);
    o.destroy(o.context);
    slc_stream_destroy(&stream);
}

static void is_what_the_optimizer_makes(int ranks, trial t)
{
    record *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    all->trial = short_phases(t);
    assert_int_equal(run_ranks(ranks, run_recorded, all, 60), 0);
    check_record(all, (uint32_t)ranks);
    munmap(all, sizeof *all);
}

static void the_engine_adds_nothing(void **state)
{
    (void)state;
    is_what_the_optimizer_makes(1, (trial){.seed = 63});
    is_what_the_optimizer_makes(2, (trial){.seed = 64, .schedule = "one_ahead"});
    is_what_the_optimizer_makes(3, (trial){.seed = 65, .onebit_layers = 5, .other = "fsdp", .micro_batches = 2});
    is_what_the_optimizer_makes(4, (trial){.seed = 66, .messages = true});
    is_what_the_optimizer_makes(2, (trial){.seed = 71, .leaves_out = true, .fuse = "64KiB", .block = 65536});
    is_what_the_optimizer_makes(3, (trial){.seed = 72, .leaves_out = true, .onebit_layers = 6, .other = "fsdp"});
}

/* ---- Replicas ---- */

static int refuses_readers(model *m)
{
    float x;
    bool readable = true;
    RANK_CHECK(!sluice_runtime_replicas_equal(m->rt, &readable) && !readable);
    RANK_CHECK(sluice_param_read(m->params[0].param, 0, 1, &x) == SLUICE_ERR_ORDER);
    RANK_CHECK(strstr(sluice_last_error(), "exchange"));
    RANK_CHECK(sluice_evaluate_begin(m->rt) == SLUICE_ERR_ORDER);
    RANK_CHECK(sluice_runtime_replan(m->rt, NULL, "serial", 0) == SLUICE_ERR_ORDER);
    return 0;
}

/* Replicas are equal after every exchange, forced ones too; a local step in between refuses readers. */
static int many_steps(int rank, int size, void *context)
{
    model m;
    uint64_t hash, local = 0;
    const uint64_t freeze = ((const trial *)context)->var_freeze_step, steps = freeze * 10 / 3;
    if (model_world(context, rank, size, &m) || model_build(&m)) return 1;
    for (uint64_t step = 1; step <= steps; step++) {
        double inside, frozen_at;
        m.exchange = step % 101 == 0 || step == steps;
        if (model_step(&m, NULL)) return 1;
        RANK_CHECK(!sluice_runtime_progress_read(m.rt, NULL, "interval_steps", &inside));
        RANK_CHECK(!sluice_runtime_progress_read(m.rt, NULL, "frozen_at", &frozen_at));
        RANK_CHECK((frozen_at > 0) == (step >= freeze));
        local += inside > 0;
        if (inside > 0 && size > 1 ? refuses_readers(&m) : model_replicas_equal(&m, &hash)) return 1;
    }
    RANK_CHECK(size > 1 ? local > freeze : !local);
    return model_peak_is_planned(&m) || model_leave(&m);
}

static void replicas_are_equal_after_every_exchange(void **state)
{
    (void)state;
    const uint64_t scaled = test_rounds(400), least = test_brief() ? 100 : 200;
    const uint64_t steps = scaled < least ? least : scaled;
    trial t = {.optimizer = "zero_one_adam", .schedule = "one_ahead", .seed = 51};
    t.var_freeze_step = steps * 3 / 10, t.var_update_scaler = steps / 25;
    t.local_step_scaler = steps * 3 / 20, t.local_step_clipper = 16;
    passes(1, many_steps, &t);
    passes(2, many_steps, &t);
    t.onebit_layers = 9, t.other = "fsdp";
    passes(4, many_steps, &t);
}

/* ---- Replicas that differ by roundings ---- */

/* This rank's own replica, as its program sees it, and the values that all ranks read. */
typedef struct {
    float own[PARAMS_MAX][COUNT_MAX], read[PARAMS_MAX][COUNT_MAX];
} views;

/* Runs an evaluation that only looks at values. */
static int look_at_replica(model *m, views *v)
{
    RANK_CHECK(!sluice_evaluate_begin(m->rt));
    for (uint32_t l = 0; l < LAYERS; l++) {
        RANK_CHECK(!sluice_forward_begin(m->layers[l]));
        for (uint32_t p = 0; p < m->param_count; p++) {
            if (m->params[p].layer != l) continue;
            const void *value = sluice_param_value(m->params[p].param);
            RANK_CHECK(value);
            for (uint64_t i = 0; i < m->params[p].count; i++)
                v->own[p][i] = slc_element_value(value, sluice_param_dtype(m->params[p].param), i);
        }
        RANK_CHECK(!sluice_forward_end(m->layers[l]));
    }
    RANK_CHECK(!sluice_evaluate_end(m->rt));
    return 0;
}

static int same_hash_everywhere(model *m)
{
    char hex[RANKS_MAX][65] = {""}, mine[65];
    RANK_CHECK(!sluice_runtime_weights_sha256(m->rt, mine));
    RANK_CHECK(!sluice_world_all_gather(m->world, mine, sizeof mine, hex));
    for (int r = 0; r < m->size; r++) RANK_CHECK(!strcmp(hex[r], mine));
    return 0;
}

/* Values that are read must be equal on all ranks, and each element must be its owner's. *apart counts elements of
 * which this rank's own replica differs. */
static int reads_are_the_owners(model *m, views *v, uint64_t *apart)
{
    uint64_t hash, owned = 0;
    if (model_replicas_equal(m, &hash) || same_hash_everywhere(m) || look_at_replica(m, v)) return 1;
    for (uint32_t p = 0; p < m->param_count; p++) {
        const known *k = &m->params[p];
        const bool rounds = sluice_param_dtype(k->param) == SLUICE_BF16; /* the master is read */
        uint64_t first = 0, count = k->count;
        RANK_CHECK(!sluice_param_read(k->param, 0, k->count, v->read[p]));
        for (; !rounds && slc_param_owned(k->param, &first, &count); first += count, count = k->count - first) {
            RANK_CHECK(!memcmp(v->own[p] + first, v->read[p] + first, count * sizeof(float)));
            owned += count;
        }
        for (uint64_t i = 0; !rounds && i < k->count; i++) *apart += v->own[p][i] != v->read[p][i];
    }
    RANK_CHECK(owned > 0 || m->size > 2); /* a parameter of one element has one owner */
    return 0;
}

static int apart_by_roundings(int rank, int size, void *context)
{
    static views v;
    model m;
    double apart = 0;
    bool readable;
    if (model_world(context, rank, size, &m) || model_build(&m)) return 1;
    for (uint64_t step = 1; step <= STEPS; step++) {
        uint64_t own = 0;
        m.exchange = exchanges_now(step);
        if (model_step(&m, NULL)) return 1;
        const bool equal = sluice_runtime_replicas_equal(m.rt, &readable);
        RANK_CHECK(equal == (step < 19)); /* step 19 is the first local one: compat freezes a step later */
        if (!readable) continue;
        if (reads_are_the_owners(&m, &v, &own)) return 1;
        RANK_CHECK(!equal || !own);
        apart += (double)own;
    }
    RANK_CHECK(!sluice_world_all_reduce(m.world, &apart, 1));
    RANK_CHECK(apart > 0);
    /* A parameter that is written whole is the same on every rank; so is one that owners update and others gather. */
    for (uint32_t p = 0; p < m.param_count; p++)
        RANK_CHECK(!sluice_param_write(m.params[p].param, 0, m.params[p].count, v.read[p]));
    RANK_CHECK(sluice_runtime_replicas_equal(m.rt, &readable) && readable);
    return model_leave(&m);
}

static void compat_reads_the_owners_values(void **state)
{
    (void)state;
    trial t = short_phases((trial){.seed = 67, .compat = true, .schedule = "one_ahead", .block = 512});
    passes(2, apart_by_roundings, &t);
    t = short_phases((trial){.seed = 68, .compat = true, .messages = true, .bf16_layers = 4});
    passes(3, apart_by_roundings, &t);
}

/* After a re-plan that shards them, parameters go on from the owners' values. */
static int joined_by_a_replan(int rank, int size, void *context)
{
    static const char *const strategies[] = {"dp", "sdp", "fsdp", "onebit"};
    static views v;
    model m;
    if (model_world(context, rank, size, &m)) return 1;
    for (int s = 0; s < 4; s++) {
        uint64_t before, after, apart = 0;
        const bool joins = s == 1 || s == 2;
        if (model_build(&m)) return 1;
        for (uint64_t step = 1; step <= STEPS; step++) {
            m.exchange = exchanges_now(step);
            if (model_step(&m, NULL)) return 1;
        }
        RANK_CHECK(!sluice_runtime_replicas_equal(m.rt, NULL));
        if (model_replicas_equal(&m, &before)) return 1;
        RANK_CHECK(!sluice_runtime_replan(m.rt, strategies[s], NULL, 0));
        if (model_replicas_equal(&m, &after)) return 1;
        RANK_CHECK(before == after);
        m.exchange = true;
        if (model_step(&m, NULL) || reads_are_the_owners(&m, &v, &apart)) return 1;
        RANK_CHECK(sluice_runtime_replicas_equal(m.rt, NULL) == joins && (!joins || !apart));
        model_end(&m);
    }
    sluice_world_destroy(m.world);
    return 0;
}

static void a_replan_keeps_the_owners_values(void **state)
{
    (void)state;
    trial t = short_phases((trial){.seed = 69, .compat = true});
    passes(2, joined_by_a_replan, &t);
}

/* ---- Accumulated moves since the last exchange ---- */

static int accumulators(int rank, int size, void *context)
{
    model m;
    uint64_t empty = 0, moved = 0;
    if (model_world(context, rank, size, &m) || model_build(&m)) return 1;
    for (uint64_t step = 1; step <= STEPS; step++) {
        m.exchange = exchanges_now(step);
        if (model_step(&m, NULL)) return 1;
        double inside, most = 0;
        RANK_CHECK(!sluice_runtime_progress_read(m.rt, NULL, "interval_steps", &inside));
        for (uint32_t p = 0; p < m.param_count; p++) {
            float x[COUNT_MAX];
            const uint64_t count = sluice_param_state_count(m.params[p].param, "accumulator");
            if (!count) continue;
            RANK_CHECK(!sluice_param_state_read(m.params[p].param, "accumulator", 0, count, x));
            for (uint64_t i = 0; i < count; i++) most = fmax(most, fabs((double)x[i]));
            empty += !inside;
        }
        moved += inside > 0 && most > 0;
        RANK_CHECK(inside > 0 || !(most > 0));
    }
    RANK_CHECK(empty > 0 && moved > 0);
    return model_leave(&m);
}

static void the_accumulator_is_zero_after_an_exchange(void **state)
{
    (void)state;
    trial t = short_phases((trial){.seed = 70});
    passes(2, accumulators, &t);
    t.compat = true;
    passes(3, accumulators, &t);
}

/* ---- The same units, other plans ---- */

/* The weights after steps of which the last one exchanges. */
static int weights_of(const trial *t, model *m, uint64_t *hash)
{
    m->t = t;
    if (model_build(m)) return 1;
    for (uint64_t step = 1; step <= STEPS; step++) {
        sluice_step_report report = SLUICE_INIT(sluice_step_report);
        m->exchange = exchanges_now(step);
        if (model_step(m, &report)) return 1;
        RANK_CHECK(report.compressed == (step > 3 + (uint64_t)t->compat));
    }
    RANK_CHECK(sluice_runtime_replicas_equal(m->rt, NULL) == !t->compat);
    if (model_replicas_equal(m, hash)) return 1;
    if (model_peak_is_planned(m)) return 1;
    model_end(m);
    return 0;
}

static int any_schedule(int rank, int size, void *context)
{
    static const char *const schedules[] = {"one_ahead", "bucketed", "random", "greedy"};
    const trial *t = context;
    model m;
    uint64_t expected, hash;
    if (model_world(t, rank, size, &m) || weights_of(t, &m, &expected)) return 1;
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        trial other = *t;
        other.schedule = schedules[i];
        if (i % 2 && !t->compat) other.block = 512; /* in compat blocks decide who owns what, and so what is read */
        if (weights_of(&other, &m, &hash)) return 1;
        RANK_CHECK(hash == expected);
    }
    sluice_world_destroy(m.world);
    return 0;
}

static void any_schedule_gives_the_same_weights(void **state)
{
    (void)state;
    trial t = short_phases((trial){.seed = 52});
    passes(2, any_schedule, &t);
    t = short_phases((trial){.seed = 53, .onebit_layers = 6, .other = "fsdp", .clip = 0.4});
    passes(2, any_schedule, &t);
    t = short_phases((trial){.seed = 54, .onebit_layers = 5, .other = "sdp", .micro_batches = 2, .bf16_layers = 3});
    passes(3, any_schedule, &t);
    t = short_phases((trial){.seed = 55, .compat = true, .messages = true});
    passes(2, any_schedule, &t);
}

static int other_strategies(int rank, int size, void *context)
{
    return model_beside_any_strategy(rank, size, context, weights_of);
}

static void other_layers_may_be_sharded_in_any_way(void **state)
{
    (void)state;
    const trial t = short_phases((trial){.seed = 56, .onebit_layers = 6, .clip = 0.3, .micro_batches = 2});
    passes(3, other_strategies, &t);
}

/* Re-plans come after exchanges; residues move with their units. */
static int moved(int rank, int size, void *context)
{
    static const char *const schedules[] = {"one_ahead", "serial", "bucketed", "random"};
    model m;
    uint64_t hash, expected;
    if (model_world(context, rank, size, &m) || weights_of(context, &m, &expected) || model_build(&m)) return 1;
    for (uint64_t step = 1; step <= STEPS; step++) {
        m.exchange = exchanges_now(step);
        if (model_step(&m, NULL)) return 1;
        if (!is_local(step) || m.exchange) RANK_CHECK(!sluice_runtime_replan(m.rt, NULL, schedules[step % 4], 0));
    }
    if (model_replicas_equal(&m, &hash) || model_peak_is_planned(&m)) return 1;
    RANK_CHECK(hash == expected);
    return model_leave(&m);
}

static void residues_move_with_their_units(void **state)
{
    (void)state;
    trial t = short_phases((trial){.seed = 57});
    passes(2, moved, &t);
    t = short_phases((trial){.seed = 58, .onebit_layers = 10, .other = "fsdp"});
    passes(3, moved, &t);
}

/* ---- Gradients that are not finite ---- */

/* Every step, of whatever kind, is first skipped for a gradient that is not finite, and then made again; replicas stay
 * equal. */
static int skip_steps(int rank, int size, void *context)
{
    model m;
    uint64_t hash;
    if (model_world(context, rank, size, &m) || model_build(&m)) return 1;
    m.bad_param = (uint32_t)(m.t->seed % m.param_count);
    for (uint64_t step = 1; step <= STEPS; step++) {
        sluice_step_report report = SLUICE_INIT(sluice_step_report);
        m.exchange = step == STEPS;
        m.bad_rank = (int)(step % (uint64_t)size);
        m.bad_call = m.calls + 1;
        if (model_step(&m, &report)) return 1;
        RANK_CHECK(report.skipped && sluice_runtime_step(m.rt) == step - 1);
        if (model_step(&m, &report)) return 1;
        RANK_CHECK(!report.skipped && sluice_runtime_step(m.rt) == step);
        if ((!is_local(step) || m.exchange) && model_replicas_equal(&m, &hash)) return 1;
    }
    return model_peak_is_planned(&m) || model_leave(&m);
}

static void skipped_steps_are_made_again(void **state)
{
    (void)state;
    trial t = short_phases((trial){.seed = 59, .skip_nan = true});
    passes(2, skip_steps, &t);
    t = short_phases((trial){.seed = 60, .skip_nan = true, .clip = 0.5, .onebit_layers = 5, .other = "fsdp"});
    passes(4, skip_steps, &t);
}

/* A gradient that is not finite ends the run with an error that names its layer, be it in a refresh, an exchange of
 * gradients, an exchange of moves, or a local step. */
static int stop_at_once(int rank, int size, void *context)
{
    static const uint64_t calls[] = {6, 7, 14, 25};
    model m;
    if (model_world(context, rank, size, &m)) return 1;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (model_build(&m)) return 1;
        m.bad_call = calls[i], m.bad_rank = size - 1;
        m.bad_param = (uint32_t)((m.t->seed + i) % m.param_count);
        char layer[16];
        snprintf(layer, sizeof layer, "layer \"l%u\"", m.params[m.bad_param].layer);
        for (uint64_t step = 1; step < calls[i]; step++)
            if (model_step(&m, NULL)) return 1;
        if (model_compute(&m)) return 1;
        sluice_status status = sluice_step_end(m.rt, NULL);
        if (!status) status = sluice_runtime_sync(m.rt);
        RANK_CHECK(status == SLUICE_ERR_NON_FINITE && strstr(sluice_last_error(), layer));
        model_end(&m);
    }
    sluice_world_destroy(m.world);
    return 0;
}

static void a_gradient_that_is_not_finite_is_named_on_every_rank(void **state)
{
    (void)state;
    trial t = short_phases((trial){.seed = 61});
    passes(2, stop_at_once, &t);
    t = short_phases((trial){.seed = 62, .schedule = "one_ahead", .clip = 1});
    passes(3, stop_at_once, &t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_engine_adds_nothing),
        cmocka_unit_test(replicas_are_equal_after_every_exchange),
        cmocka_unit_test(compat_reads_the_owners_values),
        cmocka_unit_test(a_replan_keeps_the_owners_values),
        cmocka_unit_test(the_accumulator_is_zero_after_an_exchange),
        cmocka_unit_test(any_schedule_gives_the_same_weights),
        cmocka_unit_test(other_layers_may_be_sharded_in_any_way),
        cmocka_unit_test(residues_move_with_their_units),
        cmocka_unit_test(skipped_steps_are_made_again),
        cmocka_unit_test(a_gradient_that_is_not_finite_is_named_on_every_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
