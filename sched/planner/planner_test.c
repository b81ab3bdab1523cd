/* Budgets: the figures in an error must work when given back, and one byte less must not; strategies by name, seed and
 * file. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ilp/slot_model.h"
#include "sched/planner.h"
#include "tests/support/plan/random_job.h"
#include "sched/scheduler.h"
#include "tests/support/scale.h"

#include <sluice/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint32_t jobs(void)
{
    return test_brief() ? 7 : 15; /* 7: each strategy once */
}

static void draw_job(test_job *t, uint64_t seed)
{
    test_dice dice = {.seed = seed};
    do test_job_draw(t, &dice);
    while (!t->job.unit_count);
}

static sluice_status ask(const slc_job *job, const char *strategy, const char *schedule, uint64_t budget,
                         slc_plan_answer *answer)
{
    slc_plan_request request = {.strategy = strategy, .schedule = schedule, .budget_bytes = budget};
    return slc_plan_for_budget(job, &request, answer);
}

static bool works(const slc_job *job, const char *strategy, const char *schedule, uint64_t budget)
{
    slc_plan_answer answer;
    sluice_status status = ask(job, strategy, schedule, budget, &answer);
    if (status == SLUICE_OK) {
        assert_int_equal(answer.budget_bytes, budget);
        assert_true(answer.plan->arena_bytes + job->reserved_bytes <= budget);
    } else {
        if (status != SLUICE_ERR_BUDGET) fail_msg("%s", sluice_last_error());
        assert_null(answer.plan);
    }
    slc_plan_destroy(answer.plan);
    return status == SLUICE_OK;
}

static uint64_t number_behind(const char *line, const char *words)
{
    const char *found = strstr(line, words);
    if (!found) fail_msg("no \"%s\" in: %s", words, line);
    return strtoull(found + strlen(words), NULL, 10);
}

/* Copies the word after `words`, up to the next character that cannot be part of it. */
static void word_behind(const char *line, const char *words, char out[32])
{
    const char *found = strstr(line, words);
    if (!found) fail_msg("no \"%s\" in: %s", words, line);
    assert_int_equal(sscanf(found + strlen(words), "%31[a-z_]", out), 1);
}

static const char *const names[] = {"dp", "oss", "sdp", "fsdp", "mixed", "auto", "onebit"};
static const char *const schedules[] = {"serial", "one_ahead", slc_schedule_default};

static void figures_of_an_error_work(void **state)
{
    (void)state;
    static test_job t;
    for (uint64_t seed = 0; seed < jobs(); seed++) {
        draw_job(&t, seed);
        const char *strategy = names[seed % 7], *schedule = schedules[seed / 7 % 3];
        assert_false(works(&t.job, strategy, schedule, 1));
        char line[2048], other[32], other_schedule[32];
        snprintf(line, sizeof line, "%s", sluice_last_error());
        assert_null(strchr(line, '\n'));

        uint64_t need = number_behind(line, " needs ");
        assert_true(works(&t.job, strategy, schedule, need));
        /* The joint search may hold a plan that is packed better. */
        if (strcmp(schedule, slc_schedule_default)) assert_false(works(&t.job, strategy, schedule, need - 1));

        uint64_t least = number_behind(line, "config.budget_bytes = ");
        word_behind(line, "config.strategy = ", other);
        word_behind(line, "config.schedule = ", other_schedule);
        assert_true(works(&t.job, other, other_schedule, least));
        for (int n = 0; n < 5; n++)
            for (int s = 0; s < 2; s++)
                assert_false(works(&t.job, names[n], schedules[s], least - 1)); /* none of the simple ones */
    }
}

