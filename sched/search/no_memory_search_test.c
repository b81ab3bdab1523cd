/* The searches for faster plans let the validator judge each plan that they would take. If it has no memory they must
 * say so; a plan that it refuses they leave, and search on. The linker puts the validator below in the place of the
 * real one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/status.h"
#include "sched/search/local_search.h"
#include "sched/search/update_lane.h"
#include "tests/support/sched/drawn_plan.h"

enum { JOBS = 24, TRIES = 200 };

static struct {
    uint32_t calls, fails_at; /* 0: never */
    sluice_status status;
} validator;

sluice_status __real_slc_plan_validate(const slc_job *job, const slc_plan *plan);
sluice_status __wrap_slc_plan_validate(const slc_job *job, const slc_plan *plan);
sluice_status __wrap_slc_plan_validate(const slc_job *job, const slc_plan *plan)
{
    if (++validator.calls != validator.fails_at) return __real_slc_plan_validate(job, plan);
    return slc_error(validator.status, "the validator's call %u", validator.calls);
}

typedef sluice_status (*searching)(drawn_plan *d, const slc_scheduling *in, slc_forecast *forecast);

static sluice_status search_order(drawn_plan *d, const slc_scheduling *in, slc_forecast *forecast)
{
    const slc_search_options options = {.most_tries = TRIES, .patience = TRIES, .rounds = 1, .lanes = true, .seed = 7};
    return slc_search_order(in, slc_scheduler_find(d->plan->schedule), &options, &d->plan, forecast, NULL);
}

static sluice_status search_lanes(drawn_plan *d, const slc_scheduling *in, slc_forecast *forecast)
{
    return slc_updates_place(in, slc_scheduler_find(d->plan->schedule), SLC_UPDATES_AUTO, 0, &d->plan, forecast);
}

/* Searches the plan of a seed, with an error at one of the validator's calls. */
static sluice_status search_with(searching search, uint64_t seed, uint32_t fails_at, sluice_status status)
{
    static drawn_plan d;
    drawn_plan_init(&d, seed);
    const slc_scheduling in = {.job = &d.t.job,
                               .strategies = d.strategies,
                               .recompute = d.recompute,
                               .times = &d.times,
                               .limit = d.plan->arena_bytes + (1 << 20)};
    slc_forecast forecast;
    assert_int_equal(slc_simulate(&d.t.job, &d.times, d.plan, NULL, &forecast), SLUICE_OK);
    validator.calls = 0;
    validator.fails_at = fails_at;
    validator.status = status;
    const sluice_status ended = search(&d, &in, &forecast);
    validator.fails_at = 0;
    if (!ended) assert_int_equal(__real_slc_plan_validate(&d.t.job, d.plan), SLUICE_OK);
    drawn_plan_fini(&d);
    return ended;
}

static void tells_of_memory_alone(searching search)
{
    uint32_t judged = 0;
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        assert_int_equal(search_with(search, seed, 0, SLUICE_OK), SLUICE_OK);
        const uint32_t calls = validator.calls;
        for (uint32_t at = 1; at <= calls; at++) {
            assert_int_equal(search_with(search, seed, at, SLUICE_ERR_MEMORY), SLUICE_ERR_MEMORY);
            assert_int_equal(validator.calls, at);
            assert_int_equal(search_with(search, seed, at, SLUICE_ERR_FORMAT), SLUICE_OK);
        }
        judged += calls;
    }
    print_message("%u plans were judged\n", judged);
    assert_true(judged > JOBS / 4);
}

static void the_search_of_orders_tells(void **state)
{
    (void)state;
    tells_of_memory_alone(search_order);
}

static void the_search_of_lanes_tells(void **state)
{
    (void)state;
    tells_of_memory_alone(search_lanes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_search_of_orders_tells),
                                       cmocka_unit_test(the_search_of_lanes_tells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
