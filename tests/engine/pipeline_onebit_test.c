/* Compressed optimizers in a pipeline: P stages of R replicas end in the weights of R ranks, to the bit, where both
 * compress the same units, in all phases and modes of all three optimizers; a phase's plan takes the place of the one
 * before on all stages at once, within the budget; what ranks have for themselves is saved and found again by their
 * replicas, in whatever stage a parameter lies. */
#include "tests/support/draw.h"
#include "tests/support/pipeline_trial.h"
#include "tests/support/scale.h"

#include <sluice/plan.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/mman.h>

enum { FREEZE = 2, COMPRESSED_STEPS = 8 };

#define COMPRESSED .micro_batches = 2, .stages = 2, .schedule = "1f1b", .freeze = FREEZE, .steps = COMPRESSED_STEPS
#define REPLICAS .replicas = 2, .strategy = "onebit"

/* ---- Bits ---- */

static trial draw_compressed(uint64_t *seed)
{
    static const char *const optimizers[] = {"onebit_adam", "onebit_lamb", "zero_one_adam"};
    trial t = trial_draw(seed);
    t.optimizer = optimizers[draw(seed, 3)];
    t.strategy = draw(seed, 4) ? "onebit" : draw(seed, 2) ? "fsdp" : "dp";
    t.freeze = FREEZE;
    t.steps = COMPRESSED_STEPS;
    t.clip = strcmp(t.optimizer, "onebit_lamb") && draw(seed, 2) ? 0.5 : 0;
    t.stages = t.stages > 3 ? 2 : t.stages;
    t.replicas = t.stages == 2 ? 2 + (uint32_t)draw(seed, 2) : 2;
    t.tight = draw(seed, 2);
    t.cuts[0] = 0;
    if (!strcmp(t.schedule, "interleaved")) t.micro_batches = t.stages;
    return t;
}

