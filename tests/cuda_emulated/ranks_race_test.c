/* Ranks with a GPU each, under the thread sanitizer: whatever a kernel, a copy or the host uses of a collective's
 * result comes after the collective, and a collective comes after what made its data. The link is slow, so that
 * collectives are under way while the program goes on; a wait that is missing is then a race, whichever comes first.
 * All strategies must give the same weights, too, and the ranks the same. */
#include "lib/kernels/reduce/reduce.h"
#include "tests/support/onebit_model.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { RANKS = 2, STEPS = 4, HANG_S = 100 };

typedef struct {
    trial trial;
    sluice_sums sums;
    uint32_t steps;
} job;

/* ---- A step that the host does not wait in ---- */

static int forward(const model *m, uint32_t l)
{
    enum { LEAST_ACTIVATION = 64 };
    sluice_stream *stream = sluice_runtime_stream(m->rt);
    RANK_CHECK(!sluice_forward_begin(m->layers[l]));
    for (uint32_t p = 0; p < m->param_count; p++) {
        const known *k = &m->params[p];
        const uint64_t bytes = k->count * sluice_dtype_bytes(sluice_param_dtype(k->param));
        if (k->layer != l) continue;
        RANK_CHECK(!slc_copy(stream, sluice_activation_data(m->activations[l]), sluice_param_value(k->param),
                             bytes < LEAST_ACTIVATION ? bytes : LEAST_ACTIVATION));
    }
    RANK_CHECK(!sluice_forward_end(m->layers[l]));
    return 0;
}

/* Adds a share of each value, which differs from rank to rank, to its gradient. */
static int backward(const model *m, uint32_t l)
{
    RANK_CHECK(!sluice_backward_begin(m->layers[l]));
    for (uint32_t p = 0; p < m->param_count; p++) {
        const known *k = &m->params[p];
        bool fresh = false;
        if (k->layer != l) continue;
        const void *value = sluice_param_value(k->param);
        void *gradient = sluice_param_gradient_fresh(k->param, &fresh);
        const slc_reduce_args args = {.count = k->count,
                                      .from = sluice_param_dtype(k->param),
                                      .to = sluice_param_gradient_dtype(k->param),
                                      .sources = &value,
                                      .source_count = 1,
                                      .destination_count = 1,
                                      .destinations = &gradient,
                                      .scale = 0.01f * (float)(m->rank + 1),
                                      .accumulate = !fresh};
        RANK_CHECK(value && gradient);
        RANK_CHECK(!slc_reduce(sluice_runtime_stream(m->rt), &args));
    }
    RANK_CHECK(!sluice_backward_end(m->layers[l]));
    return 0;
}

static int run_step(const model *m)
{
    RANK_CHECK(!sluice_step_begin(m->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.01)));
    const uint32_t batches = m->t->micro_batches ? m->t->micro_batches : 1;
    for (uint32_t b = 0; b < batches; b++) {
        for (uint32_t l = 0; l < LAYERS; l++)
            if (forward(m, l)) return 1;
        for (uint32_t l = LAYERS; l-- > 0;)
            if (backward(m, l)) return 1;
    }
    RANK_CHECK(!sluice_step_end(m->rt, NULL));
    return 0;
}

/* ---- Runs ---- */

/* Runs steps of one plan, then of another. */
static int train_both_plans(model *m, uint32_t steps)
{
    for (uint32_t plan = 0; plan < 2; plan++) {
        for (uint32_t step = 0; step < steps; step++)
            if (run_step(m)) return 1;
        if (!plan) RANK_CHECK(!sluice_runtime_replan(m->rt, NULL, "one_ahead", 0));
    }
    return 0;
}

static int train(const job *j, model *m, uint64_t *hash)
{
    sluice_config config = model_config(&j->trial);
    config.sums = j->sums;
    m->t = &j->trial;
    if (model_build_with(m, &config) || train_both_plans(m, j->steps)) return 1;
    if (model_replicas_equal(m, hash) || model_peak_is_planned(m)) return 1;
    model_end(m);
    return 0;
}

static int train_all(int rank, int size, void *context)
{
    const trial exact = {.seed = 51, .optimizer = "adamw", .device = "cuda", .clip = 0.5, .skip_nan = true};
    const char *const strategies[] = {"dp", "oss", "sdp", "fsdp"};
    uint64_t first = 0, hash;
    model m;
    (void)context;
    if (model_world(&exact, rank, size, &m)) return 1;
    for (size_t s = 0; s < sizeof strategies / sizeof *strategies; s++) {
        job j = {.trial = exact, .steps = STEPS};
        j.trial.strategy = strategies[s];
        if (train(&j, &m, &hash)) return 1;
        RANK_CHECK(!s || hash == first);
        first = hash;
    }
    const job others[] = {
        {.trial = {.seed = 52, .optimizer = "adamw", .device = "cuda", .strategy = "dp"},
         .sums = SLUICE_SUMS_NCCL,
         .steps = STEPS},
        {.trial = {.seed = 53, .optimizer = "lamb", .device = "cuda", .strategy = "sdp", .bf16_layers = 5},
         .sums = SLUICE_SUMS_NCCL,
         .steps = STEPS},
        {.trial = {.seed = 54, .device = "cuda", .onebit_layers = 6, .other = "fsdp", .freeze_step = 2},
         .steps = STEPS},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (train(&others[i], &m, &hash)) return 1;
    sluice_world_destroy(m.world);
    return 0;
}

static void nothing_is_used_before_it_is_there(void **state)
{
    (void)state;
    setenv("SLUICE_COMM_TRANSPORT", "nccl", 1);
    setenv("SLUICE_COMM_NCCL", SLUICE_TEST_NCCL, 1);
    setenv("HOSTNCCL_LATENCY", "1000", 1);
    assert_int_equal(run_ranks(RANKS, train_all, NULL, HANG_S), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_used_before_it_is_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
