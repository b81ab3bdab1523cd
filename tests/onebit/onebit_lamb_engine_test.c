/* 1-bit LAMB through the engine gives what the optimizer makes of the same gradients, to the bit: norms and maxima
 * reach every rank, whichever rank owns a part; the freeze comes when it is due; compat exchanges one flat array. */
#include "lib/optim/onebit/onebit_lamb.h"
#include "tests/support/optim/onebit_exchange.h"
#include "tests/support/draw.h"
#include "tests/support/onebit_model.h"

#include <sys/mman.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { STEPS = 16, STATES = 3, NORMS = SLUICE_OPTIMIZER_NORMS_MAX };

/* The model's description, and everything that rank 0 holds after each step. */
typedef struct {
    float value[STEPS + 1][PARAMS_MAX][COUNT_MAX];
    bool onebit[STEPS + 1][PARAMS_MAX]; /* in the plan after the step */
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
        if (model_step(&m, NULL)) return 1;
        for (uint32_t p = 0; p < m.param_count; p++) {
            float x[COUNT_MAX];
            const bool onebit = model_is_onebit(&m.params[p]);
            RANK_CHECK(!sluice_param_read(m.params[p].param, 0, m.params[p].count, x));
            if (!rank) memcpy(all->value[step][p], x, sizeof x);
            if (!rank) all->onebit[step][p] = onebit;
        }
    }
    if (!rank) memcpy(all->params, m.params, sizeof m.params);
    if (!rank) all->param_count = m.param_count;
    return model_leave(&m);
}

/* ---- The optimizer alone ---- */

/* Replicas are equal, so one set of arrays serves for all. In compat exchange[0] is that of all parameters. */
typedef struct {
    const record *all;
    uint32_t ranks, batches;
    sluice_stream stream;
    slc_compressed o;
    float *value[PARAMS_MAX], *state[PARAMS_MAX][STATES], *own[MOST_RANKS][PARAMS_MAX], *average[PARAMS_MAX];
    float *flat[MOST_RANKS];
    test_exchange exchange[PARAMS_MAX];
} lone;

static void create_optimizer(lone *l)
{
    const sluice_config config = model_config(&l->all->trial);
    const slc_compressed_settings settings = {.lamb = config.lamb, .onebit = config.onebit};
    assert_int_equal(slc_onebit_lamb_create(&settings, &l->stream, &l->o), SLUICE_OK);
}

static void lone_init(lone *l, const record *all, uint32_t ranks)
{
    *l = (lone){.all = all,
                .ranks = ranks,
                .batches = all->trial.micro_batches ? all->trial.micro_batches : 1,
                .stream = test_stream(1)};
    slc_compressed_parameter parameters[PARAMS_MAX];
    uint64_t elements = 0;
    create_optimizer(l);
    for (uint32_t p = 0; p < all->param_count; p++) {
        const uint64_t count = all->params[p].count;
        parameters[p] = (slc_compressed_parameter){.count = count, .no_decay = all->params[p].no_decay};
        l->value[p] = test_floats(count), l->average[p] = test_zeroed(count * sizeof(float));
        for (uint64_t i = 0; i < count; i++) l->value[p][i] = noise(all->trial.seed + p, i);
        for (int s = 0; s < STATES; s++) l->state[p][s] = test_zeroed(count * sizeof(float));
        for (uint32_t r = 0; r < ranks; r++) l->own[r][p] = test_floats(count);
        test_exchange_init(&l->exchange[p], 1, &(slc_compress_shape){.count = count, .ranks = ranks});
        elements += count;
    }
    const uint64_t flat = slc_flat_elements(elements, ranks);
    for (uint32_t r = 0; r < ranks; r++) l->flat[r] = test_zeroed(flat * sizeof(float));
    if (all->trial.compat) {
        test_exchange_fini(&l->exchange[0]);
        test_exchange_init(&l->exchange[0], 1, &(slc_compress_shape){.count = flat, .ranks = ranks});
    }
    assert_int_equal(l->o.commit(l->o.context, ranks, all->param_count, parameters), SLUICE_OK);
}

