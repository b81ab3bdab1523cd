/* Errors belong to buffers that come once in each step; steps are found without being told. */
#include "plugins/nccl/shim/transforms/residues.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { BYTES = 1000 };

static slc_shim_residues *create(uint64_t limit)
{
    slc_shim_residues *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->limit = limit;
    return r;
}

/* Uses buffer `name`; returns whether its errors are to be forgotten, or 2 if it has no place. */
static int use(slc_shim_residues *r, char name)
{
    uint64_t place = UINT64_MAX;
    bool forget;
    if (!slc_shim_residues_find(r, (void *)(uintptr_t)(unsigned char)name, (uint64_t)name, BYTES, &place, &forget))
        return 2;
    assert_true(place % BYTES == 0 && place + BYTES <= r->limit);
    return forget;
}

/* Uses buffers in turn; returns how many of them were forgotten or had no place. */
static int use_all(slc_shim_residues *r, const char *names)
{
    int forgotten = 0;
    for (; *names; names++) forgotten += use(r, *names) != 0;
    return forgotten;
}

static void keeps_errors_of_buckets(void **state)
{
    (void)state;
    slc_shim_residues *r = create(100 * BYTES);
    assert_int_equal(use_all(r, "abcd"), 4);
    for (int step = 0; step < 20; step++) assert_int_equal(use_all(r, "abcd"), 0);
    assert_int_equal(r->peak, 4 * BYTES);
    free(r);
}

static void forgets_what_comes_twice_in_a_step(void **state)
{
    (void)state;
    slc_shim_residues *r = create(100 * BYTES);
    use_all(r, "abbc"), use_all(r, "abbc");
    for (int step = 0; step < 10; step++) {
        assert_int_equal(use(r, 'a'), 0);
        assert_int_equal(use(r, 'b'), 1);
        assert_int_equal(use(r, 'b'), 1);
        assert_int_equal(use(r, 'c'), 0);
    }
    free(r);
}

static void gets_used_to_rebuilt_buckets(void **state)
{
    (void)state;
    slc_shim_residues *r = create(6 * BYTES); /* the old ones leave their places */
    use_all(r, "abc");
    int steps = 0;
    while (use_all(r, "def")) assert_true(++steps < 12);
    for (int step = 0; step < 20; step++) assert_int_equal(use_all(r, "def"), 0);
    use_all(r, "ghi");
    while (use_all(r, "ghi")) assert_true(++steps < 40);
    for (int step = 0; step < 20; step++) assert_int_equal(use_all(r, "ghi"), 0);
    assert_true(r->peak <= 6 * BYTES);
    free(r);
}

static void an_extra_buffer_now_and_then_changes_nothing(void **state)
{
    (void)state;
    slc_shim_residues *r = create(100 * BYTES);
    use_all(r, "abcd");
    for (int step = 0; step < 40; step++) {
        assert_int_equal(use_all(r, "abcd"), 0);
        if (step % 10 == 9) assert_int_equal(use(r, 'x'), 1); /* its errors are too old, or it is new */
    }
    free(r);
}

static void says_where_there_is_no_place(void **state)
{
    (void)state;
    slc_shim_residues *r = create(2 * BYTES);
    for (int step = 0; step < 5; step++) {
        assert_int_equal(use(r, 'a'), step == 0);
        assert_int_equal(use(r, 'b'), step == 0);
        assert_int_equal(use(r, 'c'), 2);
    }
    free(r);
}

/* The table has rows for so many buffers, however large the memory is; those that came first keep theirs. */
static void a_full_table_takes_no_more(void **state)
{
    (void)state;
    enum { MORE = 5 };
    slc_shim_residues *r = create((uint64_t)BYTES * (SLC_SHIM_RESIDUES + MORE));
    for (int step = 0; step < 2; step++)
        for (uint64_t i = 0; i < SLC_SHIM_RESIDUES + MORE; i++) {
            uint64_t place;
            bool forget;
            const bool has_place = slc_shim_residues_find(r, (void *)(uintptr_t)(64 * i), 1, BYTES, &place, &forget);
            assert_int_equal(has_place, i < SLC_SHIM_RESIDUES);
            if (has_place) assert_int_equal(forget, step == 0);
        }
    assert_int_equal(r->rows, SLC_SHIM_RESIDUES);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_errors_of_buckets),      cmocka_unit_test(forgets_what_comes_twice_in_a_step),
        cmocka_unit_test(gets_used_to_rebuilt_buckets), cmocka_unit_test(an_extra_buffer_now_and_then_changes_nothing),
        cmocka_unit_test(says_where_there_is_no_place), cmocka_unit_test(a_full_table_takes_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
