/* Fused jobs with a parameter that is split by its uses: its units keep their partners under the new numbers and are
 * never fused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/plan/fused_job.h"

#include <sluice/status.h>
#include <string.h>

enum { LAYERS = 5, UNITS = 6 };

static slc_use uses[UNITS][1] = {{{1, true}}, {{2, true}}, {{4, true}}, {{0, true}}, {{3, true}}, {{4, true}}};
static const char *const names[UNITS] = {"h.1", "h.2", "table", "rows", "h.3", "h.4"};

static void draw(slc_job *job, slc_unit units[UNITS])
{
    for (uint32_t u = 0; u < UNITS; u++)
        units[u] = (slc_unit){
            .name = names[u], .elements = 64, .block_elements = 64, .trainable = true, .uses = uses[u], .use_count = 1};
    units[2].role = SLC_UNIT_SPLIT;
    units[2].partner = 3;
    units[3].role = SLC_UNIT_ROWS;
    units[3].partner = 2;
    units[3].row_elements = 8;
    units[3].row_count = units[3].most_rows = 8;
    *job = (slc_job){.world = 2, .micro_batches = 1, .layer_count = LAYERS, .units = units, .unit_count = UNITS};
}

static void partners_have_the_numbers_of_the_fused_job(void **state)
{
    (void)state;
    slc_unit units[UNITS];
    slc_job job;
    slc_fused_job fused;
    const uint32_t group[UNITS] = {0, 0, 2, 3, 4, 4};
    draw(&job, units);
    assert_int_equal(slc_fused_job_init(&job, group, &fused), SLUICE_OK);
    assert_int_equal(fused.job.unit_count, 4);
    const slc_unit *split = &fused.job.units[1], *rows = &fused.job.units[2];
    assert_true(split->role == SLC_UNIT_SPLIT && split->partner == 2 && !strcmp(split->name, "table"));
    assert_true(rows->role == SLC_UNIT_ROWS && rows->partner == 1 && !strcmp(rows->name, "rows"));
    assert_true(rows->row_elements == 8 && rows->row_count == 8 && rows->most_rows == 8 && rows->elements == 64);
    assert_true(fused.job.units[0].fused && fused.job.units[3].fused);
    slc_fused_job_fini(&fused);
}

static void what_is_split_joins_nothing(void **state)
{
    (void)state;
    slc_unit units[UNITS];
    slc_job job;
    slc_fused_job fused;
    draw(&job, units);
    assert_true(slc_units_join(&units[0], &units[1]) && slc_units_join(&units[4], &units[5]));
    assert_false(slc_units_join(&units[3], &units[0])); /* the rows of layer 0, and the unit of layer 1 */
    assert_false(slc_units_join(&units[4], &units[2])); /* the unit of layer 3, and the split parameter in layer 4 */
    const uint32_t group[UNITS] = {0, 1, 2, 3, 2, 5};
    assert_int_equal(slc_fused_job_init(&job, group, &fused), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "units \"table\" and \"h.3\" cannot be one"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(partners_have_the_numbers_of_the_fused_job),
                                       cmocka_unit_test(what_is_split_joins_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
