/* tests/command/recipe/recipe_file_test.sh covers this file. */
#include "bench/train/options/recipe_json.h"

#include "bench/train/options/options.h"
#include "bench/train/options/recipe_file.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 128 };

/* Puts a value, which it takes over, at `path` below `object`. */
static int put_below(json_t *object, const char *path, json_t *value)
{
    char name[PATH_BYTES];
    const char *dot = strchr(path, '.');
    if (!dot) return json_object_set_new(object, path, value);
    snprintf(name, sizeof name, "%.*s", (int)(dot - path), path);
    json_t *below = json_object_get(object, name);
    if (!below) {
        below = json_object();
        if (json_object_set_new(object, name, below)) {
            json_decref(value);
            return -1;
        }
    }
    return put_below(below, dot + 1, value);
}

json_t *slc_training_recipe_json(const slc_training_options *options)
{
    json_t *settings = json_object(), *all = json_pack("{s:i}", "version", SLC_TRAINING_RECIPE_VERSION);
    int failed = slc_training_options_json(options, SLC_SAVED | SLC_MEASURED, settings) || !all;
    const slc_training_track *track;
    for (size_t i = 0; !failed && (track = slc_training_track_at(i)); i++)
        failed = put_below(all, track->path, json_incref(json_object_get(settings, track->option)));
    json_decref(settings);
    if (failed) json_decref(all);
    return failed ? NULL : all;
}