/* Asked for by name, what a build does not have is an error and not something else; the default is there in any. */
static void ilp_is_there_where_its_solver_is(void **state)
{
    (void)state;
    static test_job t;
    draw_job(&t, 1);
    assert_true(works(&t.job, "auto", slc_schedule_default, UINT64_MAX));
    assert_true(works(&t.job, "auto", "portfolio", UINT64_MAX));
    const slc_plan_request request = {.strategy = "auto", .schedule = "ilp"};
    slc_plan_answer answer;
    sluice_status status = slc_plan_for_budget(&t.job, &request, &answer);
    assert_int_equal(status, slc_slot_model_solver() ? SLUICE_OK : SLUICE_ERR_ARGUMENT);
    if (!status) slc_plan_destroy(answer.plan);
    if (status) assert_non_null(strstr(sluice_last_error(), "this build has no GLPK"));
    if (status) assert_non_null(strstr(sluice_last_error(), "choose one of portfolio, serial"));
}

static void error_names_the_largest_consumers(void **state)
{
    (void)state;
    slc_use uses[2] = {{0, true}, {1, true}};
    slc_unit units[2] = {{"small", 32, 32, SLUICE_FP32, true, &uses[0], .use_count = 1},
                         {"large", 64000, 32, SLUICE_FP32, true, &uses[1], .use_count = 1}};
    const char *layers[2] = {"first", "second"};
    slc_activation_life life = {"x", 300000, 0, 3, 1, false};
    slc_job job = {.world = 2,
                   .micro_batches = 1,
                   .states = 2,
                   .layer_count = 2,
                   .layers = layers,
                   .units = units,
                   .unit_count = 2,
                   .activations = &life,
                   .activation_count = 1,
                   .reserved_bytes = 270000};
    assert_false(works(&job, "dp", "serial", 1));
    const char *line = sluice_last_error();
    if (!strstr(line, "the largest consumers: optimizer state 512256 bytes (most: large, 512000), "
                      "activations 300000 bytes (most: first, 300000), reserved by the program 270000 bytes"))
        fail_msg("%s", line);
}

static uint32_t count_sdp(const slc_plan *plan)
{
    uint32_t count = 0;
    for (uint32_t u = 0; u < plan->unit_count; u++) count += plan->strategies[u] == SLC_SDP;
    return count;
}

static void mixed_grows_with_the_budget(void **state)
{
    (void)state;
    static test_job t;
    uint32_t grew = 0;
    for (uint64_t seed = 0; seed < jobs(); seed++) {
        draw_job(&t, seed);
        slc_plan_answer all, answer;
        assert_int_equal(ask(&t.job, "sdp", "one_ahead", 0, &all), SLUICE_OK);
        uint64_t need = all.plan->arena_bytes + t.job.reserved_bytes;
        assert_int_equal(ask(&t.job, "mixed", "one_ahead", 0, &answer), SLUICE_OK);
        assert_int_equal(slc_plan_fingerprint(answer.plan), slc_plan_fingerprint(all.plan));
        slc_plan_destroy(answer.plan);
        slc_plan_destroy(all.plan);
        uint32_t before = 0;
        for (uint64_t budget = need / 2; budget <= need; budget += need / (test_brief() ? 16 : 64)) {
            if (ask(&t.job, "mixed", "one_ahead", budget, &answer)) continue;
            uint32_t now = count_sdp(answer.plan);
            for (uint32_t u = 0; u < t.job.unit_count; u++)
                assert_true(answer.plan->strategies[u] == SLC_SDP || answer.plan->strategies[u] == SLC_FSDP);
            assert_true(now >= before);
            grew += now > before;
            before = now;
            slc_plan_destroy(answer.plan);
        }
    }
    assert_true(grew > jobs() / 2);
}

static void a_fraction_is_of_what_dp_needs(void **state)
{
    (void)state;
    static test_job t;
    draw_job(&t, 3);
    slc_plan_answer dp, answer;
    assert_int_equal(ask(&t.job, "dp", "serial", 0, &dp), SLUICE_OK);
    assert_int_equal(dp.budget_bytes, 0);
    assert_int_equal(dp.dp_bytes, dp.plan->arena_bytes + t.job.reserved_bytes);
    slc_plan_destroy(dp.plan);
    slc_plan_request request = {.strategy = "dp", .schedule = "serial", .budget_of_dp = 1};
    assert_int_equal(slc_plan_for_budget(&t.job, &request, &answer), SLUICE_OK);
    assert_int_equal(answer.budget_bytes, dp.dp_bytes);
    slc_plan_destroy(answer.plan);
    request.budget_of_dp = 0.5;
    assert_int_equal(slc_plan_for_budget(&t.job, &request, &answer), SLUICE_ERR_BUDGET);
    assert_int_equal(answer.budget_bytes, dp.dp_bytes / 2);
    assert_non_null(strstr(sluice_last_error(), "50% of the least that dp works in"));
    request.budget_of_dp = -1;
    assert_int_equal(slc_plan_for_budget(&t.job, &request, &answer), SLUICE_ERR_ARGUMENT);
}

