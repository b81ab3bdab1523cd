/* Reads settings by their rows, and finds variables that no row describes. */
#include "lib/base/settings.h"

#include "lib/base/log.h"
#include "lib/base/text/nearest.h"
#include "lib/base/status.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const slc_setting base_rows[] = {
    {"SLUICE_LOG_LEVEL", "warn", SLC_SETTING_TEXT, "how much is said on standard error: error, warn, info or debug"},
    {"SLUICE_JOB_TOKEN", "", SLC_SETTING_TEXT, "the job's secret: ranks with another one are refused"},
    {"SLUICE_COMMAND", "", SLC_SETTING_TEXT, "tests: the path of the sluice command"},
    {"SLUICE_TEST_PYTHON", "", SLC_SETTING_TEXT, "tests: a Python with torch, whose torchrun starts ranks"},
    {"SLUICE_TEST_SCALE", "1", SLC_SETTING_TEXT, "tests: long ones do this fraction of their rounds"},
    {"SLUICE_TEST_BRIEF", "", SLC_SETTING_TEXT, "tests: any value: only the smallest cases that reach each branch"},
    {"SLUICE_TEST_STEPS", "", SLC_SETTING_TEXT, "tests: how many steps those train that compare whole runs"},
    {"SLUICE_TEST_SEED", "", SLC_SETTING_TEXT, "tests: a number that changes all of their seeds"},
};
const slc_settings slc_base_settings = {"general", base_rows, sizeof base_rows / sizeof *base_rows};

static const slc_setting *find(const slc_settings *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (!strcmp(table->rows[i].name, name)) return &table->rows[i];
    return NULL;
}

const char *slc_setting_text(const slc_settings *table, const char *name)
{
    const slc_setting *row = find(table, name);
    assert(row);
    const char *value = getenv(name);
    return value && *value ? value : row->fallback;
}

sluice_status slc_setting_switch(const slc_settings *table, const char *name, bool *out)
{
    static const char *const yes[] = {"on", "1", "yes", "true"}, *const no[] = {"off", "0", "no", "false"};
    const char *text = slc_setting_text(table, name);
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (strcasecmp(text, yes[i]) && strcasecmp(text, no[i])) continue;
        *out = !strcasecmp(text, yes[i]);
        return SLUICE_OK;
    }
    return slc_error(SLUICE_ERR_ARGUMENT, "%s=%s: give on or off", name, text);
}

sluice_status slc_setting_seconds(const slc_settings *table, const char *name, double *out)
{
    const char *text = slc_setting_text(table, name);
    char *end;
    double value = strtod(text, &end);
    if (end == text || (*end && strcmp(end, "s")) || !(value > 0 && value < 1e7))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s=%s: give seconds, more than 0", name, text);
    *out = value;
    return SLUICE_OK;
}

sluice_status slc_setting_count(const slc_settings *table, const char *name, unsigned *out)
{
    const char *text = slc_setting_text(table, name);
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < 0 || value > 1000000)
        return slc_error(SLUICE_ERR_ARGUMENT, "%s=%s: give a whole number", name, text);
    *out = (unsigned)value;
    return SLUICE_OK;
}

sluice_status slc_settings_check(const slc_settings *table)
{
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < table->count; i++) {
        const slc_setting *row = &table->rows[i];
        bool on;
        double seconds;
        unsigned count;
        if (!*slc_setting_text(table, row->name)) continue;
        switch (row->type) {
        case SLC_SETTING_TEXT: break;
        case SLC_SETTING_SWITCH: status = slc_setting_switch(table, row->name, &on); break;
        case SLC_SETTING_SECONDS: status = slc_setting_seconds(table, row->name, &seconds); break;
        case SLC_SETTING_COUNT: status = slc_setting_count(table, row->name, &count); break;
        }
    }
    return status;
}

/* ---- Variables that no row describes ---- */

/* True for variables that are neither settings nor mistakes: build systems and module files of clusters set them to say
 * where the library lies. */
static bool says_where_it_lies(const char *name, size_t length)
{
    static const char *const places[] = {"ROOT", "DIR", "HOME", "PREFIX", "BASE", "BIN", "LIB", "INC", "INCLUDE"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (length == 7 + strlen(places[i]) && !strncmp(name + 7, places[i], length - 7)) return true;
    return false;
}

static void check_variable(const slc_settings *const *tables, size_t count, const char *name, size_t length)
{
    slc_nearest nearest = {0};
    for (size_t t = 0; t < count; t++)
        for (size_t i = 0; i < tables[t]->count; i++)
            slc_nearest_offer(&nearest, name, length, tables[t]->rows[i].name);
    if (nearest.name && !nearest.distance) return;
    const char *near = slc_nearest_suggestion(&nearest, length);
    slc_log(SLC_LOG_WARN, "%.*s is not a setting and has no effect%s%s%s", (int)length, name,
            near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

void slc_settings_warn_unknown(const slc_settings *const *tables, size_t count)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&warned)) return;
    for (char **variable = environ; *variable; variable++) {
        const size_t length = strcspn(*variable, "=");
        if (strncmp(*variable, "SLUICE_", 7) || says_where_it_lies(*variable, length)) continue;
        check_variable(tables, count, *variable, length);
    }
}

/* ---- The page ---- */

static const char for_tests[] = "tests: "; /* so the meaning of a row begins that only tests need */

static bool is_for_tests(const slc_setting *row)
{
    return !strncmp(row->doc, for_tests, sizeof for_tests - 1);
}

static void print_rows(const slc_settings *table, bool tests, FILE *out)
{
    static const char *const kinds[] = {"text", "on or off", "seconds", "number"};
    for (size_t i = 0; i < table->count; i++) {
        const slc_setting *row = &table->rows[i];
        if (is_for_tests(row) != tests) continue;
        fprintf(out, "| `%s` | %s%s%s | %s | %s |\n", row->name, *row->fallback ? "`" : "", row->fallback,
                *row->fallback ? "`" : "", kinds[row->type], row->doc + (tests ? sizeof for_tests - 1 : 0));
    }
}

void slc_settings_print(const slc_settings *const *tables, size_t count, FILE *out)
{
    static const char head[] = "\n## %s\n\n| variable | default | type | meaning |\n|---|---|---|---|\n";
    for (size_t t = 0; t < count; t++) {
        fprintf(out, head, tables[t]->section);
        print_rows(tables[t], false, out);
    }
    fprintf(out, head, "for tests alone");
    for (size_t t = 0; t < count; t++) print_rows(tables[t], true, out);
}
