/* Options that a sweep takes as lists make its cells, so they may differ; an optimizer's own numbers follow from it.
 * tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/folder/agreement.h"

#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

static const char what_to_do[] = "name another folder with --output, or replace them with --overwrite";

json_t *slc_agreement_settings(const slc_training_options *options)
{
    static const char *const lists[] = {"strategy", "schedule", "budget", "throttle",  "optimizer",
                                        "tied",     "lr",       "batch",  "precision", "recompute"};
    json_t *settings = json_object();
    slc_training_options shared = *options;
    shared.optimizer = "";
    if (slc_training_options_json(&shared, SLC_MEASURED, settings)) {
        json_decref(settings);
        return NULL;
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) json_object_del(settings, lists[i]);
    return settings;
}

/* Writes a value as it would be typed. */
static void put_value(const json_t *value, char *text, size_t bytes)
{
    const size_t flags = JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9);
    char *dump = value && !json_is_string(value) ? json_dumps(value, flags) : NULL;
    snprintf(text, bytes, "%s", json_is_string(value) ? json_string_value(value) : dump ? dump : "null");
    if (!strcmp(text, "null") || !*text) snprintf(text, bytes, "(not given)");
    free(dump);
}

static bool same(const json_t *a, const json_t *b)
{
    return a && b ? json_equal(a, b) : a == b;
}

sluice_status slc_agreement_check_settings(const char *folder, const json_t *there, const json_t *here)
{
    const char *key;
    json_t *value;
    char a[256], b[256];
    if (!json_is_object(there))
        return slc_error(SLUICE_ERR_ARGUMENT, "%s has results that do not say with which settings they were made: %s",
                         folder, what_to_do);
    json_object_foreach ((json_t *)here, key, value) {
        const json_t *other = json_object_get(there, key);
        if (same(other, value) || (!other && json_is_null(value))) continue; /* an option that is newer than they are */
        put_value(other, a, sizeof a);
        put_value(value, b, sizeof b);
        return slc_error(SLUICE_ERR_ARGUMENT, "%s has results of --%s %s, and this sweep has --%s %s: %s", folder, key,
                         a, key, b, what_to_do);
    }
    return SLUICE_OK;
}

sluice_status slc_agreement_check_machine(const char *folder, const json_t *there, const json_t *here)
{
    static const char *const keys[] = {"sluice", "processor", "cores", "instruction_set"};
    char a[256], b[256];
    for (size_t i = 0; json_is_object(there) && i < sizeof keys / sizeof *keys; i++) {
        const json_t *was = json_object_get(there, keys[i]), *is = json_object_get(here, keys[i]);
        if (same(was, is)) continue;
        put_value(was, a, sizeof a);
        put_value(is, b, sizeof b);
        return slc_error(SLUICE_ERR_ARGUMENT, "%s has results of another machine or build (%s %s, here %s): %s", folder,
                         keys[i], a, b, what_to_do);
    }
    return SLUICE_OK;
}
