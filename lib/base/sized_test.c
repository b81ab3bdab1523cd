/* Structs of older and newer programs become this build's, and what is no struct at all is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/sized.h"

#include <sluice/init.h>
#include <stdbool.h>
#include <string.h>

typedef struct {
    size_t struct_size;
    uint64_t first;
} older;

typedef struct {
    size_t struct_size;
    uint64_t first, second;
} known;

typedef struct {
    size_t struct_size;
    uint64_t first, second, third;
    bool fourth;
} newer;

static const known defaults = {.struct_size = sizeof(known), .first = 10, .second = 20};

static sluice_status read_into(known *out, const void *given)
{
    *out = defaults;
    return slc_sized_read("known", NULL, given, sizeof *out, out);
}

static void what_an_older_struct_lacks_has_its_default(void **state)
{
    (void)state;
    known out;
    assert_int_equal(read_into(&out, &SLUICE_INIT(older, .first = 1)), SLUICE_OK);
    assert_true(out.struct_size == sizeof out && out.first == 1 && out.second == 20);
    assert_int_equal(read_into(&out, &SLUICE_INIT(known, .second = 2)), SLUICE_OK);
    assert_true(out.struct_size == sizeof out && out.first == 0 && out.second == 2);
    assert_int_equal(read_into(&out, NULL), SLUICE_OK);
    assert_memory_equal(&out, &defaults, sizeof out);
}

static void a_newer_struct_may_set_what_is_known(void **state)
{
    (void)state;
    known out;
    assert_int_equal(read_into(&out, &SLUICE_INIT(newer, .first = 1, .second = 2)), SLUICE_OK);
    assert_true(out.struct_size == sizeof out && out.first == 1 && out.second == 2);
    assert_int_equal(read_into(&out, &SLUICE_INIT(newer, .first = 1, .fourth = true)), SLUICE_ERR_UNSUPPORTED);
    assert_non_null(strstr(sluice_last_error(), "known has 40 bytes, and sets some after the 24"));
    assert_memory_equal(&out, &defaults, sizeof out);
}

static void what_has_no_size_is_refused(void **state)
{
    (void)state;
    known out;
    const size_t none[] = {0, 12, 1 << 20, SIZE_MAX - 7};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        known given = {.struct_size = none[i]};
        assert_int_equal(read_into(&out, &given), SLUICE_ERR_ARGUMENT);
        assert_non_null(strstr(sluice_last_error(), "begin with SLUICE_INIT(known)"));
        assert_memory_equal(&out, &defaults, sizeof out);
    }
    assert_int_equal(slc_sized_check("known", "known_init", &(known){0}, sizeof(known)), SLUICE_ERR_ARGUMENT);
    assert_string_equal(sluice_last_error(), "known.struct_size is 0; begin with known_init");
}

static void a_newer_struct_begins_with_0_behind_what_is_known(void **state)
{
    (void)state;
    newer large;
    memset(&large, 0xff, sizeof large);
    assert_int_equal(slc_sized_begin("known", &defaults, sizeof defaults, &large, sizeof large), SLUICE_OK);
    assert_true(large.struct_size == sizeof large && large.first == 10 && large.second == 20);
    assert_true(large.third == 0 && !large.fourth);
    assert_int_equal(slc_sized_check("known", NULL, &large, sizeof(known)), SLUICE_OK);
    for (size_t size = 0; size < 2; size++)
        assert_int_equal(slc_sized_begin("known", &defaults, sizeof defaults, &large, size), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_sized_begin("known", &defaults, sizeof defaults, NULL, sizeof large), SLUICE_ERR_ARGUMENT);
    assert_true(large.struct_size == sizeof large && large.first == 10);
}

static void results_end_where_the_caller_s_struct_does(void **state)
{
    (void)state;
    const known made = {.first = 1, .second = 2};
    struct {
        older given;
        uint64_t next;
    } small = {SLUICE_INIT(older), 7};
    newer large = SLUICE_INIT(newer, .third = 3);
    slc_sized_write(&made, sizeof made, &small.given);
    assert_true(small.given.struct_size == sizeof small.given && small.given.first == 1 && small.next == 7);
    slc_sized_write(&made, sizeof made, &large);
    assert_true(large.struct_size == sizeof large && large.first == 1 && large.second == 2 && large.third == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_an_older_struct_lacks_has_its_default),
                                       cmocka_unit_test(a_newer_struct_may_set_what_is_known),
                                       cmocka_unit_test(what_has_no_size_is_refused),
                                       cmocka_unit_test(a_newer_struct_begins_with_0_behind_what_is_known),
                                       cmocka_unit_test(results_end_where_the_caller_s_struct_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