/* Without a budget a plan that shards takes no more than dp, if one of that size exists. */
static void sharding_without_a_budget_takes_no_more_than_dp(void **state)
{
    (void)state;
    static test_job t;
    static const char *const bounded_by[] = {"greedy", "portfolio"};
    uint32_t bounded = 0;
    for (uint32_t i = 0; i < jobs(); i++)
        for (int s = 0; s < 2; s++) {
            slc_plan_answer answer;
            draw_job(&t, 700 + i);
            assert_int_equal(ask(&t.job, "fsdp", bounded_by[s], 0, &answer), SLUICE_OK);
            assert_int_equal(answer.budget_bytes, 0);
            const uint64_t bytes = answer.plan->arena_bytes + t.job.reserved_bytes, dp_bytes = answer.dp_bytes;
            slc_plan_destroy(answer.plan);
            if (!works(&t.job, "fsdp", bounded_by[s], dp_bytes)) continue;
            assert_true(bytes <= dp_bytes);
            bounded++;
        }
    assert_true(bounded > jobs() / 2);
}

static void random_is_deterministic(void **state)
{
    (void)state;
    static test_job t;
    draw_job(&t, 5);
    uint32_t seen[SLC_STRATEGIES] = {0}, different = 0;
    uint64_t last = 0;
    for (uint32_t seed = 0; seed < 20; seed++) {
        char spec[32];
        snprintf(spec, sizeof spec, "random:%u", seed);
        slc_plan_answer a, b;
        assert_int_equal(ask(&t.job, spec, "serial", 0, &a), SLUICE_OK);
        assert_int_equal(ask(&t.job, spec, "serial", 0, &b), SLUICE_OK);
        assert_int_equal(slc_plan_fingerprint(a.plan), slc_plan_fingerprint(b.plan));
        different += slc_plan_fingerprint(a.plan) != last;
        last = slc_plan_fingerprint(a.plan);
        for (uint32_t u = 0; u < t.job.unit_count; u++) seen[a.plan->strategies[u]]++;
        slc_plan_destroy(a.plan);
        slc_plan_destroy(b.plan);
    }
    assert_true(different > 10);
    for (int k = 0; k < SLC_EXACT_STRATEGIES; k++) assert_true(seen[k] > 0);
}

static void forced_strategies_go_over_all(void **state)
{
    (void)state;
    static test_job t;
    draw_job(&t, 8);
    slc_strategy forced[TEST_UNITS];
    for (uint32_t u = 0; u < t.job.unit_count; u++) forced[u] = u % 2 ? SLC_STRATEGIES : SLC_OSS;
    const char *const specs[] = {"fsdp", "random:4", "mixed"};
    for (int s = 0; s < 3; s++) {
        slc_plan_request request = {.strategy = specs[s], .schedule = "one_ahead", .forced = forced};
        slc_plan_answer answer;
        assert_int_equal(slc_plan_for_budget(&t.job, &request, &answer), SLUICE_OK);
        /* A unit that cannot be oss gets the strategy that slc_unit_strategy makes of it. */
        for (uint32_t u = 0; u < t.job.unit_count; u += 2)
            assert_int_equal(answer.plan->strategies[u], slc_unit_strategy(&t.job, &t.job.units[u], SLC_OSS));
        slc_plan_destroy(answer.plan);
    }
}

/* ---- Unknown strategies, and files ---- */

