/* Lists of rows against counting and sorting: random rows of random tables, named once or often, none, all. */
#include "lib/engine/rows/lists.h"
#include "tests/support/seed.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

enum { ROWS_MAX = 1000, COUNT_MAX = 700 };

static uint64_t draw(uint64_t *state, uint64_t bound)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % bound;
}

typedef struct {
    slc_row_mark *marks; /* as many as the table has words of rows, in memory of that size */
    int32_t rows[COUNT_MAX], places[COUNT_MAX];
    bool named[ROWS_MAX];
    slc_row_list *list;
    uint64_t row_count, count, different;
} table;

static void draw_rows(table *t, uint64_t *random)
{
    t->row_count = draw(random, 4) ? 1 + draw(random, ROWS_MAX) : 64 * (1 + draw(random, ROWS_MAX / 64));
    free(t->marks);
    t->marks = calloc((t->row_count + 63) / 64, sizeof *t->marks);
    assert_non_null(t->marks);
    t->count = draw(random, 8) ? draw(random, COUNT_MAX) : 0;
    t->different = 0;
    memset(t->named, 0, sizeof t->named);
    uint64_t within = 1 + draw(random, t->row_count);
    for (uint64_t i = 0; i < t->count; i++) {
        t->rows[i] = (int32_t)(t->row_count - 1 - draw(random, within));
        t->different += !t->named[t->rows[i]];
        t->named[t->rows[i]] = true;
    }
}

static void assert_no_mark(const table *t)
{
    for (uint64_t w = 0; w < (t->row_count + 63) / 64; w++) assert_int_equal(t->marks[w].bits, 0);
}

static void a_list_has_each_row_once_in_order(void **state)
{
    table t = {.list = malloc(slc_row_list_bytes(ROWS_MAX))};
    uint64_t random = test_seed(1);
    (void)state;
    for (int trial = 0; trial < 2000; trial++) {
        draw_rows(&t, &random);
        bool in_place = draw(&random, 2);
        int32_t asked[COUNT_MAX], *places = in_place ? t.rows : t.places;
        memcpy(asked, t.rows, sizeof asked);
        assert_true(slc_row_list_make(t.marks, t.row_count, t.rows, t.count, t.different, t.list, places));
        assert_int_equal(t.list->count, t.different);
        for (uint32_t i = 0; i < t.list->count; i++) {
            assert_true(t.named[t.list->rows[i]]);
            if (i) assert_true(t.list->rows[i - 1] < t.list->rows[i]);
        }
        for (uint64_t i = 0; i < t.count; i++) assert_int_equal(t.list->rows[places[i]], asked[i]);
        assert_no_mark(&t);
    }
    free(t.list);
    free(t.marks);
}

static void too_many_rows_change_nothing(void **state)
{
    table t = {0};
    uint64_t random = test_seed(2);
    (void)state;
    t.list = calloc(1, slc_row_list_bytes(ROWS_MAX));
    for (int trial = 0; trial < 500; trial++) {
        draw_rows(&t, &random);
        if (!t.different) continue;
        memset(t.places, 0x55, sizeof t.places);
        assert_false(slc_row_list_make(t.marks, t.row_count, t.rows, t.count, t.different - 1, t.list, t.places));
        assert_false(slc_row_list_make(t.marks, t.row_count, t.rows, t.count, t.different - 1, NULL, NULL));
        assert_true(slc_row_list_make(t.marks, t.row_count, t.rows, t.count, t.different, NULL, NULL));
        assert_int_equal(t.list->count, 0);
        for (uint64_t i = 0; i < t.count; i++) assert_int_equal(t.places[i], 0x55555555);
        assert_no_mark(&t);
    }
    free(t.list);
    free(t.marks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_has_each_row_once_in_order),
        cmocka_unit_test(too_many_rows_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
