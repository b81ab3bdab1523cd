/* Characters and damaged bytes of every kind are told apart, wherever they lie among pieces of eight bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/text/utf8.h"

#include <string.h>

static void character_is(const char *text, size_t bytes, size_t wrong)
{
    /* at every place of a longer text, so that the pieces of eight bytes are met */
    for (size_t before = 0; before < 17; before++) {
        char all[64];
        memset(all, 'x', sizeof all);
        memcpy(all + before, text, bytes);
        assert_int_equal(slc_utf8_valid(all, before + bytes), wrong < bytes ? before + wrong : before + bytes);
    }
}

static void utf8_is_known(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes, wrong;
    } rows[] = {
        {"", 0, 0},
        {"abc\n", 4, 4},
        {"\xc3\xa9", 2, 2},
        {"\xe2\x82\xac", 3, 3},
        {"\xf0\x9f\x98\x80", 4, 4},
        {"\xf4\x8f\xbf\xbf", 4, 4},
        {"\xc3", 1, 0},             /* cut off */
        {"a\xe9 b", 4, 1},          /* Latin-1 */
        {"\xc0\x80", 2, 0},         /* overlong */
        {"\xe0\x80\x80", 3, 0},     /* overlong */
        {"\xed\xa0\x80", 3, 0},     /* a surrogate */
        {"\xf4\x90\x80\x80", 4, 0}, /* beyond U+10FFFF */
        {"\x80", 1, 0},
        {"\xf5\x80\x80\x80", 4, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) character_is(rows[i].text, rows[i].bytes, rows[i].wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