static void refuses(const slc_job *job, const char *strategy, const char *schedule, sluice_status status,
                    const char *said)
{
    slc_plan_answer answer;
    assert_int_equal(ask(job, strategy, schedule, 0, &answer), status);
    if (!strstr(sluice_last_error(), said)) fail_msg("\"%s\" is not in: %s", said, sluice_last_error());
}

static void says_what_there_is(void **state)
{
    (void)state;
    static test_job t;
    draw_job(&t, 1);
    static const char choices[] =
        "choose auto, dp, oss, sdp, fsdp, onebit, mixed, random:SEED, or the path of a JSON file";
    refuses(&t.job, "zero3", "serial", SLUICE_ERR_ARGUMENT, choices);
    refuses(&t.job, "", "serial", SLUICE_ERR_ARGUMENT, choices);
    refuses(&t.job, NULL, "serial", SLUICE_ERR_ARGUMENT, choices);
    refuses(&t.job, "random:", "serial", SLUICE_ERR_ARGUMENT, "is no seed");
    refuses(&t.job, "random:-1", "serial", SLUICE_ERR_ARGUMENT, "is no seed");
    refuses(&t.job, "random:7x", "serial", SLUICE_ERR_ARGUMENT, "is no seed");
    refuses(&t.job, "/", "serial", SLUICE_ERR_ARGUMENT, "/ is not a regular file");
}

static slc_use file_uses[3] = {{0, true}, {1, true}, {2, true}};
static slc_unit file_units[3] = {{"embed.wte", 64, 32, SLUICE_FP32, true, &file_uses[0], .use_count = 1},
                                 {"h.0", 64, 32, SLUICE_FP32, true, &file_uses[1], .use_count = 1},
                                 {"head", 64, 32, SLUICE_FP32, true, &file_uses[2], .use_count = 1}};
static const char *file_layers[3] = {"embed", "h.0", "head"};
static slc_job file_job = {
    .world = 2, .micro_batches = 1, .layer_count = 3, .layers = file_layers, .units = file_units, .unit_count = 3};

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void reads_strategies_from_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/sluice_strategies_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_file(path, "{\"layers\": {\"h.0\": \"fsdp\", \"*\": \"sdp\", \"head\": \"dp\"}}");
    slc_plan_answer answer;
    assert_int_equal(ask(&file_job, path, "serial", 0, &answer), SLUICE_OK);
    assert_int_equal(answer.plan->strategies[0], SLC_SDP);
    assert_int_equal(answer.plan->strategies[1], SLC_FSDP);
    assert_int_equal(answer.plan->strategies[2], SLC_DP);
    slc_plan_destroy(answer.plan);

    static const struct {
        const char *text, *said;
    } bad[] = {
        {"{\"layers\": {\n \"h.0\": \"fsdp\",\n \"h.7\": \"sdp\"}}", "line 3: \"h.7\": there is no such layer"},
        {"{\"layers\": {\"h.7\": \"sdp\"}}", "there are embed.wte, h.0, head"},
        {"{\"layers\": {\n\n \"h.0\": \"zero\"}}", "line 3: \"h.0\": \"zero\" is not a strategy"},
        {"{\"layers\": {\"h.0\": \"mixed\"}}",
         "\"mixed\" is not a strategy of a layer; choose dp, oss, sdp, fsdp or onebit"},
        {"{\"layers\": {\"h.0\": 3}}", "line 1: \"h.0\": its value is not a strategy"},
        {"{\n\"layers\": {\"h.0\": \"dp\"}}", "line 2: \"layers\" gives no strategy to \"embed.wte\""},
        {"{\"layers\": {\"*\": \"dp\",\n \"*\": \"sdp\"}}", "line 2: duplicate"},
        {"{\"layers\": {\"*\": \"dp\"},\n \"layer\": {}}", "line 2: \"layer\": unknown"},
        {"{\"layers\": [\"dp\"]}", "line 1: \"layers\": must be an object"},
        {"{}", "\"layers\" is missing"},
        {"[]", "\"layers\" is missing"},
        {"{\"layers\":\n {\"*\" \"dp\"}}", "line 2: "},
        {"", "line "},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(path, bad[i].text);
        refuses(&file_job, path, "serial", SLUICE_ERR_FORMAT, bad[i].said);
        assert_non_null(strstr(sluice_last_error(), path));
    }
    unlink(path);
}