static void lone_fini(lone *l)
{
    for (uint32_t p = 0; p < l->all->param_count; p++) {
        test_release(l->value[p]), test_release(l->average[p]);
        for (int s = 0; s < STATES; s++) test_release(l->state[p][s]);
        for (uint32_t r = 0; r < l->ranks; r++) test_release(l->own[r][p]);
        test_exchange_fini(&l->exchange[p]);
    }
    for (uint32_t r = 0; r < l->ranks; r++) test_release(l->flat[r]);
    l->o.destroy(l->o.context);
    slc_stream_destroy(&l->stream);
}

/* Adds up over micro-batches, and over ranks in their order. */
static void make_gradients(lone *l, uint64_t step)
{
    model m = {.t = &l->all->trial};
    memcpy(m.params, l->all->params, sizeof m.params);
    for (uint32_t p = 0; p < l->all->param_count; p++)
        for (uint64_t i = 0; i < l->all->params[p].count; i++) {
            float sum = 0;
            for (uint32_t r = 0; r < l->ranks; r++) {
                l->own[r][p][i] = 0;
                for (uint32_t b = 0; b < l->batches; b++)
                    l->own[r][p][i] += model_added(&m, p, i, step, b, (int)r, l->value[p][i]);
                sum += l->own[r][p][i];
            }
            l->average[p][i] = sum * (float)(1.0 / (l->ranks * l->batches));
        }
}

static sluice_update update_of(const lone *l, uint32_t p, uint64_t step, const float *gradient, double factor)
{
    return (sluice_update){.value = l->value[p],
                           .gradient = gradient,
                           .state = {l->state[p][0], l->state[p][1], l->state[p][2]},
                           .count = l->all->params[p].count,
                           .step = step,
                           .learning_rate = 0.01,
                           .gradient_factor = factor,
                           .no_decay = l->all->params[p].no_decay,
                           .parameter = p};
}

static void average(lone *l, uint32_t p, uint64_t step)
{
    int64_t bins[NORMS][SLC_NORM_BINS] = {0}, *const sums[] = {bins[0], bins[1], bins[2]};
    sluice_update u = update_of(l, p, step, l->average[p], 1);
    double norms[NORMS];
    assert_int_equal(l->o.optimizer.measure(&u, sums, l->o.context), SLUICE_OK);
    for (int i = 0; i < 2; i++) norms[i] = slc_norm_result(bins[i]);
    memcpy(&norms[2], bins[2], sizeof norms[2]);
    assert_int_equal(l->o.agreed(l->o.context, step, 1, &(slc_agreed){.parameter = p, .norms = norms}), SLUICE_OK);
    u.norms = norms;
    assert_int_equal(l->o.optimizer.update(&u, l->o.context), SLUICE_OK);
}

/* Exchanges parameters first..last-1 as one unit. */
static void exchange(lone *l, uint32_t first, uint32_t last, uint64_t step)
{
    test_exchange *e = &l->exchange[first];
    for (uint32_t r = 0; r <= l->ranks; r++) { /* after the last rank's packets, all apply the result */
        const uint32_t rank = r < l->ranks ? r : 0;
        sluice_update tensors[PARAMS_MAX];
        float *parts[PARAMS_MAX], *part = l->flat[rank];
        uint32_t bad = UINT32_MAX;
        for (uint32_t p = first; p < last; part += l->all->params[p++].count) {
            tensors[p - first] = update_of(l, p, step, l->own[rank][p], 1.0 / l->batches);
            parts[p - first] = part;
        }
        const slc_onebit_unit unit = {.tensor_count = last - first,
                                      .tensors = tensors,
                                      .local = {parts},
                                      .group = &e->group,
                                      .workers = e->worker[rank],
                                      .packets = e->packets[rank],
                                      .results = e->results};
        if (r == l->ranks) test_exchange_run(e, &l->stream);
        assert_int_equal(
            r < l->ranks ? l->o.compress(l->o.context, &unit, &bad) : l->o.apply(l->o.context, &unit, &bad), SLUICE_OK);
        assert_int_equal(bad, UINT32_MAX);
    }
    for (uint32_t r = 1; l->all->trial.compat && r < l->ranks; r++)
        memcpy(l->flat[r], l->flat[0], e->group.shapes[0].count * sizeof(float));
}

