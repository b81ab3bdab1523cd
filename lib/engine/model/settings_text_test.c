/* Two ranks' settings as text: the first that differs is named with both values, and the others are counted. */
#include "lib/engine/model/settings_text.h"

#include "lib/optim/optimizers.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <setjmp.h>
#include <cmocka.h>

static slc_settings_difference found;

static uint32_t differ(const char *first, const char *second)
{
    memset(&found, 0, sizeof found);
    return slc_settings_differ(first, second, &found);
}

static void equal_texts_do_not_differ(void **state)
{
    (void)state;
    assert_int_equal(differ("", ""), 0);
    assert_int_equal(differ("clip 1\nnan stop\n", "clip 1\nnan stop\n"), 0);
}

static void the_first_difference_is_named(void **state)
{
    (void)state;
    assert_int_equal(differ("clip 1\nnan stop\nwire fp32\n", "clip 1\nnan skip\nwire bf16\n"), 2);
    assert_string_equal(found.name, "nan");
    assert_string_equal(found.first, "stop");
    assert_string_equal(found.second, "skip");
    /* A value may have blanks, be empty, and begin as the other one does. */
    assert_int_equal(differ("strategy \"a file\"\nclip 1\n", "strategy \"a file.json\"\nclip 10\n"), 2);
    assert_string_equal(found.name, "strategy");
    assert_string_equal(found.first, "\"a file\"");
    assert_string_equal(found.second, "\"a file.json\"");
}

/* Whatever the settings of a runtime may become, they have room. */
static void all_settings_have_room(void **state)
{
    (void)state;
    static sluice_runtime rt;
    static char long_name[1000], text[SLC_SETTINGS_BYTES], other[SLC_SETTINGS_BYTES];
    memset(long_name, 'n', sizeof long_name - 1);
    memset(&rt, 0, sizeof rt);
    for (size_t g = 0; slc_optimizer_group_at(g); g++)
        for (uint32_t i = 0; i < slc_optimizer_group_at(g)->count; i++) {
            const slc_optimizer_setting *s = &slc_optimizer_group_at(g)->settings[i];
            void *field = (char *)&rt.config + s->offset;
            if (s->type == SLC_OPTIMIZER_REAL)
                *(double *)field = -1e-300 / 3;
            else if (s->type == SLC_OPTIMIZER_WHOLE)
                *(uint64_t *)field = UINT64_MAX;
        }
    rt.planning.strategy = rt.planning.schedule = long_name;
    rt.optimizer.name = long_name;
    slc_settings_text(&rt, text);
    assert_true(strlen(text) < SLC_SETTINGS_BYTES - 500);
    assert_int_equal(text[strlen(text) - 1], '\n');
    /* Long names are cut in the text, but two that differ behind the cut still make different texts. */
    static char another_name[1000];
    memcpy(another_name, long_name, sizeof long_name);
    another_name[900] = 'm';
    rt.planning.schedule = another_name;
    slc_settings_text(&rt, other);
    assert_int_equal(differ(text, other), 1);
    assert_string_equal(found.name, "schedule");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_texts_do_not_differ),
        cmocka_unit_test(the_first_difference_is_named),
        cmocka_unit_test(all_settings_have_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
