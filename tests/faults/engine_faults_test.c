/* Every failure ends in one clear line on every rank, and nothing hangs: calls out of order, registrations that differ,
 * gradients that are not finite, budgets that are too small, ranks that die inside a step. */
#include "tests/support/ranks.h"

#include <math.h>
#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { COUNT = 500 };

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer[2];
    sluice_param *param[2];
} pair;

static int make(pair *p, const sluice_config *config, uint64_t second_count)
{
    const char *names[] = {"lower", "upper"};
    RANK_CHECK(!sluice_world_create(NULL, &p->world));
    RANK_CHECK(!sluice_runtime_create(p->world, config, &p->rt));
    for (int l = 0; l < 2; l++) {
        RANK_CHECK(!sluice_layer_add(p->rt, names[l], &p->layer[l]));
        sluice_param_desc desc = SLUICE_INIT(sluice_param_desc, .name = "w", .count = l ? second_count : COUNT);
        RANK_CHECK(!sluice_param_add(p->layer[l], &desc, &p->param[l]));
    }
    return 0;
}

static void end(pair *p)
{
    sluice_runtime_destroy(p->rt);
    sluice_world_destroy(p->world);
}

static int said(const char *text)
{
    if (strstr(sluice_last_error(), text)) return 0;
    fprintf(stderr, "rank %s: expected \"%s\" in: %s\n", getenv("RANK"), text, sluice_last_error());
    return 1;
}

/* Runs a step in which `layer` of rank `bad` gets the gradient `poison` (bad -1: none does) and returns the status of
 * step_end. */
static sluice_status step(pair *p, int rank, int bad, int layer, float poison, sluice_step_report *report)
{
    sluice_status status = sluice_step_begin(p->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1));
    for (int l = 0; !status && l < 2; l++) {
        status = sluice_forward_begin(p->layer[l]);
        if (!status) status = sluice_forward_end(p->layer[l]);
    }
    for (int l = 2; !status && l-- > 0;) {
        status = sluice_backward_begin(p->layer[l]);
        void *gradient = status ? NULL : sluice_param_gradient(p->param[l]);
        bool bf16 = sluice_param_gradient_dtype(p->param[l]) == SLUICE_BF16;
        for (uint64_t i = 0; gradient && i < sluice_param_count(p->param[l]); i++) {
            float value = i == 137 && rank == bad && l == layer ? poison : 1;
            if (bf16)
                ((uint16_t *)gradient)[i] = sluice_bf16_from_float(value);
            else
                ((float *)gradient)[i] = value;
        }
        if (!status) status = sluice_backward_end(p->layer[l]);
    }
    return status ? status : sluice_step_end(p->rt, report);
}

static int differing_registration(int rank, int size, void *context)
{
    (void)size, (void)context;
    pair p;
    sluice_config config;
    sluice_config_init(&config);
    if (make(&p, &config, rank == 1 ? COUNT + 1 : COUNT)) return 1;
    RANK_CHECK(sluice_runtime_commit(p.rt) == SLUICE_ERR_MISMATCH);
    if (said("\"upper\"") || said("rank 1")) return 1;
    end(&p);
    return 0;
}

static int differing_settings(int rank, int size, void *context)
{
    (void)size, (void)context;
    pair p;
    sluice_config config;
    sluice_config_init(&config);
    if (rank == 2) config.clip = 1;
    if (make(&p, &config, COUNT)) return 1;
    RANK_CHECK(sluice_runtime_commit(p.rt) == SLUICE_ERR_MISMATCH);
    if (said("rank 2")) return 1;
    end(&p);
    return 0;
}

static int differing_keep(int rank, int size, void *context)
{
    (void)size, (void)context;
    pair p;
    sluice_config config;
    sluice_config_init(&config);
    if (rank == 1) setenv("SLUICE_CHECKPOINT_KEEP", "5", 1);
    if (make(&p, &config, COUNT)) return 1;
    RANK_CHECK(sluice_runtime_commit(p.rt) == SLUICE_ERR_MISMATCH);
    if (said("SLUICE_CHECKPOINT_KEEP is 5 on rank 1 and 2 on rank 0")) return 1;
    end(&p);
    return 0;
}

