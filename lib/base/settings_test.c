/* Rows must be read from the environment; a variable that no row describes must cause a warning with the nearest one
 * that exists. */
#include "lib/base/settings.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const slc_setting rows[] = {
    {"SLUICE_PUMP_DIRECT", "on", SLC_SETTING_SWITCH, "a switch"},
    {"SLUICE_PUMP_TIMEOUT", "60", SLC_SETTING_SECONDS, "seconds"},
    {"SLUICE_PUMP_DEPTH", "4", SLC_SETTING_COUNT, "a number"},
};
static const slc_settings table = {"pump", rows, 3};
static const slc_setting mixed_rows[] = {
    {"SLUICE_VALVE_SEED", "0", SLC_SETTING_COUNT, "tests: the seed"},
    {"SLUICE_VALVE_OPEN", "on", SLC_SETTING_SWITCH, "for tests: no, for users"},
};
static const slc_settings mixed = {"valve", mixed_rows, 2};

static void rows_are_read(void **state)
{
    (void)state;
    bool direct;
    double seconds;
    unsigned depth;
    unsetenv("SLUICE_PUMP_TIMEOUT");
    setenv("SLUICE_PUMP_DIRECT", "Off", 1);
    setenv("SLUICE_PUMP_DEPTH", "", 1); /* an empty variable counts as not set */
    assert_int_equal(slc_setting_switch(&table, "SLUICE_PUMP_DIRECT", &direct), SLUICE_OK);
    assert_false(direct);
    assert_int_equal(slc_setting_seconds(&table, "SLUICE_PUMP_TIMEOUT", &seconds), SLUICE_OK);
    assert_true(seconds == 60);
    assert_int_equal(slc_setting_count(&table, "SLUICE_PUMP_DEPTH", &depth), SLUICE_OK);
    assert_int_equal(depth, 4);
    assert_string_equal(slc_setting_text(&table, "SLUICE_PUMP_DIRECT"), "Off");
}

static void wrong_values_name_the_variable(void **state)
{
    (void)state;
    bool direct;
    double seconds;
    unsigned depth;
    setenv("SLUICE_PUMP_DIRECT", "perhaps", 1);
    setenv("SLUICE_PUMP_TIMEOUT", "-3", 1);
    setenv("SLUICE_PUMP_DEPTH", "4x", 1);
    assert_int_equal(slc_setting_switch(&table, "SLUICE_PUMP_DIRECT", &direct), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "SLUICE_PUMP_DIRECT=perhaps"));
    assert_int_equal(slc_setting_seconds(&table, "SLUICE_PUMP_TIMEOUT", &seconds), SLUICE_ERR_ARGUMENT);
    assert_int_equal(slc_setting_count(&table, "SLUICE_PUMP_DEPTH", &depth), SLUICE_ERR_ARGUMENT);
}

/* People set these variables for CMake, and so do module files of clusters. */
static const char *const where_it_lies[] = {"SLUICE_ROOT", "SLUICE_DIR", "SLUICE_HOME", "SLUICE_PREFIX", "SLUICE_BASE",
                                            "SLUICE_BIN",  "SLUICE_LIB", "SLUICE_INC",  "SLUICE_INCLUDE"};

static void unknown_variables_are_warned_about_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof where_it_lies / sizeof *where_it_lies; i++)
        setenv(where_it_lies[i], "/opt/sluice", 1);
    setenv("SLUICE_DIRS", "3", 1);
    setenv("SLUICE_D", "3", 1);
    setenv("SLUICE_PUMP_TIMOUT", "3", 1);
    setenv("SLUICE_ENTIRELY_ELSE", "3", 1);
    setenv("SLUICE_PUMP_DEPTH", "3", 1);
    int ends[2], saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    const slc_settings *tables[] = {&slc_base_settings, &table};
    slc_settings_warn_unknown(tables, 2);
    slc_settings_warn_unknown(tables, 2);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    char text[4096];
    ssize_t got = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    assert_true(got > 0);
    text[got] = 0;
    const char *first = strstr(text, "SLUICE_PUMP_TIMOUT is not a setting");
    assert_non_null(first);
    assert_null(strstr(first + 1, "SLUICE_PUMP_TIMOUT"));
    assert_non_null(strstr(text, "did you mean SLUICE_PUMP_TIMEOUT?"));
    assert_non_null(strstr(text, "SLUICE_ENTIRELY_ELSE is not a setting and has no effect\n"));
    assert_null(strstr(text, "SLUICE_PUMP_DEPTH"));
    assert_non_null(strstr(text, "SLUICE_DIRS is not a setting"));
    assert_non_null(strstr(text, "SLUICE_D is not a setting"));
    for (size_t i = 0; i < sizeof where_it_lies / sizeof *where_it_lies; i++) {
        char said[64];
        snprintf(said, sizeof said, "%s is not", where_it_lies[i]);
        if (strstr(text, said)) fail_msg("%s, but it says where the library lies", said);
    }
}

static void the_page_has_every_row(void **state)
{
    (void)state;
    char *page = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&page, &bytes);
    const slc_settings *tables[] = {&mixed, &table};
    slc_settings_print(tables, 2, out);
    fclose(out);
    for (int i = 0; i < 3; i++) assert_non_null(strstr(page, rows[i].name));
    assert_non_null(strstr(page, "## pump"));
    const char *tests = strstr(page, "## for tests alone");
    assert_true(tests && tests > strstr(page, "## pump"));
    assert_ptr_equal(strstr(page, "VALVE_SEED"), strstr(tests, "VALVE_SEED"));
    assert_non_null(strstr(tests, "| `SLUICE_VALVE_SEED` | `0` | number | the seed |\n"));
    assert_true(strstr(page, "| for tests: no, for users |\n") < tests);
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read),
        cmocka_unit_test(wrong_values_name_the_variable),
        cmocka_unit_test(unknown_variables_are_warned_about_once),
        cmocka_unit_test(the_page_has_every_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
