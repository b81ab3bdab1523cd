/* Every setting of every row is looked at, so that no difference is left out because nobody thought of it. */
#include "bench/sweep/figures/label.h"

#include "bench/sweep/results.h"
#include "bench/train/options/optimizer_options.h"
#include "bench/train/options/recipe_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    json_t *rows; /* of all lists; borrowed references */
    json_t *keys; /* texts: the keys that tell rows apart, in the order of the table of options */
} telling;

static const char *const shown_keys[] = {"throttle", "budget", "strategy", "schedule", "optimizer", "tied", NULL};
static const char *const machine_keys[] = {"environment.host",   "environment.processor",
                                           "environment.cores",  "environment.instruction_set",
                                           "environment.sluice", NULL};

/* ---- Which settings tell ---- */

static bool is_among(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name)) names++;
    return *names != NULL;
}

/* Says whether a setting is a number of the optimizer's own, which it has when no option gives another. */
static bool follows_from_optimizer(const char *name)
{
    static const char *const names[] = {"lr", "onebit", "freeze_step", "freeze_change", NULL};
    const slc_optimizer_setting *setting;
    for (size_t i = 0; (setting = slc_training_optimizer_setting(i)) != NULL; i++)
        if (!strcmp(setting->name, name)) return true;
    return is_among(name, names);
}

/* Says whether a setting is a value of recipes, which a row has from its recipe's file. */
static bool follows_from_recipe(const char *name)
{
    char option[64];
    snprintf(option, sizeof option, "%s", name);
    for (char *line; (line = strchr(option, '_'));) *line = '-';
    return slc_training_is_track(option);
}

/* True for a value that another one implies: the schedule of the rate ends with the steps. */
static bool is_implied(const json_t *row, const char *name)
{
    return !strcmp(name, "lr_horizon") &&
           json_equal(slc_bench_value(row, "settings.lr_horizon"), slc_bench_value(row, "settings.steps"));
}

/* Returns true if rows that may be compared differ in the value. A row that lacks it says nothing. The ways in which
 * ranks reach each other may follow from their number. */
static bool differs(const json_t *rows, const char *key, const char *name)
{
    static const char *const optimizer[] = {"optimizer", "recipe_file", NULL}, *const world[] = {"world", NULL},
                             *const recipe[] = {"recipe_file", NULL};
    const char *const *within = follows_from_optimizer(name) ? optimizer : !strcmp(name, "path") ? world : NULL;
    if (!within && follows_from_recipe(name)) within = recipe;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *value = slc_bench_value(row, key), *first = row;
        if (!value || is_implied(row, name)) continue;
        for (size_t j = 0; j < i; j++) {
            first = json_array_get(rows, j);
            if (slc_bench_value(first, key) && (!within || slc_bench_alike(first, row, within))) break;
            first = row;
        }
        if (!json_equal(slc_bench_value(first, key), value)) return true;
    }
    return false;
}

static void add_if_telling(telling *t, const char *key, const char *name)
{
    if (!is_among(name, shown_keys) && differs(t->rows, key, name)) json_array_append_new(t->keys, json_string(key));
}

/* The names of all settings of all rows, in the order in which rows have them. */
static json_t *list_settings(const json_t *rows)
{
    json_t *names = json_object();
    for (size_t i = 0; i < json_array_size(rows); i++)
        json_object_update_missing(names, json_object_get(json_array_get(rows, i), "settings"));
    return names;
}

/* Says whether a setting is shown in another way: a pipeline has a name as a strategy, and micro-batches are counted
 * over all ranks. */
static bool follows_from_case(const json_t *rows, const char *name)
{
    if (!strcmp(name, "pipeline") || !strcmp(name, "pipeline_schedule")) return true;
    return !strcmp(name, "micro_batches") && slc_bench_value(json_array_get(rows, 0), "step_micro_batches");
}

