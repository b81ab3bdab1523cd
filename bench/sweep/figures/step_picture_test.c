/* A point or a bar that is far above the others does not flatten them: the panel ends above these, and the point stands
 * at its edge with its figure. Without such a one there is room for all. */
#include "tests/support/base/folder.h"

#include "bench/sweep/figures/figures.h"

#include <stdio.h>
#include <string.h>

enum { BUDGETS = 8 };

static void add_run(json_t *runs, int budget, int repeat, double step_s)
{
    char name[16];
    snprintf(name, sizeof name, "%dMiB", 10 + budget);
    json_t *run = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:f, s:i, s:i, s:b}", "throttle", "none",
                            "strategy", "auto", "schedule", "ilp", "budget", name, "model", "gpt2", "size", "nano",
                            "tied", "joint", "repeat", repeat, "step_s", step_s, "budget_bytes", (10 + budget) << 20,
                            "peak_bytes", (10 + budget) << 20, "complete", true);
    assert_int_equal(json_array_append_new(runs, run), 0);
}

/* Draws steps of 100 to 107 ms, and what is given of the last budget; the script is in `script`. */
static void draw(const double *last_s, int repeats, char script[8192])
{
    slc_bench_results results;
    works(slc_bench_results_init(&results));
    for (int budget = 0; budget < BUDGETS; budget++)
        for (int repeat = 1; repeat <= repeats; repeat++)
            add_run(results.runs, budget, repeat, budget + 1 < BUDGETS ? 0.1 + 0.001 * budget : last_s[repeat - 1]);
    FILE *out = tmpfile();
    assert_non_null(out);
    works(slc_bench_picture_draw(&results, test_folder(), out));
    fclose(out);
    slc_bench_results_free(&results);
    FILE *file = fopen(path_of("step_time.gp"), "r");
    assert_non_null(file);
    script[fread(script, 1, 8191, file)] = 0;
    fclose(file);
}

static void room_for_all_unless_one_is_far_away(void **state)
{
    (void)state;
    char script[8192];
    draw((const double[]){0.2}, 1, script);
    assert_non_null(strstr(script, "set yrange [0:*]"));
    assert_null(strstr(script, "with labels"));
    draw((const double[]){0.9}, 1, script);
    assert_non_null(strstr(script, "set yrange [0:116.600]")); /* a tenth above 106 ms */
    assert_non_null(strstr(script, "($2 > 116.600 ? 113.102 : 1/0):(sprintf('%.0f', $2)) with labels"));
    draw((const double[]){0.104, 0.104, 0.9}, 3, script); /* the bar of a repetition */
    assert_non_null(strstr(script, "set yrange [0:116.600]"));
    draw((const double[]){0.104, 0.104, 0.2}, 3, script);
    assert_null(strstr(script, "set yrange [0:1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(room_for_all_unless_one_is_far_away)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