static void end_step(lone *l, uint64_t step)
{
    double made[STATES][PARAMS_MAX];
    const double *norms[SLUICE_OPTIMIZER_STATES_MAX] = {0};
    for (int s = 0; s < STATES; s++) {
        if (!(l->o.wants_norms(l->o.context, step) >> s & 1)) continue;
        for (uint32_t p = 0; p < l->all->param_count; p++) {
            int64_t bins[SLC_NORM_BINS] = {0};
            slc_norm_add(&l->stream, SLUICE_FP32, l->all->params[p].count, l->state[p][s], bins);
            made[s][p] = slc_norm_result(bins);
        }
        norms[s] = made[s];
    }
    l->o.end_step(l->o.context, step, NULL, norms);
}

static void check_weights(const lone *l, uint64_t step)
{
    for (uint32_t p = 0; p < l->all->param_count; p++)
        for (uint64_t i = 0; i < l->all->params[p].count; i++)
            if (memcmp(&l->all->value[step][p][i], &l->value[p][i], sizeof(float)))
                fail_msg("step %llu, parameter %u, element %llu: %.9g through the engine, %.9g without",
                         (unsigned long long)step, p, (unsigned long long)i, (double)l->all->value[step][p][i],
                         (double)l->value[p][i]);
}

static void check_record(const record *all, uint32_t ranks, uint64_t frozen_at)
{
    const bool fuses = all->trial.compat;
    lone l;
    lone_init(&l, all, ranks);
    for (uint64_t step = 1; step <= STEPS; step++) {
        assert_int_equal(l.o.phase(l.o.context, step).compressed, step > frozen_at);
        make_gradients(&l, step);
        for (uint32_t p = 0; p < all->param_count; p++) {
            const bool onebit = step > 1 && all->onebit[step - 1][p];
            assert_int_equal(onebit, step > frozen_at &&
                                         (!all->trial.other || all->trial.onebit_layers >> all->params[p].layer & 1));
            if (!onebit)
                average(&l, p, step);
            else if (!fuses || !p)
                exchange(&l, p, fuses ? all->param_count : p + 1, step);
        }
        end_step(&l, step);
        check_weights(&l, step);
    }
    lone_fini(&l);
}

static void is_what_the_optimizer_makes(int ranks, uint64_t frozen_at, trial t)
{
    record *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    t.optimizer = "onebit_lamb";
    all->trial = t;
    assert_int_equal(run_ranks(ranks, run_recorded, all, 60), 0);
    check_record(all, (uint32_t)ranks, frozen_at);
    munmap(all, sizeof *all);
}

static void native(void **state)
{
    (void)state;
    is_what_the_optimizer_makes(2, 5, (trial){.seed = 71, .freeze_step = 5, .schedule = "one_ahead"});
    is_what_the_optimizer_makes(4, 6, (trial){.seed = 72, .freeze_step = 6, .micro_batches = 2, .messages = true});
}

static void beside_sharded_layers(void **state)
{
    (void)state;
    is_what_the_optimizer_makes(
        3, 5, (trial){.seed = 73, .freeze_step = 5, .onebit_layers = 5, .other = "fsdp", .micro_batches = 2});
    is_what_the_optimizer_makes(2, 4, (trial){.seed = 74, .freeze_step = 4, .onebit_layers = 8, .other = "oss"});
}

static void compat(void **state)
{
    (void)state;
    is_what_the_optimizer_makes(2, 5, (trial){.seed = 75, .freeze_step = 5, .compat = true});
    is_what_the_optimizer_makes(3, 4, (trial){.seed = 76, .freeze_step = 4, .compat = true, .micro_batches = 2});
}

/* The criterion looks every fifth step; the first change that it sees is small enough. */
static void the_criterion(void **state)
{
    (void)state;
    is_what_the_optimizer_makes(2, 10, (trial){.seed = 77, .beta2 = 0.8, .freeze_change = 0.9});
    is_what_the_optimizer_makes(
        3, 10, (trial){.seed = 78, .beta2 = 0.8, .freeze_change = 0.9, .onebit_layers = 6, .other = "fsdp"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(native),
        cmocka_unit_test(beside_sharded_layers),
        cmocka_unit_test(compat),
        cmocka_unit_test(the_criterion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