static void equal_to_ranks_without_stages(void **state)
{
    static const trial each[] = {
        {COMPRESSED, REPLICAS, .model = 3, .optimizer = "onebit_adam", .clip = 0.5, .tight = true, .seed = 1},
        {COMPRESSED, REPLICAS, .model = 1, .optimizer = "onebit_lamb", .ranks_a_host = 3, .seed = 2},
        {COMPRESSED, REPLICAS, .model = 4, .optimizer = "zero_one_adam", .nan = SLUICE_NAN_SKIP, .tight = true,
         .seed = 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) trial_check(&each[i]);
}

/* The first argument "long" asks for this. */
static void equal_as_drawn(void **state)
{
    uint64_t seed = 17;
    (void)state;
    for (uint32_t i = 0; i < test_rounds(40); i++) {
        const trial t = draw_compressed(&seed);
        trial_check(&t);
    }
}

/* One replica has nobody to exchange with, so its units are never onebit. */
static void one_replica_compresses_nothing(void **state)
{
    static const trial t = {COMPRESSED, .model = 3, .replicas = 1, .strategy = "onebit", .optimizer = "onebit_adam",
                            .seed = 4};
    (void)state;
    trial_check(&t);
}

/* ---- Plans of phases ---- */

/* Counts the parameters here that have an error of this rank's own, as those of onebit units have. */
static uint32_t count_onebit(sluice_runtime *rt)
{
    uint32_t count = 0;
    for (uint32_t p = 0; p < sluice_runtime_param_count(rt); p++)
        count += sluice_param_state_count(sluice_runtime_param(rt, p), "error_worker") > 0;
    return count;
}

/* Steps are exact, then compressed, within one budget; replicas are equal at the end, as their hash says. */
static int phases_follow(int rank, int size, void *context)
{
    const trial *t = context;
    trial_trainer with = {0};
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    double loss;
    char hex[65];
    bool here;
    (void)rank;
    (void)size;
    RANK_CHECK(!sluice_world_create(NULL, &with.world));
    if (trial_make(t, &with)) return 1;
    for (uint32_t s = 0; s < COMPRESSED_STEPS; s++) {
        RANK_CHECK(s || !count_onebit(with.rt));
        if (trial_step(t, &with, s, &loss, &here)) return 1;
    }
    double found[] = {count_onebit(with.rt)};
    RANK_CHECK(!sluice_world_all_reduce(with.world, found, 1));
    RANK_CHECK(found[0] > 0);
    RANK_CHECK(!sluice_runtime_weights_sha256(with.rt, hex));
    RANK_CHECK(!sluice_runtime_memory(with.rt, &memory));
    RANK_CHECK(memory.peak_bytes == memory.planned_bytes);
    trial_end(&with);
    return 0;
}

static void plans_of_phases_keep_the_budget(void **state)
{
    static const trial each[] = {
        {COMPRESSED, REPLICAS, .model = 3, .optimizer = "onebit_adam", .tight = true, .seed = 5},
        {COMPRESSED, .model = 0, .optimizer = "zero_one_adam", .replicas = 2, .slow = true, .seed = 6},
    };
    (void)state;
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        assert_int_equal(run_ranks(trial_ranks(&each[i]), phases_follow, (void *)&each[i], LIMIT_S), 0);
}

/* ---- Checkpoints ---- */

/* A checkpoint of the compressed phase of two stages of two replicas is gone on from by as many, with other cuts too,
 * and by two ranks without a pipeline, as if there had been no stop. */
static void checkpoints_keep_what_ranks_have(void **state)
{
    static const char *const optimizers[] = {"onebit_adam", "onebit_lamb", "zero_one_adam"};
    (void)state;
    for (int o = 0; o < 3; o++) {
        const trial t = {COMPRESSED, REPLICAS, .model = 1, .optimizer = optimizers[o], .cuts = "h.1", .seed = 7};
        saved_trial s;
        saved_trial_make(&t, FREEZE + 1, 1, &s);
        for (int way = 0; way < 3; way++) {
            strcpy(s.next.trial.cuts, way == 1 ? "h.3" : "h.1");
            s.next.trial.stages = way == 2 ? 0 : 2;
            saved_trial_go_on(&s, &s.whole);
        }
        saved_trial_end(&s);
    }
}

/* ---- Refusals ---- */

static int fused_is_refused(int rank, int size, void *context)
{
    const trial t = {COMPRESSED, REPLICAS, .model = 1, .optimizer = "onebit_lamb"};
    const sluice_model_options options = SLUICE_INIT(sluice_model_options, .batch = 1, .length = LENGTH);
    trial_trainer with = {0};
    sluice_config config = trial_config(&t);
    (void)rank;
    (void)size;
    (void)context;
    config.onebit.compat = true;
    RANK_CHECK(!sluice_world_create(NULL, &with.world));
    RANK_CHECK(!sluice_runtime_create(with.world, &config, &with.rt));
    RANK_CHECK(!sluice_model_create(with.rt, &trial_models[1], &options, &with.model));
    RANK_CHECK(sluice_runtime_commit(with.rt) == SLUICE_ERR_UNSUPPORTED);
    RANK_CHECK(strstr(sluice_last_error(), "not with one tensor of all parameters"));
    trial_end(&with);
    return 0;
}

static void one_tensor_for_all_is_refused(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, fused_is_refused, NULL, LIMIT_S), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_to_ranks_without_stages),   cmocka_unit_test(one_replica_compresses_nothing),
        cmocka_unit_test(plans_of_phases_keep_the_budget), cmocka_unit_test(checkpoints_keep_what_ranks_have),
        cmocka_unit_test(one_tensor_for_all_is_refused),
    };
    const struct CMUnitTest longer[] = {cmocka_unit_test(equal_as_drawn)};
    if (argc > 1 && !strcmp(argv[1], "long")) return cmocka_run_group_tests(longer, NULL, NULL);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
