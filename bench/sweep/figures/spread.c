/* Looks through the runs once for each figure: a sweep has hundreds of them at most.
 * tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/figures/spread.h"

#include "lib/base/numbers/median.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The row that a run is compared with, and the keys under which the two must be equal. */
typedef struct {
    const json_t *row;
    const char *const *keys; /* NULL: the plan */
} likeness;

static bool is_like(const json_t *run, const likeness *like)
{
    return like->keys ? slc_bench_alike(run, like->row, like->keys) : slc_bench_same_plan(run, like->row);
}

static slc_bench_spread gather(const json_t *runs, const likeness *like, const char *number)
{
    slc_bench_spread spread = {NAN, NAN, NAN, 0};
    double *values = malloc((json_array_size(runs) + 1) * sizeof *values);
    for (size_t i = 0; values && i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        const double value = slc_bench_number(run, number);
        if (!slc_bench_complete(run) || isnan(value) || !is_like(run, like)) continue;
        spread.least = fmin(spread.least, value);
        spread.most = fmax(spread.most, value);
        values[spread.count++] = value;
    }
    if (values) spread.median = slc_median(values, spread.count);
    free(values);
    return spread;
}

slc_bench_spread slc_bench_spread_of(const json_t *runs, const json_t *row, const char *const *keys, const char *number)
{
    return gather(runs, &(likeness){row, keys}, number);
}

void slc_bench_put_step(FILE *file, const json_t *runs, const json_t *row, const char *const *keys)
{
    const slc_bench_spread step = slc_bench_spread_of(runs, row, keys, "step_s");
    const double numbers[] = {step.median, slc_bench_median(runs, row, keys, "predicted_step_s"), step.least,
                              step.most};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        slc_bench_put_number(file, 0, 3, 1e3 * numbers[i], "?");
}

/* ---- Plans ---- */

size_t slc_bench_count_plans(const json_t *runs, const json_t *row)
{
    static const char *const plan[] = {"plan_sha256", NULL};
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        bool seen = false;
        if (!slc_bench_complete(run) || !slc_bench_alike(run, row, slc_bench_cell_keys)) continue;
        if (!*slc_bench_text(run, "plan_sha256")) return 0;
        for (size_t j = 0; j < i && !seen; j++) {
            const json_t *before = json_array_get(runs, j);
            seen = slc_bench_complete(before) && slc_bench_alike(before, run, plan) &&
                   slc_bench_alike(before, run, slc_bench_cell_keys);
        }
        count += !seen;
    }
    return count;
}

static bool same_settings(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)a, key, value) {
        if (strcmp(key, "budget") && !json_equal(value, json_object_get(b, key))) return false;
    }
    return json_object_size(a) == json_object_size(b);
}

/* Two runs had the same plan if its checksum and their settings are equal. Strategy, schedule and budget need no look:
 * the plan says what they came to. */
bool slc_bench_same_plan(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"plan_sha256", "throttle",    "optimizer", "tied", "world",
                                       "device",      "environment", "source",    NULL};
    return *slc_bench_text(a, "plan_sha256") && slc_bench_alike(a, b, keys) &&
           same_settings(json_object_get(a, "settings"), json_object_get(b, "settings"));
}

slc_bench_spread slc_bench_figure(const json_t *runs, const json_t *row, const char *number)
{
    const bool one_plan = slc_bench_complete(row) && slc_bench_count_plans(runs, row) == 1;
    return gather(runs, &(likeness){row, one_plan ? NULL : slc_bench_cell_keys}, number);
}

/* ---- Intervals ---- */

double slc_bench_spread_half(const slc_bench_spread *spread)
{
    return spread->count > 1 ? (spread->most - spread->least) / 2 : NAN;
}

bool slc_bench_spreads_apart(const slc_bench_spread *a, const slc_bench_spread *b)
{
    return a->count > 1 && b->count > 1 && (a->most < b->least || b->most < a->least);
}