/* Plans, seeds and files that say onebit must mean dp until the job is compressed; without consent they are refused. */
static void onebit_waits_for_its_phase(void **state)
{
    (void)state;
    char path[] = "/tmp/sluice_strategies_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_file(path, "{\"layers\": {\"h.0\": \"onebit\", \"*\": \"sdp\"}}");
    static const slc_strategy forced[3] = {SLC_FSDP, SLC_ONEBIT, SLC_STRATEGIES};
    const char *const specs[] = {"onebit", path, "fsdp"}; /* the last one with `forced` */
    const slc_strategy wanted[3][3] = {
        {SLC_ONEBIT, SLC_ONEBIT, SLC_ONEBIT}, {SLC_SDP, SLC_ONEBIT, SLC_SDP}, {SLC_FSDP, SLC_ONEBIT, SLC_FSDP}};
    for (int compressed = 0; compressed < 2; compressed++)
        for (int s = 0; s < 3; s++) {
            slc_job job = file_job;
            slc_plan_request request = {.strategy = specs[s], .schedule = "serial", .forced = s == 2 ? forced : NULL};
            slc_plan_answer answer;
            job.compressed = compressed;
            assert_int_equal(slc_plan_for_budget(&job, &request, &answer), SLUICE_OK);
            for (int u = 0; u < 3; u++) {
                bool onebit = wanted[s][u] == SLC_ONEBIT;
                assert_int_equal(answer.plan->strategies[u], onebit && !compressed ? SLC_DP : wanted[s][u]);
            }
            slc_plan_destroy(answer.plan);
        }
    slc_job exact = file_job;
    exact.exact = true;
    refuses(&exact, "onebit", "serial", SLUICE_ERR_ARGUMENT, "onebit needs a compressed optimizer");
    refuses(&exact, path, "serial", SLUICE_ERR_ARGUMENT, "onebit needs a compressed optimizer");
    unlink(path);
}

static bool any_onebit(const slc_plan *plan)
{
    bool any = false;
    for (uint32_t u = 0; u < plan->unit_count; u++) any = any || plan->strategies[u] == SLC_ONEBIT;
    return any;
}

/* Seeds may draw onebit in its phase only; strategies that fill a budget between sharded and whole never use it. */
static void onebit_is_drawn_in_its_phase(void **state)
{
    (void)state;
    uint32_t drawn[2] = {0};
    for (int compressed = 0; compressed < 2; compressed++)
        for (int seed = 0; seed < 20; seed++) {
            slc_job job = file_job;
            slc_plan_answer answer;
            char spec[24];
            snprintf(spec, sizeof spec, "random:%d", seed);
            job.compressed = compressed;
            assert_int_equal(ask(&job, spec, "serial", 0, &answer), SLUICE_OK);
            drawn[compressed] += any_onebit(answer.plan);
            slc_plan_destroy(answer.plan);
            assert_int_equal(ask(&job, "mixed", "serial", 0, &answer), SLUICE_OK);
            assert_false(any_onebit(answer.plan));
            slc_plan_destroy(answer.plan);
        }
    assert_true(!drawn[0] && drawn[1] > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_of_an_error_work),
        cmocka_unit_test(ilp_is_there_where_its_solver_is),
        cmocka_unit_test(error_names_the_largest_consumers),
        cmocka_unit_test(mixed_grows_with_the_budget),
        cmocka_unit_test(a_fraction_is_of_what_dp_needs),
        cmocka_unit_test(sharding_without_a_budget_takes_no_more_than_dp),
        cmocka_unit_test(random_is_deterministic),
        cmocka_unit_test(forced_strategies_go_over_all),
        cmocka_unit_test(onebit_waits_for_its_phase),
        cmocka_unit_test(onebit_is_drawn_in_its_phase),
        cmocka_unit_test(says_what_there_is),
        cmocka_unit_test(reads_strategies_from_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