static int differing_precision(int rank, int size, void *context)
{
    (void)size, (void)context;
    pair p;
    sluice_config config;
    sluice_config_init(&config);
    config.precision = (sluice_dtype)7;
    RANK_CHECK(!sluice_world_create(NULL, &p.world));
    RANK_CHECK(sluice_runtime_create(p.world, &config, &p.rt) == SLUICE_ERR_ARGUMENT);
    config.precision = SLUICE_FP32;
    RANK_CHECK(!sluice_runtime_create(p.world, &config, &p.rt));
    RANK_CHECK(!sluice_layer_add(p.rt, "only", &p.layer[0]));
    RANK_CHECK(sluice_layer_precision(p.layer[0], (sluice_dtype)2) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(!sluice_layer_precision(p.layer[0], rank == 1 ? SLUICE_BF16 : SLUICE_FP32));
    RANK_CHECK(
        !sluice_param_add(p.layer[0], &SLUICE_INIT(sluice_param_desc, .name = "w", .count = COUNT), &p.param[0]));
    RANK_CHECK(sluice_param_dtype(p.param[0]) == (rank == 1 ? SLUICE_BF16 : SLUICE_FP32));
    RANK_CHECK(sluice_layer_precision(p.layer[0], SLUICE_BF16) == SLUICE_ERR_ORDER);
    if (said("\"only\"")) return 1;
    RANK_CHECK(sluice_runtime_commit(p.rt) == SLUICE_ERR_MISMATCH);
    if (said("\"only\"") || said("rank 1")) return 1;
    end(&p);
    return 0;
}

/* All ranks make the same mistake. The others hear of it from the first rank that makes it, perhaps before they make it
 * themselves. */
static bool told_by_another(sluice_status status)
{
    return status == SLUICE_ERR_PEER && strstr(sluice_last_error(), " failed: layer \"upper\"");
}

static int order(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    pair p;
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = "fsdp";
    if (make(&p, &config, COUNT)) return 1;
    RANK_CHECK(sluice_step_begin(p.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1)) == SLUICE_ERR_ORDER);
    RANK_CHECK(!sluice_runtime_commit(p.rt));
    RANK_CHECK(!sluice_param_value(p.param[0]));
    if (said("lower.w")) return 1;
    RANK_CHECK(sluice_layer_add(p.rt, "late", &p.layer[0]) == SLUICE_ERR_ORDER);
    sluice_status status = sluice_step_begin(p.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1));
    RANK_CHECK(!status || told_by_another(status));
    status = sluice_forward_begin(p.layer[1]);
    RANK_CHECK(status == SLUICE_ERR_ORDER || told_by_another(status));
    if (said("\"upper\"") || said("\"lower\"")) return 1;
    RANK_CHECK(sluice_forward_begin(p.layer[0]) == status); /* the runtime stays failed */
    if (said("\"upper\"")) return 1;
    /* A rank that leaves inside a step fails the others, perhaps before they return from here. */
    sluice_world_barrier(p.world);
    end(&p);
    return 0;
}

typedef struct {
    const char *strategy;
    sluice_dtype precision;
    double clip;
} poisoning;

static int not_finite(int rank, int size, void *context)
{
    const poisoning *with = context;
    pair p;
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = with->strategy;
    config.schedule = "one_ahead";
    config.precision = with->precision;
    config.clip = with->clip;
    if (make(&p, &config, COUNT)) return 1;
    RANK_CHECK(!sluice_runtime_commit(p.rt));
    RANK_CHECK(!step(&p, rank, -1, 0, 0, NULL));
    RANK_CHECK(step(&p, rank, size - 1, 1, NAN, NULL) == SLUICE_ERR_NON_FINITE);
    if (said("\"upper\"") || said("step 2")) return 1;
    RANK_CHECK(sluice_runtime_sync(p.rt) == SLUICE_ERR_NON_FINITE);
    end(&p);
    return 0;
}

