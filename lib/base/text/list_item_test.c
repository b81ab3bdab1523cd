/* A list must be cut into its items, also if an item has a comma in it. */
#include "lib/base/text/list_item.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>

static void items_are(const char *list, const char *const *wanted, size_t count)
{
    char copy[64], *rest = copy, *item;
    size_t i = 0;
    snprintf(copy, sizeof copy, "%s", list);
    while ((item = slc_next_item(&rest)) != NULL) {
        assert_true(i < count);
        assert_string_equal(item, wanted[i++]);
    }
    assert_int_equal(i, count);
}
#define ITEMS(list, ...)                                                                                               \
    items_are(list, (const char *const[]){__VA_ARGS__}, sizeof(const char *const[]){__VA_ARGS__} / sizeof(char *))

static void commas_cut_unless_they_follow_a_backslash(void **state)
{
    (void)state;
    ITEMS("a", "a");
    ITEMS("a,b", "a", "b");
    ITEMS("a,,b,", "a", "", "b", "");
    ITEMS("", "");
    ITEMS("one\\,two,three", "one,two", "three");
    ITEMS("\\,\\,,\\,", ",,", ",");
    ITEMS("C:\\x,a\\", "C:\\x", "a\\"); /* a backslash before anything else is one */
}

static void what_is_written_is_read_again(void **state)
{
    (void)state;
    char list[64];
    slc_item_write("a,b\\c,", list, sizeof list);
    ITEMS(list, "a,b\\c,");
    slc_item_write(",,,,", list, 4);
    ITEMS(list, ",");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(commas_cut_unless_they_follow_a_backslash),
                                       cmocka_unit_test(what_is_written_is_read_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
