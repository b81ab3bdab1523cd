/* The engine matches an oracle (engine_trial.h) to the bit: for any strategy, schedule, block, path, precision of each
 * layer and type on the wire; also if an update needs norms over whole parameters, on whichever lane and by however
 * many threads it runs; for random plans of runs of blocks and late operations, with random delays; whenever everything
 * is drained; and while plans of all schedules, without a spare byte, follow each other. No peak is above its plan's or
 * the budget.
 *
 * engine_test [PATTERN [MANY [FIRST]]] runs the tests whose name matches, with that many random plans or steps under
 * changing plans, from the seed FIRST on (`./dev stress`). */
#include "lib/plan/request.h"
#include "tests/support/engine_trial.h"
#include "tests/support/scale.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static void random_models_match_the_oracle(void **state)
{
    (void)state;
    uint32_t rounds = test_rounds(8);
    for (uint64_t seed = 1; seed <= rounds; seed++) check_trial(random_trial(seed));
}

/* bf16 runs under every strategy and schedule, on 1, 2 and 4 ranks, with sums in bf16, in fp32 over a bf16 wire, and
 * all in fp32; memory and messages, clipping and recomputation take turns. */
static void every_way_of_bf16_matches_the_oracle(void **state)
{
    (void)state;
    static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp", "auto"};
    static const char *const schedules[] = {"serial", "one_ahead", "priority",          "bucketed",
                                            "random", "serial",    "one_ahead",         "greedy",
                                            "random", "bucketed",  slc_schedule_default};
    enum { SCHEDULES = sizeof schedules / sizeof *schedules };
    static const sluice_recompute recomputes[] = {SLUICE_RECOMPUTE_AUTO, SLUICE_RECOMPUTE_NONE, SLUICE_RECOMPUTE_ALL};
    uint32_t number = 0;
    for (int strategy = 0; strategy < 5; strategy++)
        for (int ranks = 1; ranks <= 4; ranks *= 2)
            for (int sums = 0; sums < 3; sums++)
                for (int wire = sums == 1; wire < 2; wire++, number++) {
                    if (!test_takes(number, 0.5)) continue;
                    check_trial((trial){.seed = 9000 + number % 13,
                                        .ranks = ranks,
                                        .layers = 3 + number % 3,
                                        .micro_batches = sums ? 3 : 1,
                                        .each = sums == 2,
                                        .fewer = sums && number % 2,
                                        .schedule = schedules[number % SCHEDULES],
                                        .strategy = strategies[strategy],
                                        .recompute = recomputes[number % 3],
                                        .direct = number / 2 % 2,
                                        .clip = number % 4 ? 0 : 0.5,
                                        .block = number % 5 ? 1024 : 4096,
                                        .bf16_layers = UINT64_MAX,
                                        .bf16_wire = wire,
                                        .mixed_update = number / 3 % 2});
                }
}

/* On 1, 2 and 4 ranks, 1 to 3 threads share each update; the default schedule changes its plan in between. */
static void updates_on_either_lane_match_the_oracle(void **state)
{
    (void)state;
    static const char *const strategies[] = {"dp", "fsdp", "sdp", "oss", "auto"};
    static const char *const schedules[] = {"one_ahead", slc_schedule_default, "random",
                                            "serial",    slc_schedule_default, "greedy"};
    uint32_t number = 0;
    for (int ranks = 1; ranks <= 4; ranks *= 2)
        for (uint32_t threads = 1; threads <= 3; threads++, number++) {
            if (!test_takes(number, 1)) continue;
            check_trial((trial){.seed = 7000 + number,
                                .ranks = ranks,
                                .threads = threads,
                                .larger = test_brief() ? 30 : 100,
                                .layers = 3,
                                .micro_batches = 1 + number % 2,
                                .each = number % 3 == 1,
                                .schedule = schedules[number % 6],
                                .strategy = strategies[number % 5],
                                .recompute = SLUICE_RECOMPUTE_AUTO,
                                .direct = number % 4 != 3,
                                .clip = number % 4 == 2 ? 0.5 : 0,
                                .block = 1 << 16,
                                .bf16_layers = number % 3,
                                .bf16_wire = true,
                                .mixed_update = number % 2,
                                .lamb = number % 4 == 1,
                                .updates = number % 5 == 4 ? "auto" : "compute"});
        }
}

static void random_plans_match_the_oracle(void **state)
{
    uint32_t plans = check_random_plans(*state, test_rounds(14), random_trial);
    print_message("%u plans, no peak above its plan or its budget\n", plans);
}

static void changing_plans_match_the_oracle(void **state)
{
    const extent *asked = *state;
    uint32_t worlds = asked->many ? (asked->many + STEPS_A_WORLD - 1) / STEPS_A_WORLD : 1 + test_rounds(2), plans = 0;
    for (uint32_t w = 0; w < worlds; w++) {
        uint32_t seed = asked->first_seed + w;
        trial t = random_trial(5000 + seed);
        t.random = true;
        t.recompute = SLUICE_RECOMPUTE_AUTO;
        t.ranks = seed % 2 ? 4 : 2;
        t.changing_steps = STEPS_A_WORLD;
        t.delays = seed % 4 < 2;
        check_trial(t);
        plans += 1 + STEPS_A_WORLD / STEPS_A_PLAN;
    }
    print_message("%u steps on 2 and 4 ranks under %u plans\n", worlds * STEPS_A_WORLD, plans);
}

int main(int argc, char **argv)
{
    static extent asked = {.first_seed = 1000};
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_models_match_the_oracle),
                                       cmocka_unit_test(every_way_of_bf16_matches_the_oracle),
                                       cmocka_unit_test(updates_on_either_lane_match_the_oracle),
                                       cmocka_unit_test_prestate(random_plans_match_the_oracle, &asked),
                                       cmocka_unit_test_prestate(changing_plans_match_the_oracle, &asked)};
    read_extent(argc, argv, &asked);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