static int skipped(int rank, int size, void *context)
{
    const poisoning *with = context;
    pair p;
    float before[COUNT], after[COUNT];
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = with->strategy;
    config.schedule = "one_ahead";
    config.precision = with->precision;
    config.clip = with->clip;
    config.nan = SLUICE_NAN_SKIP;
    if (make(&p, &config, COUNT)) return 1;
    RANK_CHECK(!sluice_runtime_commit(p.rt));
    RANK_CHECK(!step(&p, rank, -1, 0, 0, &report) && !report.skipped && report.step == 1);
    RANK_CHECK(!sluice_param_read(p.param[0], 0, COUNT, before));
    RANK_CHECK(!step(&p, rank, size - 1, 1, INFINITY, &report) && report.skipped);
    RANK_CHECK(!sluice_param_read(p.param[0], 0, COUNT, after));
    RANK_CHECK(!memcmp(before, after, sizeof before) && sluice_runtime_step(p.rt) == 1);
    RANK_CHECK(!step(&p, rank, -1, 0, 0, &report) && !report.skipped && report.step == 2);
    RANK_CHECK(!sluice_param_read(p.param[0], 0, COUNT, after));
    RANK_CHECK(memcmp(before, after, sizeof before));
    end(&p);
    return 0;
}

static int too_small_budget(int rank, int size, void *context)
{
    (void)size, (void)context;
    pair p;
    sluice_config config;
    sluice_config_init(&config);
    config.budget_bytes = rank == 1 ? 3000 : 1 << 20; /* the smallest budget of all ranks counts */
    if (make(&p, &config, COUNT)) return 1;
    RANK_CHECK(sluice_runtime_commit(p.rt) == SLUICE_ERR_BUDGET);
    end(&p);
    return 0;
}

/* Rank 1 dies inside its third step; the others must say so and come to an end by themselves. */
static int killed(int rank, int size, void *context)
{
    (void)size;
    pair p;
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = context;
    config.schedule = "one_ahead";
    if (make(&p, &config, COUNT)) return 1;
    RANK_CHECK(!sluice_runtime_commit(p.rt));
    sluice_status status = SLUICE_OK;
    for (int i = 0; !status && i < 1000; i++) {
        if (rank == 1 && i == 2) raise(SIGKILL);
        status = step(&p, rank, -1, 0, 0, NULL);
    }
    RANK_CHECK(status == SLUICE_ERR_PEER);
    if (said("rank 1")) return 1;
    RANK_CHECK(sluice_runtime_sync(p.rt) == SLUICE_ERR_PEER);
    end(&p);
    return 0;
}

static void every_rank_reports(rank_function function, int size, void *context)
{
    assert_int_equal(run_ranks(size, function, context, 60), 0);
}

static void registrations_that_differ_name_layer_and_rank(void **state)
{
    (void)state;
    every_rank_reports(differing_registration, 3, NULL);
    every_rank_reports(differing_settings, 3, NULL);
    every_rank_reports(differing_keep, 2, NULL);
    every_rank_reports(differing_precision, 2, NULL);
}

static void calls_out_of_order_name_the_layers(void **state)
{
    (void)state;
    every_rank_reports(order, 1, NULL);
    every_rank_reports(order, 2, NULL);
}

static void non_finite_gradients_stop_or_skip(void **state)
{
    (void)state;
    const char *strategies[] = {"dp", "oss", "sdp", "fsdp"};
    for (int s = 0; s < 4; s++)
        for (int size = 1; size <= 3; size += 2) {
            poisoning with = {strategies[s], s % 2 == size / 2 ? SLUICE_BF16 : SLUICE_FP32, s / 2 ? 0.5 : 0};
            every_rank_reports(not_finite, size, &with);
            every_rank_reports(skipped, size, &with);
        }
}

static void the_least_budget_counts(void **state)
{
    (void)state;
    every_rank_reports(too_small_budget, 2, NULL);
}

static void survivors_name_the_dead(void **state)
{
    (void)state;
    const char *strategies[] = {"dp", "fsdp"};
    for (int s = 0; s < 2; s++) {
        int codes[RANKS_MAX];
        run_ranks_codes(3, killed, (void *)strategies[s], 60, codes);
        assert_int_equal(codes[0], 0);
        assert_int_equal(codes[1], 128 + SIGKILL);
        assert_int_equal(codes[2], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registrations_that_differ_name_layer_and_rank),
        cmocka_unit_test(calls_out_of_order_name_the_layers),
        cmocka_unit_test(non_finite_gradients_stop_or_skip),
        cmocka_unit_test(the_least_budget_counts),
        cmocka_unit_test(survivors_name_the_dead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
