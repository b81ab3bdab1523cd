/* A text must hold all of its pieces, or as much from the beginning as there is room for. */
#include "lib/base/text/text_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char whole[] = "step 12, loss 0.5000";

static void build(slc_text_line *line)
{
    slc_text_line_add(line, "step %d", 12);
    slc_text_line_add(line, "%s", "");
    slc_text_line_add(line, ", loss %.4f", 0.5);
}

static void fits(void **state)
{
    (void)state;
    char out[sizeof whole + 1];
    slc_text_line line = {out, sizeof out, 0};
    build(&line);
    assert_string_equal(out, whole);
    assert_int_equal(line.used, strlen(whole));
}

/* In every room the text is cut where the room ends, and no byte after it is written. */
static void is_cut(void **state)
{
    (void)state;
    for (size_t bytes = 1; bytes <= sizeof whole; bytes++) {
        char out[sizeof whole + 1];
        memset(out, '#', sizeof out);
        slc_text_line line = {out, bytes, 0};
        build(&line);
        assert_int_equal(line.used, bytes - 1);
        assert_memory_equal(out, whole, bytes - 1);
        assert_int_equal(out[bytes - 1], 0);
        assert_int_equal(out[bytes], '#');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fits), cmocka_unit_test(is_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
