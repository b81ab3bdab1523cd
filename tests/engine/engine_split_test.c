/* Tied parameters of which a layer looks some rows up, split from their other use or not, match the oracle
 * (engine_trial.h). Otherwise, and in its arguments, this is engine_test, which has no look-ups. */
#include "lib/plan/request.h"
#include "tests/support/engine_trial.h"
#include "tests/support/scale.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

/* Every strategy and schedule takes its turn, on 1, 2 and 4 ranks, with one micro-batch and with three that are added
 * up or reduced each. */
static void every_way_of_splitting_matches_the_oracle(void **state)
{
    (void)state;
    static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp", "auto", "random:5"};
    static const char *const schedules[] = {"serial", "one_ahead", "bucketed",          "priority",
                                            "greedy", "random",    slc_schedule_default};
    static const sluice_recompute recomputes[] = {SLUICE_RECOMPUTE_NONE, SLUICE_RECOMPUTE_ALL, SLUICE_RECOMPUTE_AUTO};
    uint32_t ways = test_rounds(21);
    for (uint32_t number = 0; number < ways; number++) {
        trial t = look_up_trial(20001 + 4 * number);
        t.strategy = strategies[number % 6];
        t.schedule = schedules[number % 7];
        t.recompute = recomputes[number / 2 % 3];
        t.ranks = 1 << number / 6 % 3;
        t.micro_batches = number / 3 % 3 ? 3 : 1;
        t.each = number / 3 % 3 == 2;
        check_trial(t);
    }
}

static void random_plans_match_the_oracle(void **state)
{
    check_random_plans(*state, test_rounds(8), look_up_trial);
}

static void changing_plans_match_the_oracle(void **state)
{
    const extent *asked = *state;
    enum { STEPS_HERE = 50 };
    uint32_t worlds = asked->many ? (asked->many + STEPS_HERE - 1) / STEPS_HERE : test_rounds(2);
    for (uint32_t w = 0; w < worlds; w++) {
        trial t = look_up_trial(10000 + asked->first_seed + w);
        t.random = true;
        t.recompute = SLUICE_RECOMPUTE_AUTO;
        t.ranks = w % 2 ? 4 : 2;
        t.micro_batches = 1 + w % 3;
        t.changing_steps = STEPS_HERE;
        t.delays = w % 2;
        check_trial(t);
    }
}

int main(int argc, char **argv)
{
    static extent asked = {.first_seed = 30001};
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_way_of_splitting_matches_the_oracle),
                                       cmocka_unit_test_prestate(random_plans_match_the_oracle, &asked),
                                       cmocka_unit_test_prestate(changing_plans_match_the_oracle, &asked)};
    read_extent(argc, argv, &asked);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
