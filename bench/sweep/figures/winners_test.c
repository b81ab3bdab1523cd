/* Drawn sweeps: a winner is named only if its interval touches no other plan's, cells of equal plans have one
 * figure, and without repetitions nothing is named. */
#include "bench/sweep/figures/spread.h"
#include "bench/sweep/figures/figures.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CELLS = 200, PLANS = 8, SWEEPS = 4 };

static uint64_t state_of_draw = 7;

static uint32_t draw(uint32_t below)
{
    state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state_of_draw >> 33) % below;
}

/* A run of a cell: budget b, strategy s; its step is its plan's own time and noise. */
static json_t *make_run(uint32_t cell, uint32_t plan, uint32_t repeat, double step_s)
{
    char budget[16], strategy[16], digest[16];
    snprintf(budget, sizeof budget, "%uMiB", 1 + cell / 5);
    snprintf(strategy, sizeof strategy, "random:%u", cell % 5);
    snprintf(digest, sizeof digest, "plan %u", plan);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:f, s:i, s:{s:s, s:i}}", "throttle", "none", "budget",
                     budget, "strategy", strategy, "schedule", "serial", "optimizer", "adamw", "tied", "joint",
                     "plan_sha256", digest, "repeat", (int)repeat, "step_s", step_s, "peak_bytes", 1 << 20, "settings",
                     "budget", budget, "batch", 4);
}

static json_t *make_sweep(uint32_t repeats)
{
    json_t *runs = json_array();
    uint32_t plans[CELLS];
    double own[PLANS];
    for (uint32_t p = 0; p < PLANS; p++) own[p] = 1e-3 * (1 + 0.4 * draw(8));
    for (uint32_t c = 0; c < CELLS; c++) plans[c] = draw(PLANS);
    for (uint32_t r = 1; r <= repeats; r++)
        for (uint32_t c = 0; c < CELLS; c++)
            json_array_append_new(runs, make_run(c, plans[c], r, own[plans[c]] * (1 + 0.001 * draw(100))));
    return runs;
}

static char *show(const json_t *runs)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    slc_bench_winners_show(out, runs);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* The one run of a line's budget that the line names as the winner; NULL: it names none. */
static const json_t *winner_of(const json_t *runs, const char *line)
{
    char budget[16], strategy[16];
    if (strstr(line, "no winner")) return NULL;
    assert_int_equal(sscanf(line, " throttle none budget %15s adamw %15s", budget, strategy), 2);
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        if (!strcmp(slc_bench_text(run, "budget"), budget) && !strcmp(slc_bench_text(run, "strategy"), strategy))
            return run;
    }
    fail_msg("no such run: %s", line);
    return NULL;
}

/* An oracle of its own: the interval of all runs of a plan. */
static void interval(const json_t *runs, const char *plan, double *least, double *most)
{
    *least = INFINITY, *most = 0;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        if (strcmp(slc_bench_text(run, "plan_sha256"), plan)) continue;
        *least = fmin(*least, slc_bench_number(run, "step_s"));
        *most = fmax(*most, slc_bench_number(run, "step_s"));
    }
}

static void check_winner(const json_t *runs, const json_t *winner)
{
    double least, most, other_least, other_most;
    const char *plan = slc_bench_text(winner, "plan_sha256");
    interval(runs, plan, &least, &most);
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *other = json_array_get(runs, i);
        if (strcmp(slc_bench_text(other, "budget"), slc_bench_text(winner, "budget"))) continue;
        if (!strcmp(slc_bench_text(other, "plan_sha256"), plan)) continue;
        interval(runs, slc_bench_text(other, "plan_sha256"), &other_least, &other_most);
        assert_true(most < other_least);
    }
}

static void winners_are_apart(void **state)
{
    (void)state;
    uint32_t lines = 0, winners = 0;
    for (int s = 0; s < SWEEPS; s++) {
        json_t *runs = make_sweep(3);
        char *text = show(runs), *rest = text;
        for (char *line; (line = strsep(&rest, "\n")) && *line; lines++) {
            const json_t *winner = winner_of(runs, line);
            winners += winner != NULL;
            if (winner) check_winner(runs, winner);
        }
        free(text);
        json_decref(runs);
    }
    assert_int_equal(lines, SWEEPS * CELLS / 5);
    assert_true(winners > lines / 20 && winners < lines); /* the draw has both kinds */
}

static void equal_plans_have_one_figure(void **state)
{
    (void)state;
    json_t *runs = make_sweep(2);
    double medians[PLANS] = {0};
    for (size_t i = 0; i < CELLS; i++) {
        const json_t *run = json_array_get(runs, i);
        const int plan = atoi(slc_bench_text(run, "plan_sha256") + 5);
        const slc_bench_spread step = slc_bench_figure(runs, run, "step_s");
        if (!medians[plan]) medians[plan] = step.median;
        assert_true(step.median == medians[plan] && step.count > 2);
        assert_int_equal(slc_bench_count_plans(runs, run), 1);
    }
    /* A cell whose repetitions had two plans has its own runs alone. */
    json_t *last = json_array_get(runs, 2 * CELLS - 1);
    json_object_set_new(last, "plan_sha256", json_string("another"));
    const slc_bench_spread own = slc_bench_figure(runs, last, "step_s");
    assert_int_equal(slc_bench_count_plans(runs, last), 2);
    assert_int_equal(own.count, 2);
    json_decref(runs);
}

/* One run of each of two plans: no winner, whatever they take; nor per cent of auto. */
static void one_repetition_names_nobody(void **state)
{
    (void)state;
    json_t *runs = json_array();
    json_array_append_new(runs, make_run(0, 0, 1, 1e-3));
    json_array_append_new(runs, make_run(1, 1, 1, 9e-3));
    char *text = show(runs);
    assert_non_null(strstr(text, "not repeated, so no winner"));
    free(text);
    json_object_set_new(json_array_get(runs, 0), "strategy", json_string("auto"));
    json_object_set_new(json_array_get(runs, 1), "strategy", json_string("dp"));
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    slc_bench_auto_show(out, runs);
    fclose(out);
    assert_non_null(strstr(text, "not repeated"));
    assert_null(strchr(text, '%'));
    free(text);
    json_decref(runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(winners_are_apart),
        cmocka_unit_test(equal_plans_have_one_figure),
        cmocka_unit_test(one_repetition_names_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
