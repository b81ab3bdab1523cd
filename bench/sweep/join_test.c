/* Results of several sweeps, read together: nothing is lost, each row says where it is from, and the table has one
 * field for each name. */
#include "bench/sweep/join.h"

#include "bench/cli/output/result_file.h"
#include "bench/sweep/figures/figures.h"
#include "bench/train/options/options.h"
#include "tests/support/base/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char root[] = "/tmp/sluice_join_XXXXXX", a[64], b[64], empty[64];

static void put(const char *folder, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/results.json", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int make_folders(void **state)
{
    (void)state;
    if (!mkdtemp(root)) return -1;
    char *const paths[] = {a, b, empty};
    for (int i = 0; i < 3; i++) {
        snprintf(paths[i], 64, "%s/%c", root, "abe"[i]);
        if (mkdir(paths[i], 0777)) return -1;
    }
    put(a, "{\"runs\": [{\"strategy\": \"dp\", \"throttle\": \"100mbit,50us\", \"budget\": \"none\", \"repeat\": 1, "
           "\"step_s\": 0.5, \"losses\": [2, 1.5], \"settings\": {\"batch\": 4, \"precision\": \"fp32\"}}], "
           "\"does_not_fit\": [{\"strategy\": \"fsdp\", \"why\": \"it says \\\"no\\\", twice\", \"needed_bytes\": 77, "
           "\"settings\": {\"batch\": 4, \"precision\": \"fp32\"}}], \"environment\": {\"host\": \"one\"}}");
    put(b, "{\"runs\": [{\"strategy\": \"dp\", \"throttle\": \"none\", \"budget\": \"none\", \"repeat\": 1, "
           "\"interrupted\": true, \"settings\": {\"batch\": 8, \"precision\": \"fp32\"}}], \"does_not_fit\": [], "
           "\"environment\": {\"host\": \"two\"}}");
    return 0;
}

static int remove_folders(void **state)
{
    (void)state;
    remove_tree(root);
    return 0;
}

static void test_rows_say_where_they_are_from(void **state)
{
    (void)state;
    slc_bench_results all;
    char *const sources[] = {a, b};
    assert_int_equal(slc_bench_join_read(sources, 2, &all), SLUICE_OK);
    assert_int_equal(json_array_size(all.runs), 2);
    assert_int_equal(json_array_size(all.misfits), 1);
    const json_t *first = json_array_get(all.runs, 0), *second = json_array_get(all.runs, 1);
    assert_string_equal(slc_bench_text(first, "source"), a);
    assert_string_equal(slc_bench_text(second, "environment.host"), "two");
    assert_string_equal(slc_bench_text(first, "label"), "batch 4, one");
    assert_string_equal(slc_bench_text(second, "label"), "batch 8, two");
    slc_bench_results_free(&all);
}

/* A joined folder can be joined again, and its rows stay those of the sweeps. */
static void test_joined_results_can_be_joined(void **state)
{
    (void)state;
    slc_bench_results all;
    char path[128];
    char *const both[] = {a, b}, *const joined[] = {path};
    snprintf(path, sizeof path, "%s/joined.json", root);
    assert_int_equal(slc_bench_join_read(both, 2, &all), SLUICE_OK);
    assert_int_equal(slc_bench_results_write_json(&all, path), SLUICE_OK);
    slc_bench_results_free(&all);
    assert_int_equal(slc_bench_join_read(joined, 1, &all), SLUICE_OK);
    assert_string_equal(slc_bench_text(json_array_get(all.runs, 1), "source"), b);
    assert_string_equal(slc_bench_text(json_array_get(all.runs, 1), "environment.host"), "two");
    slc_bench_results_free(&all);
}

static void refused(char *const *sources, uint64_t count, sluice_status expected, const char *words)
{
    slc_bench_results all;
    assert_int_equal(slc_bench_join_read(sources, count, &all), expected);
    if (!strstr(sluice_last_error(), words)) fail_msg("%s", sluice_last_error());
    slc_bench_results_free(&all);
}

static void test_what_is_no_sweep_is_named(void **state)
{
    (void)state;
    char again[80], nothing[80], other[80];
    snprintf(again, sizeof again, "%s/", a);
    snprintf(nothing, sizeof nothing, "%s/nothing", root);
    snprintf(other, sizeof other, "%s/other.json", root);
    assert_int_equal(slc_result_file_write_text(other, "[1, 2]"), SLUICE_OK);
    refused((char *const[]){a, again}, 2, SLUICE_ERR_ARGUMENT, "is there twice");
    refused((char *const[]){a, nothing}, 2, SLUICE_ERR_PATH, nothing);
    refused((char *const[]){empty}, 1, SLUICE_ERR_PATH, "results.json");
    refused((char *const[]){other}, 1, SLUICE_ERR_FORMAT, other);
}

/* ---- The table ---- */

/* Takes the next field of a line off; quoted ones lose their quotes. Returns whether there was one. */
static bool take_field(char **line, char *field)
{
    char *at = *line;
    bool quoted = *at == '"';
    if (!*at) return false;
    at += quoted;
    while (*at && (quoted ? *at != '"' || at[1] == '"' : *at != ',' && *at != '\n')) {
        at += quoted && *at == '"';
        *field++ = *at++;
    }
    *field = 0;
    at += quoted;
    *line = at + (*at == ',' || *at == '\n');
    return true;
}

/* Reads the field under a name. */
static void field_of(const char *table, size_t row, const char *name, char out[512])
{
    char *text = strdup(table), *lines[8] = {0}, field[512], *head;
    size_t column = 0, count = 0, columns = 0, fields = 0;
    bool found = false;
    for (char *rest = text, *line; count < 8 && (line = strsep(&rest, "\n")) && *line;) lines[count++] = line;
    for (head = lines[0]; take_field(&head, field); columns++)
        if (!strcmp(field, name)) {
            assert_false(found); /* no name is there twice */
            found = true;
            column = columns;
        }
    if (!found) fail_msg("the table has no column %s", name);
    *out = 0;
    for (char *line = lines[row], *at = line; fields < columns && at <= line + strlen(line); fields++) {
        char *before = at;
        if (!take_field(&at, field)) *field = 0;
        if (fields == column) snprintf(out, 512, "%s", field);
        if (at == before) at++;
    }
    assert_int_equal(fields, columns);
    free(text);
}

static void test_every_setting_has_a_column(void **state)
{
    (void)state;
    slc_bench_results all;
    char path[128], table[16384], field[512];
    slc_training_options defaults;
    const char *name;
    json_t *value, *settings = json_object();
    char *const both[] = {a, b};
    snprintf(path, sizeof path, "%s/results.csv", root);
    assert_int_equal(slc_bench_join_read(both, 2, &all), SLUICE_OK);
    assert_int_equal(slc_bench_results_write_csv(&all, path), SLUICE_OK);
    slc_bench_results_free(&all);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    table[fread(table, 1, sizeof table - 1, file)] = 0;
    fclose(file);
    static const struct {
        size_t row;
        const char *name, *value;
    } expected[] = {{1, "throttle", "100mbit,50us"},
                    {1, "step_s", "0.5"},
                    {1, "first_loss", "2"},
                    {1, "last_loss", "1.5"},
                    {1, "interrupted", "0"},
                    {2, "interrupted", "1"},
                    {1, "batch", "4"},
                    {2, "batch", "8"},
                    {1, "precision", "fp32"},
                    {1, "host", "one"},
                    {2, "host", "two"},
                    {3, "fits", "0"},
                    {3, "planned_bytes", "77"},
                    {3, "why", "it says \"no\", twice"},
                    {3, "source", a}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        field_of(table, expected[i].row, expected[i].name, field);
        assert_string_equal(field, expected[i].value);
    }
    slc_training_options_init(&defaults);
    assert_int_equal(slc_training_options_json(&defaults, SLC_REPORTED | SLC_MEASURED, settings), 0);
    json_object_foreach (settings, name, value) field_of(table, 1, name, field);
    json_decref(settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_say_where_they_are_from),
        cmocka_unit_test(test_joined_results_can_be_joined),
        cmocka_unit_test(test_what_is_no_sweep_is_named),
        cmocka_unit_test(test_every_setting_has_a_column),
    };
    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