static void find_telling(telling *t)
{
    const char *name;
    json_t *value, *settings = list_settings(t->rows);
    char key[96];
    add_if_telling(t, "world", "world");
    add_if_telling(t, "recipe_file", "recipe_file");
    add_if_telling(t, "device", "device");
    add_if_telling(t, "path", "path");
    add_if_telling(t, "step_micro_batches", "step_micro_batches");
    json_object_foreach (settings, name, value) {
        snprintf(key, sizeof key, "settings.%s", name);
        if (follows_from_case(t->rows, name)) continue;
        if (strcmp(name, "device") != 0 && strcmp(name, "ranks") != 0) add_if_telling(t, key, name);
    }
    for (const char *const *machine = machine_keys; *machine; machine++)
        add_if_telling(t, *machine, strchr(*machine, '.') + 1);
    json_decref(settings);
}

/* Returns true if two rows of different sources are alike in all that is shown and tells. */
static bool sources_collide(const telling *t)
{
    const char *keys[128] = {0};
    size_t count = 0;
    for (; shown_keys[count]; count++) keys[count] = shown_keys[count];
    for (size_t k = 0; k < json_array_size(t->keys) && count < 126; k++)
        keys[count++] = json_string_value(json_array_get(t->keys, k));
    static const char *const source[] = {"source", NULL};
    for (size_t i = 0; i < json_array_size(t->rows); i++)
        for (size_t j = 0; j < i; j++)
            if (!slc_bench_alike(json_array_get(t->rows, i), json_array_get(t->rows, j), source) &&
                slc_bench_alike(json_array_get(t->rows, i), json_array_get(t->rows, j), keys))
                return true;
    return false;
}

/* ---- The words ---- */

/* "4 ranks", "bf16", "batch 8": the name is left out if the value says what it is. */
static void put_words(const json_t *row, const char *key, char *text, size_t bytes)
{
    const json_t *value = slc_bench_value(row, key);
    const char *dot = strrchr(key, '.'), *name = dot ? dot + 1 : key;
    if (!strcmp(name, "step_micro_batches")) name += strlen("step_");
    const size_t flags = JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6);
    static const char *const plain[] = {"precision", "source", "device",      "host",
                                        "processor", "model",  "recipe_file", NULL};
    char *dump = value && !json_is_string(value) ? json_dumps(value, flags) : NULL;
    const char *word = json_is_string(value) ? json_string_value(value) : dump ? dump : "-";
    if (!*word) word = "-";
    if (!strcmp(name, "world"))
        snprintf(text, bytes, "%s rank%s", word, strcmp(word, "1") != 0 ? "s" : "");
    else
        snprintf(text, bytes, "%s%s%s", is_among(name, plain) ? "" : name, is_among(name, plain) ? "" : " ", word);
    for (char *at = text; *at && at < text + strlen(name); at++)
        if (*at == '_') *at = ' ';
    free(dump);
}

static void label_row(const telling *t, json_t *row)
{
    char label[512] = "", words[128];
    size_t used = 0;
    for (size_t k = 0; k < json_array_size(t->keys); k++) {
        put_words(row, json_string_value(json_array_get(t->keys, k)), words, sizeof words);
        if (used < sizeof label)
            used += (size_t)snprintf(label + used, sizeof label - used, "%s%s", used ? ", " : "", words);
    }
    json_object_del(row, "label");
    if (*label) json_object_set_new(row, "label", json_string(label));
}

void slc_bench_label_rows(json_t *const *lists, size_t count)
{
    telling t = {.rows = json_array(), .keys = json_array()};
    for (size_t i = 0; t.rows && i < count; i++) json_array_extend(t.rows, lists[i]);
    if (t.rows && t.keys) {
        find_telling(&t);
        if (sources_collide(&t)) json_array_append_new(t.keys, json_string("source"));
        for (size_t i = 0; i < json_array_size(t.rows); i++) label_row(&t, json_array_get(t.rows, i));
    }
    json_decref(t.rows);
    json_decref(t.keys);
}
