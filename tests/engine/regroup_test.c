/* Re-plans give layers other units in the middle of training, and everything that a program can see stays equal to the
 * oracle's to the bit, on 1 to 3 ranks: plans of all schedules and strategies follow each other, over memory and over
 * messages, with micro-batches reduced at once and each, clipped, in bf16, with frozen and tied parameters and such as
 * are split by their uses. A compressed optimizer keeps its units, because the tensors of one are exchanged together.
 */
#include "lib/engine/engine.h"
#include "lib/plan/fused_job.h"
#include "lib/engine/replan/regroup.h"
#include "lib/engine/runtime.h"
#include "tests/support/drawn_planners.h"
#include "tests/support/engine_trial.h"
#include "tests/support/ranks.h"
#include "tests/support/scale.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/mman.h>

enum { LEAST_TRIALS = 4 };

static extent asked;

static void *share(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static void check_trials(uint32_t few, trial (*draw_trial)(uint64_t seed))
{
    /* Some trials lack the memory that changing to other units takes, so a check needs several trials. */
    const uint32_t rounds = asked.many ? asked.many : (uint32_t)slc_most(test_rounds(few), LEAST_TRIALS);
    uint32_t *regroups = share(sizeof *regroups);
    for (uint64_t seed = 1; seed <= rounds; seed++) {
        trial t = draw_trial(asked.first_seed + seed);
        t.ranks = 1 + (int)(seed % 3);
        t.layers = LAYERS_MAX;
        t.random = true;
        t.changing_steps = STEPS_A_WORLD;
        t.delays = seed % 4 == 0;
        t.regroups = regroups;
        check_trial(t);
    }
    print_message("%u times other units in %u runs\n", *regroups, rounds);
    assert_true(*regroups > 0);
    munmap(regroups, sizeof *regroups);
}

static void other_units_match_the_oracle(void **state)
{
    (void)state;
    check_trials(8, random_trial);
}

static void other_units_with_split_parameters_match_the_oracle(void **state)
{
    (void)state;
    check_trials(6, look_up_trial);
}

/* ---- Where units stay ---- */

enum { LAYERS = 6, ELEMENTS = 100, TRAINED = 8 };

typedef struct {
    const char *fuse, *optimizer;
    uint32_t asked, units, units_at_last; /* how often the planner was asked for units; how many there were */
    char weights[65];
} quiet;

static quiet *result; /* in memory that ranks share */

static sluice_status count_and_fuse(void *context, const slc_job *job, const slc_fuse_request *request, uint32_t *group)
{
    (void)context;
    const bool all = ++result->asked % 2; /* by turns everything and nothing */
    for (uint32_t u = 0; u < job->unit_count; u++)
        group[u] = all && request->bytes > 0 && slc_units_join(&job->units[0], &job->units[1]) ? 0 : u;
    return SLUICE_OK;
}

static int train_quietly(int rank, int size, void *context)
{
    (void)size, (void)context;
    sluice_world *world;
    sluice_runtime *rt;
    sluice_config config;
    sluice_layer *layers[LAYERS];
    sluice_param *params[LAYERS];
    sluice_activation *activation;
    float values[ELEMENTS];
    setenv("SLUICE_PLAN_DRIFT", "1000000", 1);
    RANK_CHECK(!sluice_world_create(NULL, &world));
    sluice_config_init(&config);
    config.fuse = result->fuse;
    config.optimizer_name = result->optimizer;
    config.onebit.freeze_step = TRAINED / 2;
    config.strategy = "dp";
    config.schedule = "drawn/1";
    config.steps = TRAINED;
    const slc_planner planner = {.plan = plan_ever_faster, .fuse = count_and_fuse, .wants_times = wants_unread_times};
    RANK_CHECK(!slc_engine_create(world, &config, planner, &rt));
    for (uint32_t l = 0; l < LAYERS; l++) {
        char name[8];
        snprintf(name, sizeof name, "h.%u", l);
        RANK_CHECK(!sluice_layer_add(rt, name, &layers[l]));
        RANK_CHECK(
            !sluice_param_add(layers[l], &SLUICE_INIT(sluice_param_desc, .name = "w", .count = ELEMENTS), &params[l]));
        /* This activation holds nothing between steps, so units can be collected in its memory. */
        RANK_CHECK(!sluice_activation_add(
            layers[l],
            &SLUICE_INIT(sluice_activation_desc, .name = "a", .bytes = 32 * ELEMENTS, .last = SLUICE_BACKWARD),
            &activation));
    }
    RANK_CHECK(!sluice_runtime_commit(rt));
    if (rank == 0) result->units = rt->job.unit_count;
    for (uint32_t l = 0; l < LAYERS; l++) {
        for (int i = 0; i < ELEMENTS; i++) values[i] = (float)(i + (int)l) * 0.01f;
        RANK_CHECK(!sluice_param_write(params[l], 0, ELEMENTS, values));
    }
    for (int step = 0; step < TRAINED; step++) {
        RANK_CHECK(!sluice_step_begin(rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.01)));
        for (uint32_t l = 0; l < LAYERS; l++)
            RANK_CHECK(!sluice_forward_begin(layers[l]) && !sluice_forward_end(layers[l]));
        for (uint32_t l = LAYERS; l-- > 0;) {
            RANK_CHECK(!sluice_backward_begin(layers[l]));
            float *gradient = sluice_param_gradient(params[l]);
            for (int i = 0; i < ELEMENTS; i++) gradient[i] += (float)((i + rank + step) % 5) - 1.5f;
            RANK_CHECK(!sluice_backward_end(layers[l]));
        }
        RANK_CHECK(!sluice_step_end(rt, NULL));
    }
    char weights[65];
    RANK_CHECK(!sluice_runtime_weights_sha256(rt, weights));
    if (rank == 0) result->units_at_last = rt->job.unit_count;
    if (rank == 0) memcpy(result->weights, weights, sizeof weights);
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
    return 0;
}

static quiet train_with(int ranks, const char *fuse, const char *optimizer)
{
    *result = (quiet){.fuse = fuse, .optimizer = optimizer};
    assert_int_equal(run_ranks(ranks, train_quietly, NULL, 100), 0);
    return *result;
}

static void only_an_automatic_choice_is_made_again(void **state)
{
    (void)state;
    result = share(sizeof *result);
    for (int ranks = 1; ranks <= 2; ranks++) {
        const quiet chosen = train_with(ranks, "auto", "adamw"), given = train_with(ranks, "1MiB", "adamw"),
                    off = train_with(ranks, "off", "adamw"), onebit = train_with(ranks, "auto", "onebit_adam");
        assert_int_equal(chosen.units, 1);
        assert_int_equal(chosen.units_at_last, LAYERS); /* the planner's second answer */
        assert_int_equal(chosen.asked, 2);
        assert_int_equal(given.units_at_last, 1);
        assert_int_equal(given.asked, 1);
        assert_int_equal(off.units_at_last, LAYERS);
        assert_int_equal(off.asked, 0);
        assert_int_equal(onebit.units_at_last, 1);
        assert_int_equal(onebit.asked, 1);
        assert_string_equal(chosen.weights, given.weights);
        assert_string_equal(chosen.weights, off.weights);
    }
    munmap(result, sizeof *result);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_units_match_the_oracle),
        cmocka_unit_test(other_units_with_split_parameters_match_the_oracle),
        cmocka_unit_test(only_an_automatic_choice_is_made_again),
    };
    read_extent(argc, argv, &asked);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
