/* tests/command/recipe/recipe_file_test.sh covers this file. */
#include "bench/train/options/recipe_file.h"

#include "bench/cli/options/config_file.h"
#include "lib/base/file/json_file.h"
#include "lib/base/status.h"
#include "lib/base/text/nearest.h"
#include "lib/base/text/python_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 128 };

/* The values of a recipe, in the order in which it is written. */
static const slc_training_track tracks[] = {
    {"steps", "steps"},
    {"rate.peak", "lr"},
    {"rate.schedule", "lr-schedule"},
    {"rate.least", "lr-min"},
    {"rate.over", "lr-over"},
    {"rate.warmup", "warmup"},
    {"rate.horizon", "lr-horizon"},
    {"rate.decay", "lr-decay"},
    {"rate.timescale", "lr-timescale"},
    {"rate.warmup_again.at", "warmup-again-at"},
    {"rate.warmup_again.over", "warmup-again"},
    {"rate.batch.rule", "lr-rule"},
    {"rate.batch.sequences", "lr-batch"},
    {"rate.layer_decay", "layer-decay"},
    {"batch.micro_batches", "micro-batches"},
    {"batch.from", "micro-batches-from"},
    {"batch.over", "micro-batches-over"},
    {"length.curriculum", "curriculum"},
    {"length.batch", "curriculum-batch"},
    {"branches.drop_path", "drop-path"},
    {"depth.pld", "pld"},
    {"depth.pld_compat", "pld-compat"},
};
enum { TRACKS = sizeof tracks / sizeof *tracks };

typedef struct {
    const char *file;
    const slc_option *rows;
    slc_training_options *options;
} reading;

const slc_training_track *slc_training_track_at(size_t i)
{
    return i < TRACKS ? &tracks[i] : NULL;
}

bool slc_training_is_track(const char *option)
{
    for (int i = 0; i < TRACKS; i++)
        if (!strcmp(tracks[i].option, option)) return true;
    return false;
}

/* Returns true if the path of a track begins with these names and goes on. */
static bool is_inside(const char *path)
{
    const size_t length = strlen(path);
    for (int i = 0; i < TRACKS; i++)
        if (!strncmp(tracks[i].path, path, length) && tracks[i].path[length] == '.') return true;
    return false;
}

static const char *option_of(const char *path)
{
    for (int i = 0; i < TRACKS; i++)
        if (!strcmp(tracks[i].path, path)) return tracks[i].option;
    return NULL;
}

static sluice_status refuse(const reading *r, const char *path)
{
    slc_nearest nearest = {0};
    if (is_inside(path))
        return slc_error(SLUICE_ERR_ARGUMENT, "--recipe %s: %s: give an object with its values", r->file, path);
    for (int i = 0; i < TRACKS; i++) slc_nearest_offer(&nearest, path, strlen(path), tracks[i].path);
    const char *near = slc_nearest_suggestion(&nearest, strlen(path));
    return slc_error(SLUICE_ERR_ARGUMENT, "--recipe %s: %s: there is no such track%s%s%s; docs/formats.md lists them",
                     r->file, path, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static sluice_status take_value(const reading *r, const char *path, const json_t *value)
{
    char where[PATH_BYTES + 1024];
    const char *option = option_of(path);
    if (!option) return refuse(r, path);
    snprintf(where, sizeof where, "--recipe %s: %s", r->file, path);
    return slc_config_value_take(where, r->rows, slc_option_find(r->rows, option), r->options, r->options->typed,
                                 value);
}

/* Goes through an object below `path`, "" for the file itself. */
static sluice_status walk(const reading *r, const char *path, json_t *object)
{
    json_t *value;
    const char *key;
    json_object_foreach (object, key, value) {
        char below[PATH_BYTES];
        const int length = snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", key);
        if (!*path && !strcmp(key, "version")) continue;
        const bool fits = length >= 0 && length < PATH_BYTES;
        sluice_status status =
            fits && json_is_object(value) && is_inside(below) ? walk(r, below, value) : take_value(r, below, value);
        if (status) return status;
    }
    return SLUICE_OK;
}

static sluice_status check_version(const reading *r, const json_t *all)
{
    const json_t *version = json_object_get(all, "version");
    if (!json_is_object(all) || !version)
        return slc_error(SLUICE_ERR_FORMAT,
                         "--recipe %s: give an object, as {\"version\": 1, \"rate\": {\"peak\": 6e-4}}", r->file);
    if (json_integer_value(version) != SLC_TRAINING_RECIPE_VERSION)
        return slc_error(SLUICE_ERR_FORMAT, "--recipe %s: its version is not %d, which this build reads", r->file,
                         SLC_TRAINING_RECIPE_VERSION);
    return SLUICE_OK;
}

sluice_status slc_training_recipe_read(const char *path, const slc_option *rows, slc_training_options *options)
{
    const reading r = {path, rows, options};
    char *file = NULL;
    size_t bytes = 0;
    json_t *all = NULL;
    sluice_status status = slc_error_context(slc_json_file_read(path, &file, &bytes), "--recipe");
    if (!status) status = slc_error_context(slc_python_json_read(path, file, bytes, 0, &all), "--recipe");
    if (!status) status = check_version(&r, all);
    if (!status) status = walk(&r, "", all);
    json_decref(all);
    free(file);
    return status;
}
